//! Encodings of booleans, integers and floats.

use muse_wire::bits::{Width, zag_zig, zig_zag};

use crate::{
    BitReader, BitWriter, DecodeError, EncodeError, Leaf, Options, Range, Schema, Type, bits_for,
    quantise,
};

impl Schema for bool {
    const TYPE: Type = Type::Bool;

    fn bits_min(_: &Options) -> u64 {
        1
    }

    #[inline]
    fn write(&self, _: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        Ok(writer.bool(*self)?)
    }

    #[inline]
    fn read(_: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.bool()?)
    }
}

/// The body that all integers share; `$plain` and `$varint` are expressions over the value and the other end's bits.
macro_rules! integer {
    ($type:ident, $unsigned:ident, $signed:literal, $width:expr, $to_bits:expr, $from_bits:expr
        $(, $bytes:item)*) => {
        impl Schema for $type {
            const TYPE: Type = Type::Integer { bits: $type::BITS as u8, signed: $signed };
            const LEAF: Leaf =
                Leaf::Integer { min: $type::MIN as i128, max: $type::MAX as i128 };

            fn bits_min(options: &Options) -> u64 {
                match options.range {
                    Range::Integer { min, max } => u64::from(bits_for((max - min) as u64)),
                    _ if options.fixed => u64::from($type::BITS),
                    _ => integer_bits_min($width, $type::BITS),
                }
            }

            #[inline]
            fn write(
                &self,
                options: &Options,
                writer: &mut BitWriter<'_>,
            ) -> Result<(), EncodeError> {
                if let Range::Integer { min, max } = options.range {
                    return write_ranged(i128::from(*self), min, max, writer);
                }
                match $width {
                    Some(width) if !options.fixed => writer.varint($to_bits(*self), width)?,
                    // As many bits as the type has, so the cast keeps all of them.
                    _ => writer.bits(u64::from(*self as $unsigned), $type::BITS)?,
                }
                Ok(())
            }

            #[inline]
            fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
                if let Range::Integer { min, max } = options.range {
                    let value = read_ranged(min, max, reader)?;
                    return Self::try_from(value).map_err(|_| DecodeError::OutOfRange);
                }
                match $width {
                    Some(width) if !options.fixed => {
                        let value = $from_bits(reader.varint(width)?);
                        Self::try_from(value).map_err(|_| DecodeError::OutOfRange)
                    }
                    _ => Ok(reader.bits($type::BITS)? as $type),
                }
            }

            $($bytes)*
        }
    };
}

integer!(
    u8,
    u8,
    false,
    None::<Width>,
    u64::from,
    std::convert::identity,
    /// The bytes as they are, unless a range makes them shorter.
    fn write_slice(
        items: &[Self],
        options: &Options,
        writer: &mut BitWriter<'_>,
    ) -> Result<(), EncodeError> {
        match options.range {
            Range::Whole => Ok(writer.bytes(items)?),
            _ => items
                .iter()
                .try_for_each(|item| item.write(options, writer)),
        }
    },
    fn read_into(
        items: &mut Vec<Self>,
        len: usize,
        options: &Options,
        reader: &mut BitReader<'_>,
    ) -> Result<(), DecodeError> {
        if options.range != Range::Whole {
            for _ in 0..len {
                items.push(Self::read(options, reader)?);
            }
            return Ok(());
        }
        // Before the memory is taken, so that a false length costs nothing.
        if len as u64 > reader.remaining() / 8 {
            return Err(DecodeError::End);
        }
        let start = items.len();
        items.resize(start + len, 0);
        Ok(reader.bytes(&mut items[start..])?)
    }
);
integer!(
    i8,
    u8,
    true,
    None::<Width>,
    |value| zig_zag(i64::from(value)),
    zag_zig
);
integer!(
    u16,
    u16,
    false,
    Some(Width::Bits16),
    u64::from,
    std::convert::identity
);
integer!(
    i16,
    u16,
    true,
    Some(Width::Bits16),
    |value| zig_zag(i64::from(value)),
    zag_zig
);
integer!(
    u32,
    u32,
    false,
    Some(Width::Bits32),
    u64::from,
    std::convert::identity
);
integer!(
    i32,
    u32,
    true,
    Some(Width::Bits32),
    |value| zig_zag(i64::from(value)),
    zag_zig
);
integer!(
    u64,
    u64,
    false,
    Some(Width::Bits64),
    u64::from,
    std::convert::identity
);
integer!(i64, u64, true, Some(Width::Bits64), zig_zag, zag_zig);

macro_rules! float {
    ($type:ident) => {
        impl Schema for $type {
            const TYPE: Type = Type::Float {
                bits: BITS_OF_BYTE * size_of::<$type>() as u8,
            };
            const LEAF: Leaf = Leaf::Float {
                precision: $type::MANTISSA_DIGITS,
            };

            fn bits_min(options: &Options) -> u64 {
                match options.range {
                    Range::Float { min, max, step } => {
                        u64::from(bits_for(quantise::count(min, max, step)))
                    }
                    _ => size_of::<$type>() as u64 * 8,
                }
            }

            #[inline]
            fn write(
                &self,
                options: &Options,
                writer: &mut BitWriter<'_>,
            ) -> Result<(), EncodeError> {
                let Range::Float { min, max, step } = options.range else {
                    return Ok(
                        writer.bits(u64::from(self.to_bits()), size_of::<$type>() as u32 * 8)?
                    );
                };
                if self.is_nan() {
                    return Err(EncodeError::NotANumber);
                }
                let index = quantise::index(f64::from(*self), min, max, step);
                Ok(writer.ranged_u64(index, 0, quantise::count(min, max, step))?)
            }

            #[inline]
            fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
                let Range::Float { min, max, step } = options.range else {
                    let bits = reader.bits(size_of::<$type>() as u32 * 8)?;
                    return Ok($type::from_bits(bits as _));
                };
                let index = reader.ranged_u64(0, quantise::count(min, max, step))?;
                Ok(quantise::value(index, min, step) as $type)
            }
        }
    };
}

float!(f32);
float!(f64);

/// Fewest bits of an integer without range: a prefix and one group of four, or all.
fn integer_bits_min(width: Option<Width>, type_bits: u32) -> u64 {
    match width {
        Some(Width::Bits16) => 6,
        Some(Width::Bits32) => 7,
        Some(Width::Bits64) => 8,
        None => u64::from(type_bits),
    }
}

/// The range lies within a type of 64 bits, which [`Options::check`] has made sure of, so its span fits.
#[inline]
fn write_ranged(
    value: i128,
    min: i128,
    max: i128,
    writer: &mut BitWriter<'_>,
) -> Result<(), EncodeError> {
    if value < min || value > max {
        return Err(EncodeError::OutOfRange);
    }
    Ok(writer.ranged_u64((value - min) as u64, 0, (max - min) as u64)?)
}

#[inline]
fn read_ranged(min: i128, max: i128, reader: &mut BitReader<'_>) -> Result<i128, DecodeError> {
    Ok(min + i128::from(reader.ranged_u64(0, (max - min) as u64)?))
}

const BITS_OF_BYTE: u8 = 8;
