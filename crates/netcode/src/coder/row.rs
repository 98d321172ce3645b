//! The flow of a row, the same for both directions: whether it changed, then column by column.

use super::RowError;
use super::coding::{Coding, unfolded};
use super::dense;
use super::lanes::{Place, Seen, expect, mispredict};
use super::models::Models;
use super::plan::{Item, Plan, Predictor, Way};
use super::references::References;
use super::rotation::Scale;
use super::sparse::{self, Expectation, View};

/// Codes `models.row` against its references; a decoder puts there what it finds. An encoder says whether the row differs from
/// the baseline.
#[inline]
pub(super) fn code<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
    is_changed: bool,
) -> Result<(), RowError> {
    // Predictions are kept from row to row while the ages of the references stay the same.
    if models.factors.follow(references) {
        models.lanes.forget();
    }
    let Some(baseline) = references.baseline() else {
        return new_row(plan, coding, models);
    };
    let is_dense = models.is_dense();
    let (is_changed, view) = if is_dense {
        let context = (models.history & 3) as usize;
        let learns = models.learns();
        let is_changed = coding.followed(is_changed, &mut models.changed[context], learns);
        (is_changed, View::default())
    } else {
        sparse::changed(coding, models, plan, references, is_changed)
    };
    models.history = models.history << 1 | u32::from(is_changed);
    if !is_changed {
        models.row.copy_from_slice(baseline);
    } else if is_dense {
        dense_row(plan, coding, models, references)?;
    } else {
        sparse_row(plan, coding, models, references, view)?;
    }
    models.count_row(if is_changed { plan.width as u32 } else { 0 });
    models.keep_last();
    Ok(())
}

/// A row without references is coded against the one before it, of another entity.
fn new_row<C: Coding>(plan: &Plan, coding: &mut C, models: &mut Models) -> Result<(), RowError> {
    let last = std::mem::take(&mut models.last);
    let references = References::new().with_row(&last);
    let outcome = dense_row(plan, coding, models, &references);
    models.last = last;
    outcome?;
    models.keep_last();
    Ok(())
}

/// All columns of a row, the quick way. Most of a server's time is spent here.
#[inline]
fn dense_row<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
) -> Result<(), RowError> {
    let rows = references.spread();
    let age_class = dense::age_class(models.factors.ticks);
    if C::DECODES {
        decode_dense(plan, coding, models, rows, age_class)?;
    } else {
        mispredict(plan, models, rows);
        if plan.has_guards {
            encode_dense::<C, true>(plan, coding, models, rows, age_class)?;
        } else {
            encode_dense::<C, false>(plan, coding, models, rows, age_class)?;
        }
    }
    if let Some(rank) = models.judged(plan) {
        judge(plan, models, rank, rows);
    }
    Ok(())
}

/// Codes the columns of a row whose errors are known.
#[inline(always)]
fn encode_dense<C: Coding, const GUARDS: bool>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    rows: &[&[i32]; 4],
    age_class: usize,
) -> Result<(), RowError> {
    let learns = models.learns();
    let Models {
        columns,
        row,
        exists,
        errors,
        ..
    } = models;
    let errors = &errors[..plan.width];
    // Not zipped, which would multiply to find the place of each.
    let mut columns = columns.iter_mut();
    for item in &plan.items {
        let Some(models) = columns.next() else { break };
        if GUARDS && !item.admit(row, exists) {
            continue;
        }
        let column = usize::from(item.column);
        if item.is_quantity {
            coding.number(
                &mut models.numbers[age_class],
                learns,
                errors[column] as u32,
            )?;
        } else {
            dense::symbol(coding, models, learns, item, rows[0][column], row[column])?;
        }
    }
    Ok(())
}

/// Finds out the columns of a row, each with what those before it say.
fn decode_dense<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    rows: &[&[i32]; 4],
    age_class: usize,
) -> Result<(), RowError> {
    let learns = models.learns();
    let Models {
        columns,
        factors,
        lanes,
        row,
        exists,
        errors: foreseen,
        ..
    } = models;
    lanes.prepare(plan, columns, factors);
    lanes.expect(rows, row, |expected, _| expected, foreseen);
    for (rank, item) in plan.items.iter().enumerate() {
        let column = usize::from(item.column);
        if plan.has_guards && !item.admit(row, exists) {
            continue;
        }
        let models = &mut columns[rank];
        if !item.is_quantity {
            row[column] =
                dense::symbol(coding, models, learns, item, rows[0][column], row[column])?;
            if item.way == Way::Rotation {
                let seen = Seen {
                    plan,
                    columns,
                    factors,
                    rows,
                    row,
                };
                if let Some(parts) = lanes.turned(item, &seen) {
                    foreseen[column + 1..column + 4].copy_from_slice(&parts);
                }
            }
            continue;
        }
        let expected = match lanes.places[rank] {
            Place::Lane => foreseen[column],
            Place::Moving => lanes.moving(item, rows, row),
            Place::Single => {
                let of_column = rows.map(|row| row[column]);
                expect(models.predictor, factors, item, of_column, rows[0], row)
            }
        };
        let error = coding.number(&mut models.numbers[age_class], learns, 0)?;
        row[column] = item.resolve(expected, unfolded(error))?;
    }
    Ok(())
}

