//! Modular sequence numbers and their reconstruction to 64 bits.
//!
//! On the wire a number has 8, 16 or 32 bits and wraps; inside a core it has 64 and does not. [`expand`] turns the first
//! into the second, given any number that is less than half the range away.

/// `true` when `a` is newer than `b`, modulo wrap-around. Exactly one of two different numbers is newer.
pub const fn more_recent_u8(a: u8, b: u8) -> bool {
    (a > b && a - b <= u8::MAX / 2) || (b > a && b - a > u8::MAX / 2)
}

/// [`more_recent_u8`] for 16 bits.
pub const fn more_recent_u16(a: u16, b: u16) -> bool {
    (a > b && a - b <= u16::MAX / 2) || (b > a && b - a > u16::MAX / 2)
}

/// [`more_recent_u8`] for 32 bits.
pub const fn more_recent_u32(a: u32, b: u32) -> bool {
    (a > b && a - b <= u32::MAX / 2) || (b > a && b - a > u32::MAX / 2)
}

/// The 64-bit number nearest to `near` whose low `bits` bits are those of `low`.
///
/// At the very start of the number space the nearest number that exists (is not negative) is taken.
///
/// ```
/// use muse_wire::sequence::expand;
/// assert_eq!(expand(0x0003, 16, 0x1_FFFE), 0x2_0003);
/// assert_eq!(expand(0xFFFF, 16, 0x2_0001), 0x1_FFFF);
/// ```
pub const fn expand(low: u64, bits: u32, near: u64) -> u64 {
    if bits >= 64 {
        return low;
    }
    let range = 1u64 << bits;
    let mask = range - 1;
    let candidate = (near & !mask) | (low & mask);
    let half = range / 2;
    if candidate > near && candidate - near > half && candidate >= range {
        candidate - range
    } else if near > candidate && near - candidate >= half {
        candidate.saturating_add(range)
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_of_two_different_bytes_is_newer() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(
                    more_recent_u8(a, b) ^ more_recent_u8(b, a),
                    a != b,
                    "{a} {b}"
                );
            }
        }
    }

    #[test]
    fn wider_numbers_wrap_like_bytes() {
        assert!(more_recent_u16(0, u16::MAX) && more_recent_u32(0, u32::MAX));
        assert!(more_recent_u16(32_767, 0) && !more_recent_u16(32_768, 0));
        assert!(more_recent_u32(5, u32::MAX - 5) && !more_recent_u32(u32::MAX - 5, 5));
    }

    #[test]
    fn expand_finds_every_number_within_half_the_range() {
        for near in [
            0u64,
            1,
            100,
            127,
            128,
            255,
            256,
            1_000,
            65_535,
            65_536,
            1 << 40,
        ] {
            for distance in -127i64..=128 {
                let Some(number) = near.checked_add_signed(distance) else {
                    continue;
                };
                assert_eq!(
                    expand(number & 0xFF, 8, near),
                    number,
                    "near {near} distance {distance}"
                );
            }
        }
        assert_eq!(expand(7, 64, 99), 7);
    }
}
