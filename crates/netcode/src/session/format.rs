//! The headers of a session's packets; `docs/netcode-format.md` is their standard.

use muse_schema::{BitReader, BitWriter, Options, Schema};
use muse_wire::Duration;
use muse_wire::bytes::{Reader, Writer};

use super::PacketError;
use crate::EntityId;
use crate::inputs::InputReport;

/// Before a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ToClient {
    /// Number of the snapshot, and how the client's inputs come; in its first packet.
    pub report: Option<(u16, InputReport)>,
    /// The entity that the client plays, and the number of times that has changed.
    pub player: Option<(u8, Option<EntityId>)>,
}

impl ToClient {
    /// Writes it to the front of `buffer` and returns its length.
    pub(super) fn emit(&self, buffer: &mut [u8]) -> Result<usize, PacketError> {
        let start = {
            let mut writer = Writer::new(buffer);
            let flag = |set: bool, flag: u8| if set { flag } else { 0 };
            let entity = self.player.and_then(|(_, entity)| entity);
            let flags = flag(self.report.is_some(), HAS_REPORT)
                | flag(self.player.is_some(), HAS_PLAYER)
                | flag(entity.is_some(), HAS_ENTITY);
            writer.u8(flags)?;
            if let Some((version, _)) = self.player {
                writer.u8(version)?;
            }
            if let Some(entity) = entity {
                writer.u32(entity.bits())?;
            }
            if let Some((number, _)) = self.report {
                writer.u16(number)?;
            }
            writer.len()
        };
        let Some((_, report)) = &self.report else {
            return Ok(start);
        };
        let mut writer = BitWriter::new(&mut buffer[start..]);
        report
            .write(&Options::NONE, &mut writer)
            .map_err(|_| PacketError::Header)?;
        Ok(start + writer.finish())
    }

    /// Reads it, and says what follows.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u8()?;
        let known = HAS_REPORT | HAS_PLAYER | HAS_ENTITY;
        if flags & !known != 0 || flags & (HAS_PLAYER | HAS_ENTITY) == HAS_ENTITY {
            return Err(PacketError::Header);
        }
        let version = (flags & HAS_PLAYER != 0).then(|| reader.u8()).transpose()?;
        let entity = (flags & HAS_ENTITY != 0)
            .then(|| reader.u32())
            .transpose()?;
        let number = (flags & HAS_REPORT != 0)
            .then(|| reader.u16())
            .transpose()?;
        let mut rest = reader.rest();
        let mut report = None;
        if let Some(number) = number {
            let mut reader = BitReader::new(rest);
            let read =
                InputReport::read(&Options::NONE, &mut reader).map_err(|_| PacketError::Header)?;
            report = Some((number, read));
            rest = rest
                .get(reader.position().div_ceil(8) as usize..)
                .unwrap_or_default();
        }
        let header = Self {
            report,
            player: version.map(|version| (version, entity.map(EntityId::from_bits))),
        };
        Ok((header, rest))
    }
}

/// Before the acknowledgement and the inputs of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FromClient {
    /// The version of the played entity that the client knows.
    pub player_version: u8,
    /// The age of the picture, at the tick of the newest input, that the player acted on, in 16 us.
    picture_age: Option<u16>,
    /// Number of the snapshot that arrived last, and for how long it has been there, in 16 us.
    heard: Option<(u16, u16)>,
}

impl FromClient {
    pub(super) fn new(
        player_version: u8,
        picture_age: Option<Duration>,
        heard: Option<(u16, Duration)>,
    ) -> Self {
        let units = |span: Duration| span.as_micros() / UNIT_MICROS;
        let heard = heard.map(|(number, held)| (number, units(held)));
        Self {
            player_version,
            picture_age: picture_age.map(|age| units(age).min(u64::from(UNKNOWN - 1)) as u16),
            // A snapshot from too long ago says nothing about the network any more.
            heard: heard
                .filter(|(_, held)| *held < u64::from(UNKNOWN))
                .map(|(number, held)| (number, held as u16)),
        }
    }

    pub(super) fn picture_age(&self) -> Option<Duration> {
        self.picture_age
            .map(|age| Duration::from_micros(u64::from(age) * UNIT_MICROS))
    }

    /// The snapshot that arrived last, and for how long it had been there.
    pub(super) fn heard(&self) -> Option<(u16, Duration)> {
        self.heard
            .map(|(number, held)| (number, Duration::from_micros(u64::from(held) * UNIT_MICROS)))
    }

    pub(super) fn emit(&self, buffer: &mut [u8]) -> Result<usize, PacketError> {
        let mut writer = Writer::new(buffer);
        writer.u8(self.player_version)?;
        writer.u16(self.picture_age.unwrap_or(UNKNOWN))?;
        let (number, held) = self.heard.unwrap_or((0, UNKNOWN));
        writer.u16(number)?;
        writer.u16(held)?;
        Ok(writer.len())
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let mut reader = Reader::new(bytes);
        let header = Self {
            player_version: reader.u8()?,
            picture_age: Some(reader.u16()?).filter(|age| *age != UNKNOWN),
            heard: Some((reader.u16()?, reader.u16()?)).filter(|(_, held)| *held != UNKNOWN),
        };
        Ok((header, reader.rest()))
    }
}

impl From<muse_wire::bytes::EndOfBytes> for PacketError {
    fn from(_: muse_wire::bytes::EndOfBytes) -> Self {
        Self::Header
    }
}

const HAS_REPORT: u8 = 1;
const HAS_PLAYER: u8 = 2;
const HAS_ENTITY: u8 = 4;
const UNIT_MICROS: u64 = 16;
/// In place of a time that is not known, or too long to be told.
const UNKNOWN: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Heard;

    #[test]
    fn headers_survive_the_way() {
        let report = InputReport {
            heard: Some(Heard { packet: 9, held: 3 }),
            loss: 4,
            ..InputReport::default()
        };
        let entity = EntityId::new(70, 3);
        for report in [None, Some((65_535, report))] {
            for player in [None, Some((4, None)), Some((255, entity))] {
                let header = ToClient { report, player };
                let mut buffer = [7; 64];
                let len = header.emit(&mut buffer).expect("room");
                let (read, rest) = ToClient::parse(&buffer).expect("whole");
                assert_eq!((read, rest.len()), (header, 64 - len));
                for cut in 0..len {
                    assert!(ToClient::parse(&buffer[..cut]).is_err(), "{cut} of {len}");
                    assert!(header.emit(&mut [0; 64][..cut]).is_err());
                }
            }
        }
        for held in [None, Some(0), Some(16_000), Some(5_000_000)] {
            let heard = held.map(|held| (65_535, Duration::from_micros(held)));
            let age = held.map(|held| Duration::from_micros(held * 2));
            let header = FromClient::new(3, age, heard);
            let mut buffer = [0; 8];
            let len = header.emit(&mut buffer).expect("room");
            assert_eq!(FromClient::parse(&buffer[..len]), Ok((header, &[][..])));
            let longest = Duration::from_micros(u64::from(UNKNOWN - 1) * UNIT_MICROS);
            assert_eq!(header.picture_age(), age.map(|age| age.min(longest)));
            assert_eq!(header.heard(), heard.filter(|_| held < Some(1_000_000)));
            assert!(FromClient::parse(&buffer[..len - 1]).is_err());
        }
    }

    #[test]
    fn unknown_flags_are_refused() {
        assert!(ToClient::parse(&[8]).is_err());
        assert!(ToClient::parse(&[HAS_ENTITY, 1, 2, 3, 4]).is_err());
    }
}
