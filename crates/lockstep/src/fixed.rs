//! Fixed-point numbers: fractions that every machine computes alike.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use muse_schema::Schema;

/// A number with 16 bits before and 16 after the point. Arithmetic saturates and rounds towards minus infinity; dividing by zero gives
/// the largest number of the dividend's sign.
///
/// ```
/// use muse_lockstep::Fixed;
/// let half = Fixed::ONE / Fixed::from_int(2);
/// assert_eq!(half * Fixed::from_int(7), Fixed::from_ratio(7, 2));
/// assert_eq!(Fixed::from_int(9).sqrt(), Fixed::from_int(3));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Schema)]
pub struct Fixed(i32);

impl Fixed {
    /// 0
    pub const ZERO: Self = Self(0);
    /// 1
    pub const ONE: Self = Self(1 << FRACTION);
    /// The largest number, a little less than 32,768.
    pub const MAX: Self = Self(i32::MAX);
    /// The smallest.
    pub const MIN: Self = Self(i32::MIN);

    /// From 65,536ths.
    pub const fn from_bits(bits: i32) -> Self {
        Self(bits)
    }

    /// In 65,536ths.
    pub const fn to_bits(self) -> i32 {
        self.0
    }

    /// A whole number.
    pub const fn from_int(value: i16) -> Self {
        Self((value as i32) << FRACTION)
    }

    /// A fraction.
    pub fn from_ratio(numerator: i32, denominator: i32) -> Self {
        divide(i64::from(numerator) << FRACTION, i64::from(denominator))
    }

    /// The whole part, rounded towards minus infinity.
    pub const fn floor(self) -> i32 {
        self.0 >> FRACTION
    }

    /// Without its sign.
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// The square root; 0 for negative numbers.
    pub const fn sqrt(self) -> Self {
        if self.0 <= 0 {
            return Self::ZERO;
        }
        Self((((self.0 as u64) << FRACTION).isqrt()) as i32)
    }

    /// Sine of an angle in turns (1 is a full turn), to within 0.001.
    pub fn sin_turns(self) -> Self {
        // A parabola through each half turn, bent once more.
        let turn = self.0 & 0xFFFF;
        let (half, sign) = if turn < 0x8000 {
            (turn, 1)
        } else {
            (turn - 0x8000, -1)
        };
        let arch = Self(half) * (Self(0x8000) - Self(half)) * Self::from_int(16);
        let bent = Self(14_746) * (arch * arch - arch) + arch;
        Self(bent.0 * sign)
    }

    /// Cosine of an angle in turns.
    pub fn cos_turns(self) -> Self {
        (self + Self(0x4000)).sin_turns()
    }

    /// For drawing. There is no way back: floats stay outside of the simulation.
    pub fn to_f32(self) -> f32 {
        self.0 as f32 / 65_536.0
    }
}

impl Add for Fixed {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Fixed {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Fixed {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl SubAssign for Fixed {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

impl Neg for Fixed {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul for Fixed {
    type Output = Self;
    fn mul(self, rhs: Self) -> Self {
        saturate((i64::from(self.0) * i64::from(rhs.0)) >> FRACTION)
    }
}

impl Div for Fixed {
    type Output = Self;
    fn div(self, rhs: Self) -> Self {
        Self::from_ratio(self.0, rhs.0)
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5}", f64::from(self.0) / 65_536.0)
    }
}

fn divide(numerator: i64, denominator: i64) -> Fixed {
    if denominator == 0 {
        return if numerator < 0 {
            Fixed::MIN
        } else {
            Fixed::MAX
        };
    }
    let quotient = numerator.div_euclid(denominator);
    // For a negative denominator the euclidean quotient rounds the other way.
    let inexact = numerator.rem_euclid(denominator) != 0 && denominator < 0;
    saturate(quotient - i64::from(inexact))
}

fn saturate(value: i64) -> Fixed {
    Fixed(value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
}

const FRACTION: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_rounds_down_and_saturates() {
        assert_eq!(Fixed::from_ratio(1, 3).to_bits(), 21_845);
        assert_eq!(Fixed::from_ratio(-1, 3).to_bits(), -21_846);
        assert_eq!(Fixed::from_ratio(1, -3).to_bits(), -21_846);
        assert_eq!(Fixed::MAX + Fixed::ONE, Fixed::MAX);
        assert_eq!(Fixed::MIN * Fixed::from_int(2), Fixed::MIN);
        assert_eq!(Fixed::ONE / Fixed::ZERO, Fixed::MAX);
        assert_eq!(Fixed::from_int(2).sqrt().to_bits(), 92_681);
    }

    #[test]
    fn sines_are_close() {
        for step in -100..=100 {
            let turns = Fixed::from_ratio(step, 50);
            let right = (f64::from(step) / 50.0 * std::f64::consts::TAU).sin();
            let error = f64::from(turns.sin_turns().to_f32()) - right;
            assert!(error.abs() < 0.0015, "{step}: {error}");
        }
        assert_eq!(Fixed::ZERO.cos_turns(), Fixed::ONE);
    }
}
