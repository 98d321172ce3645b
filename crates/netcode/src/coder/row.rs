//! The flow of a row, the same for both directions: whether it changed, then column by column.

use super::RowError;
use super::coding::Coding;
use super::dense;
use super::models::Models;
use super::plan::{Item, Plan, Predictor, Way};
use super::references::References;
use super::rotation::Scale;
use super::sparse::{self, Expectation, View};

/// Codes `models.row` against its references; a decoder puts there what it finds.
pub(super) fn code<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
) -> Result<(), RowError> {
    models.factors.follow(references);
    let Some(baseline) = references.baseline() else {
        return new_row(plan, coding, models);
    };
    let is_changed = &models.row[..] != baseline;
    let is_dense = models.is_dense();
    let (is_changed, view) = if is_dense {
        let context = (models.history & 3) as usize;
        let is_changed = coding.adaptive(is_changed, &mut models.changed[context]);
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

fn dense_row<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
) -> Result<(), RowError> {
    let rows = references.spread();
    let age_class = dense::age_class(models.factors.ticks);
    for item in &plan.items {
        if plan.has_guards && !models.admit(item) {
            continue;
        }
        let column = usize::from(item.column);
        let value = models.row[column];
        models.row[column] = match item.way {
            Way::Number | Way::Circle(_) => {
                let of_column = |index: usize| rows[index][column];
                dense_number(coding, models, item, of_column, rows[0], age_class)?
            }
            Way::RotationPart => continue,
            Way::Rotation => {
                dense_rotation(plan, coding, models, item, &rows, age_class)?;
                continue;
            }
            _ => {
                let column_models = &mut models.columns[column];
                dense::symbol(coding, column_models, item, rows[0][column], value)?
            }
        };
    }
    Ok(())
}

/// A quantity; `of_column` is what it was in each of the references.
#[inline]
fn dense_number<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    of_column: impl Fn(usize) -> i32,
    baseline_row: &[i32],
    age_class: usize,
) -> Result<i32, RowError> {
    let column = usize::from(item.column);
    let value = models.row[column];
    let baseline = of_column(0);
    let older = |index: usize| item.difference(baseline, of_column(index + 1));
    let predictor = models.columns[column].predictor;
    let movement = models
        .factors
        .movement(predictor, older, item, &models.row, baseline_row);
    let expected = item.advance(baseline, movement);
    let error = item.difference(value, expected);
    let model = &mut models.columns[column].numbers[age_class];
    let error = dense::number(coding, model, error)?;
    let value = item.resolve(expected, error).ok_or(RowError::OutOfRange)?;
    if models.is_turn_of(column) {
        judge(models, item, baseline, older, baseline_row, value);
    }
    Ok(value)
}

/// Finds out which predictor would have been best.
#[cold]
fn judge(
    models: &mut Models,
    item: &Item,
    baseline: i32,
    older: impl Fn(usize) -> i32 + Copy,
    baseline_row: &[i32],
    value: i32,
) {
    let errors = Predictor::ALL.map(|predictor| {
        if predictor == Predictor::Velocity && item.velocity.is_none() {
            return i64::from(i32::MAX);
        }
        let movement = models
            .factors
            .movement(predictor, older, item, &models.row, baseline_row);
        i64::from(item.difference(value, item.advance(baseline, movement)))
    });
    models.columns[usize::from(item.column)].judge(errors);
}

/// A rotation: the references are first brought to the same largest part.
fn dense_rotation<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    rows: &[&[i32]; 4],
    age_class: usize,
) -> Result<(), RowError> {
    let first = usize::from(item.column);
    let before = rows[0][first];
    let largest = dense::symbol(
        coding,
        &mut models.columns[first],
        item,
        before,
        models.row[first],
    )?;
    models.row[first] = largest;
    let mut parts = rows.map(|row| [row[first + 1], row[first + 2], row[first + 3]]);
    if rows.iter().any(|row| row[first] != largest) {
        let scale = Scale::new(plan.part(item, 0).min, plan.part(item, 0).max);
        for (parts, row) in parts.iter_mut().zip(rows) {
            if row[first] != largest {
                *parts = scale.parts(&scale.quaternion(&row[first..first + 4]), largest as usize);
            }
        }
    }
    for (index, part) in (0..3).map(|index| (index, plan.part(item, index))) {
        let of_column = |row: usize| parts[row][index];
        models.row[first + 1 + index] =
            dense_number(coding, models, part, of_column, rows[0], age_class)?;
    }
    Ok(())
}

fn sparse_row<C: Coding>(
    plan: &Plan,
    coding: &mut C,
    models: &mut Models,
    references: &References<'_>,
    mut view: View,
) -> Result<(), RowError> {
    let rows = references.spread();
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
            Way::Number | Way::Circle(_) => {
                let of_column = rows.map(|row| row[column]);
                let expected = expectation(models, item, of_column, &rows);
                sparse_number(coding, models, item, &mut view, &expected)?
            }
            Way::RotationPart => continue,
            Way::Rotation => {
                sparse_rotation(plan, coding, models, item, &rows, &mut view)?;
                continue;
            }
            Way::Flag => sparse::flag(coding, models, item, &mut view, references, value),
            _ => dense::symbol(
                coding,
                &mut models.columns[column],
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
        .ok_or(RowError::OutOfRange)
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
    let movement = factors.movement(item.predictor, older, item, &models.row, rows[0]);
    let value = item.advance(baseline, movement);
    let moved = i64::from(item.difference(value, baseline));
    let apart = |movement: i64| (movement - moved).clamp(-APART_MAX, APART_MAX) as i32;
    Expectation {
        value,
        stays: apart(0),
        near: apart(factors.line(older(0), 0)),
        middle: apart(factors.line(older(1), 1)),
        far: apart(factors.line(older(2), 2)),
        curve: apart(factors.curve(older)),
        field_near: field_moved(item, rows[0], rows[1]),
        field_far: field_moved(item, rows[0], rows[3]),
    }
}

/// How far the columns of a field are apart in two rows.
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
