//! The reading side: a position in a byte slice, read by unaligned 64-bit words.

use super::{BitError, GROUP_BITS, Width, bits_for, groups_of, low_ones, zag_zig};

/// Reads bits from a byte slice, in the formats of [`BitWriter`](super::BitWriter). Nothing is read past the end; after an error the
/// position is of no use.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position: u64,
}

impl<'a> BitReader<'a> {
    /// A reader at the front of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns the number of bits that have been read.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bits that have not been read yet.
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.bytes.len() as u64 * 8 - self.position
    }

    /// Checks that everything has been read but padding of less than a byte, and that the padding is zero.
    pub fn finish(mut self) -> Result<(), BitError> {
        if self.remaining() >= 8 {
            return Err(BitError::NotCanonical);
        }
        self.align()
    }

    /// The next `count` bits, 0 to 64.
    #[inline]
    pub fn bits(&mut self, count: u32) -> Result<u64, BitError> {
        if u64::from(count) > self.remaining() {
            return Err(BitError::End);
        }
        if count > 64 {
            return Err(BitError::OutOfRange);
        }
        let value = self.peek() & low_ones(count);
        self.position += u64::from(count);
        Ok(value)
    }

    /// The next bit.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, BitError> {
        self.bits(1).map(|bit| bit != 0)
    }

    /// A number written by [`BitWriter::signed`](super::BitWriter::signed).
    #[inline]
    pub fn signed(&mut self, count: u32) -> Result<i64, BitError> {
        self.bits(count).map(zag_zig)
    }

    /// A number written by [`BitWriter::ranged_u64`](super::BitWriter::ranged_u64).
    #[inline]
    pub fn ranged_u64(&mut self, min: u64, max: u64) -> Result<u64, BitError> {
        let span = max.checked_sub(min).ok_or(BitError::OutOfRange)?;
        let offset = self.bits(bits_for(span))?;
        if offset > span {
            Err(BitError::OutOfRange)
        } else {
            Ok(min + offset)
        }
    }

    /// A number written by [`BitWriter::ranged_i64`](super::BitWriter::ranged_i64).
    #[inline]
    pub fn ranged_i64(&mut self, min: i64, max: i64) -> Result<i64, BitError> {
        if min > max {
            return Err(BitError::OutOfRange);
        }
        let span = max.abs_diff(min);
        let offset = self.bits(bits_for(span))?;
        if offset > span {
            Err(BitError::OutOfRange)
        } else {
            Ok(min.wrapping_add_unsigned(offset))
        }
    }

    /// A number written by [`BitWriter::gamma`](super::BitWriter::gamma).
    #[inline]
    pub fn gamma(&mut self) -> Result<u64, BitError> {
        let available = self.remaining().min(64) as u32;
        let zeros = (self.peek() & low_ones(available)).trailing_zeros();
        if zeros == 64 {
            self.bits(64)?;
            return if self.bool()? {
                Ok(u64::MAX)
            } else {
                Err(BitError::OutOfRange)
            };
        }
        self.bits(zeros + 1)?;
        let low = self.bits(zeros)?;
        Ok((1 << zeros | low) - 1)
    }

    /// A number written by [`BitWriter::varint`](super::BitWriter::varint).
    #[inline]
    pub fn varint(&mut self, width: Width) -> Result<u64, BitError> {
        // At most 16 by the width of the prefix.
        let groups = self.bits(width.prefix_bits())? as u32 + 1;
        let value = self.bits(groups * GROUP_BITS)?;
        if groups == groups_of(value) {
            Ok(value)
        } else {
            Err(BitError::NotCanonical)
        }
    }

    /// Moves to the next whole byte; what is passed over must be zero.
    pub fn align(&mut self) -> Result<(), BitError> {
        let padding = self.bits((self.position.wrapping_neg() % 8) as u32)?;
        if padding == 0 {
            Ok(())
        } else {
            Err(BitError::NotCanonical)
        }
    }

    /// Fills `target` with the next bytes, wherever in a byte the reader stands.
    pub fn bytes(&mut self, target: &mut [u8]) -> Result<(), BitError> {
        if target.len() as u64 * 8 > self.remaining() {
            return Err(BitError::End);
        }
        if self.position.is_multiple_of(8) {
            let len = target.len();
            target.copy_from_slice(&self.bytes[(self.position / 8) as usize..][..len]);
            self.position += len as u64 * 8;
            return Ok(());
        }
        let (chunks, rest) = target.as_chunks_mut::<8>();
        for chunk in chunks {
            *chunk = self.bits(64)?.to_le_bytes();
        }
        for byte in rest {
            *byte = self.bits(8)? as u8;
        }
        Ok(())
    }

    /// The next 64 bits, zeros after the end.
    #[inline]
    fn peek(&self) -> u64 {
        // Within the slice's length, so it fits.
        let first = (self.position / 8) as usize;
        let shift = (self.position % 8) as u32;
        let rest = &self.bytes[first..];
        let Some((word, after)) = rest.split_first_chunk::<8>() else {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            return u64::from_le_bytes(word) >> shift;
        };
        let low = u64::from_le_bytes(*word) >> shift;
        let ninth = u64::from(after.first().copied().unwrap_or(0));
        low | ninth.checked_shl(64 - shift).unwrap_or(0)
    }
}
