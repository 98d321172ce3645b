//! A list of columns, made ready for coding: the order, and per column what arithmetic it allows.

use super::RowError;
use super::models::Models;
use muse_schema::{Column, ColumnKind, Guard, Predict};

/// The way in which the columns of one kind of entity are coded.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// In the order of coding: a column comes after the one that is its velocity.
    pub(super) items: Box<[Item]>,
    /// Columns by which rows are near to each other: the first vector that moves.
    pub(super) place: Box<[u16]>,
    /// Smallest and largest value per column.
    bounds: Box<[[i32; 2]]>,
    /// Columns that are flags, in the order of coding, with the value that is none.
    pub(super) flags: Box<[(u16, i32)]>,
    /// Ranks of the columns whose predictors are compared.
    pub(super) judged: Box<[u16]>,
    /// True if any column may be absent.
    pub(super) has_guards: bool,
    /// Number of columns.
    pub(super) width: usize,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) column: u16,
    /// Its place in the order, and that of its models among the models.
    pub(super) rank: u16,
    pub(super) min: i32,
    pub(super) max: i32,
    /// Bits of `max - min`.
    pub(super) bits: u32,
    pub(super) way: Way,
    /// True if differences between its values mean something.
    pub(super) is_quantity: bool,
    /// True if, besides, they never wrap around.
    pub(super) is_bounded: bool,
    pub(super) guard: Option<Guard>,
    pub(super) velocity: Option<Velocity>,
    /// The predictor to begin with.
    pub(super) predictor: Predictor,
    /// Columns of the same field that were coded just before, at most two.
    pub(super) before: u8,
    /// The column that says which part of a rotation is the largest, for the others.
    pub(super) largest: Option<u16>,
    /// First and last column of the field, for what the field as a whole does.
    pub(super) field: (u16, u16),
}

/// The arithmetic that a column allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Differences, within bounds.
    Bounded,
    /// Differences around all 2^32 values, because they may be as far apart as that.
    Number,
    /// Differences around a circle of so many values.
    Circle(u32),
    /// A decision.
    Flag,
    /// Equal or not, then one of a few.
    Choice,
    /// Each bit for itself.
    Bits,
    /// Equal or not, then anything.
    Any,
    /// The part of a rotation that is left out, followed by the three others.
    Rotation,
    /// One of those three, coded with [`Way::Rotation`].
    RotationPart,
}

/// The column that is the velocity of another, and how far it moves that one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    pub(super) column: u16,
    /// Steps a tick for each step of velocity, halved, since the mean of two velocities counts; in 2^-20.
    half_ratio: i64,
    /// Steps a tick for velocity 0.
    bias: i64,
    /// True if the velocity itself is coded earlier.
    pub(super) is_known: bool,
}

impl Velocity {
    /// Returns how far the other column moves in so many ticks between two velocities.
    #[inline(always)]
    pub(super) fn distance(&self, from: i32, to: i32, ticks: i64) -> i64 {
        // Wraps only for ratios that no game has, and then everywhere alike.
        let rate = (i64::from(from) + i64::from(to))
            .wrapping_mul(self.half_ratio)
            .wrapping_add(self.bias);
        rate.wrapping_mul(ticks).wrapping_add(1 << 19) >> 20
    }

    /// Returns the weight of the sum of two velocities in so many ticks, and the distance that a velocity of 0 leads.
    pub(super) fn in_ticks(&self, ticks: i64) -> (f32, f32) {
        let steps = |a_tick: i64| (a_tick as f64 * ticks as f64 / f64::from(1 << 20)) as f32;
        (steps(self.half_ratio), steps(self.bias))
    }
}

/// Ways to expect the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Predictor {
    /// As in the newest reference.
    Hold,
    /// Along the line through the two newest.
    Near,
    /// Along the line through the newest and the oldest.
    Far,
    /// Along a curve through three.
    Curve,
    /// By the declared velocity.
    Velocity,
}

impl Predictor {
    pub(super) const ALL: [Self; 5] = [
        Self::Hold,
        Self::Near,
        Self::Far,
        Self::Curve,
        Self::Velocity,
    ];
}

