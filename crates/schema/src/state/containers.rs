//! Texts, lists, options, arrays and tuples as columns.

use super::columns::BYTES_PER_COLUMN;
use super::{Blend, Property, RowReader, RowWriter};
use crate::{DecodeError, Options, Type};

/// Cut at a whole character if it is longer than `max`.
impl Property for String {
    const TYPE: Type = Type::Text;

    fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
        store_bytes(cut(self, options).as_bytes(), options, row);
    }

    fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        let bytes = load_bytes(options, row)?;
        Self::from_utf8(bytes).map_err(|_| DecodeError::NotUtf8)
    }

    fn blend(&self, to: &Self, _: &Options, blend: Blend) -> Self {
        blend.step(self, to).clone()
    }

    fn differs(&self, other: &Self, options: &Options) -> bool {
        cut(self, options) != cut(other, options)
    }
}

/// Cut if it is longer than `max`.
impl<T: Property> Property for Vec<T> {
    const TYPE: Type = Type::List(&T::TYPE);

    fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
        T::store_list(self, options, row);
    }

    fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        T::load_list(options, row)
    }

    fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
        if self.len() != to.len() {
            return blend.step(self, to).clone();
        }
        let inside = options.inside();
        let pairs = self.iter().zip(to);
        pairs
            .map(|(from, to)| from.blend(to, &inside, blend))
            .collect()
    }

    fn differs(&self, other: &Self, options: &Options) -> bool {
        let (max, inside) = (options.state_max() as usize, options.inside());
        let pairs = self.iter().zip(other).take(max);
        self.len().min(max) != other.len().min(max) || { pairs }
            .any(|(item, other)| item.differs(other, &inside))
    }
}

impl<T: Property> Property for Option<T> {
    const TYPE: Type = Type::Optional(&T::TYPE);

    #[inline]
    fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
        row.put(i32::from(self.is_some()));
        match self {
            Some(value) => value.store(options, row),
            None => row.skip(T::TYPE.width(options)),
        }
    }

    #[inline]
    fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        if row.take_within(0, 1)? == 1 {
            return T::load(options, row).map(Some);
        }
        row.skip(T::TYPE.width(options))?;
        Ok(None)
    }

    fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
        match (self, to) {
            (Some(from), Some(to)) => Some(from.blend(to, options, blend)),
            _ => blend.step(self, to).clone(),
        }
    }

    fn hermite(
        &self,
        to: &Self,
        velocities: (&Self, &Self),
        options: &Options,
        blend: Blend,
    ) -> Self {
        match (self, to, velocities) {
            (Some(from), Some(to), (Some(first), Some(second))) => {
                Some(from.hermite(to, (first, second), options, blend))
            }
            _ => self.blend(to, options, blend),
        }
    }

    fn differs(&self, other: &Self, options: &Options) -> bool {
        match (self, other) {
            (Some(value), Some(other)) => value.differs(other, options),
            (None, None) => false,
            _ => true,
        }
    }
}

impl<T: Property, const N: usize> Property for [T; N] {
    const TYPE: Type = Type::Array {
        element: &T::TYPE,
        len: N,
    };

    #[inline]
    fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
        T::store_array(self, options, row);
    }

    #[inline]
    fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        T::load_array(options, row)
    }

    #[inline]
    fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
        T::blend_array(self, to, options, blend)
    }

    #[inline]
    fn hermite(
        &self,
        to: &Self,
        velocities: (&Self, &Self),
        options: &Options,
        blend: Blend,
    ) -> Self {
        core::array::from_fn(|at| {
            let velocities = (&velocities.0[at], &velocities.1[at]);
            self[at].hermite(&to[at], velocities, options, blend)
        })
    }

    #[inline]
    fn differs(&self, other: &Self, options: &Options) -> bool {
        T::differs_array(self, other, options)
    }

    #[inline]
    fn distance_squared(&self, other: &Self, options: &Options) -> f32 {
        let pairs = self.iter().zip(other);
        pairs
            .map(|(one, other)| one.distance_squared(other, options))
            .sum()
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Property),*> Property for ($($name,)*) {
            const TYPE: Type = Type::Tuple(&[$($name::TYPE),*]);

            #[inline]
            fn store(&self, _: &Options, row: &mut RowWriter<'_>) {
                $(self.$index.store(&Options::NONE, row);)*
            }

            #[inline]
            fn load(_: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
                Ok(($($name::load(&Options::NONE, row)?,)*))
            }

            fn blend(&self, to: &Self, _: &Options, blend: Blend) -> Self {
                ($(self.$index.blend(&to.$index, &Options::NONE, blend),)*)
            }

            fn differs(&self, other: &Self, _: &Options) -> bool {
                false $(|| self.$index.differs(&other.$index, &Options::NONE))*
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// As much of the text as there is room for.
fn cut<'a>(text: &'a str, options: &Options) -> &'a str {
    let mut len = text.len().min(options.state_max() as usize);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

/// Length, then four bytes to a column, the first lowest.
pub(super) fn store_bytes(bytes: &[u8], options: &Options, row: &mut RowWriter<'_>) {
    let max = options.state_max() as usize;
    let bytes = &bytes[..bytes.len().min(max)];
    row.put(bytes.len() as i32);
    for chunk in bytes.chunks(BYTES_PER_COLUMN) {
        let mut column = [0; BYTES_PER_COLUMN];
        column[..chunk.len()].copy_from_slice(chunk);
        row.put(i32::from_le_bytes(column));
    }
    row.skip(max.div_ceil(BYTES_PER_COLUMN) - bytes.len().div_ceil(BYTES_PER_COLUMN));
}

pub(super) fn load_bytes(
    options: &Options,
    row: &mut RowReader<'_>,
) -> Result<Vec<u8>, DecodeError> {
    let max = options.state_max() as usize;
    let len = row.take_within(0, max as i32)? as usize;
    let mut bytes = vec![0; len];
    for chunk in bytes.chunks_mut(BYTES_PER_COLUMN) {
        let column = row.take()?.to_le_bytes();
        let (used, rest) = column.split_at(chunk.len());
        if rest.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::NotCanonical);
        }
        chunk.copy_from_slice(used);
    }
    row.skip(max.div_ceil(BYTES_PER_COLUMN) - len.div_ceil(BYTES_PER_COLUMN))?;
    Ok(bytes)
}
