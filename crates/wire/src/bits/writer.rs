//! The writing side: a 64-bit accumulator in front of a byte slice.

use super::{BitError, GROUP_BITS, Width, bits_for, groups_of, low_ones, zig_zag};

/// Writes bits to a byte slice. What does not fit is an error and leaves the writer as it was.
///
/// Call [`finish`](Self::finish) at the end: the last few bits are held back until then.
///
/// ```
/// use muse_wire::bits::{BitReader, BitWriter};
/// let mut buffer = [0; 8];
/// let mut writer = BitWriter::new(&mut buffer);
/// writer.bool(true)?;
/// writer.ranged_u64(95, 0, 100)?;
/// writer.signed(-3, 4)?;
/// assert_eq!(writer.bit_len(), 1 + 7 + 4);
/// let len = writer.finish();
/// let mut reader = BitReader::new(&buffer[..len]);
/// assert_eq!(reader.bool(), Ok(true));
/// assert_eq!(reader.ranged_u64(0, 100), Ok(95));
/// assert_eq!(reader.signed(4), Ok(-3));
/// assert_eq!(reader.finish(), Ok(()));
/// # Ok::<(), muse_wire::bits::BitError>(())
/// ```
#[derive(Debug)]
pub struct BitWriter<'a> {
    buffer: &'a mut [u8],
    /// Bytes of the buffer that are written.
    flushed: usize,
    /// Bits that are not in the buffer yet, and how many; fewer than 64.
    pending: u64,
    pending_len: u32,
}

impl<'a> BitWriter<'a> {
    /// A writer at the front of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self {
            buffer,
            flushed: 0,
            pending: 0,
            pending_len: 0,
        }
    }

    /// Bits written.
    pub const fn bit_len(&self) -> u64 {
        self.flushed as u64 * 8 + self.pending_len as u64
    }

    /// Bits still free.
    #[inline]
    pub const fn remaining(&self) -> u64 {
        (self.buffer.len() - self.flushed) as u64 * 8 - self.pending_len as u64
    }

    /// Fills the last byte with zeros and says how many bytes were written.
    pub fn finish(mut self) -> usize {
        self.flush_bytes();
        self.flushed
    }

    /// Writes the low `count` bits of `value`, 0 to 64, whose other bits must be zero.
    #[inline]
    pub fn bits(&mut self, value: u64, count: u32) -> Result<(), BitError> {
        if bits_for(value) > count || count > 64 {
            return Err(BitError::OutOfRange);
        }
        self.require(u64::from(count))?;
        self.push(value, count);
        Ok(())
    }

    /// Writes one bit.
    #[inline]
    pub fn bool(&mut self, value: bool) -> Result<(), BitError> {
        self.bits(u64::from(value), 1)
    }

    /// Writes `count` bits, 0 to 64, of a number of either sign, as [`zig_zag`] maps it.
    #[inline]
    pub fn signed(&mut self, value: i64, count: u32) -> Result<(), BitError> {
        self.bits(zig_zag(value), count)
    }

    /// Writes a number of the range `min..=max` in as many bits as tell its numbers apart.
    #[inline]
    pub fn ranged_u64(&mut self, value: u64, min: u64, max: u64) -> Result<(), BitError> {
        if value < min || value > max {
            return Err(BitError::OutOfRange);
        }
        self.bits(value - min, bits_for(max - min))
    }

    /// Writes a number of the range `min..=max` in as many bits as tell its numbers apart.
    #[inline]
    pub fn ranged_i64(&mut self, value: i64, min: i64, max: i64) -> Result<(), BitError> {
        if value < min || value > max {
            return Err(BitError::OutOfRange);
        }
        self.bits(value.abs_diff(min), bits_for(max.abs_diff(min)))
    }

    /// Writes a number that is nearly always very small: 1 bit for 0, 3 for 1 and 2, 5 for 3 to 6, and so on
    /// (Elias gamma of `value + 1`: `n` zeros, a one, then the low `n` bits, where `n` is the binary logarithm).
    #[inline]
    pub fn gamma(&mut self, value: u64) -> Result<(), BitError> {
        // Only u64::MAX has no successor: 64 zeros and a one, its low 64 bits would all be zero.
        let (shifted, zeros) = match value.checked_add(1) {
            Some(successor) => (successor, successor.ilog2()),
            None => (0, 64),
        };
        let low_len = zeros % 64;
        self.require(u64::from(zeros + 1 + low_len))?;
        self.push(0, zeros);
        self.push(1, 1);
        self.push(shifted & low_ones(low_len), low_len);
        Ok(())
    }

    /// Writes a number of at most `width` bits (16, 32 or 64) in the fewest groups of four: their number less one in 2, 3
    /// or 4 bits, then the groups. Small numbers are short and large ones at most 4 bits longer than plain.
    #[inline]
    pub fn varint(&mut self, value: u64, width: Width) -> Result<(), BitError> {
        if bits_for(value) > width.bits() {
            return Err(BitError::OutOfRange);
        }
        let groups = groups_of(value);
        self.require(u64::from(width.prefix_bits() + groups * GROUP_BITS))?;
        self.push(u64::from(groups - 1), width.prefix_bits());
        self.push(value, groups * GROUP_BITS);
        Ok(())
    }

    /// Writes zeros up to the next whole byte.
    pub fn align(&mut self) {
        // The buffer ends with a whole byte, so they fit.
        self.push(0, self.pending_len.wrapping_neg() % 8);
    }

    /// Writes whole bytes, wherever in a byte the writer stands; fastest when aligned.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), BitError> {
        self.require(bytes.len() as u64 * 8)?;
        if self.pending_len.is_multiple_of(8) {
            self.flush_bytes();
            self.buffer[self.flushed..][..bytes.len()].copy_from_slice(bytes);
            self.flushed += bytes.len();
            return Ok(());
        }
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.push(u64::from_le_bytes(*chunk), 64);
        }
        for &byte in rest {
            self.push(u64::from(byte), 8);
        }
        Ok(())
    }

    #[inline]
    fn require(&self, count: u64) -> Result<(), BitError> {
        if count > self.remaining() {
            Err(BitError::End)
        } else {
            Ok(())
        }
    }

    /// Appends `count` bits, for which there is room, of a `value` that has no others.
    #[inline]
    fn push(&mut self, value: u64, count: u32) {
        self.pending |= value << self.pending_len;
        let len = self.pending_len + count;
        if len < 64 {
            self.pending_len = len;
            return;
        }
        let bytes = self.pending.to_le_bytes();
        self.buffer[self.flushed..][..8].copy_from_slice(&bytes);
        self.flushed += 8;
        // The bits that did not fit; none when the accumulator was empty.
        self.pending = value.checked_shr(64 - self.pending_len).unwrap_or(0);
        self.pending_len = len - 64;
    }

    /// Moves what is pending to the buffer, the last byte filled with zeros.
    fn flush_bytes(&mut self) {
        let len = self.pending_len.div_ceil(8) as usize;
        let bytes = self.pending.to_le_bytes();
        self.buffer[self.flushed..][..len].copy_from_slice(&bytes[..len]);
        self.flushed += len;
        self.pending = 0;
        self.pending_len = 0;
    }
}
