//! The data packet: header, acknowledgement block and frames. `docs/protocol.md` is the standard.
//!
//! ```text
//! flags u8 | connection id u32 | packet number u16 | AEAD { [ack block] frames... } tag
//! ```
//! The first three fields travel in clear and are authenticated together with the protocol id.

use muse_wire::bytes::{EndOfBytes, Reader, Writer, varint_len};
use muse_wire::sequence::expand;

/// Bytes of the clear header.
pub(crate) const HEADER_LEN: usize = 7;
/// Numbers that every acknowledgement block covers at least, when that many have been seen.
pub(crate) const ACK_COVERAGE: u64 = 33;
/// Most runs in one acknowledgement block.
pub(crate) const ACK_RUNS_MAX: usize = 32;
/// Longest acknowledgement block: fixed part, a 4-byte first run and runs of two 2-byte numbers.
pub(crate) const ACK_BLOCK_MAX: usize = 2 + 1 + 1 + 4 + 4 * ACK_RUNS_MAX;
/// First packet number of every connection: the 16 bits on the wire wrap after 256 packets, always, so that no
/// mistake about wrap-around can hide.
pub(crate) const PACKET_NUMBER_FIRST: u64 = 0x1_0000 - 256;
/// First number of every channel's messages, for the same reason.
pub(crate) const MESSAGE_NUMBER_FIRST: u64 = 0x1_0000 - 256;
/// Bytes of a message in one fragment; all fragments but the last have exactly this size, so that any of them
/// fits the smallest packet of any path.
pub(crate) const FRAGMENT_LEN: usize = 1_024;
/// Longest message that travels in one piece.
pub(crate) const WHOLE_MAX: usize = FRAGMENT_LEN;

const FLAG_DATA: u8 = 0x80;
const FLAG_PHASE: u8 = 0x40;
const FLAG_ACKS: u8 = 0x20;
const FLAG_ACK_NOW: u8 = 0x10;
const FLAG_SECTION: u8 = 0x08;
const FLAGS_RESERVED: u8 = 0x07;

/// The clear part of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Key phase bit.
    pub(crate) phase: bool,
    /// An acknowledgement block follows.
    pub(crate) acks: bool,
    /// The sender wants an acknowledgement without delay.
    pub(crate) ack_now: bool,
    /// Behind the acknowledgement block stands a protected section and nothing else.
    pub(crate) section: bool,
    /// Connection id, chosen by the receiver of the packet.
    pub(crate) connection: u32,
    /// Low 16 bits of the packet number.
    pub(crate) number_low: u16,
}

impl Header {
    /// Reads the header at the front of a datagram; `None` when it is not a data packet.
    pub(crate) fn parse(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_LEN] = datagram.first_chunk()?;
        let [flags, c0, c1, c2, c3, n0, n1] = *bytes;
        if flags & FLAG_DATA == 0 || flags & FLAGS_RESERVED != 0 {
            return None;
        }
        Some(Self {
            phase: flags & FLAG_PHASE != 0,
            acks: flags & FLAG_ACKS != 0,
            ack_now: flags & FLAG_ACK_NOW != 0,
            section: flags & FLAG_SECTION != 0,
            connection: u32::from_le_bytes([c0, c1, c2, c3]),
            number_low: u16::from_le_bytes([n0, n1]),
        })
    }

    /// The header's bytes.
    pub(crate) fn emit(&self) -> [u8; HEADER_LEN] {
        let mut flags = FLAG_DATA;
        if self.phase {
            flags |= FLAG_PHASE;
        }
        if self.acks {
            flags |= FLAG_ACKS;
        }
        if self.ack_now {
            flags |= FLAG_ACK_NOW;
        }
        if self.section {
            flags |= FLAG_SECTION;
        }
        let [c0, c1, c2, c3] = self.connection.to_le_bytes();
        let [n0, n1] = self.number_low.to_le_bytes();
        [flags, c0, c1, c2, c3, n0, n1]
    }

    /// The full packet number, given the highest one received so far.
    pub(crate) fn number(&self, highest: u64) -> u64 {
        expand(u64::from(self.number_low), 16, highest)
    }
}

