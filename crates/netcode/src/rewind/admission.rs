//! Decides at which instant a shot is judged: what the client claims, bounded by what the server knows of it.

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema, Type};
use muse_wire::Duration;

use super::config::RewindConfig;
use crate::replication::AcknowledgedTicks;
use crate::{Tick, TickTime};

/// The instant that a client saw when it fired, as its shot carries it. Nothing in it is believed without
/// [`Rewind::admit`](super::Rewind::admit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    at: TickTime,
    between: Option<(Tick, Tick)>,
}

impl Claim {
    /// The instant that was shown, between two ticks that follow each other.
    pub fn at(at: TickTime) -> Self {
        Self { at, between: None }
    }

    /// The instant that was shown, when the client interpolated between the states of two ticks further apart: snapshots
    /// at a lower rate than ticks, or lost ones.
    pub fn between(from: Tick, to: Tick, at: TickTime) -> Self {
        Self {
            at,
            between: Some((from, to)),
        }
    }
}

/// The instant, and in 8 bits each how far before it the one tick lies and how far from that the other, both zero when they follow
/// each other.
impl Schema for Claim {
    const TYPE: Type = u64::TYPE;

    fn bits_min(options: &Options) -> u64 {
        TickTime::bits_min(options) + 16
    }

    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        self.at.write(options, writer)?;
        let (before, span) = self.between.map_or((0, 0), |(from, to)| {
            let short = |ticks: i64| u8::try_from(ticks).ok();
            let spans = (short(self.at.tick - from), short(to - from));
            // Further apart nobody interpolates, and no server would look for it.
            (spans.0.zip(spans.1)).unwrap_or((0, 0))
        });
        writer.bits(u64::from(before), 8)?;
        Ok(writer.bits(u64::from(span), 8)?)
    }

    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let at = TickTime::read(options, reader)?;
        let (before, span) = (reader.bits(8)? as u32, reader.bits(8)? as u32);
        let from = at.tick.back(before);
        Ok(Self {
            at,
            between: (span > 0).then_some((from, from + span)),
        })
    }
}

/// The server's knowledge of the client that fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shooter {
    /// Round trip, measured by the server.
    pub rtt: Duration,
    /// The age of the picture that the player acts on, beyond what the round trip and the wait explain: interpolation, and the time from a frame to the
    /// input. Reported by the client and believed up to [`RewindConfig::interpolation_max`].
    pub interpolation: Duration,
    /// Time that its inputs wait in the server's buffer.
    pub buffered: Duration,
    /// Ticks that the client can have shown others between.
    pub acknowledged: AcknowledgedTicks,
}

/// An instant at which a shot may be judged; made by [`Rewind::admit`](super::Rewind::admit) and
/// [`Rewind::present`](super::Rewind::present) only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    pub(super) moment: Moment,
    pub(super) age: Duration,
    pub(super) verdict: Verdict,
}

impl Admission {
    /// The instant at which targets are looked at.
    pub fn at(&self) -> TickTime {
        self.moment.at
    }

    /// Returns how long ago that is.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// Returns the verdict on the claim.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// The verdict on a claimed instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is what the server expected of this client.
    Granted,
    /// The client can't have been shown that; the true path at the nearest instant that is plausible has taken its place. An honest client is
    /// hardly ever told so.
    Clamped,
    /// It is older than the limit: nothing is rewound, and the shooter has to lead.
    Late,
    /// It was about the present from the beginning.
    Present,
}

/// Counts of each verdict; an operator watches clients of whom many are clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionCounts {
    /// As expected.
    pub granted: u64,
    /// Implausible.
    pub clamped: u64,
    /// Beyond the limit.
    pub late: u64,
}

/// An instant, and the two ticks whose states are blended for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) at: TickTime,
    pub(super) from: Tick,
    pub(super) to: Tick,
    pub(super) share: f32,
}

impl Moment {
    /// Exactly a tick.
    pub(super) fn tick(tick: Tick) -> Self {
        Self {
            at: tick.into(),
            from: tick,
            to: tick,
            share: 0.0,
        }
    }

    /// Between two ticks that follow each other.
    pub(super) fn new(at: TickTime) -> Self {
        Self {
            at,
            from: at.tick,
            to: at.tick + 1,
            share: at.share(),
        }
    }

    /// Between two ticks further apart.
    fn between(at: TickTime, from: Tick, to: Tick) -> Self {
        let share = (at.ticks() - f64::from(from.0)) / (to - from).max(1) as f64;
        Self {
            at,
            from,
            to,
            share: share as f32,
        }
    }
}

impl Claim {
    /// Returns whether the client can have shown others between the ticks that it names.
    fn is_possible(&self, shooter: &Shooter) -> bool {
        self.between.is_none_or(|(from, to)| {
            let inside = TickTime::from(from) <= self.at && self.at <= TickTime::from(to);
            inside && shooter.acknowledged.are_neighbours(from, to)
        })
    }
}

/// Bounds a claim by what is known of the client.
pub(super) fn admit(
    config: &RewindConfig,
    now: Tick,
    claim: Claim,
    shooter: &Shooter,
) -> Admission {
    let tick = config.tick.as_micros() as f64;
    let ticks = |span: Duration| span.as_micros() as f64 / tick;
    // Reported by the client itself, so it is believed only so far.
    let interpolation = shooter.interpolation.min(config.interpolation_max);
    let expected = ticks(shooter.rtt + interpolation + shooter.buffered);
    let tolerance = ticks(config.tolerance);
    let claimed = f64::from(now.0) - claim.at.ticks();
    let lowest = (expected - tolerance).max(0.0);
    let age = claimed.clamp(lowest, expected + tolerance);
    let clamped = (age - claimed).abs() > 1e-3;
    let forged = clamped || !claim.is_possible(shooter);
    // Not clamped to the limit: a shot is judged by what its player saw, or by the present, which is fair to the victim.
    if age > ticks(config.limit) {
        return Admission {
            moment: Moment::tick(now),
            age: Duration::ZERO,
            verdict: Verdict::Late,
        };
    }
    let at = if clamped {
        TickTime::from_ticks(f64::from(now.0) - age)
    } else {
        claim.at
    };
    // Over a longer gap the true path counts: nobody should be hit far from everywhere they were.
    let moment = match claim.between {
        Some((from, to)) if !forged && ticks(config.span_max) >= (to - from) as f64 => {
            Moment::between(at, from, to)
        }
        _ => Moment::new(at),
    };
    Admission {
        moment,
        age: Duration::from_micros((age * tick) as u64),
        verdict: match forged {
            true => Verdict::Clamped,
            false => Verdict::Granted,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_travel() {
        let at = TickTime::from_ticks(1_000.25);
        for claim in [
            Claim::at(at),
            Claim::between(Tick(999), Tick(1_002), at),
            Claim::between(Tick(1_000), Tick(1_001), at),
        ] {
            let mut bytes = [0; 8];
            let mut writer = BitWriter::new(&mut bytes);
            claim.write(&Options::NONE, &mut writer).expect("room");
            assert_eq!(writer.finish(), 8);
            let read = Claim::read(&Options::NONE, &mut BitReader::new(&bytes));
            assert_eq!(read, Ok(claim));
        }
        let mut bytes = [0; 8];
        let absurd = Claim::between(Tick(5), Tick(9_000), at);
        let mut writer = BitWriter::new(&mut bytes);
        absurd.write(&Options::NONE, &mut writer).expect("room");
        writer.finish();
        let read = Claim::read(&Options::NONE, &mut BitReader::new(&bytes));
        assert_eq!(read, Ok(Claim::at(at)));
    }
}
