//! The packets of replication as bytes: what the server sends and what the client answers.
//!
//! `docs/netcode-format.md` is the standard. A snapshot packet is a header and behind it one stream of the range coder;
//! an answer is an [`Acknowledgement`]. Packet numbers travel as their low 16 bits.

use muse_wire::bytes::{EndOfBytes, Reader, Writer, varint_len};
use thiserror::Error;

use crate::Tick;

pub(crate) mod coding;

/// The header before the coded part of a snapshot packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Low 16 bits of the packet's number.
    pub number: u16,
    pub tick: Tick,
    pub game: u32,
    /// Everything in the client's interest has arrived there at least once.
    pub complete: bool,
    pub gone: u16,
    pub events: u16,
    pub rows: u16,
}

impl Header {
    /// Bytes that it takes.
    pub(crate) const fn len(&self) -> usize {
        let gone = if self.gone > 0 { 2 } else { 0 };
        let events = if self.events > 0 { 2 } else { 0 };
        1 + 2 + 4 + varint_len(self.game as u64) + 2 + gone + events
    }

    pub(crate) fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        writer.u8(flag(self.complete, COMPLETE)
            | flag(self.gone > 0, HAS_GONE)
            | flag(self.events > 0, HAS_EVENTS))?;
        writer.u16(self.number)?;
        writer.u32(self.tick.0)?;
        writer.varint(u64::from(self.game))?;
        writer.u16(self.rows)?;
        if self.gone > 0 {
            writer.u16(self.gone)?;
        }
        if self.events > 0 {
            writer.u16(self.events)?;
        }
        Ok(())
    }

    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let flags = reader.u8()?;
        if flags & !(COMPLETE | HAS_GONE | HAS_EVENTS) != 0 {
            return Err(FormatError::Reserved);
        }
        let mut header = Self {
            complete: flags & COMPLETE != 0,
            number: reader.u16()?,
            tick: Tick(reader.u32()?),
            game: u32::try_from(reader.varint()?).map_err(|_| FormatError::TooLarge)?,
            rows: reader.u16()?,
            gone: 0,
            events: 0,
        };
        if flags & HAS_GONE != 0 {
            header.gone = reader.u16()?;
        }
        if flags & HAS_EVENTS != 0 {
            header.events = reader.u16()?;
        }
        let over = header.rows > ROWS_MAX || header.gone > GONE_MAX || header.events > EVENTS_MAX;
        if over || header.tick.0 == u32::MAX {
            return Err(FormatError::TooLarge);
        }
        Ok(header)
    }
}

/// The acknowledgement of a client: the packets it decoded, and the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The game that the client has loaded.
    pub game: u32,
    /// Low 16 bits of the number of the newest packet that was decoded, if any was.
    pub newest: Option<u16>,
    /// Bit `i` of word `w`: the packet `newest - 1 - 64 w - i` was decoded, too.
    pub received: [u64; WORDS],
    /// The client cannot decode: it lacks the baselines that this packet, and those like it, were made with. The server
    /// then starts over.
    pub restart: Option<u16>,
}

impl Acknowledgement {
    /// Most bytes that it takes.
    pub const LEN_MAX: usize = 1 + 2 + 8 + 2 + WORDS * 8;