/// Something in a packet did not parse. The peer is authenticated, so it is broken or hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<EndOfBytes> for Malformed {
    fn from(_: EndOfBytes) -> Self {
        Self
    }
}

/// One stretch of an acknowledgement block, from newer to older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckRun {
    /// The number of packet numbers missing before (newer than) the run.
    pub(crate) missing: u64,
    /// The missing ones were reconstructed from parity.
    pub(crate) recovered: bool,
    /// The number of packet numbers of the run that arrived.
    pub(crate) arrived: u64,
}

/// Microseconds in one unit of the delay field.
pub(crate) const ACK_DELAY_UNIT: u64 = 512;

/// Bit of the count byte: a delay follows.
const ACK_HAS_DELAY: u8 = 0x40;
/// Bit of the count byte: a count of congestion marks follows.
const ACK_HAS_MARKS: u8 = 0x80;
/// The count of further runs in the count byte.
const ACK_COUNT: u8 = 0x3F;
/// Count that says: a field of 32 bits follows instead of runs.
const ACK_FIELD: u8 = 0x3F;

/// The acknowledgement block: newest number received, delay, and runs of what arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckBlock {
    /// The newest packet number received.
    pub(crate) newest: u64,
    /// Time the newest waited at the receiver, in [`ACK_DELAY_UNIT`]s; left out once it has been told.
    pub(crate) delay: Option<u8>,
    /// Packets received with a congestion mark, modulo 256, when marks are in use.
    pub(crate) marks: Option<u8>,
    /// Runs from the newest back; `runs[0].missing` is zero.
    pub(crate) runs: Vec<AckRun>,
}

impl AckBlock {
    /// Reads a block; `reference` is the newest number that we sent. Reuses `self`'s storage.
    pub(crate) fn parse(
        &mut self,
        reader: &mut Reader<'_>,
        reference: u64,
    ) -> Result<(), Malformed> {
        self.newest = expand(u64::from(reader.u16()?), 16, reference);
        let counts = reader.u8()?;
        self.delay = if counts & ACK_HAS_DELAY != 0 {
            Some(reader.u8()?)
        } else {
            None
        };
        self.marks = if counts & ACK_HAS_MARKS != 0 {
            Some(reader.u8()?)
        } else {
            None
        };
        self.runs.clear();
        if counts & ACK_COUNT == ACK_FIELD {
            self.set_field(reader.u32()?);
            return self.check(reference);
        }
        self.runs.push(AckRun {
            missing: 0,
            recovered: false,
            arrived: reader.varint()? + 1,
        });
        for _ in 0..(counts & ACK_COUNT) {
            let gap = reader.varint()?;
            let arrived = reader.varint()?;
            self.runs.push(AckRun {
                missing: (gap >> 1) + 1,
                recovered: gap & 1 != 0,
                arrived,
            });
        }
        self.check(reference)
    }

    fn check(&self, reference: u64) -> Result<(), Malformed> {
        let span: u64 = self.runs.iter().fold(0u64, |sum, run| {
            sum.saturating_add(run.missing).saturating_add(run.arrived)
        });
        if self.newest > reference || self.runs.len() > ACK_RUNS_MAX + 1 || span > self.newest {
            return Err(Malformed);
        }
        Ok(())
    }

    /// Writes the block.
    pub(crate) fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        let Some((first, rest)) = self.runs.split_first() else {
            return Err(EndOfBytes);
        };
        writer.u16(self.newest as u16)?;
        let field = if rest.len() > 1 { self.field() } else { None };
        let mut counts = if field.is_some() {
            ACK_FIELD
        } else {
            rest.len() as u8
        };
        counts |= if self.delay.is_some() {
            ACK_HAS_DELAY
        } else {
            0
        };
        counts |= if self.marks.is_some() {
            ACK_HAS_MARKS
        } else {
            0
        };
        writer.u8(counts)?;
        for byte in [self.delay, self.marks].into_iter().flatten() {
            writer.u8(byte)?;
        }
        if let Some(field) = field {
            return writer.u32(field);
        }
        writer.varint(first.arrived - 1)?;
        for run in rest {
            writer.varint((run.missing - 1) << 1 | u64::from(run.recovered))?;
            writer.varint(run.arrived)?;
        }
        Ok(())
    }
}

