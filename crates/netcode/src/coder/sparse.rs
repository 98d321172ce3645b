//! The thorough way: every decision is estimated in several contexts at once, for rows most of which stay as they are.

use super::RowError;
use super::coding::Coding;
use super::mix::{INPUTS_MAX, Lines, Mixer};
use super::models::Models;
use super::plan::{Item, Plan, Way};
use super::references::References;
use super::rotation::Scale;

/// The facts about a row as a whole that its columns are coded with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    /// Two bits: the newest references differ, the oldest differ.
    pub(super) stirring: u32,
    /// Flags coded so far, as they were and are.
    pub(super) flags: u32,
    /// The distance class of the nearest row that changed earlier in the packet.
    pub(super) nearness: u32,
    /// Errors of the field coded before, summed up, and of this one so far.
    pub(super) error_before: u32,
    pub(super) error_now: u32,
}

/// Codes whether the row changed at all.
pub(super) fn changed<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    plan: &Plan,
    references: &References<'_>,
    changed: bool,
) -> (bool, View) {
    let [baseline, near, _, far] = *references.spread();
    let mut flags = 0;
    for &column in &plan.flags {
        let (column, min) = (usize::from(column.0), column.1);
        flags = flags << 1 & 7 | u32::from(baseline[column] != min);
    }
    let (mut stirred, mut stirred_long) = (0, 0);
    let mut moved = [[0u32; 2]; 2];
    // Most rows have been at rest for a while.
    let is_at_rest = baseline == near && baseline == far;
    let items = if is_at_rest { &[][..] } else { &plan.items };
    for item in items {
        let column = usize::from(item.column);
        let (now, before, long_before) = (baseline[column], near[column], far[column]);
        stirred += u32::from(now != before);
        stirred_long += u32::from(now != long_before);
        if item.way != Way::Flag {
            let is_place = usize::from(plan.place.contains(&item.column));
            let sums = &mut moved[is_place];
            sums[0] = sums[0].saturating_add(now.abs_diff(before));
            sums[1] = sums[1].saturating_add(now.abs_diff(long_before));
        }
    }
    let view = View {
        stirring: u32::from(stirred > 0) | u32::from(stirred_long > 0) << 1,
        ..View::default()
    };
    let (stirred, stirred_long) = (stirred.min(15), stirred_long.min(15));
    let history = models.history;
    let lines = Lines::new(
        CHANGED_SEED,
        [
            stirred | stirred_long << 4 | flags << 8,
            view.stirring | flags << 2 | (history & 7) << 5,
            (history & 0xFFFF).count_ones() | view.stirring << 5 | flags << 7,
            size_class(moved[1][1]) | size_class(moved[0][1]) << 6 | (history & 1) << 12,
            history & 0xFF | view.stirring << 8,
            size_class(moved[1][0]) | size_class(moved[0][0]) << 6 | view.stirring << 12,
        ],
    );
    let set = view.stirring as usize;
    let changed = models.mixer.bit(coding, changed, &lines, 0, set);
    (changed, view)
}

/// A flag.
pub(super) fn flag<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    view: &mut View,
    references: &References<'_>,
    value: i32,
) -> i32 {
    let column = usize::from(item.column);
    let [was, near, _, far] = references
        .spread()
        .map(|row| u32::from(row[column] != item.min));
    let neighbour = match models.recent.nearest_row() {
        Some(changes) => (changes[column][0] & 1) as u32 | 2,
        None => 0,
    };
    let lines = Lines::new(
        u32::from(item.column),
        [
            was | near << 1 | far << 2 | view.stirring << 3,
            was | view.nearness << 1 | neighbour << 8,
            was | view.flags << 1,
        ],
    );
    let is = models.mixer.bit(
        coding,
        value != item.min,
        &lines,
        0,
        first_set(item) + was as usize,
    );
    view.flags = view.flags << 2 & 0xFF | was << 1 | u32::from(is);
    if is { item.max } else { item.min }
}

/// A quantity, relative to what is expected of it.
pub(super) struct Expectation {
    /// The value that errors are counted from.
    pub(super) value: i32,
    /// The distance from it to the value if it stayed, went on from each older reference, or along the curve.
    pub(super) stays: i32,
    pub(super) near: i32,
    pub(super) middle: i32,
    pub(super) far: i32,
    pub(super) curve: i32,
    /// The distance that the whole field moved since the newest and the oldest reference.
    pub(super) field_near: u32,
    pub(super) field_far: u32,
}

/// By how much a quantity differs from what is expected.
pub(super) fn error<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    view: &View,
    expected: &Expectation,
    error: i32,
) -> Result<i32, RowError> {
    let column = usize::from(item.column);
    let error_back = |back: usize| {
        if usize::from(item.before) >= back && column >= back {
            models.errors[column - back]
        } else {
            0
        }
    };
    let (first, second) = (error_back(1), error_back(2));
    let both = first.unsigned_abs().saturating_add(second.unsigned_abs());
    let (neighbour_change, neighbour_error) = match models.recent.nearest_row() {
        Some(changes) => (
            changes[column][0].wrapping_add(expected.stays),
            changes[column][1],
        ),
        None => (0, 0),
    };
    let moves = expected.stays;
    let Expectation {
        near,
        middle,
        far,
        curve,
        ..
    } = *expected;
    let off = if near == 0 { far } else { near };
    let lines = Lines::new(
        u32::from(item.column),
        [
            view.stirring | view.flags << 2 | 1 << 20,
            fine(moves) | coarse(off) << 6,
            fine(off) | view.stirring << 6,
            fine(curve) | coarse(off) << 6,
            coarse(first) | coarse(second) << 4 | view.stirring << 8,
            view.flags | size_class(expected.field_far) << 8 | view.stirring << 14,
            fine(neighbour_error) | view.nearness << 6,
            fine(neighbour_change) | view.nearness << 6,
            size_class(both) | size_class(expected.field_far) << 6 | u32::from(item.before) << 12,
            size_class(view.error_before)
                | coarse(first) << 6
                | size_class(expected.field_far) << 10,
            fine(middle) | coarse(curve) << 6,
            size_class(expected.field_near) | coarse(middle) << 6,
        ],
    );
    let _: &Lines<INPUTS_MAX> = &lines;
    signed(coding, &mut models.mixer, &lines, first_set(item), error)
}