    /// Writes it to the front of `buffer` and says how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let words = WORDS
            - self
                .received
                .iter()
                .rev()
                .take_while(|word| **word == 0)
                .count();
        let mut writer = Writer::new(buffer);
        let restart = if self.restart.is_some() { RESTART } else { 0 };
        let nothing = if self.newest.is_none() { NOTHING } else { 0 };
        writer.u8(words as u8 | restart | nothing)?;
        writer.varint(u64::from(self.game))?;
        if let Some(newest) = self.newest {
            writer.u16(newest)?;
        }
        if let Some(number) = self.restart {
            writer.u16(number)?;
        }
        for (index, word) in self.received[..words].iter().enumerate() {
            let last = index + 1 == words;
            // The last word is often short.
            let len = if last {
                8 - word.leading_zeros() as usize / 8
            } else {
                8
            };
            if last {
                writer.u8(len as u8)?;
            }
            writer.slice(&word.to_le_bytes()[..len])?;
        }
        Ok(writer.len())
    }

    /// Reads it from the front of `bytes` and says how long it is.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), FormatError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u8()?;
        let words = usize::from(flags & !(RESTART | NOTHING));
        if words > WORDS || flags & NOTHING != 0 && words > 0 {
            return Err(FormatError::Reserved);
        }
        let mut answer = Self {
            game: u32::try_from(reader.varint()?).map_err(|_| FormatError::TooLarge)?,
            newest: None,
            restart: None,
            received: [0; WORDS],
        };
        if flags & NOTHING == 0 {
            answer.newest = Some(reader.u16()?);
        }
        if flags & RESTART != 0 {
            answer.restart = Some(reader.u16()?);
        }
        for index in 0..words {
            let len = if index + 1 == words { reader.u8()? } else { 8 };
            if !(1..=8).contains(&len) {
                return Err(FormatError::Reserved);
            }
            let mut word = [0; 8];
            word[..usize::from(len)].copy_from_slice(reader.slice(usize::from(len))?);
            answer.received[index] = u64::from_le_bytes(word);
        }
        Ok((answer, bytes.len() - reader.remaining()))
    }
}

/// Bytes that are no packet of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The packet is too short.
    #[error("the packet ends too early")]
    End,
    /// Something is set that has no meaning.
    #[error("the packet has a reserved value")]
    Reserved,
    /// A number is beyond its limit.
    #[error("a number in the packet is too large")]
    TooLarge,
}

impl From<EndOfBytes> for FormatError {
    fn from(_: EndOfBytes) -> Self {
        Self::End
    }
}

/// The number near `reference` that has these low 16 bits.
pub(crate) fn widen(low: u16, reference: u32) -> u32 {
    let distance = low.wrapping_sub(reference as u16) as i16;
    reference.wrapping_add_signed(i32::from(distance))
}

/// Words of the answer's bit field, 64 packets each.
pub const WORDS: usize = 8;
/// Rows in one packet.
pub const ROWS_MAX: u16 = 2_048;
/// Entities told gone in one packet.
pub const GONE_MAX: u16 = 1_024;
/// Events in one packet.
pub const EVENTS_MAX: u16 = 256;
const COMPLETE: u8 = 1;
const HAS_GONE: u8 = 2;
const HAS_EVENTS: u8 = 4;
const RESTART: u8 = 0x80;
const NOTHING: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let whole = Header {
            number: 65_535,
            tick: Tick(77),
            game: u32::MAX,
            complete: true,
            gone: 3,
            events: 2,
            rows: 1,
        };
        for header in [whole, Header::default()] {
            let mut buffer = [0; 32];
            let mut writer = Writer::new(&mut buffer);
            header.emit(&mut writer).expect("room for the longest");
            assert_eq!(writer.len(), header.len());
            let mut reader = Reader::new(writer.written());
            assert_eq!(Header::parse(&mut reader), Ok(header));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn answers_round_trip_and_short_ones_are_refused() {
        let mut received = [0; WORDS];
        for words in 0..=WORDS {
            if words > 0 {
                received[words - 1] = 0x0102_0300;
            }
            for restart in [None, Some(9)] {
                let answer = Acknowledgement {
                    game: words as u32 * 1_000,
                    newest: (words > 0).then_some(3),
                    received,
                    restart,
                };
                let mut buffer = [0; Acknowledgement::LEN_MAX];
                let len = answer.emit(&mut buffer).expect("room for the longest");
                assert_eq!(Acknowledgement::parse(&buffer[..len]), Ok((answer, len)));
                for short in 0..len {
                    assert_eq!(
                        Acknowledgement::parse(&buffer[..short]),
                        Err(FormatError::End)
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_are_found_on_both_sides_of_the_reference() {
        for reference in [0u32, 70_000, u32::MAX] {
            for distance in [-32_768i32, -1, 0, 1, 32_767] {
                let number = reference.wrapping_add_signed(distance);
                assert_eq!(widen(number as u16, reference), number);
            }
        }
    }
}