impl AckBlock {
    /// The 32 numbers before the newest as bits, bit 0 the one just before it; `None` when that would not tell all.
    fn field(&self) -> Option<u32> {
        let mut field = 0u64;
        let mut position = 0u64;
        for run in &self.runs {
            position += run.missing;
            if run.recovered || position + run.arrived > ACK_COVERAGE {
                return None;
            }
            field |= ((1 << run.arrived) - 1) << position;
            position += run.arrived;
        }
        // Bit 0 is the newest itself.
        Some((field >> 1) as u32)
    }

    /// Runs from a field of bits. What is missing at its far end says nothing.
    fn set_field(&mut self, field: u32) {
        let mut bits = u64::from(field) << 1 | 1;
        let mut missing = 0;
        while bits != 0 {
            let arrived = u64::from(bits.trailing_ones());
            self.runs.push(AckRun {
                missing,
                recovered: false,
                arrived,
            });
            bits >>= arrived;
            missing = u64::from(bits.trailing_zeros());
            bits = bits.checked_shr(missing as u32).unwrap_or(0);
        }
    }
}

const MESSAGE: u8 = 0x80;
const MESSAGE_FRAGMENT: u8 = 0x40;
const MESSAGE_TO_END: u8 = 0x20;
const MESSAGE_PRIORITY_SHIFT: u32 = 3;
const MESSAGE_CHANNEL_FOLLOWS: u8 = 7;

const PADDING: u8 = 0;
const PING: u8 = 1;
const CLOSE: u8 = 2;
const PATH_CHALLENGE: u8 = 3;
const PATH_RESPONSE: u8 = 4;
const PARITY: u8 = 5;
const SECTION: u8 = 6;
const SKIP: u8 = 7;
const PROGRESS: u8 = 8;

/// The place of a piece in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The index of the piece, from 0.
    pub(crate) index: u32,
    /// Length of the whole message in bytes.
    pub(crate) total: u32,
}

/// A message, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageFrame<'a> {
    pub(crate) channel: u8,
    /// 0 (most urgent) to 3.
    pub(crate) priority: u8,
    /// Low 16 bits of the message number; absent on unreliable channels for whole messages.
    pub(crate) number_low: Option<u16>,
    pub(crate) fragment: Option<Fragment>,
    pub(crate) payload: &'a [u8],
}

/// A frame of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Ping,
    Close {
        code: u16,
        text: &'a [u8],
    },
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    /// Coded bytes over the protected sections of earlier packets (`parity.rs`).
    Parity(&'a [u8]),
    /// The rest of the packet: frames protected by parity.
    Section(&'a [u8]),
    /// A message of a reliable channel that will never come: it expired.
    Skip {
        channel: u8,
        number_low: u16,
    },
    /// The progress of a partially reliable receiver: everything older is delivered or skipped; and how many it
    /// skipped in the current window.
    Progress {
        channel: u8,
        number_low: u16,
        skipped: u16,
    },
    Message(MessageFrame<'a>),
}

/// Reads the next frame; `Ok(None)` at the end. `numbered` tells whether whole messages of a channel carry a number.
pub(crate) fn parse_frame<'a>(
    reader: &mut Reader<'a>,
    numbered: impl Fn(u8) -> Option<bool>,
) -> Result<Option<Frame<'a>>, Malformed> {
    if reader.is_empty() {
        return Ok(None);
    }
    let kind = reader.u8()?;
    if kind & MESSAGE != 0 {
        return parse_message(kind, reader, numbered).map(|message| Some(Frame::Message(message)));
    }
    Ok(Some(match kind {
        PADDING => return Ok(None),
        PING => Frame::Ping,
        CLOSE => {
            let code = reader.u16()?;
            let len = reader.u8()?;
            Frame::Close {
                code,
                text: reader.slice(usize::from(len))?,
            }
        }
        PATH_CHALLENGE => Frame::PathChallenge(reader.array()?),
        PATH_RESPONSE => Frame::PathResponse(reader.array()?),
        PARITY => {
            let len = usize::try_from(reader.varint()?).map_err(|_| Malformed)?;
            Frame::Parity(reader.slice(len)?)
        }
        SECTION => Frame::Section(reader.slice(reader.remaining())?),
        SKIP => Frame::Skip {
            channel: reader.u8()?,
            number_low: reader.u16()?,
        },
        PROGRESS => Frame::Progress {
            channel: reader.u8()?,
            number_low: reader.u16()?,
            skipped: reader.u16()?,
        },
        _ => return Err(Malformed),
    }))
}

