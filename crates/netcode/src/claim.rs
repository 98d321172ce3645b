//! The instant that a shot is about: what a client claims in its input, and what the server knows of that client. How shots are judged by
//! it is the business of `muse-lagcomp`.

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema, Type};
use muse_wire::Duration;

use crate::replication::AcknowledgedTicks;
use crate::{Tick, TickTime};

/// The instant that a client saw when it fired, as its shot carries it. A server believes nothing in it that does not fit what it knows of
/// the [`Shooter`].
///
/// ```
/// use muse_netcode::{Claim, Tick, TickTime};
/// use muse_schema::{BitReader, BitWriter, Options, Schema};
/// // Snapshots come every third tick, and the client drew the instant between two of them.
/// let claim = Claim::between(Tick(104), Tick(107), TickTime::from_ticks(105.5));
/// let mut bytes = [0; 16];
/// let mut writer = BitWriter::new(&mut bytes);
/// claim.write(&Options::NONE, &mut writer)?;
/// let len = writer.finish();
/// assert_eq!(Claim::read(&Options::NONE, &mut BitReader::new(&bytes[..len]))?, claim);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// The instant that was shown.
    pub fn time(&self) -> TickTime {
        self.at
    }

    /// The ticks whose states were blended, if they do not follow each other.
    pub fn span(&self) -> Option<(Tick, Tick)> {
        self.between
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

/// The server's knowledge of a client that fires; [`Server::shooter`](crate::Server::shooter) has it.
///
/// ```
/// use muse_netcode::{Claim, Shooter, Tick, TickTime};
/// // It has acknowledged nothing, so it has shown nothing between distant ticks.
/// let stranger = Shooter::default();
/// let at = TickTime::from_ticks(105.5);
/// assert!(stranger.can_have_seen(Claim::at(at)));
/// assert!(!stranger.can_have_seen(Claim::between(Tick(104), Tick(107), at)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shooter {
    /// Round trip, measured by the server.
    pub rtt: Duration,
    /// Age of the picture that the player acts on, beyond what the round trip and the wait explain: interpolation, and the time from a frame to the
    /// input. Reported by the client and believed up to a limit.
    pub interpolation: Duration,
    /// Time that its inputs wait in the server's buffer.
    pub buffered: Duration,
    /// Ticks that the client can have shown others between.
    pub acknowledged: AcknowledgedTicks,
}

impl Shooter {
    /// True if the client can have shown others between the ticks that the claim names.
    pub fn can_have_seen(&self, claim: Claim) -> bool {
        claim.between.is_none_or(|(from, to)| {
            let inside = TickTime::from(from) <= claim.at && claim.at <= TickTime::from(to);
            inside && self.acknowledged.are_neighbours(from, to)
        })
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
