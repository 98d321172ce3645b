//! Encodings of text, lists, options, arrays and tuples.

use muse_wire::bits::Width;

use crate::{
    BitReader, BitWriter, DecodeError, EncodeError, Leaf, Options, Schema, Type, bits_for,
};

impl Schema for String {
    const TYPE: Type = Type::Text;
    const TAKES_MAX: bool = true;

    fn bits_min(options: &Options) -> u64 {
        length_bits_min(options.length_max())
    }

    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        write_length(self.len(), options.length_max(), writer)?;
        Ok(writer.bytes(self.as_bytes())?)
    }

    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let len = read_length(options.length_max(), reader)?;
        let mut bytes = Vec::new();
        u8::read_into(&mut bytes, len, &Options::NONE, reader)?;
        Self::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8)
    }
}

impl<T: Schema> Schema for Vec<T> {
    const TYPE: Type = Type::List(&T::TYPE);
    const LEAF: Leaf = T::LEAF;
    const TAKES_MAX: bool = true;

    fn bits_min(options: &Options) -> u64 {
        length_bits_min(options.length_max())
    }

    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        let inside = options.inside();
        if !self.is_empty() && T::bits_min(&inside) == 0 {
            return Err(EncodeError::EmptyElements);
        }
        write_length(self.len(), options.length_max(), writer)?;
        T::write_slice(self, &inside, writer)
    }

    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let inside = options.inside();
        let len = read_length(options.length_max(), reader)?;
        if len == 0 {
            return Ok(Self::new());
        }
        let element_bits = T::bits_min(&inside);
        if element_bits == 0 {
            return Err(DecodeError::EmptyElements);
        }
        if len as u64 > reader.remaining() / element_bits {
            return Err(DecodeError::End);
        }
        // Room for no more memory than the message has bytes; the rest grows as elements prove to be there.
        let room = (reader.remaining() / 8) as usize / size_of::<T>().max(1);
        let mut items = Self::with_capacity(len.min(room));
        T::read_into(&mut items, len, &inside, reader)?;
        Ok(items)
    }
}

impl<T: Schema> Schema for Option<T> {
    const TYPE: Type = Type::Optional(&T::TYPE);
    const LEAF: Leaf = T::LEAF;
    const TAKES_MAX: bool = T::TAKES_MAX;

    fn bits_min(_: &Options) -> u64 {
        1
    }

    #[inline]
    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        writer.bool(self.is_some())?;
        self.as_ref()
            .map_or(Ok(()), |value| value.write(options, writer))
    }

    #[inline]
    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        if reader.bool()? {
            T::read(options, reader).map(Some)
        } else {
            Ok(None)
        }
    }
}

impl<T: Schema, const N: usize> Schema for [T; N] {
    const TYPE: Type = Type::Array {
        element: &T::TYPE,
        len: N,
    };
    const LEAF: Leaf = T::LEAF;
    const TAKES_MAX: bool = T::TAKES_MAX;

    fn bits_min(options: &Options) -> u64 {
        T::bits_min(options).saturating_mul(N as u64)
    }

    #[inline]
    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        T::write_slice(self, options, writer)
    }

    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        T::read_array(options, reader)
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Schema),*> Schema for ($($name,)*) {
            const TYPE: Type = Type::Tuple(&[$($name::TYPE),*]);

            fn bits_min(_: &Options) -> u64 {
                0u64$(.saturating_add($name::bits_min(&Options::NONE)))*
            }

            #[inline]
            fn write(&self, _: &Options, _writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
                $(self.$index.write(&Options::NONE, _writer)?;)*
                Ok(())
            }

            #[inline]
            fn read(_: &Options, _reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
                Ok(($($name::read(&Options::NONE, _reader)?,)*))
            }
        }
    };
}

tuple!();
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Returns the width of lengths up to `max`: in a fixed number of bits when few will do, else as a varint.
fn length_width(max: u32) -> Option<Width> {
    match max {
        0..=255 => None,
        256..=65_535 => Some(Width::Bits16),
        _ => Some(Width::Bits32),
    }
}

fn length_bits_min(max: u32) -> u64 {
    match length_width(max) {
        None => u64::from(bits_for(u64::from(max))),
        Some(Width::Bits16) => 6,
        Some(_) => 7,
    }
}

fn write_length(len: usize, max: u32, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
    if len as u64 > u64::from(max) {
        return Err(EncodeError::TooLong { len, max });
    }
    match length_width(max) {
        None => writer.ranged_u64(len as u64, 0, u64::from(max))?,
        Some(width) => writer.varint(len as u64, width)?,
    }
    Ok(())
}

/// A length that is within `max`, so that it fits any `usize` of 32 bits or more.
fn read_length(max: u32, reader: &mut BitReader<'_>) -> Result<usize, DecodeError> {
    let len = match length_width(max) {
        None => reader.bits(bits_for(u64::from(max)))?,
        Some(width) => reader.varint(width)?,
    };
    if len > u64::from(max) {
        return Err(DecodeError::TooLong { len, max });
    }
    Ok(len as usize)
}