fn parse_message<'a>(
    kind: u8,
    reader: &mut Reader<'a>,
    numbered: impl Fn(u8) -> Option<bool>,
) -> Result<MessageFrame<'a>, Malformed> {
    let channel = match kind & 7 {
        MESSAGE_CHANNEL_FOLLOWS => reader.u8()?,
        channel => channel,
    };
    let has_fragment = kind & MESSAGE_FRAGMENT != 0;
    let has_number = has_fragment || numbered(channel).ok_or(Malformed)?;
    let number_low = if has_number {
        Some(reader.u16()?)
    } else {
        None
    };
    let fragment = if has_fragment {
        let index = u32::try_from(reader.varint()?).map_err(|_| Malformed)?;
        let total = u32::try_from(reader.varint()?).map_err(|_| Malformed)?;
        Some(Fragment { index, total })
    } else {
        None
    };
    let len = if kind & MESSAGE_TO_END != 0 {
        reader.remaining()
    } else {
        usize::try_from(reader.varint()?).map_err(|_| Malformed)?
    };
    let payload = reader.slice(len)?;
    if let Some(Fragment { index, total }) = fragment {
        check_fragment(index, total, payload.len())?;
    }
    let priority = kind >> MESSAGE_PRIORITY_SHIFT & 3;
    Ok(MessageFrame {
        channel,
        priority,
        number_low,
        fragment,
        payload,
    })
}

/// A fragment's length follows from its place.
fn check_fragment(index: u32, total: u32, len: usize) -> Result<(), Malformed> {
    let start = u64::from(index) * FRAGMENT_LEN as u64;
    let left = u64::from(total).checked_sub(start).ok_or(Malformed)?;
    let expected = left.min(FRAGMENT_LEN as u64);
    if expected == 0 || len as u64 != expected || total as usize <= WHOLE_MAX {
        return Err(Malformed);
    }
    Ok(())
}

/// Everything about a message frame but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHead {
    pub(crate) channel: u8,
    pub(crate) priority: u8,
    pub(crate) number_low: Option<u16>,
    pub(crate) fragment: Option<Fragment>,
    pub(crate) len: usize,
}

impl MessageHead {
    /// Bytes of the frame, payload included, with an explicit length.
    pub(crate) fn frame_len(&self) -> usize {
        let channel = if self.channel < MESSAGE_CHANNEL_FOLLOWS {
            1
        } else {
            2
        };
        let number = if self.number_low.is_some() { 2 } else { 0 };
        let fragment = self.fragment.map_or(0, |fragment| {
            varint_len(u64::from(fragment.index)) + varint_len(u64::from(fragment.total))
        });
        channel + number + fragment + varint_len(self.len as u64) + self.len
    }

    /// Writes everything before the payload.
    pub(crate) fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        let follows = self.channel >= MESSAGE_CHANNEL_FOLLOWS;
        let mut kind = MESSAGE | (self.priority & 3) << MESSAGE_PRIORITY_SHIFT;
        kind |= if follows {
            MESSAGE_CHANNEL_FOLLOWS
        } else {
            self.channel
        };
        if self.fragment.is_some() {
            kind |= MESSAGE_FRAGMENT;
        }
        writer.u8(kind)?;
        if follows {
            writer.u8(self.channel)?;
        }
        if let Some(number) = self.number_low {
            writer.u16(number)?;
        }
        if let Some(Fragment { index, total }) = self.fragment {
            writer.varint(u64::from(index))?;
            writer.varint(u64::from(total))?;
        }
        writer.varint(self.len as u64)
    }
}

