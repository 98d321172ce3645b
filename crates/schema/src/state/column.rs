//! One integer of a state, and what is known about it.

/// One integer of a state as it travels. [`Columns`](crate::Columns) makes them from a type.
///
/// A real number is `offset + step * value`. Columns of hand-made tests: [`Column::new`], then set the public fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// Path for reports: `position.0`, `weapon.ammunition`.
    pub name: String,
    /// The meaning of the integer, which decides what arithmetic is good for.
    pub kind: ColumnKind,
    /// The smallest it can be.
    pub min: i32,
    /// The largest it can be.
    pub max: i32,
    /// The likely change from tick to tick.
    pub predict: Predict,
    /// Columns of one field (vector, quaternion) have the same number, and behave alike.
    pub field: u16,
    /// The column that is this one's time derivative in units (not steps) per second: `velocity = FIELD`.
    pub velocity: Option<u16>,
    /// The condition under which it exists; always, if there is none. A column that does not exist is 0 and is not coded.
    pub guard: Option<Guard>,
    /// The value that the integer 0 stands for.
    pub offset: f64,
    /// The value of one step of the integer.
    pub step: f64,
}

impl Column {
    /// A column that always exists, is predicted to stay as it is, and stands for itself.
    pub fn new(name: impl Into<String>, kind: ColumnKind, min: i32, max: i32) -> Self {
        Self {
            name: name.into(),
            kind,
            min,
            max,
            predict: Predict::Hold,
            field: 0,
            velocity: None,
            guard: None,
            offset: 0.0,
            step: 1.0,
        }
    }
}

/// The meaning of a column's integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnKind {
    /// A quantity: neighbours are alike, differences are small. One that has all 2^32 values wraps around.
    Number,
    /// 0 or 1.
    Flag,
    /// The variant of an enum: no order.
    Choice,
    /// A set of bits, each for itself.
    Bits,
    /// A quantity that wraps around: after `max` comes `min`.
    Angle,
    /// The part of a quaternion that was left out, 0 to 3; three [`RotationPart`](Self::RotationPart)s follow.
    RotationLargest,
    /// One of the three smaller parts of a quaternion, in the order x, y, z, w.
    RotationPart,
    /// The name of an entity: no order, but the same names come again.
    Reference,
    /// A bit pattern without arithmetic: floats as they are, text.
    Raw,
}

/// The likely change of a column from tick to tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Predict {
    /// It stays as it is.
    #[default]
    Hold,
    /// It changes as it did last.
    Linear,
    /// Its change changes as it did last.
    Quadratic,
}

/// The condition under which a column exists: if this holds, and the column named here exists itself. It always names an earlier column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guard {
    /// The column has this value: parts of an `Option` (value 1) and of an enum's variant.
    Equals {
        /// Index of the column.
        column: u16,
        /// The value it must have.
        value: i32,
    },
    /// The column has a larger value: elements of lists, bytes of texts.
    Above {
        /// Index of the column, a length.
        column: u16,
        /// The value it must be above.
        value: i32,
    },
}

impl Guard {
    /// Index of the column that decides.
    #[inline]
    pub const fn column(self) -> u16 {
        match self {
            Self::Equals { column, .. } | Self::Above { column, .. } => column,
        }
    }

    /// True if the guard holds when that column has this value.
    #[inline]
    pub const fn admits(self, found: i32) -> bool {
        match self {
            Self::Equals { value, .. } => found == value,
            Self::Above { value, .. } => found > value,
        }
    }
}

/// A column of a [`Type::Opaque`](crate::Type::Opaque).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template {
    /// The continuation of the field's path; empty for a type of one column.
    pub name: &'static str,
    /// The meaning of the integer.
    pub kind: ColumnKind,
    /// The smallest it can be.
    pub min: i32,
    /// The largest it can be.
    pub max: i32,
}

impl Template {
    /// A column of this kind and bounds.
    pub const fn new(name: &'static str, kind: ColumnKind, min: i32, max: i32) -> Self {
        Self {
            name,
            kind,
            min,
            max,
        }
    }
}
