//! States: what an entity is at a tick, as a row of integers.
//!
//! A [`State`] is a fixed list of [`Column`]s; a *row* holds one `i32` for each. Netcode compares, predicts and codes rows
//! and knows nothing else of a game. Fields of states are [`Property`]s, which know how a type becomes columns.
//!
//! Rows are exact: what [`State::load`] makes of a row, [`State::store`] turns into the same row again, on every
//! platform. Only additions, multiplications, divisions, roots and roundings of IEEE 754 are used.

use crate::{DecodeError, Options, Type};

mod check;
mod column;
mod columns;
mod containers;
mod floats;
pub(crate) mod grid;
mod numbers;
mod property;
pub(crate) mod rotation;

pub use column::{Column, ColumnKind, Guard, Predict, Template};
pub use columns::Columns;
pub use property::Property;

/// The state of an entity at a tick. Derive it; fields take the attributes listed at the [crate](crate#states).
///
/// By hand it is needed for types that are columns of their own kind, which [`Type::Opaque`] describes:
///
/// ```
/// use muse_schema::{
///     Blend, ColumnKind, DecodeError, RowReader, RowWriter, State, Template, Type,
/// };
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Owner(u16);
///
/// impl State for Owner {
///     const TYPE: Type = Type::Opaque {
///         name: "Owner",
///         columns: &[Template::new("", ColumnKind::Reference, 0, 65_535)],
///     };
///     fn store(&self, row: &mut RowWriter<'_>) {
///         row.put(i32::from(self.0));
///     }
///     fn load(row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
///         let value = row.take()?;
///         u16::try_from(value).map(Owner).map_err(|_| DecodeError::OutOfRange)
///     }
///     fn blend(&self, to: &Self, blend: Blend) -> Self {
///         *blend.step(self, to)
///     }
///     fn differs(&self, other: &Self) -> bool {
///         self != other
///     }
/// }
///
/// let row = Owner(9).to_row();
/// assert_eq!(row, [9]);
/// assert_eq!(Owner::from_row(&row), Ok(Owner(9)));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state",
    label = "not a state",
    note = "write `#[derive(State, Clone)]` above it"
)]
pub trait State: Sized + Clone + 'static {
    /// Description and hash. It determines the columns.
    const TYPE: Type;

    /// Writes the quantised value: exactly [`width`](Self::width) columns. Never fails: what is outside its range becomes
    /// the nearest inside, what is no number zero.
    fn store(&self, row: &mut RowWriter<'_>);

    /// Reads what [`store`](Self::store) wrote. Any other row is an error, never a panic.
    fn load(row: &mut RowReader<'_>) -> Result<Self, DecodeError>;

    /// The state between this and `to`, each field as it declares (`interpolate`).
    fn blend(&self, to: &Self, blend: Blend) -> Self;

    /// True if the other differs by more than the fields declare (`tolerance`); without a declaration any difference of
    /// the quantised value counts.
    fn differs(&self, other: &Self) -> bool;

    /// Returns how far apart two states are in space, in the unit of their fields: the distance of the fields that name a
    /// `velocity`, or of all interpolated numbers where none does. Prediction and interpolation use it to tell a step from a jump.
    fn distance(&self, other: &Self) -> f32 {
        let _ = other;
        0.0
    }

    /// Number of columns.
    fn width() -> usize {
        const { Self::TYPE.width(&Options::NONE) }
    }

    /// The state on its grid, as the other side gets it: bit for bit the same everywhere.
    fn snapped(&self) -> Self {
        let mut small = [0; SMALL_ROW];
        let mut large = Vec::new();
        let row = match small.get_mut(..Self::width()) {
            Some(row) => row,
            None => {
                large.resize(Self::width(), 0);
                large.as_mut_slice()
            }
        };
        self.store(&mut RowWriter::new(row));
        Self::from_row(row).expect("what was stored can be loaded")
    }

    /// [`store`](Self::store) to a new row; where speed matters, keep one and use a [`RowWriter`].
    fn to_row(&self) -> Vec<i32> {
        let mut row = vec![0; Self::width()];
        self.store(&mut RowWriter::new(&mut row));
        row
    }

    /// [`load`](Self::load) of exactly this row.
    fn from_row(row: &[i32]) -> Result<Self, DecodeError> {
        let mut reader = RowReader::new(row);
        let state = Self::load(&mut reader)?;
        if reader.remaining() == 0 {
            Ok(state)
        } else {
            Err(DecodeError::Trailing)
        }
    }
}

/// A point between two states: for [`State::blend`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    /// 0 is the first state, 1 the second; beyond 1 the movement goes on.
    pub share: f32,
    /// Time between the two states, in seconds; velocities need it. 0 makes everything linear.
    pub seconds: f32,
}

