//! The time of a game: steps of the simulation, and instants between them.

use std::ops::{Add, Sub};

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema, Type};

/// A step of the simulation, counted from the beginning of the match. 32 bits last for two years at 60 steps a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// The tick so many steps earlier, or the first one.
    pub const fn back(self, steps: u32) -> Self {
        Self(self.0.saturating_sub(steps))
    }
}

impl Add<u32> for Tick {
    type Output = Self;

    /// Stops at the last tick rather than wrap: numbers from the network may be anything.
    fn add(self, steps: u32) -> Self {
        Self(self.0.saturating_add(steps))
    }
}

impl Sub for Tick {
    type Output = i64;

    fn sub(self, earlier: Self) -> i64 {
        i64::from(self.0) - i64::from(earlier.0)
    }
}

/// An instant between two ticks, to 1/65,536 of a tick: what a player saw when it fired, or what is being shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TickTime {
    /// The last tick at or before the instant.
    pub tick: Tick,
    /// The share of the way to the next, in 1/65,536.
    pub fraction: u16,
}

impl TickTime {
    /// From a number of ticks; what is below zero or not a number is the beginning.
    pub fn from_ticks(ticks: f64) -> Self {
        let parts = (ticks * FRACTIONS).clamp(0.0, (u64::from(u32::MAX) << 16) as f64) as u64;
        Self {
            tick: Tick((parts >> 16) as u32),
            fraction: parts as u16,
        }
    }

    /// The number of ticks since the beginning.
    pub fn ticks(self) -> f64 {
        f64::from(self.tick.0) + f64::from(self.fraction) / FRACTIONS
    }

    /// Returns the share of the way from [`tick`](Self::tick) to the next one, at least 0 and less than 1.
    pub fn share(self) -> f32 {
        f32::from(self.fraction) / FRACTIONS as f32
    }
}

impl From<Tick> for TickTime {
    fn from(tick: Tick) -> Self {
        Self { tick, fraction: 0 }
    }
}

/// So that an input can carry the instant that its player saw.
impl Schema for TickTime {
    const TYPE: Type = u64::TYPE;

    fn bits_min(_: &Options) -> u64 {
        u64::from(BITS)
    }

    fn write(&self, _: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        let parts = u64::from(self.tick.0) << 16 | u64::from(self.fraction);
        Ok(writer.bits(parts, BITS)?)
    }

    fn read(_: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let parts = reader.bits(BITS)?;
        Ok(Self {
            tick: Tick((parts >> 16) as u32),
            fraction: parts as u16,
        })
    }
}

const FRACTIONS: f64 = 65_536.0;
/// Of an instant as it travels.
const BITS: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_survive_the_way_through_numbers() {
        for ticks in [0.0, 0.5, 1.25, 4_000_000_000.75] {
            assert_eq!(TickTime::from_ticks(ticks).ticks(), ticks);
        }
        assert_eq!(TickTime::from_ticks(-3.0), TickTime::default());
        assert_eq!(TickTime::from_ticks(f64::NAN), TickTime::default());
        assert_eq!(TickTime::from_ticks(1e300).tick, Tick(u32::MAX));
    }

    #[test]
    fn instants_travel() {
        for ticks in [0.0, 0.5, 77.125, 4_000_000_000.75] {
            let time = TickTime::from_ticks(ticks);
            let mut bytes = [0; 6];
            let mut writer = BitWriter::new(&mut bytes);
            time.write(&Options::NONE, &mut writer).expect("room");
            assert_eq!(writer.finish(), 6);
            let mut reader = BitReader::new(&bytes);
            assert_eq!(TickTime::read(&Options::NONE, &mut reader), Ok(time));
            let mut cut = BitReader::new(&bytes[..5]);
            assert!(TickTime::read(&Options::NONE, &mut cut).is_err());
        }
    }

    #[test]
    fn ticks_stop_at_their_ends() {
        assert_eq!(Tick(3).back(5), Tick(0));
        assert_eq!(Tick(u32::MAX) + 1, Tick(u32::MAX));
    }
}
