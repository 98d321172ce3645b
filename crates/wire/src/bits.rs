//! Bit readers and writers that cannot read or write past the end.
//!
//! Bits fill each byte from its lowest, so an aligned little-endian integer reads the same here as in
//! [`bytes`](crate::bytes). Messages are made of these; `docs/schema.md` builds on the layouts below.
//!
//! Every value has exactly one encoding: a reader refuses the others as [`BitError::NotCanonical`], so whatever decodes
//! encodes to the same bits again.

mod reader;
mod writer;

pub use reader::BitReader;
pub use writer::BitWriter;

use thiserror::Error;

/// The reason for which bits could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BitError {
    /// There are fewer bits left than the value needs.
    #[error("unexpected end of bits")]
    End,
    /// The value does not fit the bits or the range given for it.
    #[error("value out of range")]
    OutOfRange,
    /// The value was written in a longer form than necessary, or padding was not zero.
    #[error("not the canonical encoding")]
    NotCanonical,
}

/// Returns the number of bits that tell the numbers `0..=span` apart.
#[inline]
pub const fn bits_for(span: u64) -> u32 {
    64 - span.leading_zeros()
}

/// Maps small numbers of either sign to small numbers without: 0, -1, 1, -2, 2 to 0, 1, 2, 3, 4.
#[inline]
pub const fn zig_zag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zig_zag`].
#[inline]
pub const fn zag_zig(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The largest number a [`varint`](BitWriter::varint) has to hold; it decides the size of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 16 bits: prefix of 2, so 6 to 18 bits in all.
    Bits16,
    /// 32 bits: prefix of 3, so 7 to 35 bits in all.
    Bits32,
    /// 64 bits: prefix of 4, so 8 to 68 bits in all.
    Bits64,
}

impl Width {
    /// Bits of the largest number.
    #[inline]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits16 => 16,
            Self::Bits32 => 32,
            Self::Bits64 => 64,
        }
    }

    #[inline]
    const fn prefix_bits(self) -> u32 {
        match self {
            Self::Bits16 => 2,
            Self::Bits32 => 3,
            Self::Bits64 => 4,
        }
    }
}

/// Groups of four bits that hold `value`, at least one.
#[inline]
const fn groups_of(value: u64) -> u32 {
    bits_for(value | 1).div_ceil(GROUP_BITS)
}

/// A number whose low `count` bits, 0 to 64, are ones.
#[inline]
const fn low_ones(count: u32) -> u64 {
    if count == 0 {
        0
    } else {
        u64::MAX >> (64 - count)
    }
}

const GROUP_BITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes with one closure and hands the bytes to the other.
    fn round_trip<T>(
        write: impl FnOnce(&mut BitWriter) -> Result<(), BitError>,
        read: impl FnOnce(&mut BitReader) -> T,
    ) -> (T, u64) {
        let mut buffer = [0xAA; 40];
        let mut writer = BitWriter::new(&mut buffer);
        // Off the byte boundary, where mistakes hide.
        writer.bits(5, 3).expect("three bits");
        write(&mut writer).expect("there is room");
        let bits = writer.bit_len();
        let len = writer.finish();
        let mut reader = BitReader::new(&buffer[..len]);
        assert_eq!(reader.bits(3), Ok(5));
        let value = read(&mut reader);
        assert_eq!(reader.position(), bits);
        assert_eq!(reader.finish(), Ok(()));
        (value, bits - 3)
    }

    #[test]
    fn every_count_of_bits_round_trips() {
        for count in 0..=64 {
            let value = 0xDEAD_BEEF_CAFE_F00D & low_ones(count);
            let (got, bits) = round_trip(|w| w.bits(value, count), |r| r.bits(count));
            assert_eq!((got, bits), (Ok(value), u64::from(count)));
        }
    }

    #[test]
    fn bits_fill_bytes_from_the_lowest() {
        let mut buffer = [0; 3];
        let mut writer = BitWriter::new(&mut buffer);
        writer.bits(0b101, 3).expect("room");
        writer.bits(0x1FF, 9).expect("room");
        writer.align();
        writer.bits(0x42, 8).expect("room");
        assert_eq!(writer.finish(), 3);
        assert_eq!(buffer, [0b1111_1101, 0b0000_1111, 0x42]);
    }

    #[test]
    fn gamma_and_varint_have_the_documented_sizes() {
        for (value, bits) in [
            (0, 1),
            (1, 3),
            (2, 3),
            (3, 5),
            (6, 5),
            (7, 7),
            (u64::MAX, 65),
        ] {
            assert_eq!(
                round_trip(|w| w.gamma(value), |r| r.gamma()),
                (Ok(value), bits)
            );
        }
        let most = u64::MAX - 1;
        assert_eq!(
            round_trip(|w| w.gamma(most), |r| r.gamma()),
            (Ok(most), 127)
        );
        for (value, width, bits) in [
            (0, Width::Bits16, 6),
            (15, Width::Bits16, 6),
            (16, Width::Bits16, 10),
            (65_535, Width::Bits16, 18),
            (1_000, Width::Bits32, 15),
            (u64::from(u32::MAX), Width::Bits32, 35),
            (9, Width::Bits64, 8),
            (u64::MAX, Width::Bits64, 68),
        ] {
            let got = round_trip(|w| w.varint(value, width), |r| r.varint(width));
            assert_eq!(got, (Ok(value), bits));
        }
    }

    #[test]
    fn ranges_take_the_bits_they_need_and_no_value_outside() {
        let got = round_trip(|w| w.ranged_i64(-3, -10, 10), |r| r.ranged_i64(-10, 10));
        assert_eq!(got, (Ok(-3), 5));
        let whole = |w: &mut BitWriter| w.ranged_i64(i64::MIN, i64::MIN, i64::MAX);
        let got = round_trip(whole, |r| r.ranged_i64(i64::MIN, i64::MAX));
        assert_eq!(got, (Ok(i64::MIN), 64));
        assert_eq!(
            round_trip(|w| w.ranged_u64(7, 7, 7), |r| r.ranged_u64(7, 7)),
            (Ok(7), 0)
        );
        let mut buffer = [0; 1];
        let mut writer = BitWriter::new(&mut buffer);
        assert_eq!(writer.ranged_u64(11, 0, 10), Err(BitError::OutOfRange));
        assert_eq!(writer.ranged_i64(-11, -10, 10), Err(BitError::OutOfRange));
        assert_eq!(writer.bits(4, 2), Err(BitError::OutOfRange));
        assert_eq!(writer.bits(0, 65), Err(BitError::OutOfRange));
        assert_eq!(
            writer.varint(65_536, Width::Bits16),
            Err(BitError::OutOfRange)
        );
        assert_eq!(
            BitReader::new(&[31]).ranged_i64(-10, 10),
            Err(BitError::OutOfRange)
        );
        assert_eq!(
            BitReader::new(&[31]).ranged_u64(10, 0),
            Err(BitError::OutOfRange)
        );
        assert_eq!(
            BitReader::new(&[31; 99]).bits(65),
            Err(BitError::OutOfRange)
        );
    }

    #[test]
    fn the_end_is_an_error_and_a_full_writer_stays_as_it_was() {
        let mut buffer = [0; 2];
        let mut writer = BitWriter::new(&mut buffer);
        writer.bits(0x3FF, 10).expect("ten of sixteen");
        assert_eq!(writer.bits(0, 7), Err(BitError::End));
        assert_eq!(writer.gamma(9), Err(BitError::End));
        assert_eq!(writer.varint(16, Width::Bits16), Err(BitError::End));
        assert_eq!(writer.bytes(&[1]), Err(BitError::End));
        writer.bits(0, 6).expect("the rest");
        assert_eq!((writer.remaining(), writer.finish()), (0, 2));
        assert_eq!(buffer, [0xFF, 0x03]);
        assert_eq!(BitReader::new(&[0; 8]).gamma(), Err(BitError::End));
        assert_eq!(BitReader::new(&[0; 9]).gamma(), Err(BitError::OutOfRange));
        assert_eq!(BitReader::new(&[]).bool(), Err(BitError::End));
        assert_eq!(BitReader::new(&[1]).bytes(&mut [0; 2]), Err(BitError::End));
    }

    #[test]
    fn only_the_canonical_encoding_is_read() {
        // Two groups for the number 3.
        assert_eq!(
            BitReader::new(&[0b1101, 0]).varint(Width::Bits16),
            Err(BitError::NotCanonical)
        );
        let mut reader = BitReader::new(&[0b10, 0]);
        reader.bits(1).expect("one bit");
        assert_eq!(reader.clone().align(), Err(BitError::NotCanonical));
        assert_eq!(reader.finish(), Err(BitError::NotCanonical));
        assert_eq!(BitReader::new(&[0]).finish(), Err(BitError::NotCanonical));
    }

    #[test]
    fn whole_bytes_travel_aligned_or_not() {
        let bytes: Vec<u8> = (1..=29).collect();
        let mut got = vec![0; 29];
        let (result, bits) = round_trip(|w| w.bytes(&bytes), |r| r.bytes(&mut got));
        assert_eq!((result, bits, &got), (Ok(()), 29 * 8, &bytes));
        let mut buffer = [0; 32];
        let mut writer = BitWriter::new(&mut buffer);
        writer.bits(0xABCD, 16).expect("room");
        writer.bytes(&bytes).expect("room");
        writer.bits(1, 1).expect("room");
        assert_eq!(writer.finish(), 32);
        let mut reader = BitReader::new(&buffer);
        assert_eq!(reader.bits(16), Ok(0xABCD));
        got.fill(0);
        assert_eq!((reader.bytes(&mut got), reader.bool()), (Ok(()), Ok(true)));
        assert_eq!(got, bytes);
    }
}
