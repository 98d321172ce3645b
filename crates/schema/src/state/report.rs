//! The differences between two rows, in words: for reports of desyncs and mispredictions.

use core::fmt;

use super::column::{Column, ColumnKind, Form};
use super::{Columns, State, rotation};

/// A value that two rows do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueDifference {
    /// Path of the field.
    pub path: String,
    /// Its value in the first row.
    pub here: String,
    /// Its value in the second row.
    pub there: String,
}

impl fmt::Display for ValueDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, here, there } = self;
        let path = if path.is_empty() { "value" } else { path };
        write!(f, "{path}: {here} here, {there} there")
    }
}

impl Columns {
    /// Returns the differences between two rows, in their order. Parts that only one of them has are left out: that it has them
    /// is a difference already. Rows of another length than the columns are compared as far as they go.
    pub fn diff(&self, here: &[i32], there: &[i32]) -> Vec<ValueDifference> {
        let len = self.len().min(here.len()).min(there.len());
        let (here, there) = (&here[..len], &there[..len]);
        let mut differences = Vec::new();
        let mut last_head = None;
        for index in 0..len {
            let head = usize::from(self[index].head);
            let seen = last_head == Some(head);
            if here[index] == there[index] || seen {
                continue;
            }
            if !(self.exists(head, here) && self.exists(head, there)) {
                continue;
            }
            last_head = Some(head);
            differences.push(ValueDifference {
                path: self[head].name.clone(),
                here: self.show(head, here),
                there: self.show(head, there),
            });
        }
        differences
    }

    /// [`diff`](Self::diff) of two states of which these are the columns.
    pub fn diff_states<S: State>(&self, here: &S, there: &S) -> Vec<ValueDifference> {
        self.diff(&here.to_row(), &there.to_row())
    }

    /// The value that starts at a column, as text.
    fn show(&self, head: usize, row: &[i32]) -> String {
        let (column, value) = (&self[head], row[head]);
        let part = |place: usize| row.get(head + place).copied().unwrap_or_default();
        let wide = || u64::from(part(1) as u32) << 32 | u64::from(value as u32);
        match column.form {
            Form::Number => number(column, value),
            Form::Flag => (value != 0).to_string(),
            Form::Presence => if value == 0 { "none" } else { "some" }.to_owned(),
            Form::Choice(variants) => {
                match usize::try_from(value).ok().and_then(|at| variants.get(at)) {
                    Some(variant) => variant.name.to_owned(),
                    None => format!("variant {value}"),
                }
            }
            Form::Bits if self.parts(head) == 2 => format!("{:#b}", wide()),
            Form::Bits => format!("{:#b}", value as u32),
            Form::Unsigned => (value as u32).to_string(),
            Form::Wide { signed: true } => (wide() as i64).to_string(),
            Form::Wide { signed: false } => wide().to_string(),
            Form::Float32 => f32::from_bits(value as u32).to_string(),
            Form::Float64 => f64::from_bits(wide()).to_string(),
            Form::Rotation => self.show_rotation(head, [value, part(1), part(2), part(3)]),
            Form::Text => format!("{:?}", String::from_utf8_lossy(&self.bytes(head, row))),
            Form::Bytes => format!("{:02x?}", self.bytes(head, row)),
        }
    }

    fn show_rotation(&self, head: usize, row: [i32; 4]) -> String {
        let bits = self
            .get(head + 1)
            .map_or(2, |part| 1 + (part.max + 1).trailing_zeros());
        match rotation::load(row, bits) {
            Ok([x, y, z, w]) => format!("[{x:.4}, {y:.4}, {z:.4}, {w:.4}]"),
            Err(_) => format!("no rotation {row:?}"),
        }
    }

    /// The bytes of a text or list of bytes.
    fn bytes(&self, head: usize, row: &[i32]) -> Vec<u8> {
        let rest = row.iter().skip(head + 1).take(self.parts(head) - 1);
        let bytes = rest.flat_map(|column| column.to_le_bytes());
        bytes.take(row[head].max(0) as usize).collect()
    }

    /// Returns the number of columns of the value that starts here.
    fn parts(&self, head: usize) -> usize {
        let columns = self[head..].iter();
        columns
            .take_while(|column| usize::from(column.head) == head)
            .count()
    }
}

fn number(column: &Column, value: i32) -> String {
    let real = column.real(value);
    match column.kind {
        // Digits beyond the step mean nothing: 0.1 + 0.2 is 0.3.
        ColumnKind::Number | ColumnKind::Angle if column.step < 1.0 => {
            let mut digits = 0;
            let mut step = column.step;
            while step < 1.0 && digits < DIGITS_MAX {
                step *= 10.0;
                digits += 1;
            }
            let text = format!("{real:.*}", digits + 3);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => real.to_string(),
    }
}

/// Digits of the step after the point at most.
const DIGITS_MAX: usize = 15;
