//! Predicts a row from its references, four columns at a time. Most predictions depend on the references alone and are computed once per packet.

use super::coding::folded;
use super::models::{ColumnModels, Models};
use super::plan::{Item, Plan, Predictor, Way};
use super::references::Factors;
use super::rotation::Scale;

/// The columns of a row, four side by side, with what to expect of them from references of certain ages.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    /// By rank.
    pub(super) places: Box<[Place]>,
    /// Ranks of the quantities that are looked at one by one.
    singles: Vec<u16>,
    rotations: Box<[Rotation]>,
    /// True if ages or predictors changed since it was prepared.
    is_stale: bool,
}

/// The place where the prediction of a column is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In its lane, from the references alone.
    Lane,
    /// In its lane, but only once its velocity is known.
    Moving,
    /// By itself.
    Single,
}

/// A rotation, whose parts only compare where the same one is left out, because it is the largest.
#[derive(Clone, Debug)]
struct Rotation {
    rank: u16,
    /// True for each reference that counts for any of its parts.
    counts: [bool; 4],
}

#[derive(Clone, Debug)]
struct Lane {
    /// The first column.
    first: usize,
    /// The weight of the difference to each older reference.
    weights: [[f32; WIDTH]; 3],
    /// The columns that are the velocities of these.
    velocities: [u16; WIDTH],
    /// The weight of the sum of a velocity's old and new value.
    pace: [f32; WIDTH],
    /// The distance that a velocity of 0 leads.
    bias: [f32; WIDTH],
    /// True if any of them moves by its velocity.
    has_velocity: bool,
    min: [i32; WIDTH],
    max: [i32; WIDTH],
}

impl Lanes {
    pub(super) fn new(plan: &Plan) -> Self {
        let lane = |start: usize| Lane {
            // The last one may overlap the one before: what is done twice comes out the same.
            first: start.min(plan.width - WIDTH),
            weights: [[0.0; WIDTH]; 3],
            velocities: [0; WIDTH],
            pace: [0.0; WIDTH],
            bias: [0.0; WIDTH],
            has_velocity: false,
            min: [0; WIDTH],
            max: [0; WIDTH],
        };
        let starts = (0..plan.width).step_by(WIDTH);
        Self {
            lanes: match plan.width {
                0..WIDTH => Box::default(),
                _ => starts.map(lane).collect(),
            },
            places: vec![Place::Single; plan.width].into_boxed_slice(),
            singles: Vec::with_capacity(plan.width),
            rotations: plan
                .items
                .iter()
                .filter(|item| item.way == Way::Rotation)
                .map(|item| Rotation {
                    rank: item.rank,
                    counts: [true; 4],
                })
                .collect(),
            is_stale: true,
        }
    }

    /// Ages or predictors have changed.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.is_stale = true;
    }

    /// Makes it ready for the ages and predictors of now.
    #[inline]
    pub(super) fn prepare(&mut self, plan: &Plan, columns: &[ColumnModels], factors: &Factors) {
        if self.is_stale {
            self.prepare_anew(plan, columns, factors);
        }
    }

    #[inline(never)]
    fn prepare_anew(&mut self, plan: &Plan, columns: &[ColumnModels], factors: &Factors) {
        self.is_stale = false;
        self.singles.clear();
        for lane in &mut self.lanes {
            lane.has_velocity = false;
        }
        for (item, models) in plan.items.iter().zip(columns) {
            let place = match item.velocity {
                _ if self.lanes.is_empty() || !item.fits() => Place::Single,
                _ if models.predictor != Predictor::Velocity => Place::Lane,
                Some(velocity) if velocity.is_known => Place::Moving,
                _ => Place::Single,
            };
            self.places[usize::from(item.rank)] = place;
            if item.is_quantity && place == Place::Single {
                self.singles.push(item.rank);
            }
            let column = usize::from(item.column);
            // The last two may overlap.
            let lane = column / WIDTH;
            for lane in self.lanes.iter_mut().skip(lane.saturating_sub(1)).take(3) {
                let index = column.wrapping_sub(lane.first);
                if index < WIDTH {
                    lane.take(index, item, models.predictor, factors);
                }
            }
        }
        for rotation in &mut self.rotations {
            let parts = &columns[usize::from(rotation.rank) + 1..][..3];
            let weights = |part: &ColumnModels| factors.weights[part.predictor as usize];
            for index in 0..3 {
                rotation.counts[index + 1] = parts.iter().any(|part| weights(part)[index] != 0);
            }
        }
    }

    /// Predicts the parts of a rotation if a reference that counts has another largest part than the row. Mostly none has.
    #[inline]
    pub(super) fn turned(&self, item: &Item, seen: &Seen<'_>) -> Option<[i32; 3]> {
        let rotation = self
            .rotations
            .iter()
            .find(|rotation| rotation.rank == item.rank)?;
        rotation.turned(seen)
    }

    /// Puts down what `finish` makes of what columns are expected to be and of what they are. What is expected of singles and of rotations
    /// that are seen from elsewhere now is wrong, and that of columns with a velocity, if the row's is not known yet.
    #[inline(always)]
    pub(super) fn expect(
        &self,
        rows: &[&[i32]; 4],
        row: &[i32],
        finish: impl Fn(i32, i32) -> i32,
        finished: &mut [i32],
    ) {
        for lane in &self.lanes {
            let mut moved = lane.along(rows);
            if lane.has_velocity {
                moved = lane.by_velocity(moved, rows[0], row);
            }
            let (expected, row) = (lane.reached(rows[0], moved), lane.part(row));
            let results = each(|index| finish(expected[index], row[index]));
            finished[lane.first..lane.first + WIDTH].copy_from_slice(&results);
        }
    }

    /// Predicts a column from a velocity that is known.
    pub(super) fn moving(&self, item: &Item, rows: &[&[i32]; 4], row: &[i32]) -> i32 {
        let column = usize::from(item.column);
        let lane = &self.lanes[column / WIDTH];
        let moved = lane.by_velocity([0.0; WIDTH], rows[0], row);
        lane.reached(rows[0], moved)[column - lane.first]
    }
}

