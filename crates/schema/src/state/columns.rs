//! The columns of a type: worked out from its description, so that both are always of one mind.

use core::ops::Deref;

use super::check::bounds;
use super::column::{Column, ColumnKind, Guard, Predict};
use crate::{Field, Options, Range, State, Type, Variant};

/// The columns of a state, in the order of its rows.
///
/// ```
/// use muse_schema::{ColumnKind, Columns, State};
///
/// #[derive(State, Clone)]
/// struct Player {
///     #[field(range = -500.0..=500.0, step = 0.01, velocity = velocity)]
///     position: [f32; 2],
///     #[field(range = -50.0..=50.0, step = 0.1)]
///     velocity: [f32; 2],
///     crouching: bool,
/// }
///
/// let columns = Columns::of::<Player>();
/// let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
/// assert_eq!(names, ["position.0", "position.1", "velocity.0", "velocity.1", "crouching"]);
/// assert_eq!((columns[0].min, columns[0].max), (-50_000, 50_000));
/// assert_eq!(columns[1].velocity, Some(3));
/// assert_eq!(columns[4].kind, ColumnKind::Flag);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    list: Vec<Column>,
}

impl Columns {
    /// The columns of a state.
    pub fn of<S: State>() -> Self {
        Self::of_type(&S::TYPE)
    }

    /// The columns of a type that was described.
    pub fn of_type(ty: &Type) -> Self {
        let mut builder = Builder::default();
        builder.add(ty, &Options::NONE);
        Self { list: builder.list }
    }

    /// True if a column exists in this row; one that does not is 0.
    pub fn exists(&self, index: usize, row: &[i32]) -> bool {
        let mut index = index;
        // A guard names an earlier column, so this ends.
        while let Some(guard) = self.list[index].guard {
            index = usize::from(guard.column());
            if !guard.admits(row[index]) {
                return false;
            }
        }
        true
    }
}

impl Deref for Columns {
    type Target = [Column];

    fn deref(&self) -> &[Column] {
        &self.list
    }
}

impl Type {
    /// Returns the number of columns of a field of this type with these attributes.
    pub const fn width(&self, options: &Options) -> usize {
        match self {
            Self::Bool => 1,
            Self::Integer { bits, .. } => 1 + (*bits == 64 && is_wide(options)) as usize,
            Self::Float { bits } => {
                1 + (*bits == 64 && matches!(options.range, Range::Whole)) as usize
            }
            Self::Text => 1 + (options.state_max() as usize).div_ceil(BYTES_PER_COLUMN),
            Self::List(element) if element.is_packed(options) => {
                1 + (options.state_max() as usize).div_ceil(BYTES_PER_COLUMN)
            }
            Self::List(element) => {
                1 + options.state_max() as usize * element.width(&options.inside())
            }
            Self::Array { element, len } => match element {
                Self::Float { .. } if options.rotation.is_some() && *len == 4 => 4,
                Self::Bool if options.bits.is_some() => len.div_ceil(32),
                _ => *len * element.width(options),
            },
            Self::Optional(inner) => 1 + inner.width(options),
            Self::Tuple(parts) => {
                let (mut sum, mut index) = (0, 0);
                while index < parts.len() {
                    sum += parts[index].width(&Options::NONE);
                    index += 1;
                }
                sum
            }
            Self::Struct { fields, .. } => fields_width(fields),
            Self::Enum { variants, .. } => {
                let (mut sum, mut index) = ((variants.len() > 1) as usize, 0);
                while index < variants.len() {
                    sum += fields_width(variants[index].fields);
                    index += 1;
                }
                sum
            }
            Self::Opaque { columns, .. } => columns.len(),
        }
    }

    /// True if a list of these is packed four to a column.
    pub(crate) const fn is_packed(&self, options: &Options) -> bool {
        matches!(
            (self, options.range),
            (
                Self::Integer {
                    bits: 8,
                    signed: false
                },
                Range::Whole
            )
        )
    }
}

const fn fields_width(fields: &[Field]) -> usize {
    let (mut sum, mut index) = (0, 0);
    while index < fields.len() {
        sum += fields[index].ty.width(&fields[index].options);
        index += 1;
    }
    sum
}

/// True if an integer of 64 bits with these attributes takes two columns.
pub(crate) const fn is_wide(options: &Options) -> bool {
    match (options.range, options.bits) {
        (Range::Integer { min, max }, _) => max - min > u32::MAX as i128,
        (_, Some(count)) => count > 32,
        _ => true,
    }
}

