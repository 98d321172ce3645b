//! Frames and seats: which step of the simulation, and whose command.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A step of the simulation in rollback, a turn in lockstep; the first is 0. At 60 a second a match may last two years.
///
/// ```
/// use muse_lockstep::Frame;
/// assert_eq!(Frame(7) + 3, Frame(10));
/// assert_eq!(Frame(7).since(Frame(9)), 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

impl Frame {
    /// Later than any frame that is reached.
    pub const NEVER: Self = Self(u32::MAX);

    /// Returns by how many frames this is after `earlier`; 0 if it is not.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// The 16 bits that travel where the other side can tell the rest.
    pub(crate) const fn low(self) -> u16 {
        self.0 as u16
    }

    /// The frame with these low bits that is nearest to `around`.
    pub(crate) const fn near(low: u16, around: Self) -> Self {
        let ahead = low.wrapping_sub(around.low()) as i16;
        Self(around.0.saturating_add_signed(ahead as i32))
    }
}

impl Add<u32> for Frame {
    type Output = Self;
    fn add(self, rhs: u32) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl AddAssign<u32> for Frame {
    fn add_assign(&mut self, rhs: u32) {
        *self = *self + rhs;
    }
}

impl Sub<u32> for Frame {
    type Output = Self;
    fn sub(self, rhs: u32) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A player's place in the match, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub u8);

impl Seat {
    /// Returns the seat's place in an array of all seats.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Players that a match can have.
pub const SEATS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_find_the_nearest_frame() {
        for around in [0, 5, 65_530, 65_540, 1 << 20] {
            for offset in -5i32..=5 {
                let Some(frame) = u32::checked_add_signed(around, offset) else {
                    continue;
                };
                assert_eq!(Frame::near(Frame(frame).low(), Frame(around)), Frame(frame));
            }
        }
        assert_eq!(
            Frame::near(65_535, Frame(0)),
            Frame(0),
            "there is nothing before 0"
        );
    }
}
