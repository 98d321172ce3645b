//! The grid on which floats of states lie: integers times a step, from an offset on.
//!
//! Numbers are rounded by adding a half and cutting off, because that is the same and fast everywhere, and multiplied by
//! the reciprocal of the step instead of divided. Neither can move a number that lies on the grid: a step is at least four times
//! as wide as what floats of the field's type round away (`quantise::check`).

use crate::quantise;

/// A number is `base + step * integer`, with integers from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) base: f64,
    pub(crate) step: f64,
    pub(crate) reciprocal: f64,
    pub(crate) low: i32,
    pub(crate) high: i32,
}

impl Grid {
    /// Of fields that have none.
    pub(crate) const NONE: Self = Self {
        base: 0.0,
        step: 1.0,
        reciprocal: 1.0,
        low: 0,
        high: 0,
    };

    /// The grid of `range = min..=max, step = step`. Its 0 is the multiple of a step nearest to zero, if the range has
    /// one.
    pub(crate) const fn of_range(min: f64, max: f64, step: f64) -> Self {
        let count = quantise::count(min, max, step);
        // So many steps lie below the integer 0. The cast takes what is below zero to zero.
        let mut below = (-min / step + 0.5) as u64;
        if below > count {
            below = count;
        }
        // Both ends have to be integers of 32 bits.
        if below > MOST_BELOW {
            below = MOST_BELOW;
        }
        if count.saturating_sub(below) > i32::MAX as u64 {
            below = count - i32::MAX as u64;
        }
        let mut base = min + below as f64 * step;
        if base.abs() <= step * NEAR {
            base = 0.0;
        }
        Self {
            base,
            step,
            reciprocal: 1.0 / step,
            low: -(below as i64) as i32,
            high: (count as i64 - below as i64) as i32,
        }
    }

    /// The grid of angles of `count` steps to the turn from `min` to `max`: multiples of a step.
    pub(crate) const fn of_angle(min: f64, max: f64, count: u64) -> Self {
        let step = (max - min) / count as f64;
        // The first multiple that is not below `min`, unless by nothing but rounding.
        let first = min / step - NEAR;
        let mut low = first as i64;
        if (low as f64) < first {
            low += 1;
        }
        Self {
            base: 0.0,
            step,
            reciprocal: count as f64 / (max - min),
            low: low as i32,
            high: (low + count as i64 - 1) as i32,
        }
    }

    /// The integer nearest to a number; the nearest end if it is outside, and the one nearest to 0 if it is not a number.
    #[inline(always)]
    pub(crate) fn index(&self, value: f64) -> i32 {
        let exact = (value - self.base) * self.reciprocal;
        ((exact + 0.5_f64.copysign(exact)) as i32).clamp(self.low, self.high)
    }

    /// The integer of an angle, however many turns it has.
    #[inline(always)]
    pub(crate) fn index_wrapped(&self, value: f64) -> i32 {
        let exact = value * self.reciprocal;
        let nearest = (exact + 0.5_f64.copysign(exact)) as i64;
        let count = i64::from(self.high) - i64::from(self.low) + 1;
        let turned = nearest.wrapping_sub(i64::from(self.low)).rem_euclid(count);
        (i64::from(self.low) + turned) as i32
    }

    /// The number of an integer.
    #[inline(always)]
    pub(crate) fn value(&self, index: i32) -> f64 {
        self.base + self.step * f64::from(index)
    }
}

const MOST_BELOW: u64 = 1 << 31;
/// Values that are this near, in steps, are meant to be the same: 0.1 is not quite a tenth.
const NEAR: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_zero_where_the_range_has_it() {
        let grid = Grid::of_range(-500.0, 500.0, 0.01);
        assert_eq!((grid.low, grid.high, grid.base), (-50_000, 50_000, 0.0));
        let grid = Grid::of_range(100.0, 200.0, 0.5);
        assert_eq!((grid.low, grid.high, grid.base), (0, 200, 100.0));
        let grid = Grid::of_range(-200.0, -100.0, 0.5);
        assert_eq!((grid.low, grid.high, grid.base), (-200, 0, -100.0));
        let grid = Grid::of_range(0.0, 4e9, 1.0);
        assert_eq!(i64::from(grid.high) - i64::from(grid.low), 4_000_000_000);
        let grid = Grid::of_range(-1.0, 4e9, 1.0);
        assert_eq!((grid.high, grid.value(grid.low)), (i32::MAX, -1.0));
    }

    #[test]
    fn turns_begin_where_declared() {
        let turn = core::f64::consts::PI;
        let grid = Grid::of_angle(-turn, turn, 4096);
        assert_eq!((grid.low, grid.high), (-2048, 2047));
        assert_eq!(grid.index_wrapped(turn), -2048);
        assert_eq!(grid.index_wrapped(9.0 * turn), -2048);
        assert_eq!(grid.index_wrapped(f64::NAN), 0);
        let grid = Grid::of_angle(0.0, 360.0, 360);
        assert_eq!((grid.low, grid.high), (0, 359));
        assert_eq!(grid.index_wrapped(-1.2), 359);
        assert_eq!(grid.index_wrapped(359.6), 0);
        let grid = Grid::of_angle(0.5, 360.5, 360);
        assert_eq!((grid.low, grid.high), (1, 360));
        for count in [7, 36, 3_600, 3_601, 1 << 20] {
            let grid = Grid::of_angle(-180.0, 180.0, count);
            assert_eq!(grid.low, -(count as i32 / 2), "{count}");
        }
        let grid = Grid::of_angle(-0.5, 359.5, 360);
        assert_eq!((grid.low, grid.high), (0, 359));
    }

    #[test]
    fn what_is_no_number_is_zero_or_the_nearest_end() {
        let grid = Grid::of_range(-1.0, 1.0, 0.5);
        assert_eq!(grid.index(f64::NAN), 0);
        assert_eq!(grid.index(f64::INFINITY), 2);
        assert_eq!(grid.index(-1e300), -2);
        assert_eq!(Grid::of_range(3.0, 4.0, 0.5).index(f64::NAN), 0);
    }
}
