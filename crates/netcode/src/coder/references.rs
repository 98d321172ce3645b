//! Older rows of an entity, and what they say about the next one.

use super::plan::{Item, Predictor};

/// States of an entity that the receiver has for certain, newest first: what the next state is coded against.
///
/// Any states that were acknowledged will do, of any age, and both sides must give the same. The newest is the
/// *baseline*. A second one just before it tells the speed, an older one a steadier speed, and a third the curve: the
/// compression is best with four, the newest two close to each other.
#[derive(Clone, Copy, Debug)]
pub struct References<'a> {
    rows: [&'a [i32]; References::COUNT_MAX],
    ages: [u32; References::COUNT_MAX],
    count: usize,
}

impl<'a> References<'a> {
    /// Most references of a row.
    pub const COUNT_MAX: usize = 4;

    /// No reference: the row is new to the receiver.
    pub const fn new() -> Self {
        Self {
            rows: [&[]; Self::COUNT_MAX],
            ages: [0; Self::COUNT_MAX],
            count: 0,
        }
    }

    /// Adds an older state: it was `age` ticks before the one to be coded.
    ///
    /// One that is not older than those before, or one too many, is left out. Ages count up to 255.
    #[must_use]
    #[inline]
    pub fn with(mut self, age: u32, row: &'a [i32]) -> Self {
        let age = age.clamp(1, AGE_MAX);
        let is_older = self.count == 0 || age > self.ages[self.count - 1];
        if is_older && let Some(rest) = self.rows.get_mut(self.count..) {
            // Those that there are not are as the oldest that there is.
            rest.fill(row);
            if let Some(place) = self.ages.get_mut(self.count) {
                *place = age;
                self.count += 1;
            }
        }
        self
    }

    /// Rows with their ages, newest first, of which the first `count` are references: at least one, and those behind the last like it.
    #[inline]
    pub(crate) fn from_parts(
        rows: [&'a [i32]; References::COUNT_MAX],
        ages: [u32; References::COUNT_MAX],
        count: usize,
    ) -> Self {
        // The receiver builds its own one by one, and of what is too old only the first counts.
        if ages[count - 1] > AGE_MAX {
            let parts = ages.into_iter().zip(rows).take(count);
            return parts.fold(Self::new(), |all, (age, row)| all.with(age, row));
        }
        Self { rows, ages, count }
    }

    /// A single row of no age: not the same entity's.
    pub(super) fn with_row(mut self, row: &'a [i32]) -> Self {
        self.rows = [row; Self::COUNT_MAX];
        self.count = 1;
        self
    }

    /// Returns the number of references.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if all rows have this many columns.
    #[inline]
    pub(super) fn has_width(&self, width: usize) -> bool {
        self.count == 0 || self.rows.iter().all(|row| row.len() == width)
    }

    /// True if a row differs from the baseline; false if there is none.
    #[inline]
    pub(super) fn differs_from(&self, row: &[i32]) -> bool {
        let pairs = row.iter().zip(self.rows[0]);
        // Without an early end, because most rows that are coded differ.
        pairs.fold(0, |differences, (one, other)| differences | one ^ other) != 0
    }

    #[inline]
    pub(super) fn baseline(&self) -> Option<&'a [i32]> {
        (self.count > 0).then(|| self.rows[0])
    }

    /// The baseline and three older rows, the oldest ones repeated if there are fewer.
    #[inline]
    pub(super) const fn spread(&self) -> &[&'a [i32]; 4] {
        &self.rows
    }

    #[inline]
    pub(super) fn ages(&self) -> [u32; References::COUNT_MAX] {
        self.ages
    }
}

impl Default for References<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Factors that continue differences between references to the present, for references of certain ages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    ages: [u32; References::COUNT_MAX],
    /// Ticks since the baseline.
    pub(super) ticks: i64,
    /// Factors of baseline minus older, per older reference, in 2^-16.
    pub(super) lines: [i64; 3],
    /// The same per predictor: what each of the differences counts.
    pub(super) weights: [[i64; 3]; Predictor::ALL.len()],
}

impl Factors {
    pub(super) const NONE: Self = Self {
        ages: [0; References::COUNT_MAX],
        ticks: 0,
        lines: [0; 3],
        weights: [[0; 3]; Predictor::ALL.len()],
    };