/// In single precision, because processors do four at once; sums and products of IEEE 754 are the same everywhere. One step after the other
/// for all columns, because compilers see through that.
impl Lane {
    fn take(&mut self, index: usize, item: &Item, predictor: Predictor, factors: &Factors) {
        let weights = factors.weights[predictor as usize];
        for (all, weight) in self.weights.iter_mut().zip(weights) {
            all[index] = weight as f32 / 65_536.0;
        }
        (self.min[index], self.max[index]) = (item.min, item.max);
        (self.pace[index], self.bias[index]) = (0.0, 0.0);
        if predictor == Predictor::Velocity
            && let Some(velocity) = &item.velocity
        {
            self.has_velocity = true;
            self.velocities[index] = velocity.column;
            (self.pace[index], self.bias[index]) = velocity.in_ticks(factors.ticks);
        }
    }

    /// Its columns of a row.
    #[inline(always)]
    fn part(&self, row: &[i32]) -> [i32; WIDTH] {
        let part = &row[self.first..self.first + WIDTH];
        each(|index| part[index])
    }

    /// Returns how far the columns move along lines and curves.
    #[inline(always)]
    fn along(&self, [newest, near, middle, far]: &[&[i32]; 4]) -> [f32; WIDTH] {
        let newest = self.part(newest);
        let mut moved = [0.0; WIDTH];
        for (older, weights) in [near, middle, far].into_iter().zip(&self.weights) {
            let older = self.part(older);
            let apart = each(|index| newest[index].wrapping_sub(older[index]));
            moved = each(|index| moved[index] + apart[index] as f32 * weights[index]);
        }
        moved
    }

    /// And how far by their velocities.
    #[inline(always)]
    fn by_velocity(&self, moved: [f32; WIDTH], newest: &[i32], row: &[i32]) -> [f32; WIDTH] {
        let velocities = each(|index| usize::from(self.velocities[index]));
        let both = each(|index| newest[velocities[index]].wrapping_add(row[velocities[index]]));
        let moved = each(|index| moved[index] + both[index] as f32 * self.pace[index]);
        each(|index| moved[index] + self.bias[index])
    }

    /// Returns the predicted values: whole steps, within bounds.
    #[inline(always)]
    fn reached(&self, newest: &[i32], moved: [f32; WIDTH]) -> [i32; WIDTH] {
        let newest = self.part(newest);
        let moved = each(|index| {
            if moved[index] > MOVED_MAX {
                MOVED_MAX
            } else {
                moved[index]
            }
        });
        let moved = each(|index| {
            if moved[index] < -MOVED_MAX {
                -MOVED_MAX
            } else {
                moved[index]
            }
        });
        // The last bit of such a sum counts whole steps.
        let steps = each(|index| {
            (moved[index] + WHOLE)
                .to_bits()
                .wrapping_sub(WHOLE.to_bits())
        });
        let value = each(|index| newest[index].wrapping_add(steps[index] as i32));
        let value = each(|index| value[index].min(self.max[index]));
        each(|index| value[index].max(self.min[index]))
    }
}