/// Returns what is added to the integer of a column to get the number it stands for; 0 whenever the numbers fit as they are.
pub(crate) const fn integer_base(min: i128, max: i128) -> i128 {
    if min >= i32::MIN as i128 && max <= i32::MAX as i128 {
        0
    } else if max - min <= i32::MAX as i128 {
        min
    } else {
        min - i32::MIN as i128
    }
}

pub(crate) const BYTES_PER_COLUMN: usize = 4;

/// A list of columns in the making.
#[derive(Default)]
struct Builder {
    list: Vec<Column>,
    path: String,
    field: u16,
    guard: Option<Guard>,
}

impl Builder {
    fn add(&mut self, ty: &Type, options: &Options) {
        match ty {
            Type::Bool => {
                let column = self.push("", ColumnKind::Flag, 0, 1);
                column.predict = options.predict.unwrap_or_default();
            }
            Type::Integer { bits, signed } => self.add_integer(*bits, *signed, options),
            Type::Float { bits } => self.add_float(*bits, options),
            Type::Text => self.add_packed(options),
            Type::List(element) if element.is_packed(options) => self.add_packed(options),
            Type::List(element) => self.add_list(element, options),
            Type::Array { element, len } => self.add_array(element, *len, options),
            Type::Optional(inner) => {
                let column = self.next();
                self.push("", ColumnKind::Flag, 0, 1);
                self.guarded(Guard::Equals { column, value: 1 }, |builder| {
                    builder.add(inner, options);
                });
            }
            Type::Tuple(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    self.within(&index.to_string(), |builder| {
                        builder.add(part, &Options::NONE);
                    });
                }
            }
            Type::Struct { fields, .. } => self.add_fields(fields),
            Type::Enum { variants, .. } => self.add_enum(variants),
            Type::Opaque { columns, .. } => {
                for template in *columns {
                    self.push(template.name, template.kind, template.min, template.max);
                }
            }
        }
    }

    fn add_fields(&mut self, fields: &[Field]) {
        let mut starts = Vec::with_capacity(fields.len());
        for field in fields {
            starts.push(self.list.len());
            self.within(field.name, |builder| builder.add(&field.ty, &field.options));
        }
        starts.push(self.list.len());
        for (index, field) in fields.iter().enumerate() {
            let derivative = field
                .options
                .velocity
                .and_then(|name| fields.iter().position(|other| other.name == name));
            let Some(derivative) = derivative else {
                continue;
            };
            let columns = starts[index]..starts[index + 1];
            for (column, of) in columns.zip(starts[derivative]..starts[derivative + 1]) {
                let moves = |column: usize| {
                    matches!(
                        self.list[column].kind,
                        ColumnKind::Number | ColumnKind::Angle
                    )
                };
                if moves(column) && moves(of) {
                    self.list[column].velocity = Some(of as u16);
                }
            }
        }
    }

    fn add_enum(&mut self, variants: &[Variant]) {
        let column = self.next();
        if variants.len() > 1 {
            let last = variants.len() as i32 - 1;
            self.push("", ColumnKind::Choice, 0, last);
        }
        for (variant, value) in variants.iter().zip(0..) {
            let add = |builder: &mut Self| {
                builder.within(variant.name, |builder| builder.add_fields(variant.fields));
            };
            match variants.len() {
                1 => add(self),
                _ => self.guarded(Guard::Equals { column, value }, add),
            }
        }
    }

    fn add_integer(&mut self, bits: u8, signed: bool, options: &Options) {
        let predict = options.predict.unwrap_or_default();
        if let Some(count) = options.bits {
            self.push_bits("", count.min(32));
            if count > 32 {
                self.push_bits("high", count - 32);
            }
            return;
        }
        if bits == 64 && is_wide(options) {
            let column = self.push("", ColumnKind::Number, i32::MIN, i32::MAX);
            column.predict = predict;
            self.push("high", ColumnKind::Number, i32::MIN, i32::MAX);
            return;
        }
        let (least, most) = match options.range {
            Range::Integer { min, max } => (min, max),
            // Numbers above the largest `i32` are stored as negative ones, so that small numbers are small.
            _ if bits == 32 => bounds(32, true),
            _ => bounds(bits, signed),
        };
        let base = integer_base(least, most);
        let column = self.push(
            "",
            ColumnKind::Number,
            (least - base) as i32,
            (most - base) as i32,
        );
        column.predict = predict;
        column.offset = base as f64;
    }

    fn add_float(&mut self, bits: u8, options: &Options) {
        let kind = match options.range {
            Range::Angle { .. } => ColumnKind::Angle,
            Range::Float { .. } => ColumnKind::Number,
            _ => {
                self.push("", ColumnKind::Raw, i32::MIN, i32::MAX);
                if bits == 64 {
                    self.push("high", ColumnKind::Raw, i32::MIN, i32::MAX);
                }
                return;
            }
        };
        let grid = options.grid;
        let column = self.push("", kind, grid.low, grid.high);
        column.predict = options.predict.unwrap_or(Predict::Linear);
        column.offset = grid.base;
        column.step = grid.step;
    }

    fn add_array(&mut self, element: &Type, len: usize, options: &Options) {
        match (element, options.rotation) {
            (Type::Float { .. }, Some(bits)) if len == 4 => {
                let predict = options.predict.unwrap_or(Predict::Linear);
                self.push("", ColumnKind::RotationLargest, 0, 3);
                let half = 1 << (bits - 1);
                for name in ["0", "1", "2"] {
                    let column = self.push(name, ColumnKind::RotationPart, -half, half - 1);
                    column.predict = predict;
                    column.step = core::f64::consts::FRAC_1_SQRT_2 / f64::from(half - 1);
                }
            }
            (Type::Bool, _) if options.bits.is_some() => {
                for start in (0..len).step_by(32) {
                    let name = if len > 32 {
                        (start / 32).to_string()
                    } else {
                        String::new()
                    };
                    self.push_bits(&name, (len - start).min(32) as u32);
                }
            }
            _ => {
                let field = self.field;
                for index in 0..len {
                    let before = self.path.len();
                    self.extend_path(&index.to_string());
                    // Numbers of one array behave alike; the fields of structs in it count on for themselves.
                    self.add(element, options);
                    self.path.truncate(before);
                    if is_leaf(element) {
                        self.field = field;
                    }
                }
            }
        }
    }

    fn add_packed(&mut self, options: &Options) {
        let head = self.next();
        let max = options.state_max();
        self.push("", ColumnKind::Number, 0, max as i32);
        for index in 0..(max as usize).div_ceil(BYTES_PER_COLUMN) {
            let guard = Guard::Above {
                column: head,
                value: (index * BYTES_PER_COLUMN) as i32,
            };
            let outer = self.guard.replace(guard);
            self.push(&index.to_string(), ColumnKind::Raw, i32::MIN, i32::MAX);
            self.guard = outer;
        }
    }

    fn add_list(&mut self, element: &Type, options: &Options) {
        let column = self.next();
        let max = options.state_max();
        self.push("", ColumnKind::Number, 0, max as i32);
        for index in 0..max {
            let guard = Guard::Above {
                column,
                value: index as i32,
            };
            self.guarded(guard, |builder| {
                builder.within(&index.to_string(), |builder| {
                    builder.add(element, &options.inside());
                });
            });
        }
    }

    /// Adds what is named `name` in the type at hand: a field of its own.
    fn within(&mut self, name: &str, add: impl FnOnce(&mut Self)) {
        let before = self.path.len();
        self.extend_path(name);
        if !self.list.is_empty() {
            self.field = self.list[self.list.len() - 1].field + 1;
        }
        add(self);
        self.path.truncate(before);
    }

    /// Adds what exists only if the guard holds, and is no longer the field of the column that decides.
    fn guarded(&mut self, guard: Guard, add: impl FnOnce(&mut Self)) {
        let outer = self.guard.replace(guard);
        self.field += 1;
        add(self);
        self.guard = outer;
    }

    fn push(&mut self, name: &str, kind: ColumnKind, min: i32, max: i32) -> &mut Column {
        let before = self.path.len();
        self.extend_path(name);
        let mut column = Column::new(self.path.clone(), kind, min, max);
        self.path.truncate(before);
        column.field = self.field;
        column.guard = self.guard;
        self.list.push(column);
        self.list.last_mut().expect("it was just pushed")
    }

    /// A set of at most 32 bits.
    fn push_bits(&mut self, name: &str, count: u32) {
        let (min, max) = match count {
            0..=31 => (0, (1 << count) - 1),
            _ => (i32::MIN, i32::MAX),
        };
        self.push(name, ColumnKind::Bits, min, max);
    }

    fn extend_path(&mut self, name: &str) {
        if !name.is_empty() && !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    /// Index of the column to come.
    fn next(&self) -> u16 {
        self.list.len() as u16
    }
}

/// True if all columns of the type are one field.
fn is_leaf(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Integer { .. } | Type::Float { .. } => true,
        Type::Array { element, .. } => is_leaf(element),
        _ => false,
    }
}
