//! Booleans, integers and floats as columns.

use super::columns::{integer_base, is_wide};
use super::containers::{load_bytes, store_bytes};
use super::property::{load_items, store_items};
use super::{Blend, Interpolate, Property, RowReader, RowWriter};
use crate::{DecodeError, Options, Range, Type};

impl Property for bool {
    const TYPE: Type = Type::Bool;

    #[inline(always)]
    fn store(&self, _: &Options, row: &mut RowWriter<'_>) {
        row.put(i32::from(*self));
    }

    #[inline(always)]
    fn load(_: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        Ok(row.take_within(0, 1)? == 1)
    }

    #[inline]
    fn blend(&self, to: &Self, _: &Options, blend: Blend) -> Self {
        *blend.step(self, to)
    }

    #[inline]
    fn differs(&self, other: &Self, _: &Options) -> bool {
        self != other
    }

    #[inline]
    fn store_array(items: &[Self], options: &Options, row: &mut RowWriter<'_>) {
        if options.bits.is_none() {
            return items.iter().for_each(|item| item.store(options, row));
        }
        for items in items.chunks(BITS_PER_COLUMN) {
            let set = items
                .iter()
                .rev()
                .fold(0, |set, &bit| set << 1 | u32::from(bit));
            row.put(set as i32);
        }
    }

    #[inline]
    fn load_array<const N: usize>(
        options: &Options,
        row: &mut RowReader<'_>,
    ) -> Result<[Self; N], DecodeError> {
        let mut items = [false; N];
        if options.bits.is_none() {
            for item in &mut items {
                *item = Self::load(options, row)?;
            }
            return Ok(items);
        }
        for items in items.chunks_mut(BITS_PER_COLUMN) {
            let set = row.take()? as u32;
            if u64::from(set) >> items.len() != 0 {
                return Err(DecodeError::OutOfRange);
            }
            for (index, item) in items.iter_mut().enumerate() {
                *item = set >> index & 1 == 1;
            }
        }
        Ok(items)
    }
}

/// The nearest value within the declared range.
macro_rules! clamped {
    ($value:expr, $options:expr, $type:ident) => {
        match $options.range {
            Range::Integer { min, max } => $value.clamp(min as $type, max as $type),
            _ => $value,
        }
    };
}

/// Integers; `$middle` holds the difference of any two.
macro_rules! integer {
    ($type:ident, $middle:ident, $signed:literal $(, $list:item)*) => {
        impl Property for $type {
            const TYPE: Type = Type::Integer { bits: $type::BITS as u8, signed: $signed };

            #[inline(always)]
            fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
                if let Some(count) = options.bits {
                    let set = *self as u64 & mask(count);
                    row.put(set as i32);
                    if count > 32 {
                        row.put((set >> 32) as i32);
                    }
                    return;
                }
                let value = clamped!(*self, options, $type);
                if $type::BITS == 64 && is_wide(options) {
                    row.put(value as i32);
                    row.put((value as i128 >> 32) as i32);
                } else if let Range::Integer { min, max } = options.range {
                    row.put((value as $middle - integer_base(min, max) as $middle) as i32);
                } else {
                    row.put(value as i32);
                }
            }

            #[inline(always)]
            fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
                if let Some(count) = options.bits {
                    let mut set = u64::from(row.take()? as u32);
                    if count > 32 {
                        set |= u64::from(row.take()? as u32) << 32;
                    }
                    return match set & !mask(count) {
                        0 => Ok(set as $type),
                        _ => Err(DecodeError::OutOfRange),
                    };
                }
                if $type::BITS == 64 && is_wide(options) {
                    let low = u64::from(row.take()? as u32);
                    let value = (u64::from(row.take()? as u32) << 32 | low) as $type;
                    return match clamped!(value, options, $type) == value {
                        true => Ok(value),
                        false => Err(DecodeError::OutOfRange),
                    };
                }
                if let Range::Integer { min, max } = options.range {
                    let base = integer_base(min, max);
                    let found = row.take_within((min - base) as i32, (max - base) as i32)?;
                    return Ok((found as $middle + base as $middle) as $type);
                }
                let found = row.take()?;
                // Back and forth keeps the integer only if it was one of this type.
                match found as $type {
                    value if value as i32 == found => Ok(value),
                    _ => Err(DecodeError::OutOfRange),
                }
            }

            #[inline]
            fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
                if options.interpolate != Some(Interpolate::Linear) {
                    return *blend.step(self, to);
                }
                let way = (*to as $middle - *self as $middle) as f64 * f64::from(blend.share);
                let way = (way + 0.5_f64.copysign(way)) as $middle;
                let most = $type::MAX as $middle;
                (*self as $middle).saturating_add(way).clamp($type::MIN as $middle, most) as $type
            }

            #[inline]
            fn differs(&self, other: &Self, options: &Options) -> bool {
                if let Some(tolerance) = options.tolerance {
                    let distance = (*self as $middle - *other as $middle) as f64;
                    return distance.abs() > tolerance;
                }
                match options.bits {
                    Some(count) => (*self ^ *other) as u64 & mask(count) != 0,
                    None => clamped!(*self, options, $type) != clamped!(*other, options, $type),
                }
            }

            $($list)*
        }
    };
}

integer!(
    u8,
    i64,
    false,
    fn store_list(items: &[Self], options: &Options, row: &mut RowWriter<'_>) {
        if Self::TYPE.is_packed(options) {
            store_bytes(items, options, row);
        } else {
            store_items(items, options, row);
        }
    },
    fn load_list(options: &Options, row: &mut RowReader<'_>) -> Result<Vec<Self>, DecodeError> {
        if Self::TYPE.is_packed(options) {
            load_bytes(options, row)
        } else {
            load_items(options, row)
        }
    }
);
integer!(i8, i64, true);
integer!(u16, i64, false);
integer!(i16, i64, true);
integer!(u32, i64, false);
integer!(i32, i64, true);
integer!(u64, i128, false);
integer!(i64, i128, true);

/// The lowest bits, so many.
const fn mask(count: u32) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

const BITS_PER_COLUMN: usize = 32;
