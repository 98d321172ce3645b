//! The quick way: numbers in one or two steps each, for rows most of which change.

use super::RowError;
use super::coding::Coding;
use super::models::{AGES, ColumnModels};
use super::plan::{Item, Way};

/// A column that is no quantity: whether it is as before, and if not what.
#[inline(always)]
pub(super) fn symbol<C: Coding>(
    coding: &mut C,
    models: &mut ColumnModels,
    learns: bool,
    item: &Item,
    before: i32,
    value: i32,
) -> Result<i32, RowError> {
    if item.way == Way::Flag {
        let was = usize::from(before != item.min);
        let is = coding.followed(value != item.min, &mut models.equal[was], learns);
        return Ok(if is { item.max } else { item.min });
    }
    if coding.followed(value == before, &mut models.equal[0], learns) {
        // A column that was absent may have been 0 illegally.
        return item.legal(before);
    }
    other_symbol(coding, models, item, before, value)
}

#[inline(never)]
fn other_symbol<C: Coding>(
    coding: &mut C,
    models: &mut ColumnModels,
    item: &Item,
    before: i32,
    value: i32,
) -> Result<i32, RowError> {
    if item.way == Way::Bits {
        let flipped = (value ^ before) as u32;
        let is_single = coding.adaptive(flipped.is_power_of_two(), &mut models.equal[1]);
        let flipped = if is_single {
            1 << (coding.even(flipped.trailing_zeros() & 31, 5) & 31)
        } else {
            coding.even(flipped, u32::BITS)
        };
        return item.legal(before ^ flipped as i32);
    }
    let offset = value.wrapping_sub(item.min) as u32;
    let low_bits = item.bits.saturating_sub(4);
    let high = coding.nibble(offset >> low_bits & 15, &mut models.symbol);
    let low = coding.even(offset, low_bits) & ((1u64 << low_bits) - 1) as u32;
    item.legal(item.min.wrapping_add((high << low_bits | low) as i32))
}

/// The class of a baseline's age.
#[inline]
pub(super) const fn age_class(age: i64) -> usize {
    match age {
        0 => 0,
        1 => 1,
        2 => 2,
        3..=4 => 3,
        _ => AGES - 1,
    }
}
