//! Packets, apart from the streams in them. `docs/lockstep.md` is the standard.

use muse_wire::Duration;
use muse_wire::bits::{BitError, BitReader, BitWriter, Width};
use muse_wire::bytes::{EndOfBytes, Reader, Writer};

use crate::config::PROTOCOL_VERSION;
use crate::frame::{Frame, Seat};

/// The kind of a packet: the low half of its first byte. The high half is the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hello = 0,
    Welcome = 1,
    Refused = 2,
    Up = 3,
    Down = 4,
    Direct = 5,
    BlobData = 6,
    BlobAck = 7,
    Bye = 8,
    Resume = 9,
    Recall = 10,
    Report = 11,
}

impl Kind {
    pub(crate) const fn byte(self) -> u8 {
        PROTOCOL_VERSION << 4 | self as u8
    }

    /// The kind of a packet and what follows.
    pub(crate) fn of(packet: &[u8]) -> Option<(Self, &[u8])> {
        let (first, rest) = packet.split_first()?;
        let all = [
            Self::Hello,
            Self::Welcome,
            Self::Refused,
            Self::Up,
            Self::Down,
            Self::Direct,
            Self::BlobData,
            Self::BlobAck,
            Self::Bye,
            Self::Resume,
            Self::Recall,
            Self::Report,
        ];
        let kind = all.into_iter().find(|kind| kind.byte() == *first)?;
        Some((kind, rest))
    }
}

/// The first packet of a machine that wants to come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) contract: u64,
    /// Tells one life of a client from its next.
    pub(crate) nonce: u32,
    pub(crate) watches: bool,
    /// The seat it had, if it comes back.
    pub(crate) seat: Option<Seat>,
}

impl Hello {
    pub(crate) fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u8(Kind::Hello.byte())?;
        writer.u64(self.contract)?;
        writer.u32(self.nonce)?;
        writer.u8(u8::from(self.watches))?;
        writer.u8(self.seat.map_or(NO_SEAT, |seat| seat.0))?;
        Ok(writer.len())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EndOfBytes> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            contract: reader.u64()?,
            nonce: reader.u32()?,
            watches: reader.u8()? != 0,
            seat: seat(reader.u8()?),
        })
    }
}

/// The answer to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Welcome {
    pub(crate) nonce: u32,
    /// `None` for who watches.
    pub(crate) seat: Option<Seat>,
    /// The match is under way: a state will come.
    pub(crate) late: bool,
}

impl Welcome {
    pub(crate) fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u8(Kind::Welcome.byte())?;
        writer.u32(self.nonce)?;
        writer.u8(self.seat.map_or(NO_SEAT, |seat| seat.0))?;
        writer.u8(u8::from(self.late))?;
        Ok(writer.len())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EndOfBytes> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            nonce: reader.u32()?,
            seat: seat(reader.u8()?),
            late: reader.u8()? != 0,
        })
    }
}

/// The reason why a machine is not let in, or has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OverReason {
    /// Another game, another version of it, or other settings.
    Contract,
    /// All seats are taken, or there is no room for more spectators.
    Full,
    /// The match is over.
    Over,
    /// It was dropped: silent for too long.
    Dropped,
    /// It was expelled: its state differed from that of the majority, and could not be repaired.
    Expelled,
    /// The states of too many machines differed: there is no match to go on with.
    Desync,
    /// The same account plays by another link now.
    Replaced,
}

impl OverReason {
    const ALL: [Self; 7] = [
        Self::Contract,
        Self::Full,
        Self::Over,
        Self::Dropped,
        Self::Expelled,
        Self::Desync,
        Self::Replaced,
    ];

    pub(crate) fn emit(self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u8(Kind::Refused.byte())?;
        writer.u8(self as u8)?;
        Ok(writer.len())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(*bytes.first()?)).copied()
    }
}

/// A change in the course of the match at a frame: the same on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// From this turn on, so many steps a turn, each of this length.
    Plan {
        frame: Frame,
        steps: u8,
        step: Duration,
    },
    Joined {
        frame: Frame,
        seat: Seat,
    },
    Left {
        frame: Frame,
        seat: Seat,
    },
}

impl Control {
    pub(crate) fn write(&self, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
        let (tag, frame) = match self {
            Self::Plan { frame, .. } => (0, frame),
            Self::Joined { frame, .. } => (1, frame),
            Self::Left { frame, .. } => (2, frame),
        };
        writer.bits(tag, 2)?;
        writer.varint(u64::from(frame.0), Width::Bits32)?;
        match self {
            Self::Plan { steps, step, .. } => {
                writer.bits(u64::from(*steps), 8)?;
                writer.varint(step.as_micros().min(u64::from(u32::MAX)), Width::Bits32)
            }
            Self::Joined { seat, .. } | Self::Left { seat, .. } => {
                writer.bits(u64::from(seat.0), 4)
            }
        }
    }

    pub(crate) fn read(reader: &mut BitReader<'_>) -> Result<Self, BitError> {
        let tag = reader.bits(2)?;
        let frame = Frame(reader.varint(Width::Bits32)? as u32);
        Ok(match tag {
            0 => Self::Plan {
                frame,
                steps: (reader.bits(8)? as u8).max(1),
                step: Duration::from_micros(reader.varint(Width::Bits32)?.max(1_000)),
            },
            1 => Self::Joined {
                frame,
                seat: Seat(reader.bits(4)? as u8),
            },
            2 => Self::Left {
                frame,
                seat: Seat(reader.bits(4)? as u8),
            },
            _ => return Err(BitError::OutOfRange),
        })
    }
}

