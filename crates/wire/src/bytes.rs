//! Byte readers and writers that cannot read or write past the end, and variable-length integers.
//!
//! Integers are little-endian. A *varint* holds up to 62 bits in 1, 2, 4 or 8 bytes; the two low bits of the first
//! byte say which, so a reader knows the length from the first byte alone.

use thiserror::Error;

/// There were fewer bytes than the value needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("unexpected end of bytes")]
pub struct EndOfBytes;

/// Largest number a varint holds.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Bytes that [`Writer::varint`] takes for `value`.
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Reads from the front of a byte slice.
///
/// ```
/// use muse_wire::bytes::Reader;
/// let mut reader = Reader::new(&[1, 2, 0, 9]);
/// assert_eq!((reader.u8(), reader.u16()), (Ok(1), Ok(2)));
/// assert!(reader.u16().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the front of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that have not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of bytes that have not been read yet.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True if everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `len` bytes.
    #[inline]
    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], EndOfBytes> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(EndOfBytes)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], EndOfBytes> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(EndOfBytes)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, EndOfBytes> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, EndOfBytes> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, EndOfBytes> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, EndOfBytes> {
        self.array().map(u64::from_le_bytes)
    }

    /// A variable-length integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, EndOfBytes> {
        let first = *self.rest.first().ok_or(EndOfBytes)?;
        let value = match first & 3 {
            0 => u64::from(self.u8()?),
            1 => u64::from(self.u16()?),
            2 => u64::from(self.u32()?),
            _ => self.u64()?,
        };
        Ok(value >> 2)
    }
}

/// Writes to the front of a byte slice; what does not fit is an error and leaves the writer as it was.
///
/// ```
/// use muse_wire::bytes::{Reader, Writer};
/// let mut buffer = [0; 8];
/// let mut writer = Writer::new(&mut buffer);
/// writer.varint(300).expect("two bytes of eight");
/// let len = writer.len();
/// assert_eq!(Reader::new(&buffer[..len]).varint(), Ok(300));
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the front of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }

    /// Bytes written.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if nothing has been written.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes still free.
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.len
    }

    /// Returns the bytes that have been written.
    pub fn written(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The free rest of the buffer; [`advance`](Self::advance) says how much of it was filled.
    pub fn spare(&mut self) -> &mut [u8] {
        &mut self.buffer[self.len..]
    }

    /// Counts `len` bytes of [`spare`](Self::spare) as written.
    pub fn advance(&mut self, len: usize) {
        self.len = (self.len + len).min(self.buffer.len());
    }

    /// Takes back everything after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Writes `bytes`.
    #[inline]
    pub fn slice(&mut self, bytes: &[u8]) -> Result<(), EndOfBytes> {
        let target = self.buffer[self.len..]
            .get_mut(..bytes.len())
            .ok_or(EndOfBytes)?;
        target.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }

    /// Writes one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), EndOfBytes> {
        self.slice(&[value])
    }

    /// Writes two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) -> Result<(), EndOfBytes> {
        self.slice(&value.to_le_bytes())
    }

    /// Writes four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) -> Result<(), EndOfBytes> {
        self.slice(&value.to_le_bytes())
    }

    /// Writes eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) -> Result<(), EndOfBytes> {
        self.slice(&value.to_le_bytes())
    }

    /// Writes a variable-length integer; `value` must not exceed [`VARINT_MAX`], its higher bits are lost.
    #[inline]
    pub fn varint(&mut self, value: u64) -> Result<(), EndOfBytes> {
        debug_assert!(value <= VARINT_MAX, "a varint holds 62 bits");
        let tagged = value << 2;
        match varint_len(value) {
            1 => self.u8(tagged as u8),
            2 => self.u16(tagged as u16 | 1),
            4 => self.u32(tagged as u32 | 2),
            _ => self.u64(tagged | 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_edge() {
        for value in [
            0,
            1,
            63,
            64,
            16_383,
            16_384,
            (1 << 30) - 1,
            1 << 30,
            VARINT_MAX,
        ] {
            let mut buffer = [0; 8];
            let mut writer = Writer::new(&mut buffer);
            writer.varint(value).expect("eight bytes hold any varint");
            assert_eq!(writer.len(), varint_len(value), "{value}");
            let len = writer.len();
            let mut reader = Reader::new(&buffer[..len]);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.is_empty());
            assert_eq!(
                Reader::new(&buffer[..len - 1]).varint(),
                Err(EndOfBytes),
                "{value} cut short"
            );
        }
    }

    #[test]
    fn a_full_writer_refuses_and_stays_as_it_was() {
        let mut buffer = [0; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.u16(0x0201).expect("two of three");
        assert_eq!(writer.u16(7), Err(EndOfBytes));
        assert_eq!(writer.written(), [1, 2]);
        writer.u8(3).expect("the last byte");
        assert_eq!(writer.remaining(), 0);
    }

    #[test]
    fn a_reader_stops_at_the_end() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u64(), Err(EndOfBytes));
        assert_eq!(reader.slice(3), Ok(&[1u8, 2, 3][..]));
        assert_eq!(reader.u8(), Err(EndOfBytes));
    }
}
