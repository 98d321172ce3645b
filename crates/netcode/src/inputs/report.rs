//! The server's report to a client about its inputs.

use muse_schema::{Schema, Type};
use muse_wire::{Duration, Instant};

/// A report of how a client's inputs arrive, sent along with every snapshot: at most 15 bytes.
#[derive(Schema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputReport {
    /// The newest packet that has arrived.
    pub(crate) heard: Option<Heard>,
    /// The time, by the client's clock, at which the input of the snapshot's tick should have been sent. Inputs of other ticks should be
    /// sent as many ticks earlier or later.
    pub aim: Option<Stamp>,
    /// The time after the aim at which an input could be sent if its packet were one of the quickest tenth, in 16 us; 1 s at most.
    #[field(fixed)]
    pub spare: u16,
    /// The margin of the tightest of the last inputs, in 1/8 tick; less than zero for one that came too late.
    pub margin: i8,
    /// Share of the client's packets that are lost, in 1/255.
    pub loss: u8,
    /// Ticks without an input in time, modulo 256.
    pub missed: u8,
    /// Ticks by which the server has fallen behind its schedule for good, modulo 65,536.
    #[field(fixed)]
    pub slipped: u16,
}

impl InputReport {
    /// The spare time, see [`spare`](Self::spare).
    pub fn spare(&self) -> Duration {
        Duration::from_micros(u64::from(self.spare) * STAMP_MICROS)
    }

    /// Share of the client's packets that are lost.
    pub fn loss_share(&self) -> f64 {
        f64::from(self.loss) / 255.0
    }

    /// Returns the margin of the tightest of the last inputs, in ticks.
    pub fn margin_ticks(&self) -> f64 {
        f64::from(self.margin) / 8.0
    }

    /// True if so much is lost that an input and the packet after it would be lost together too often.
    pub fn asks_for_copies(&self) -> bool {
        self.loss_share() * self.loss_share() > MISS_SHARE_MAX
    }
}

/// A packet that has arrived, and how long ago.
#[derive(Schema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Its number.
    #[field(fixed)]
    pub(crate) packet: u16,
    /// The time from its arrival to the report, in 16 us; 1 s at most.
    #[field(fixed)]
    pub(crate) held: u16,
}

impl Heard {
    /// Returns the time from the packet's arrival to the report.
    pub(crate) fn held(&self) -> Duration {
        Duration::from_micros(u64::from(self.held) * STAMP_MICROS)
    }
}

/// An instant of a client's clock as it travels: units of 16 us in 24 bits, so it comes round after 268 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of an instant.
    pub fn of(instant: Instant) -> Self {
        Self((instant.as_micros() / STAMP_MICROS) as u32 & STAMP_MASK)
    }

    /// The instant with this stamp that is nearest to `now`.
    pub fn near(self, now: Instant) -> Instant {
        let since = self.since(Self::of(now));
        // In whole units, as stamps are.
        let base = now.as_micros() / STAMP_MICROS * STAMP_MICROS;
        Instant::from_micros(base.saturating_add_signed(i64::from(since)))
    }

    /// The stamp so many microseconds earlier, or later if there are less than zero.
    pub fn minus(self, micros: i32) -> Self {
        let units = micros.div_euclid(STAMP_MICROS as i32) as u32;
        Self(self.0.wrapping_sub(units) & STAMP_MASK)
    }

    /// The distance from `earlier` as a stamp of its own, to be compared with other distances by [`since`](Self::since).
    pub fn distance(self, earlier: Self) -> Self {
        Self(self.0.wrapping_sub(earlier.0) & STAMP_MASK)
    }

    /// Time from `earlier` to this one, in microseconds; less than zero if it is the other way round.
    pub fn since(self, earlier: Self) -> i32 {
        let difference = self.0.wrapping_sub(earlier.0) << (32 - STAMP_BITS);
        (difference as i32 >> (32 - STAMP_BITS)) * STAMP_MICROS as i32
    }
}

impl Schema for Stamp {
    const TYPE: Type = u32::TYPE;

    fn bits_min(_: &muse_schema::Options) -> u64 {
        u64::from(STAMP_BITS)
    }

    fn write(
        &self,
        _: &muse_schema::Options,
        writer: &mut muse_schema::BitWriter<'_>,
    ) -> Result<(), muse_schema::EncodeError> {
        Ok(writer.bits(u64::from(self.0), STAMP_BITS)?)
    }

    fn read(
        _: &muse_schema::Options,
        reader: &mut muse_schema::BitReader<'_>,
    ) -> Result<Self, muse_schema::DecodeError> {
        Ok(Self(reader.bits(STAMP_BITS)? as u32))
    }
}

/// Share of ticks that may be without their input: 1 in 1,000.
pub(super) const MISS_SHARE_MAX: f64 = 0.001;
pub(super) const STAMP_MICROS: u64 = 16;
const STAMP_BITS: u32 = 24;
const STAMP_MASK: u32 = (1 << STAMP_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use muse_schema::{BitReader, BitWriter, Options};

    #[test]
    fn stamps_come_round() {
        for seconds in [0, 1, 267, 268, 269, 100_000] {
            let now = Instant::from_secs(seconds) + Duration::from_millis(500);
            for (earlier, later) in [(400_000, 0), (0, 400_000), (1_600, 32)] {
                let other = now - Duration::from_micros(earlier) + Duration::from_micros(later);
                assert!(
                    Stamp::of(other)
                        .near(now)
                        .as_micros()
                        .abs_diff(other.as_micros())
                        < 16
                );
            }
        }
    }

    #[test]
    fn reports_are_small_and_come_back() {
        let report = InputReport {
            heard: Some(Heard {
                packet: 60_000,
                held: 1_250,
            }),
            aim: Some(Stamp::of(Instant::from_secs(77))),
            spare: 900,
            margin: -3,
            loss: 12,
            missed: 200,
            slipped: 9,
        };
        let mut bytes = [0; 16];
        let mut writer = BitWriter::new(&mut bytes);
        report.write(&Options::NONE, &mut writer).expect("room");
        let len = writer.finish();
        assert_eq!(len, 15);
        let read = InputReport::read(&Options::NONE, &mut BitReader::new(&bytes[..len]));
        assert_eq!(read, Ok(report));
    }

    #[test]
    fn a_tenth_lost_asks_for_copies() {
        let report = InputReport {
            loss: 26,
            ..InputReport::default()
        };
        assert!((report.loss_share() - 0.1).abs() < 0.01);
        assert!(report.asks_for_copies() && !InputReport::default().asks_for_copies());
    }
}