/// Something that the orderer wants of a machine. It stands in every packet until it is done, and is done once by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Send your newest confirmed state, as the blob of this id.
    GiveState { id: u8 },
    /// Your states and the reference's parted after `good` and before `bad`: send your trace as the blob of this id.
    GiveTrace { id: u8, good: Frame, bad: Frame },
    /// Go back to your own state of frame `good` and run on from there.
    Resimulate { id: u8, good: Frame },
    /// A state will come as a blob: go on from that.
    TakeState { id: u8 },
}

impl Task {
    pub(crate) fn id(&self) -> u8 {
        match self {
            Self::GiveState { id }
            | Self::GiveTrace { id, .. }
            | Self::Resimulate { id, .. }
            | Self::TakeState { id } => *id,
        }
    }

    pub(crate) fn write(&self, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
        let frame = |writer: &mut BitWriter<'_>, frame: &Frame| {
            writer.varint(u64::from(frame.0), Width::Bits32)
        };
        let tag = match self {
            Self::GiveState { .. } => 0,
            Self::GiveTrace { .. } => 1,
            Self::Resimulate { .. } => 2,
            Self::TakeState { .. } => 3,
        };
        writer.bits(tag, 2)?;
        writer.bits(u64::from(self.id()), 8)?;
        match self {
            Self::GiveTrace { good, bad, .. } => {
                frame(writer, good)?;
                frame(writer, bad)
            }
            Self::Resimulate { good, .. } => frame(writer, good),
            Self::GiveState { .. } | Self::TakeState { .. } => Ok(()),
        }
    }

    pub(crate) fn read(reader: &mut BitReader<'_>) -> Result<Self, BitError> {
        let tag = reader.bits(2)?;
        let id = reader.bits(8)? as u8;
        let mut frame = || Ok(Frame(reader.varint(Width::Bits32)? as u32));
        Ok(match tag {
            0 => Self::GiveState { id },
            1 => Self::GiveTrace {
                id,
                good: frame()?,
                bad: frame()?,
            },
            2 => Self::Resimulate { id, good: frame()? },
            _ => Self::TakeState { id },
        })
    }
}

/// A machine's checksum of a confirmed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) frame: Frame,
    /// Number of times the machine's state has been repaired, modulo 4: checksums from before do not count.
    pub(crate) epoch: u8,
    pub(crate) sum: u32,
}

impl Check {
    pub(crate) fn write(&self, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
        writer.bits(u64::from(self.frame.low()), 16)?;
        writer.bits(u64::from(self.epoch & 3), 2)?;
        writer.bits(u64::from(self.sum), 32)
    }

    pub(crate) fn read(around: Frame, reader: &mut BitReader<'_>) -> Result<Self, BitError> {
        Ok(Self {
            frame: Frame::near(reader.bits(16)? as u16, around),
            epoch: reader.bits(2)? as u8,
            sum: reader.bits(32)? as u32,
        })
    }
}

fn seat(byte: u8) -> Option<Seat> {
    (byte != NO_SEAT).then_some(Seat(byte))
}

const NO_SEAT: u8 = 255;
/// Bytes of a packet: what surely passes everywhere.
pub const PACKET_BYTES_MAX: usize = 1_200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_packets_round_trip() {
        let mut buffer = [0; 64];
        let hello = Hello {
            contract: 7,
            nonce: 9,
            watches: true,
            seat: Some(Seat(3)),
        };
        let len = hello.emit(&mut buffer).expect("room");
        let (kind, rest) = Kind::of(&buffer[..len]).expect("ours");
        assert_eq!((kind, Hello::parse(rest)), (Kind::Hello, Ok(hello)));
        let welcome = Welcome {
            nonce: 9,
            seat: None,
            late: true,
        };
        let len = welcome.emit(&mut buffer).expect("room");
        assert_eq!(Welcome::parse(&buffer[1..len]), Ok(welcome));
        for refusal in OverReason::ALL {
            let len = refusal.emit(&mut buffer).expect("room");
            assert_eq!(OverReason::parse(&buffer[1..len]), Some(refusal));
        }
        assert_eq!(Kind::of(&[0x23]), None, "another version");
    }

    #[test]
    fn controls_and_tasks_round_trip() {
        let controls = [
            Control::Plan {
                frame: Frame(70_000),
                steps: 4,
                step: Duration::from_millis(50),
            },
            Control::Joined {
                frame: Frame(3),
                seat: Seat(15),
            },
            Control::Left {
                frame: Frame(9),
                seat: Seat(0),
            },
        ];
        let tasks = [
            Task::GiveState { id: 1 },
            Task::GiveTrace {
                id: 2,
                good: Frame(5),
                bad: Frame(11),
            },
            Task::Resimulate {
                id: 3,
                good: Frame(700_000),
            },
            Task::TakeState { id: 255 },
        ];
        let mut buffer = [0; 128];
        let mut writer = BitWriter::new(&mut buffer);
        for control in &controls {
            control.write(&mut writer).expect("room");
        }
        for task in &tasks {
            task.write(&mut writer).expect("room");
        }
        let len = writer.finish();
        let mut reader = BitReader::new(&buffer[..len]);
        for control in controls {
            assert_eq!(Control::read(&mut reader), Ok(control));
        }
        for task in tasks {
            assert_eq!(Task::read(&mut reader), Ok(task));
        }
    }
}
