//! How columns go on from their references, made ready for references of certain ages.
//!
//! Rows that are coded one after the other mostly have references of the same ages, and then a column takes the same few factors each
//! time. An encoder of rows that all change spends much of its time here.

use super::models::Models;
use super::plan::{Item, Plan, Predictor};
use super::references::{Factors, HALF};

/// What a column is expected to be, given its references.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    column: u16,
    sort: Sort,
    min: i32,
    max: i32,
}

#[derive(Clone, Copy, Debug)]
enum Sort {
    /// Differences of it go around or mean nothing.
    Other,
    Hold,
    /// Along the line to one older row.
    Line {
        older: u8,
        weight: i64,
    },
    /// Along the curve through two older rows, of which this is the first.
    Curve {
        older: u8,
        weights: [i64; 2],
    },
    /// By the velocity before and, if it is known, now.
    Velocity {
        column: u16,
        is_known: bool,
        ratio: i64,
        bias: i64,
    },
}

impl Course {
    pub(super) const NONE: Self = Self {
        column: 0,
        sort: Sort::Other,
        min: 0,
        max: 0,
    };

    fn new(item: &Item, predictor: Predictor, factors: &Factors) -> Self {
        let line = |index: usize| Sort::Line {
            older: index as u8 + 1,
            weight: factors.lines[index],
        };
        let sort = match predictor {
            _ if !item.is_bounded => Sort::Other,
            Predictor::Hold => Sort::Hold,
            Predictor::Near => line(0),
            Predictor::Far => line(2),
            Predictor::Curve => {
                let (first, weights) = factors.curve_weights();
                Sort::Curve {
                    older: first as u8 + 1,
                    weights,
                }
            }
            Predictor::Velocity => match &item.velocity {
                Some(velocity) => {
                    let (ratio, bias) = velocity.in_ticks(factors.ticks);
                    Sort::Velocity {
                        column: velocity.column,
                        is_known: velocity.is_known,
                        ratio,
                        bias,
                    }
                }
                None => Sort::Hold,
            },
        };
        Self {
            column: item.column,
            sort,
            min: item.min,
            max: item.max,
        }
    }

    /// By how much the column's value is another than what is expected; `None` if it cannot be told in this way.
    #[inline(always)]
    fn error(&self, rows: &[&[i32]; 4], row: &[i32]) -> Option<i32> {
        let column = usize::from(self.column);
        let baseline = rows[0][column];
        let apart = |older: u8| {
            let older = rows[usize::from(older & 3)][column];
            i64::from(baseline.wrapping_sub(older))
        };
        let movement = match self.sort {
            Sort::Other => return None,
            Sort::Hold => 0,
            Sort::Line { older, weight } => (apart(older) * weight + HALF) >> 16,
            Sort::Curve { older, weights } => {
                (apart(older) * weights[0] + apart(older + 1) * weights[1] + HALF) >> 16
            }
            Sort::Velocity {
                column,
                is_known,
                ratio,
                bias,
            } => {
                let column = usize::from(column);
                let from = rows[0][column];
                let to = if is_known { row[column] } else { from };
                let sum = i64::from(from) + i64::from(to);
                sum.wrapping_mul(ratio).wrapping_add(bias) >> 20
            }
        };
        let value = i64::from(baseline).wrapping_add(movement);
        let expected = value.min(i64::from(self.max)).max(i64::from(self.min)) as i32;
        Some(row[column].wrapping_sub(expected))
    }
}

/// Finds out by how much each quantity of the row is mispredicted. Says whether that went well: not if a rotation is seen from another
/// largest part than in its references.
///
/// An encoder does this for the whole row before it codes, because two short loops need fewer registers than a long one.
pub(super) fn mispredict(plan: &Plan, models: &mut Models, rows: &[&[i32]; 4]) -> bool {
    let is_turned = |column: &u16| {
        let column = usize::from(*column);
        rows.iter().any(|row| row[column] != models.row[column])
    };
    if plan.rotations.iter().any(is_turned) {
        return false;
    }
    if !models.is_course_known {
        models.is_course_known = true;
        let Models {
            columns,
            factors,
            courses,
            ..
        } = models;
        for ((course, item), models) in courses.iter_mut().zip(&plan.items).zip(&*columns) {
            *course = Course::new(item, models.predictor, factors);
        }
    }
    // One length for all, so that one comparison of a column's number will do.
    let rows = rows.map(|row| &row[..plan.width]);
    let row = &models.row[..plan.width];
    let errors = &mut models.errors[..plan.width];
    for ((course, item), error) in models.courses.iter().zip(&plan.items).zip(errors) {
        if let Some(found) = course.error(&rows, row) {
            *error = found;
        } else if item.is_quantity {
            let predictor = models.columns[usize::from(item.rank)].predictor;
            let column = usize::from(item.column);
            let older = [rows[1][column], rows[2][column], rows[3][column]];
            let expected = item.expect_any(predictor, &models.factors, rows[0], older, row);
            *error = item.difference(row[column], expected);
        }
    }
    true
}