impl Blend {
    /// True beyond the second state, where what has a velocity goes on by it.
    #[inline]
    pub fn is_beyond(&self) -> bool {
        self.share > 1.0 && self.seconds > 0.0
    }

    /// Returns the first until the second is reached, for values that do not interpolate.
    #[inline]
    pub fn step<'a, T>(&self, from: &'a T, to: &'a T) -> &'a T {
        if self.share < 1.0 { from } else { to }
    }
}

/// The interpolation of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interpolate {
    /// Not at all: the first value until the second is reached.
    None,
    /// In a straight line; rotations in a straight line that is made a rotation again, which is fast and good enough for
    /// small turns.
    Linear,
    /// Along the curve that also has the declared velocity (`velocity = FIELD`) at both ends.
    Hermite,
    /// The shorter way round.
    Angle,
    /// The shorter way round at even speed (slerp).
    Rotation,
}

/// Takes the columns of a state, in order.
#[derive(Debug)]
pub struct RowWriter<'a> {
    rest: core::slice::IterMut<'a, i32>,
}

impl<'a> RowWriter<'a> {
    /// Writes to the front of `row`, which has a place for each column.
    #[inline]
    pub fn new(row: &'a mut [i32]) -> Self {
        Self {
            rest: row.iter_mut(),
        }
    }

    /// The next column. What is beyond the end of the row is dropped.
    #[inline]
    pub fn put(&mut self, value: i32) {
        if let Some(place) = self.rest.next() {
            *place = value;
        }
    }

    /// Leaves out columns whose [`Guard`] says that they do not exist: they are 0.
    #[inline]
    pub fn skip(&mut self, columns: usize) {
        for _ in 0..columns {
            self.put(0);
        }
    }
}

/// Gives a state its columns, in order.
#[derive(Clone, Debug)]
pub struct RowReader<'a> {
    rest: core::slice::Iter<'a, i32>,
}

impl<'a> RowReader<'a> {
    /// Reads `row` from the front.
    #[inline]
    pub fn new(row: &'a [i32]) -> Self {
        Self { rest: row.iter() }
    }

    /// The next column.
    #[inline]
    pub fn take(&mut self) -> Result<i32, DecodeError> {
        self.rest.next().copied().ok_or(DecodeError::End)
    }

    /// The next column, which must be within bounds.
    #[inline]
    pub fn take_within(&mut self, min: i32, max: i32) -> Result<i32, DecodeError> {
        let value = self.take()?;
        if value < min || value > max {
            return Err(DecodeError::OutOfRange);
        }
        Ok(value)
    }

    /// Passes columns whose [`Guard`] says that they do not exist: they must be 0.
    #[inline]
    pub fn skip(&mut self, columns: usize) -> Result<(), DecodeError> {
        for _ in 0..columns {
            if self.take()? != 0 {
                return Err(DecodeError::NotCanonical);
            }
        }
        Ok(())
    }

    /// Columns left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }
}

/// Rows up to this size are snapped without taking memory.
const SMALL_ROW: usize = 64;