/// Codes which part of a rotation is the largest: the expected one, the runner-up or another.
pub(super) fn largest<C: Coding>(
    coding: &mut C,
    models: &mut Models,
    item: &Item,
    view: &View,
    expected: &[i64; 4],
    scale: &Scale,
    (was, value): (i32, i32),
) -> i32 {
    let mut order = [0, 1, 2, 3];
    // Ties go to the lower number: the sort is stable.
    order.sort_by_key(|&index: &usize| -expected[index].abs());
    let lead = expected[order[0]].abs() - expected[order[1]].abs();
    let lead = size_class((lead * 1_024 / scale.norm().isqrt().max(1)) as u32);
    let is_same = u32::from(order[0] as i32 == was);
    let lines = Lines::new(
        u32::from(item.column),
        [
            lead | is_same << 6,
            lead | size_class(view.error_before) << 6,
            lead.min(8) | view.stirring << 6 | is_same << 8,
        ],
    );
    let mut found = order[3];
    for (rank, &candidate) in order[..3].iter().enumerate() {
        let is = models.mixer.bit(
            coding,
            value == candidate as i32,
            &lines,
            rank,
            first_set(item) + rank,
        );
        if is {
            found = candidate;
            break;
        }
    }
    found as i32
}

/// A number with its sign: whether it is zero, its sign, its bits' number, then the bits from the highest.
fn signed<C: Coding, const N: usize>(
    coding: &mut C,
    mixer: &mut Mixer,
    lines: &Lines<N>,
    set: usize,
    value: i32,
) -> Result<i32, RowError> {
    if mixer.bit(coding, value == 0, lines, 0, set) {
        return Ok(0);
    }
    let is_negative = mixer.bit(coding, value < 0, lines, 1, set + 1);
    let size = value.unsigned_abs();
    let bits = (size | 1).ilog2();
    let mut found = 0;
    while found < 31 {
        let node = 2 + found.min(13) as usize;
        if !mixer.bit(coding, bits > found, lines, node, set + node) {
            break;
        }
        found += 1;
    }
    let mut coded = 1u32;
    if found > 0 {
        let lines = lines.with(found);
        let learnt = found.min(BITS_LEARNT);
        for depth in 0..learnt {
            let bit = size >> (found - 1 - depth) & 1 != 0;
            let bit = mixer.bit(
                coding,
                bit,
                &lines,
                coded as usize,
                set + 16 + depth as usize,
            );
            coded = coded << 1 | u32::from(bit);
        }
        let rest = found - learnt;
        coded = coded << rest | coding.even(size, rest);
    }
    if is_negative {
        Ok(coded.wrapping_neg() as i32)
    } else {
        i32::try_from(coded).map_err(|_| RowError::OutOfRange)
    }
}

/// The class of a number with its sign: small ones each for itself, larger ones by half octaves.
#[inline]
fn fine(value: i32) -> u32 {
    let size = value.unsigned_abs();
    let class = if size < 5 {
        size
    } else {
        let octave = size.ilog2();
        (5 + (octave - 2) * 2 + (size >> (octave - 1) & 1)).min(31)
    };
    class | u32::from(value < 0) << 5
}

/// The class of a number with its sign, coarsely.
#[inline]
fn coarse(value: i32) -> u32 {
    let class = match value.unsigned_abs() {
        0 => 0,
        1 => 1,
        2..=3 => 2,
        4..=8 => 3,
        9..=24 => 4,
        25..=80 => 5,
        81..=400 => 6,
        _ => 7,
    };
    class | u32::from(value < 0) << 3
}

/// The class of a size, by half octaves.
#[inline]
fn size_class(size: u32) -> u32 {
    if size < 4 {
        size
    } else {
        let octave = size.ilog2();
        octave * 2 + (size >> (octave - 1) & 1)
    }
}

/// Sets of weights that a mixer needs for so many columns.
pub(super) const fn weight_sets(width: usize) -> usize {
    CHANGED_SETS + width * COLUMN_SETS
}

#[inline]
fn first_set(item: &Item) -> usize {
    CHANGED_SETS + usize::from(item.column) * COLUMN_SETS
}

/// Contexts of whether a row changed are those of no column.
const CHANGED_SEED: u32 = 0xFFFF;
const CHANGED_SETS: usize = 4;
/// 16 for the first line of counters, one for each of the highest bits.
const COLUMN_SETS: usize = 16 + BITS_LEARNT as usize;
/// Bits after the leading one that are learnt; the rest are left to chance.
const BITS_LEARNT: u32 = 3;