impl Plan {
    pub(super) fn new(columns: &[Column], ticks_per_second: f64) -> Self {
        let mut order = Vec::with_capacity(columns.len());
        let mut is_placed = vec![false; columns.len()];
        for index in 0..columns.len() {
            place(columns, index, &mut order, &mut is_placed);
        }
        let mut items: Vec<Item> = Vec::with_capacity(order.len());
        for (position, &index) in order.iter().enumerate() {
            let mut item = Item::new(columns, index, ticks_per_second);
            let same = |back: usize| {
                position >= back && columns[order[position - back]].field == columns[index].field
            };
            item.rank = position as u16;
            item.before = if !same(1) { 0 } else { 1 + u8::from(same(2)) };
            if let Some(velocity) = &mut item.velocity {
                velocity.is_known = order[..position].contains(&usize::from(velocity.column));
            }
            items.push(item);
        }
        Self {
            place: moving_vector(columns, &items),
            bounds: columns
                .iter()
                .map(|column| [column.min, column.max])
                .collect(),
            flags: items
                .iter()
                .filter(|item| item.way == Way::Flag)
                .map(|item| (item.column, item.min))
                .collect(),
            judged: items
                .iter()
                .filter(|item| item.is_quantity)
                .map(|item| item.rank)
                .collect(),
            has_guards: items.iter().any(|item| item.guard.is_some()),
            width: columns.len(),
            items: items.into_boxed_slice(),
        }
    }

    /// One of the three parts of a rotation.
    #[inline]
    pub(super) fn part(&self, rotation: &Item, index: usize) -> &Item {
        // Parts follow in the order of columns, which only velocities leave.
        &self.items[usize::from(rotation.rank) + 1 + index]
    }

    /// Returns the position in a row, by the first vector that moves.
    pub(super) fn place_of(&self, row: &[i32]) -> [i32; 3] {
        let mut place = [0; 3];
        for (number, &column) in place.iter_mut().zip(&self.place) {
            *number = row[usize::from(column)];
        }
        place
    }

    /// Takes a row into the models if all values that are coded lie within bounds.
    pub(super) fn check(&self, models: &mut Models, row: &[i32]) -> Result<(), RowError> {
        models.row.copy_from_slice(row);
        if self.has_guards {
            for item in &self.items {
                models.admit(item);
            }
        }
        // Without an early end, all comparisons are a few vector instructions.
        let is_legal = row
            .iter()
            .zip(&self.bounds)
            .fold(true, |is_legal, (value, bounds)| {
                is_legal & (*value >= bounds[0]) & (*value <= bounds[1])
            });
        let exists = |item: &Item| {
            let column = usize::from(item.column);
            !models.exists[column] || (item.min..=item.max).contains(&row[column])
        };
        if is_legal || self.has_guards && self.items.iter().all(exists) {
            Ok(())
        } else {
            Err(RowError::OutOfRange)
        }
    }
}

/// Puts a column into the order, before it the field that is its velocity, as far as that can be.
fn place(columns: &[Column], index: usize, order: &mut Vec<usize>, is_placed: &mut [bool]) {
    if is_placed[index] {
        return;
    }
    is_placed[index] = true;
    let velocity = columns[index].velocity.map(usize::from);
    if let Some(velocity) = velocity.and_then(|velocity| columns.get(velocity))
        && columns[index].kind == ColumnKind::Number
    {
        for (other, column) in columns.iter().enumerate() {
            // The column that decides whether the velocity exists must have been coded before.
            let is_decided = column
                .guard
                .is_none_or(|guard| order.contains(&usize::from(guard.column())));
            let is_wanted = column.field == velocity.field && column.kind == ColumnKind::Number;
            if is_wanted && is_decided && !is_placed[other] {
                is_placed[other] = true;
                order.push(other);
            }
        }
    }
    order.push(index);
}

/// The first field of two or three numbers that are expected to move.
fn moving_vector(columns: &[Column], items: &[Item]) -> Box<[u16]> {
    let moves = |column: &Column| {
        column.kind == ColumnKind::Number
            && (column.predict != Predict::Hold || column.velocity.is_some())
    };
    items
        .iter()
        .map(|item| item.field)
        .find(|&(first, last)| {
            (1..=2).contains(&(last - first))
                && columns[usize::from(first)..=usize::from(last)]
                    .iter()
                    .all(moves)
        })
        .map(|(first, last)| (first..=last).collect())
        .unwrap_or_default()
}

