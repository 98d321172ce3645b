//! Types that can be fields of states.

use super::{Blend, RowReader, RowWriter, State};
use crate::{DecodeError, Options, Type};

/// A type that can be a field of a [`State`]: numbers, texts, lists, and every state.
///
/// By hand it is needed for types of other crates that take attributes; pass `options` on to what the type is made of.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a state",
    label = "this type has no columns",
    note = "for a type of your own write `#[derive(State, Clone)]` above it",
    note = "ready-made are bool, integers of 8 to 64 bits, f32, f64, String, Vec, Option, arrays and tuples; \
            instead of usize use u32 or u64; the vectors and quaternions of glam need the feature `glam`"
)]
pub trait Property: Sized + Clone + 'static {
    /// The description of the type; with the attributes it determines the columns.
    const TYPE: Type;

    /// Writes the quantised value: as many columns as [`Type::width`] says.
    fn store(&self, options: &Options, row: &mut RowWriter<'_>);

    /// Reads what [`store`](Self::store) wrote.
    fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError>;

    /// The value between this and `to`.
    fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self;

    /// True if the other differs by more than the tolerance.
    fn differs(&self, other: &Self, options: &Options) -> bool;

    /// Returns the square of how far apart two values are in space. Only numbers that are interpolated along lines and curves
    /// are somewhere; everything else is 0 apart.
    #[inline]
    fn distance_squared(&self, other: &Self, options: &Options) -> f32 {
        let _ = (other, options);
        0.0
    }

    /// [`blend`](Self::blend) along a curve with these velocities at its ends; only floats can.
    #[inline]
    fn hermite(
        &self,
        to: &Self,
        velocities: (&Self, &Self),
        options: &Options,
        blend: Blend,
    ) -> Self {
        let _ = velocities;
        self.blend(to, options, blend)
    }

    /// Writes an array; bits and quaternions are more than their elements.
    #[doc(hidden)]
    #[inline]
    fn store_array(items: &[Self], options: &Options, row: &mut RowWriter<'_>) {
        for item in items {
            item.store(options, row);
        }
    }

    /// Reads an array.
    #[doc(hidden)]
    #[inline]
    fn load_array<const N: usize>(
        options: &Options,
        row: &mut RowReader<'_>,
    ) -> Result<[Self; N], DecodeError> {
        crate::try_array(|| Self::load(options, row))
    }

    /// Blends an array.
    #[doc(hidden)]
    #[inline]
    fn blend_array<const N: usize>(
        from: &[Self; N],
        to: &[Self; N],
        options: &Options,
        blend: Blend,
    ) -> [Self; N] {
        core::array::from_fn(|index| from[index].blend(&to[index], options, blend))
    }

    /// Compares arrays; numbers are compared by distance in space.
    #[doc(hidden)]
    #[inline]
    fn differs_array(items: &[Self], others: &[Self], options: &Options) -> bool {
        items
            .iter()
            .zip(others)
            .any(|(item, other)| item.differs(other, options))
    }

    /// Writes a list of at most `max`; bytes are packed.
    #[doc(hidden)]
    fn store_list(items: &[Self], options: &Options, row: &mut RowWriter<'_>) {
        store_items(items, options, row);
    }

    /// Reads a list.
    #[doc(hidden)]
    fn load_list(options: &Options, row: &mut RowReader<'_>) -> Result<Vec<Self>, DecodeError> {
        load_items(options, row)
    }
}

/// A state takes no attributes as a field: it has its own.
impl<S: State> Property for S {
    const TYPE: Type = <S as State>::TYPE;

    #[inline]
    fn store(&self, _: &Options, row: &mut RowWriter<'_>) {
        State::store(self, row);
    }

    #[inline]
    fn load(_: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        <S as State>::load(row)
    }

    #[inline]
    fn blend(&self, to: &Self, _: &Options, blend: Blend) -> Self {
        State::blend(self, to, blend)
    }

    #[inline]
    fn differs(&self, other: &Self, _: &Options) -> bool {
        State::differs(self, other)
    }

    #[inline]
    fn distance_squared(&self, other: &Self, _: &Options) -> f32 {
        let apart = State::distance(self, other);
        apart * apart
    }
}

/// Length, elements, and nothing for those that are missing.
pub(super) fn store_items<T: Property>(items: &[T], options: &Options, row: &mut RowWriter<'_>) {
    let (max, inside) = (options.state_max() as usize, options.inside());
    let items = &items[..items.len().min(max)];
    row.put(items.len() as i32);
    for item in items {
        item.store(&inside, row);
    }
    row.skip((max - items.len()) * T::TYPE.width(&inside));
}

pub(super) fn load_items<T: Property>(
    options: &Options,
    row: &mut RowReader<'_>,
) -> Result<Vec<T>, DecodeError> {
    let (max, inside) = (options.state_max() as usize, options.inside());
    let len = row.take_within(0, max as i32)? as usize;
    let items = (0..len).map(|_| T::load(&inside, row));
    let items = items.collect::<Result<Vec<T>, DecodeError>>()?;
    row.skip((max - len) * T::TYPE.width(&inside))?;
    Ok(items)
}
