//! Encodings of booleans, integers and floats.

use std::convert::identity;

use muse_wire::bits::{Width, zag_zig, zig_zag};

use crate::state::rotation;
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

/// The body that all integers share; `$to_bits` and `$from_bits` turn the value into the number of a varint and back.
macro_rules! integer {
    ($type:ident, $unsigned:ident, $to_bits:expr, $from_bits:expr $(, $bytes:item)*) => {
        impl Schema for $type {
            const TYPE: Type = Type::Integer { bits: $type::BITS as u8, signed: $type::MIN != 0 };
            const LEAF: Leaf =
                Leaf::Integer { min: $type::MIN as i128, max: $type::MAX as i128 };

            fn bits_min(options: &Options) -> u64 {
                match options.range {
                    Range::Integer { min, max } => u64::from(bits_for((max - min) as u64)),
                    _ if options.bits.is_some() => options.bits.map_or(0, u64::from),
                    _ if options.fixed => u64::from($type::BITS),
                    _ => integer_bits_min($type::BITS),
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
                if let Some(count) = options.bits {
                    return Ok(writer.bits(u64::from(*self as $unsigned), count)?);
                }
                match width($type::BITS) {
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
                if let Some(count) = options.bits {
                    return Ok(reader.bits(count)? as $type);
                }
                match width($type::BITS) {
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
    u64::from,
    identity,
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
integer!(u16, u16, u64::from, identity);
integer!(u32, u32, u64::from, identity);
integer!(u64, u64, u64::from, identity);
integer!(i8, u8, folded, zag_zig);
integer!(i16, u16, folded, zag_zig);
integer!(i32, u32, folded, zag_zig);
integer!(i64, u64, folded, zag_zig);

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
                    Range::Angle { count, .. } => u64::from(bits_for(count - 1)),
                    _ if options.rotation.is_some() => rotation_bits(options) / 4,
                    _ => size_of::<$type>() as u64 * 8,
                }
            }

            #[inline]
            fn write(
                &self,
                options: &Options,
                writer: &mut BitWriter<'_>,
            ) -> Result<(), EncodeError> {
                let (index, last) = match options.range {
                    Range::Float { .. } | Range::Angle { .. } if self.is_nan() => {
                        return Err(EncodeError::NotANumber);
                    }
                    Range::Float { min, max, step } => {
                        let index = quantise::index(f64::from(*self), min, max, step);
                        (index, quantise::count(min, max, step))
                    }
                    Range::Angle { count, .. } => {
                        let index = options.grid.index_wrapped(f64::from(*self));
                        (
                            (i64::from(index) - i64::from(options.grid.low)) as u64,
                            count - 1,
                        )
                    }
                    _ => {
                        let bits = u64::from(self.to_bits());
                        return Ok(writer.bits(bits, size_of::<$type>() as u32 * 8)?);
                    }
                };
                Ok(writer.ranged_u64(index, 0, last)?)
            }

            #[inline]
            fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
                match options.range {
                    Range::Float { min, max, step } => {
                        let index = reader.ranged_u64(0, quantise::count(min, max, step))?;
                        Ok(quantise::value(index, min, step) as $type)
                    }
                    Range::Angle { count, .. } => {
                        let index = reader.ranged_u64(0, count - 1)?;
                        let index = i64::from(options.grid.low) + index as i64;
                        Ok(options.grid.value(index as i32) as $type)
                    }
                    _ => {
                        let bits = reader.bits(size_of::<$type>() as u32 * 8)?;
                        Ok($type::from_bits(bits as _))
                    }
                }
            }

            /// Four floats that are a rotation are written as one.
            #[inline]
            fn write_slice(
                items: &[Self],
                options: &Options,
                writer: &mut BitWriter<'_>,
            ) -> Result<(), EncodeError> {
                match (options.rotation, items) {
                    (Some(bits), &[x, y, z, w]) => {
                        write_rotation([x, y, z, w].map(f64::from), bits, writer)
                    }
                    _ => items
                        .iter()
                        .try_for_each(|item| item.write(options, writer)),
                }
            }

            #[inline]
            fn read_array<const N: usize>(
                options: &Options,
                reader: &mut BitReader<'_>,
            ) -> Result<[Self; N], DecodeError> {
                let mut items = [0.0; N];
                match options.rotation {
                    Some(bits) if N == 4 => {
                        let parts = read_rotation(bits, reader)?;
                        for (item, part) in items.iter_mut().zip(parts) {
                            *item = part as $type;
                        }
                    }
                    _ => {
                        for item in &mut items {
                            *item = Self::read(options, reader)?;
                        }
                    }
                }
                Ok(items)
            }
        }
    };
}

float!(f32);
float!(f64);

/// The size of the varint for an integer of this many bits; bytes have none.
#[inline(always)]
const fn width(type_bits: u32) -> Option<Width> {
    match type_bits {
        16 => Some(Width::Bits16),
        32 => Some(Width::Bits32),
        64 => Some(Width::Bits64),
        _ => None,
    }
}

#[inline(always)]
fn folded(value: impl Into<i64>) -> u64 {
    zig_zag(value.into())
}

/// Fewest bits of an integer without range: a prefix and one group of four, or all.
fn integer_bits_min(type_bits: u32) -> u64 {
    match width(type_bits) {
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

/// All bits of a quaternion.
fn rotation_bits(options: &Options) -> u64 {
    LARGEST_BITS + 3 * options.rotation.map_or(0, u64::from)
}

fn write_rotation(
    parts: [f64; 4],
    bits: u32,
    writer: &mut BitWriter<'_>,
) -> Result<(), EncodeError> {
    if parts.iter().any(|part| part.is_nan()) {
        return Err(EncodeError::NotANumber);
    }
    let [largest, smaller @ ..] = rotation::store(parts, bits);
    writer.bits(largest as u64, LARGEST_BITS as u32)?;
    for part in smaller {
        // The smallest is written as 0.
        writer.bits((part + (1 << (bits - 1))) as u64, bits)?;
    }
    Ok(())
}

fn read_rotation(bits: u32, reader: &mut BitReader<'_>) -> Result<[f64; 4], DecodeError> {
    let mut row = [reader.bits(LARGEST_BITS as u32)? as i32; 4];
    for part in &mut row[1..] {
        *part = reader.bits(bits)? as i32 - (1 << (bits - 1));
    }
    rotation::load(row, bits)
}

const BITS_OF_BYTE: u8 = 8;
/// Bits of the index of a quaternion's largest part.
const LARGEST_BITS: u64 = 2;