impl Item {
    fn new(columns: &[Column], index: usize, ticks_per_second: f64) -> Self {
        let column = &columns[index];
        let span = column.max.wrapping_sub(column.min) as u32;
        let same = |other: &&Column| other.field == column.field;
        let first = index - columns[..index].iter().rev().take_while(same).count();
        let last = index + columns[index + 1..].iter().take_while(same).count();
        let velocity = column
            .velocity
            .filter(|&velocity| usize::from(velocity) < columns.len())
            .map(|velocity| {
                let source = &columns[usize::from(velocity)];
                // Divisions of IEEE 754 are the same everywhere.
                let scale = f64::from(1 << 20) / (ticks_per_second * column.step);
                Velocity {
                    column: velocity,
                    half_ratio: (source.step * scale / 2.0).round() as i64,
                    bias: (source.offset * scale).round() as i64,
                    is_known: false,
                }
            });
        let way = way(columns, index, span);
        let largest = (way == Way::RotationPart)
            .then(|| {
                let is_largest = |column: &Column| column.kind == ColumnKind::RotationLargest;
                columns[..index].iter().rposition(is_largest)
            })
            .flatten();
        let predictor = match column.predict {
            _ if velocity.is_some() => Predictor::Velocity,
            Predict::Linear => Predictor::Near,
            Predict::Quadratic => Predictor::Curve,
            _ if matches!(way, Way::Rotation | Way::RotationPart) => Predictor::Near,
            _ => Predictor::Hold,
        };
        Self {
            column: index as u16,
            rank: 0,
            min: column.min,
            max: column.max,
            bits: 32 - span.leading_zeros(),
            way,
            is_bounded: matches!(way, Way::Bounded | Way::RotationPart),
            is_quantity: matches!(
                way,
                Way::Number | Way::Bounded | Way::Circle(_) | Way::RotationPart
            ),
            guard: column.guard,
            velocity,
            predictor,
            before: 0,
            largest: largest.map(|column| column as u16),
            field: (first as u16, last as u16),
        }
    }

    /// Returns the distance from one value to another.
    #[inline]
    pub(super) fn difference(&self, to: i32, from: i32) -> i32 {
        let difference = to.wrapping_sub(from);
        match self.way {
            Way::Circle(count) => {
                let half = count / 2;
                let turned = (i64::from(difference) + i64::from(half)).rem_euclid(i64::from(count));
                (turned - i64::from(half)) as i32
            }
            _ => difference,
        }
    }

    /// The value so far from another, moved inside the bounds; around, if it is a circle.
    #[inline]
    pub(super) fn advance(&self, from: i32, by: i64) -> i32 {
        match self.way {
            Way::Circle(count) => {
                let steps = i64::from(from.wrapping_sub(self.min)).saturating_add(by);
                self.min
                    .wrapping_add(steps.rem_euclid(i64::from(count)) as i32)
            }
            Way::Number => from.wrapping_add(by as i32),
            _ => i64::from(from)
                .saturating_add(by)
                .clamp(i64::from(self.min), i64::from(self.max)) as i32,
        }
    }

    /// The value that a coded difference leads to.
    #[inline]
    pub(super) fn resolve(&self, expected: i32, difference: i32) -> Result<i32, RowError> {
        self.legal(match self.way {
            Way::Circle(_) => self.advance(expected, i64::from(difference)),
            _ => expected.wrapping_add(difference),
        })
    }

    /// The value, if it may be.
    #[inline(always)]
    pub(super) fn legal(&self, value: i32) -> Result<i32, RowError> {
        if (self.min..=self.max).contains(&value) {
            Ok(value)
        } else {
            Err(RowError::OutOfRange)
        }
    }

    /// Notes whether the column exists in a row, and says so. One that does not is 0.
    #[inline]
    pub(super) fn admit(&self, row: &mut [i32], exists: &mut [bool]) -> bool {
        let column = usize::from(self.column);
        let found = self.guard.is_none_or(|guard| {
            let decider = usize::from(guard.column());
            exists[decider] && guard.admits(row[decider])
        });
        exists[column] = found;
        if !found {
            row[column] = 0;
        }
        found
    }
}

fn way(columns: &[Column], index: usize, span: u32) -> Way {
    let column = &columns[index];
    match column.kind {
        ColumnKind::Flag if span <= 1 => Way::Flag,
        ColumnKind::Choice => Way::Choice,
        ColumnKind::Bits => Way::Bits,
        // A circle of all 2^32 values is what numbers do by themselves.
        ColumnKind::Angle if span < 1 << 31 => Way::Circle(span + 1),
        ColumnKind::RotationLargest if is_rotation(columns, index) => Way::Rotation,
        ColumnKind::RotationPart
            if (1..=3).any(|back| {
                index >= back
                    && columns[index - back].kind == ColumnKind::RotationLargest
                    && is_rotation(columns, index - back)
            }) =>
        {
            Way::RotationPart
        }
        ColumnKind::RotationLargest => Way::Choice,
        ColumnKind::Reference | ColumnKind::Raw => Way::Any,
        _ if span >= 1 << 31 => Way::Number,
        _ => Way::Bounded,
    }
}

/// True if a whole rotation starts at this column.
fn is_rotation(columns: &[Column], index: usize) -> bool {
    let Some([largest, parts @ ..]) = columns.get(index..index + 4) else {
        return false;
    };
    let first = &parts[0];
    let span = i64::from(first.max) - i64::from(first.min);
    (largest.min, largest.max) == (0, 3)
        && (2..1 << 20).contains(&span)
        && parts.iter().all(|part| {
            part.kind == ColumnKind::RotationPart
                && (part.min, part.max, part.guard) == (first.min, first.max, largest.guard)
        })
}