/// Finds out which predictor would have been best for a column of the row that was coded.
#[inline(never)]
fn judge(plan: &Plan, models: &mut Models, rank: usize, rows: &[&[i32]; 4]) {
    let item = &plan.items[rank];
    let column = usize::from(item.column);
    let is_turned = item.largest.is_some_and(|largest| {
        let largest = usize::from(largest);
        rows.iter().any(|row| row[largest] != models.row[largest])
    });
    if is_turned || plan.has_guards && !models.exists[column] {
        return;
    }
    let of_column = rows.map(|row| row[column]);
    let mut errors = [i32::MAX; Predictor::ALL.len()];
    for (predictor, error) in Predictor::ALL.into_iter().zip(&mut errors) {
        if predictor != Predictor::Velocity || item.velocity.is_some() {
            let factors = &models.factors;
            let expected = expect(predictor, factors, item, of_column, rows[0], &models.row);
            *error = item.difference(models.row[column], expected);
        }
    }
    if models.columns[rank].judge(errors) {
        models.lanes.forget();
    }
}

fn sparse_row<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
    mut view: View,
) -> Result<(), RowError> {
    let rows = references.spread();
    // The previous position, which both sides know already: entities near each other probably change alike.
    let place = plan.place_of(rows[0]);
    view.nearness = models.recent.find(place);
    models.errors.fill(0);
    for item in &plan.items {
        if plan.has_guards && !models.admit(item) {
            continue;
        }
        let column = usize::from(item.column);
        let value = models.row[column];
        if item.before == 0 {
            view.error_before = view.error_now;
            view.error_now = 0;
        }
        models.row[column] = match item.way {
            Way::Number | Way::Bounded | Way::Circle(_) => {
                let of_column = rows.map(|row| row[column]);
                let expected = expectation(models, item, of_column, rows);
                sparse_number(coding, models, item, &mut view, &expected)?
            }
            Way::RotationPart => continue,
            Way::Rotation => {
                sparse_rotation(plan, coding, models, item, rows, &mut view)?;
                continue;
            }
            Way::Flag => sparse::flag(coding, models, item, &mut view, references, value),
            _ => dense::symbol(
                coding,
                &mut models.columns[usize::from(item.rank)],
                true,
                item,
                rows[0][column],
                value,
            )?,
        };
    }
    let Models {
        recent,
        row,
        errors,
        ..
    } = models;
    let changes = row.iter().zip(rows[0]).zip(errors.iter());
    recent.push(
        place,
        changes.map(|((&now, &before), &error)| [now.wrapping_sub(before), error]),
    );
    Ok(())
}

fn sparse_number<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    view: &mut View,
    expected: &Expectation,
) -> Result<i32, RowError> {
    let column = usize::from(item.column);
    let error = item.difference(models.row[column], expected.value);
    let error = sparse::error(coding, models, item, view, expected, error)?;
    models.errors[column] = error;
    view.error_now = view.error_now.saturating_add(error.unsigned_abs());
    item.resolve(expected.value, error)
}

fn expectation(
    models: &Models,
    item: &Item,
    of_column: [i32; 4],
    rows: &[&[i32]; 4],
) -> Expectation {
    let baseline = of_column[0];
    let older = |index: usize| item.difference(baseline, of_column[index + 1]);
    let factors = &models.factors;
    // Always the declared one: what contexts have learnt is about its errors.
    let all_older = [older(0), older(1), older(2)];
    let movement = factors.movement(item.predictor, all_older, item, &models.row, rows[0]);
    let value = item.advance(baseline, movement);
    let moved = i64::from(item.difference(value, baseline));
    let apart = |movement: i64| (movement - moved).clamp(-APART_MAX, APART_MAX) as i32;
    Expectation {
        value,
        stays: apart(0),
        near: apart(factors.line(older(0), 0)),
        middle: apart(factors.line(older(1), 1)),
        far: apart(factors.line(older(2), 2)),
        curve: apart(factors.curve(all_older)),
        field_near: field_moved(item, rows[0], rows[1]),
        field_far: field_moved(item, rows[0], rows[3]),
    }
}

/// Returns the distance between the columns of a field in two rows.
fn field_moved(item: &Item, one: &[i32], other: &[i32]) -> u32 {
    let field = usize::from(item.field.0)..usize::from(item.field.1) + 1;
    one[field.clone()]
        .iter()
        .zip(&other[field])
        .map(|(one, other)| one.abs_diff(*other).min(1 << 20))
        .sum()
}

fn sparse_rotation<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    rows: &[&[i32]; 4],
    view: &mut View,
) -> Result<(), RowError> {
    let first = usize::from(item.column);
    let part = plan.part(item, 0);
    let scale = Scale::new(part.min, part.max);
    let older = rows.map(|row| scale.quaternion(&row[first..first + 4]));
    let lines = models.factors.lines;
    let [near, middle, far] =
        [0, 1, 2].map(|index| scale.continued(&older[0], &older[index + 1], lines[index]));
    let largest = sparse::largest(
        coding,
        models,
        item,
        view,
        &near,
        &scale,
        (rows[0][first], models.row[first]),
    );
    models.row[first] = largest;
    models.errors[first] = i32::from(largest != rows[0][first]);
    let [stays, near, middle, far] =
        [older[0], near, middle, far].map(|quaternion| scale.parts(&quaternion, largest as usize));
    for index in 0..3 {
        let part = plan.part(item, index);
        let value = near[index].clamp(part.min, part.max);
        let expected = Expectation {
            value,
            stays: stays[index] - value,
            near: 0,
            middle: middle[index] - value,
            far: far[index] - value,
            curve: 0,
            field_near: field_moved(part, rows[0], rows[1]),
            field_far: field_moved(part, rows[0], rows[3]),
        };
        models.row[first + 1 + index] = sparse_number(coding, models, part, view, &expected)?;
    }
    Ok(())
}

/// Differences beyond this are all the same.
const APART_MAX: i64 = 1 << 20;
