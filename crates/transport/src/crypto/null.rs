//! No protection: a checksum finds corruption, nothing is secret and anyone can forge.
//!
//! For tests, and for links that encrypt end to end themselves. It is reached only through options named `danger`.

use super::{NONCE_LEN, PacketCipher, Rejected};

/// A checksum over nonce, associated data and payload, started from the protocol id.
pub(crate) struct Checksum {
    start: u64,
}

impl Checksum {
    pub(crate) const fn new(protocol_id: u64) -> Self {
        Self {
            start: protocol_id ^ OFFSET,
        }
    }

    /// The checksum of the three parts, each with its length.
    pub(crate) fn sum(&self, nonce: [u8; NONCE_LEN], ad: &[u8], plain: &[u8]) -> [u8; TAG_LEN] {
        let mut sum = self.start;
        for part in [&nonce[..], ad, plain] {
            sum = absorb(sum, part.len() as u64);
            let (words, rest) = part.as_chunks::<8>();
            for word in words {
                sum = absorb(sum, u64::from_le_bytes(*word));
            }
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            sum = absorb(sum, u64::from_le_bytes(last));
        }
        sum.to_le_bytes()
    }
}

impl PacketCipher for Checksum {
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        buffer: &mut [u8],
        plain_len: usize,
    ) -> usize {
        let (plain, rest) = buffer.split_at_mut(plain_len);
        rest[..TAG_LEN].copy_from_slice(&self.sum(nonce, ad, plain));
        plain_len + TAG_LEN
    }

    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected> {
        let (plain, tag) = payload.split_last_chunk::<TAG_LEN>().ok_or(Rejected)?;
        if self.sum(nonce, ad, plain) == *tag {
            Ok(plain.len())
        } else {
            Err(Rejected)
        }
    }
}

/// One step, a bijection in both arguments: a change within one word always changes the sum.
const fn absorb(sum: u64, word: u64) -> u64 {
    let mixed = (sum ^ word).wrapping_mul(PRIME);
    mixed ^ (mixed >> 32)
}

/// Length of the checksum.
pub(crate) const TAG_LEN: usize = 8;
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
