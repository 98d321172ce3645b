//! The quick way: numbers in one or two steps each, for rows most of which change.

use super::RowError;
use super::coding::Coding;
use super::models::{AGES, ColumnModels, NumberModel};
use super::plan::{Item, Way};

/// A difference with its sign. Small ones take one adaptive step; of larger ones the low bits are left to chance.
#[inline]
pub(super) fn number<C: Coding>(
    coding: &mut C,
    model: &mut NumberModel,
    difference: i32,
) -> Result<i32, RowError> {
    let folded = (difference << 1 ^ difference >> 31) as u32;
    let low_bits = model.low_bits();
    let head = folded >> low_bits;
    let mut coded = u64::from(coding.nibble(head.min(ESCAPE), &mut model.head));
    if coded == u64::from(ESCAPE) {
        let rest = head.wrapping_sub(ESCAPE);
        let bits = coding
            .even(u32::BITS - rest.leading_zeros(), 6)
            .min(u32::BITS);
        coded += u64::from(coding.even(rest, bits));
    }
    let low = coding.even(folded & ((1 << low_bits) - 1), low_bits);
    let folded =
        u32::try_from(coded << low_bits | u64::from(low)).map_err(|_| RowError::OutOfRange)?;
    model.learn(folded);
    Ok((folded >> 1) as i32 ^ -((folded & 1) as i32))
}

/// A column that is no quantity: whether it is as before, and if not what.
pub(super) fn symbol<C: Coding>(
    coding: &mut C,
    models: &mut ColumnModels,
    item: &Item,
    before: i32,
    value: i32,
) -> Result<i32, RowError> {
    let value = match item.way {
        Way::Flag => {
            let was = usize::from(before != item.min);
            let is = coding.adaptive(value != item.min, &mut models.equal[was]);
            if is { item.max } else { item.min }
        }
        _ if coding.adaptive(value == before, &mut models.equal[0]) => before,
        Way::Bits => {
            let flipped = (value ^ before) as u32;
            let is_single = coding.adaptive(flipped.is_power_of_two(), &mut models.equal[1]);
            let flipped = if is_single {
                1 << (coding.even(flipped.trailing_zeros() & 31, 5) & 31)
            } else {
                coding.even(flipped, u32::BITS)
            };
            before ^ flipped as i32
        }
        _ => {
            let offset = value.wrapping_sub(item.min) as u32;
            let low_bits = item.bits.saturating_sub(4);
            let high = coding.nibble(offset >> low_bits & 15, &mut models.symbol);
            let low = coding.even(offset, low_bits) & ((1u64 << low_bits) - 1) as u32;
            item.min.wrapping_add((high << low_bits | low) as i32)
        }
    };
    if (item.min..=item.max).contains(&value) {
        Ok(value)
    } else {
        Err(RowError::OutOfRange)
    }
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

/// The largest number of one step, and what larger ones begin with.
const ESCAPE: u32 = 15;