#[inline(always)]
fn each<T>(make: impl Fn(usize) -> T) -> [T; WIDTH] {
    [make(0), make(1), make(2), make(3)]
}

impl Item {
    /// True if single precision can tell its values apart, and no sum of theirs overflows.
    fn fits(&self) -> bool {
        let is_small = self.min >= -BOUND_MAX && self.max <= BOUND_MAX;
        self.is_bounded && is_small && self.bits <= BITS_MAX
    }
}

/// By how much each quantity of the row is mispredicted, by column and [`folded`].
///
/// An encoder does this for the whole row before it codes, because short loops need fewer registers than a long one.
pub(super) fn mispredict(plan: &Plan, models: &mut Models, rows: &[&[i32]; 4]) {
    let Models {
        columns,
        factors,
        lanes,
        row,
        errors,
        ..
    } = models;
    lanes.prepare(plan, columns, factors);
    // One length for all, so that one comparison of a column's number will do.
    let row = &row[..plan.width];
    let [newest, near, middle, far] = rows;
    let rows = &[
        &newest[..plan.width],
        &near[..plan.width],
        &middle[..plan.width],
        &far[..plan.width],
    ];
    let errors = &mut errors[..plan.width];
    lanes.expect(
        rows,
        row,
        |expected, value| folded(value.wrapping_sub(expected)) as i32,
        errors,
    );
    for rank in &lanes.singles {
        let item = &plan.items[usize::from(*rank)];
        let predictor = columns[usize::from(*rank)].predictor;
        let column = usize::from(item.column);
        let of_column = rows.map(|row| row[column]);
        let expected = expect(predictor, factors, item, of_column, rows[0], row);
        errors[column] = folded(item.difference(row[column], expected)) as i32;
    }
    let seen = Seen {
        plan,
        columns,
        factors,
        rows,
        row,
    };
    for rotation in &lanes.rotations {
        if let Some(parts) = rotation.turned(&seen) {
            let first = usize::from(plan.items[usize::from(rotation.rank)].column) + 1;
            for (index, expected) in parts.into_iter().enumerate() {
                errors[first + index] = folded(row[first + index].wrapping_sub(expected)) as i32;
            }
        }
    }
}

/// Predicts a column from its values in all references.
#[inline]
pub(super) fn expect(
    predictor: Predictor,
    factors: &Factors,
    item: &Item,
    [baseline, older @ ..]: [i32; 4],
    newest: &[i32],
    row: &[i32],
) -> i32 {
    let apart = older.map(|older| item.difference(baseline, older));
    let movement = factors.movement(predictor, apart, item, row, newest);
    item.advance(baseline, movement)
}

/// The inputs of the prediction of a rotation's parts.
pub(super) struct Seen<'a> {
    pub(super) plan: &'a Plan,
    pub(super) columns: &'a [ColumnModels],
    pub(super) factors: &'a Factors,
    pub(super) rows: &'a [&'a [i32]; 4],
    pub(super) row: &'a [i32],
}

impl Rotation {
    #[inline(always)]
    fn turned(&self, seen: &Seen<'_>) -> Option<[i32; 3]> {
        let column = usize::from(seen.plan.items[usize::from(self.rank)].column);
        let largest = seen.row[column];
        let differs = |index: usize| self.counts[index] & (seen.rows[index][column] != largest);
        let is_turned = differs(0) | differs(1) | differs(2) | differs(3);
        is_turned.then(|| self.parts(seen))
    }

    #[inline(never)]
    fn parts(&self, seen: &Seen<'_>) -> [i32; 3] {
        let item = &seen.plan.items[usize::from(self.rank)];
        let first = usize::from(item.column);
        let largest = seen.row[first];
        let part = seen.plan.part(item, 0);
        let scale = Scale::new(part.min, part.max);
        let mut by_part = [[0; 4]; 3];
        let rows = seen.rows.iter().enumerate();
        for (index, row) in rows.filter(|(index, _)| self.counts[*index]) {
            let parts = if row[first] == largest {
                [row[first + 1], row[first + 2], row[first + 3]]
            } else {
                scale.parts(&scale.quaternion(&row[first..first + 4]), largest as usize)
            };
            for (all, part) in by_part.iter_mut().zip(parts) {
                all[index] = part;
            }
        }
        let mut expected = [0; 3];
        for (index, expected) in expected.iter_mut().enumerate() {
            let item = seen.plan.part(item, index);
            let predictor = seen.columns[usize::from(item.rank)].predictor;
            let newest = seen.rows[0];
            *expected = expect(
                predictor,
                seen.factors,
                item,
                by_part[index],
                newest,
                seen.row,
            );
        }
        expected
    }
}