    /// Computes the factors for references of these ages, 0 for none, if they changed. True if they did.
    #[inline]
    pub(super) fn follow(&mut self, references: &References<'_>) -> bool {
        let differs = self.ages != references.ages();
        if differs {
            *self = Self::new(references);
        }
        differs
    }

    fn new(references: &References<'_>) -> Self {
        let last = references.count.saturating_sub(1);
        let age = |index: usize| i64::from(references.ages[index.min(last)]);
        let ticks = age(0);
        let back = [age(1) - ticks, age(2) - ticks, age(3) - ticks];
        let lines = back.map(|back| if back == 0 { 0 } else { (ticks << 16) / back });
        // The parabola through the baseline at 0 and the others at -near and -far, at `ticks`.
        let (near, far) = if last >= 3 {
            (back[1], back[2])
        } else {
            (back[0], back[1])
        };
        let curve = if far > near && near > 0 {
            [
                ((ticks * (ticks + far)) << 16) / (near * (far - near)),
                -((ticks * (ticks + near)) << 16) / (far * (far - near)),
            ]
        } else {
            [lines[0], 0]
        };
        let curve = curve.map(|factor: i64| factor.clamp(-FACTOR_MAX, FACTOR_MAX));
        let mut weights = [[0; 3]; Predictor::ALL.len()];
        weights[Predictor::Near as usize][0] = lines[0];
        weights[Predictor::Far as usize][2] = lines[2];
        let first = usize::from(last >= 3);
        weights[Predictor::Curve as usize][first..first + 2].copy_from_slice(&curve);
        Self {
            ages: references.ages,
            ticks,
            lines,
            weights,
        }
    }

    /// Returns how far a column moves if it goes on along the curve. `older` is the baseline minus each older reference.
    #[inline]
    pub(super) fn curve(&self, older: [i32; 3]) -> i64 {
        self.weighted(Predictor::Curve, older)
    }

    #[inline(always)]
    fn weighted(&self, predictor: Predictor, older: [i32; 3]) -> i64 {
        let weights = &self.weights[predictor as usize];
        let sum = i64::from(older[0]) * weights[0]
            + i64::from(older[1]) * weights[1]
            + i64::from(older[2]) * weights[2];
        (sum + HALF) >> 16
    }

    /// Returns how far a column moves if it goes on along the line to an older reference.
    #[inline]
    pub(super) fn line(&self, older: i32, index: usize) -> i64 {
        (i64::from(older) * self.lines[index] + HALF) >> 16
    }

    /// Returns how far a column moves, by one of the predictors. `older` is the baseline minus each older reference.
    #[inline(always)]
    pub(super) fn movement(
        &self,
        predictor: Predictor,
        older: [i32; 3],
        item: &Item,
        row: &[i32],
        baseline: &[i32],
    ) -> i64 {
        if predictor != Predictor::Velocity {
            return self.weighted(predictor, older);
        }
        let Some(velocity) = &item.velocity else {
            return 0;
        };
        let from = baseline[usize::from(velocity.column)];
        let to = if velocity.is_known {
            row[usize::from(velocity.column)]
        } else {
            from
        };
        velocity.distance(from, to, self.ticks)
    }
}

/// Older than this is as old as this.
const AGE_MAX: u32 = 255;
const HALF: i64 = 1 << 15;
/// Factors beyond this are of no use, and products must fit.
const FACTOR_MAX: i64 = 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_same_references_of_what_slept_for_long() {
        let rows: [&[i32]; 4] = [&[1], &[2], &[3], &[3]];
        for first in [1, 200, 252, 254, 255, 256, 1_516, 100_000] {
            let ages = [first, first + 1, first + 3, 0];
            let sent = References::from_parts(rows, ages, 3);
            let parts = ages.into_iter().zip(rows).take(3);
            let read = parts.fold(References::new(), |all, (age, row)| all.with(age, row));
            assert_eq!(sent.len(), read.len(), "{first}");
            assert_eq!(sent.ages(), read.ages(), "{first}");
            assert_eq!(sent.rows, read.rows, "{first}");
        }
    }
}
