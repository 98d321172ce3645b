//! The checksum of states, and of what is stored: fast, 64 bits, the same on every machine.

/// Mixes eight bytes at a time. It tells accidents apart, not attacks.
///
/// With `h` starting at the length times `K`, for each little-endian word of eight bytes (the last filled with zeros):
/// `h = (h ^ word) * K`, then `h ^= h >> 29`; at the end `h = h * K ^ h >> 32`; all modulo 2^64.
///
/// ```
/// use muse_lockstep::checksum;
/// assert_ne!(checksum(b"one"), checksum(b"other"));
/// assert_ne!(checksum(&[0; 8]), checksum(&[0; 9]));
/// ```
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = (bytes.len() as u64).wrapping_mul(K);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = mix(hash, u64::from_le_bytes(last));
    }
    hash.wrapping_mul(K) ^ hash >> 32
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(K);
    hash ^ hash >> 29
}

/// The golden ratio's digits, made odd.
const K: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_standard_says() {
        assert_eq!(checksum(b""), 0);
        assert_eq!(checksum(b"deterministic"), 0xD13A_493E_59CE_0ECD);
    }

    #[test]
    fn every_bit_counts() {
        let bytes = [7u8; 37];
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&bytes), checksum(&other), "bit {bit}");
        }
    }
}