/// The start of the last message frame of a packet and that of its payload, so that its length can be left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastMessage {
    pub(crate) frame: usize,
    pub(crate) payload: usize,
    pub(crate) len: usize,
}

impl LastMessage {
    /// The same, counted from a point `bytes` before.
    pub(crate) fn behind(self, bytes: usize) -> Self {
        Self {
            frame: self.frame + bytes,
            payload: self.payload + bytes,
            len: self.len,
        }
    }
}

/// Takes the explicit length out of the last message in `bytes[..end]` and returns the new end: the message now
/// reaches to the end of what encloses it.
pub(crate) fn strip_last_length(bytes: &mut [u8], end: usize, last: LastMessage) -> usize {
    let length_len = varint_len(last.len as u64);
    bytes[last.frame] |= MESSAGE_TO_END;
    bytes.copy_within(last.payload..end, last.payload - length_len);
    end - length_len
}

/// Writers of the control frames.
pub(crate) mod emit {
    use super::*;

    pub(crate) fn ping(writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        writer.u8(PING)
    }

    pub(crate) fn close(writer: &mut Writer<'_>, code: u16, text: &[u8]) -> Result<(), EndOfBytes> {
        let text = &text[..text.len().min(usize::from(u8::MAX))];
        writer.u8(CLOSE)?;
        writer.u16(code)?;
        writer.u8(text.len() as u8)?;
        writer.slice(text)
    }

    pub(crate) fn path_challenge(writer: &mut Writer<'_>, data: [u8; 8]) -> Result<(), EndOfBytes> {
        writer.u8(PATH_CHALLENGE)?;
        writer.slice(&data)
    }

    pub(crate) fn path_response(writer: &mut Writer<'_>, data: [u8; 8]) -> Result<(), EndOfBytes> {
        writer.u8(PATH_RESPONSE)?;
        writer.slice(&data)
    }

    pub(crate) fn parity(writer: &mut Writer<'_>, body: &[u8]) -> Result<(), EndOfBytes> {
        writer.u8(PARITY)?;
        writer.varint(body.len() as u64)?;
        writer.slice(body)
    }

    pub(crate) fn section(writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        writer.u8(SECTION)
    }

    pub(crate) fn skip(
        writer: &mut Writer<'_>,
        channel: u8,
        number: u64,
    ) -> Result<(), EndOfBytes> {
        writer.slice(&[SKIP, channel, number as u8, (number >> 8) as u8])
    }

