//! Older rows of an entity, and what they say about the next one.

use super::plan::{Item, Predictor};

/// States of an entity that the receiver has for certain, newest first: what the next state is coded against.
///
/// Any states that were acknowledged will do, of any age, and both sides must give the same. The newest is the
/// *baseline*. A second one just before it tells the speed, an older one a steadier speed, and a third the curve: the
/// compression is best with four, the newest two close to each other.
///
/// ```
/// use muse_netcode::coder::References;
/// let (newest, older) = ([1, 2], [0, 0]);
/// let references = References::new().with(6, &newest).with(7, &older);
/// assert_eq!(references.len(), 2);
/// ```
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
    pub fn with(mut self, age: u32, row: &'a [i32]) -> Self {
        let age = age.clamp(1, AGE_MAX);
        let is_older = self.count == 0 || age > self.ages[self.count - 1];
        if self.count < Self::COUNT_MAX && is_older {
            self.rows[self.count] = row;
            self.ages[self.count] = age;
            self.count += 1;
        }
        self
    }

    /// A single row of no age: not the same entity's.
    pub(super) fn with_row(mut self, row: &'a [i32]) -> Self {
        self.rows[0] = row;
        self.count = 1;
        self
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether all rows have this many columns.
    pub(super) fn has_width(&self, width: usize) -> bool {
        self.rows[..self.count].iter().all(|row| row.len() == width)
    }

    pub(super) fn baseline(&self) -> Option<&'a [i32]> {
        (self.count > 0).then(|| self.rows[0])
    }

    /// The baseline and three older rows, the oldest ones repeated if there are fewer.
    pub(super) fn spread(&self) -> [&'a [i32]; 4] {
        let last = self.count.saturating_sub(1);
        [0, 1, 2, 3].map(|index| self.rows[index.min(last)])
    }

    pub(super) fn ages(&self) -> [u32; References::COUNT_MAX] {
        self.ages
    }
}

impl Default for References<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// How differences between references continue to the present, for references of certain ages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    ages: [u32; References::COUNT_MAX],
    /// Ticks since the baseline.
    pub(super) ticks: i64,
    /// What to multiply baseline minus older by, per older reference, in 2^-16.
    pub(super) lines: [i64; 3],
    /// The same for the curve: it takes the differences to the last two references, or the only two.
    curve: [i64; 2],
}

impl Factors {
    pub(super) const NONE: Self = Self {
        ages: [0; References::COUNT_MAX],
        ticks: 0,
        lines: [0; 3],
        curve: [0; 2],
    };

    /// For references of these ages, 0 for none; anew only if they differ from those before.
    #[inline]
    pub(super) fn follow(&mut self, references: &References<'_>) {
        if self.ages != references.ages() {
            *self = Self::new(references);
        }
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
        Self {
            ages: references.ages,
            ticks,
            lines,
            curve: curve.map(|factor| factor.clamp(-FACTOR_MAX, FACTOR_MAX)),
        }
    }

    /// How far a column moves if it goes on along the curve.
    #[inline]
    pub(super) fn curve(&self, older: impl Fn(usize) -> i32) -> i64 {
        let has_four = self.ages[3] != 0;
        let first = usize::from(has_four);
        let (near, far) = (older(first), older(first + 1));
        let sum = i64::from(near) * self.curve[0] + i64::from(far) * self.curve[1];
        (sum + HALF) >> 16
    }

    /// How far a column moves if it goes on along the line to an older reference.
    #[inline]
    pub(super) fn line(&self, older: i32, index: usize) -> i64 {
        (i64::from(older) * self.lines[index] + HALF) >> 16
    }

    /// How far a column moves, by one of the predictors. `older` is the baseline minus each older reference.
    #[inline]
    pub(super) fn movement(
        &self,
        predictor: Predictor,
        older: impl Fn(usize) -> i32,
        item: &Item,
        row: &[i32],
        baseline: &[i32],
    ) -> i64 {
        match predictor {
            Predictor::Hold => 0,
            Predictor::Near => self.line(older(0), 0),
            Predictor::Far => self.line(older(2), 2),
            Predictor::Curve => self.curve(older),
            Predictor::Velocity => match &item.velocity {
                Some(velocity) => {
                    let from = baseline[usize::from(velocity.column)];
                    let to = if velocity.is_known {
                        row[usize::from(velocity.column)]
                    } else {
                        from
                    };
                    velocity.distance(from, to, self.ticks)
                }
                None => 0,
            },
        }
    }
}

/// Older than this is as old as this.
const AGE_MAX: u32 = 255;
const HALF: i64 = 1 << 15;
/// Factors beyond this are of no use, and products must fit.
const FACTOR_MAX: i64 = 1 << 28;