/// Columns of a lane.
const WIDTH: usize = 4;
/// Columns of more bits are looked at one by one: single precision could not tell their values apart.
const BITS_MAX: u32 = 22;
/// Larger values are looked at one by one, so that no sum overflows.
const BOUND_MAX: i32 = 1 << 30;
/// Nothing is expected to move further than this.
const MOVED_MAX: f32 = (1 << BITS_MAX) as f32 - 1.0;
/// 3/2 of 2^23: added to a number, it leaves no bits for fractions.
const WHOLE: f32 = (3 << 22) as f32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::coding::unfolded;
    use crate::coder::references::References;
    use muse_schema::{Column, ColumnKind, Predict};

    /// A vector that moves by its velocity, one that goes on along a curve, and what a lane cannot hold.
    fn plan() -> Plan {
        let number = |name, bound: i32, field| {
            let mut column = Column::new(name, ColumnKind::Number, -bound, bound);
            column.field = field;
            column
        };
        let mut columns = vec![
            number("x", 200_000, 0),
            number("y", 200_000, 0),
            number("vx", 5_000, 1),
            number("vy", 5_000, 1),
            number("curve", 1 << 20, 2),
            number("wide", 1 << 28, 3),
        ];
        for column in 0..2 {
            columns[column].velocity = Some(column as u16 + 2);
            columns[column + 4].predict = Predict::Quadratic;
        }
        Plan::new(&columns, 20.0)
    }

    #[test]
    fn lanes_expect_what_columns_expect_one_by_one() {
        let plan = plan();
        let mut rng = fastrand::Rng::with_seed(5);
        for round in 0..2_000 {
            let mut models = Models::new(&plan);
            for column in &mut models.columns {
                column.predictor = Predictor::ALL[rng.u32(0..Predictor::ALL.len() as u32) as usize];
            }
            let mut row = |reach: i32| -> Vec<i32> {
                let value = |column: usize| [reach, reach / 40, reach / 2][column / 2];
                (0..plan.width)
                    .map(|column| rng.i32(-value(column)..=value(column)))
                    .collect()
            };
            // Also movements that no bound allows.
            let reach = if round % 10 == 0 { 200_000 } else { 2_000 };
            let rows: Vec<Vec<i32>> = (0..5).map(|_| row(reach)).collect();
            let ages = [1, 2, 4, 7].map(|age| age + round % 3);
            let references = (0..4).fold(References::new(), |references, index| {
                references.with(ages[index], &rows[index])
            });
            models.factors.follow(&references);
            models.take(&rows[4]);
            mispredict(&plan, &mut models, references.spread());
            for (item, models_of_column) in plan.items.iter().zip(&models.columns) {
                let column = usize::from(item.column);
                let of_column = references.spread().map(|row| row[column]);
                let predictor = models_of_column.predictor;
                let newest = references.spread()[0];
                let expected = expect(
                    predictor,
                    &models.factors,
                    item,
                    of_column,
                    newest,
                    &rows[4],
                );
                let error = rows[4][column] - expected;
                assert!(
                    error.abs_diff(unfolded(models.errors[column] as u32)) <= 1,
                    "round {round}, column {column}, {predictor:?}: {error} {}",
                    unfolded(models.errors[column] as u32)
                );
            }
        }
    }

    #[test]
    fn only_wide_columns_and_narrow_rows_are_looked_at_one_by_one() {
        let plan = plan();
        let mut models = Models::new(&plan);
        models
            .lanes
            .prepare(&plan, &models.columns, &models.factors);
        let singles: Vec<u16> = models
            .lanes
            .singles
            .iter()
            .map(|rank| plan.items[usize::from(*rank)].column)
            .collect();
        assert_eq!(singles, [5]);
        let narrow = Plan::new(&[Column::new("x", ColumnKind::Number, 0, 9)], 20.0);
        let mut models = Models::new(&narrow);
        models
            .lanes
            .prepare(&narrow, &models.columns, &models.factors);
        assert_eq!(models.lanes.singles, [0]);
    }
}