    pub(crate) fn progress(
        writer: &mut Writer<'_>,
        channel: u8,
        next: u64,
        skipped: u16,
    ) -> Result<(), EndOfBytes> {
        writer.slice(&[PROGRESS, channel, next as u8, (next >> 8) as u8])?;
        writer.u16(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_reserved_bits_are_refused() {
        let header = Header {
            phase: true,
            acks: true,
            ack_now: false,
            section: false,
            connection: 0xDEAD_BEEF,
            number_low: 0x1234,
        };
        let bytes = header.emit();
        assert_eq!(Header::parse(&bytes), Some(header));
        assert_eq!(bytes, [0xE0, 0xEF, 0xBE, 0xAD, 0xDE, 0x34, 0x12]);
        assert_eq!(Header::parse(&bytes[..6]), None);
        for bit in 0..3 {
            let mut damaged = bytes;
            damaged[0] |= 1 << bit;
            assert_eq!(Header::parse(&damaged), None);
        }
    }

    #[test]
    fn an_ack_block_round_trips() {
        let block = AckBlock {
            newest: 70_000,
            delay: Some(3),
            marks: Some(9),
            runs: vec![
                AckRun {
                    missing: 0,
                    recovered: false,
                    arrived: 5,
                },
                AckRun {
                    missing: 1,
                    recovered: true,
                    arrived: 0,
                },
                AckRun {
                    missing: 2,
                    recovered: false,
                    arrived: 40,
                },
            ],
        };
        let mut buffer = [0; ACK_BLOCK_MAX];
        let mut writer = Writer::new(&mut buffer);
        block.emit(&mut writer).expect("room");
        let len = writer.len();
        let mut parsed = AckBlock::default();
        parsed
            .parse(&mut Reader::new(&buffer[..len]), 70_010)
            .expect("valid");
        assert_eq!(
            (parsed.newest, parsed.delay, parsed.marks),
            (70_000, Some(3), Some(9))
        );
        assert_eq!(parsed.runs, block.runs);
        for cut in 0..len {
            assert!(
                parsed
                    .parse(&mut Reader::new(&buffer[..cut]), 70_010)
                    .is_err()
            );
        }
    }

    #[test]
    fn several_gaps_travel_as_a_field_of_bits() {
        for seed in 0..500 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut block = AckBlock {
                newest: 70_000,
                ..AckBlock::default()
            };
            let mut left = ACK_COVERAGE;
            while left > 1 {
                let missing = if block.runs.is_empty() {
                    0
                } else {
                    rng.u64(1..=left.min(5))
                };
                let arrived = rng.u64(1..=10).min(left - missing.min(left));
                if arrived == 0 {
                    break;
                }
                block.runs.push(AckRun {
                    missing,
                    recovered: false,
                    arrived,
                });
                left -= missing + arrived;
            }
            let mut buffer = [0; ACK_BLOCK_MAX];
            let mut writer = Writer::new(&mut buffer);
            block.emit(&mut writer).expect("room");
            let len = writer.len();
            assert!(len <= 8, "seed {seed}: {len} bytes for {:?}", block.runs);
            let mut parsed = AckBlock::default();
            parsed
                .parse(&mut Reader::new(&buffer[..len]), 70_000)
                .expect("valid");
            assert_eq!(parsed.runs, block.runs, "seed {seed}");
        }
    }

    #[test]
    fn an_ack_for_what_was_never_sent_is_malformed() {
        let block = AckBlock {
            newest: 100,
            runs: vec![AckRun {
                missing: 0,
                recovered: false,
                arrived: 1,
            }],
            ..Default::default()
        };
        let mut buffer = [0; 16];
        let mut writer = Writer::new(&mut buffer);
        block.emit(&mut writer).expect("room");
        let len = writer.len();
        assert!(
            AckBlock::default()
                .parse(&mut Reader::new(&buffer[..len]), 99)
                .is_err()
        );
    }

    #[test]
    fn the_last_message_needs_no_length() {
        let payload = [7u8; 100];
        let head = MessageHead {
            channel: 2,
            priority: 1,
            number_low: Some(0xABCD),
            fragment: None,
            len: payload.len(),
        };
        let mut buffer = [0; 200];
        let mut writer = Writer::new(&mut buffer);
        head.emit(&mut writer).expect("room");
        let start = writer.len();
        writer.slice(&payload).expect("room");
        let end = writer.len();
        assert_eq!(end, head.frame_len());
        let last = LastMessage {
            frame: 0,
            payload: start,
            len: payload.len(),
        };
        let end = strip_last_length(&mut buffer, end, last);
        assert_eq!(end, 3 + payload.len());
        let mut reader = Reader::new(&buffer[..end]);
        let frame = parse_frame(&mut reader, |_| Some(true))
            .expect("valid")
            .expect("a frame");
        let Frame::Message(message) = frame else {
            unreachable!("a message was written: {frame:?}")
        };
        assert_eq!(
            (message.channel, message.priority, message.number_low),
            (2, 1, Some(0xABCD))
        );
        assert_eq!(message.payload, payload);
    }

    #[test]
    fn fragments_must_have_the_length_their_place_gives_them() {
        assert!(check_fragment(0, 3_000, FRAGMENT_LEN).is_ok());
        assert!(check_fragment(2, 3_000, 3_000 - 2 * FRAGMENT_LEN).is_ok());
        assert!(check_fragment(2, 3_000, 5).is_err());
        assert!(check_fragment(3, 3_000, 0).is_err());
        assert!(check_fragment(u32::MAX, u32::MAX, FRAGMENT_LEN).is_err());
        assert!(
            check_fragment(0, 100, 100).is_err(),
            "a message that fits one frame is not fragmented"
        );
    }
}
