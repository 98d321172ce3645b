//! The inputs of one player, as bytes, in the order in which they are final.
//!
//! The orderer has one stream per seat and is the only one to append to it, so no two machines can ever hold different
//! inputs for a frame. A stream travels as runs: most inputs are the same as the one before.

use std::collections::VecDeque;

use muse_wire::bits::{BitError, BitReader, BitWriter};

use crate::frame::Frame;

/// One input: what the player gave, or a mark that [`DeterministicGame::predict`](crate::DeterministicGame::predict) stands in for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Given(InputBytes),
    Repeated,
}

/// An encoded input. Small ones, which are nearly all, take no memory of their own.
#[derive(Clone, Debug)]
pub(crate) enum InputBytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

impl InputBytes {
    pub(crate) const EMPTY: Self = Self::Inline {
        len: 0,
        bytes: [0; INLINE_BYTES],
    };

    pub(crate) fn new(input: &[u8]) -> Self {
        if input.len() > INLINE_BYTES {
            return Self::Heap(input.into());
        }
        let mut bytes = [0; INLINE_BYTES];
        bytes[..input.len()].copy_from_slice(input);
        Self::Inline {
            len: input.len() as u8,
            bytes,
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }
}

impl PartialEq for InputBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for InputBytes {}

/// A window of a player's inputs: those before it are forgotten, those after it are not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    first: Frame,
    entries: VecDeque<Entry>,
}

impl Stream {
    pub(crate) fn new(first: Frame) -> Self {
        Self {
            first,
            entries: VecDeque::new(),
        }
    }

    /// The frame after the last one known.
    pub(crate) fn end(&self) -> Frame {
        self.first + self.entries.len() as u32
    }

    pub(crate) fn first(&self) -> Frame {
        self.first
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    pub(crate) fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// Forgets what lies before `frame`.
    pub(crate) fn forget_before(&mut self, frame: Frame) {
        while self.first < frame && self.entries.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Forgets everything and goes on at `frame`.
    pub(crate) fn restart(&mut self, frame: Frame) {
        self.entries.clear();
        self.first = frame;
    }

    #[cfg(test)]
    pub(crate) fn entry(&self, frame: Frame) -> Option<&Entry> {
        self.entries
            .get(frame.0.checked_sub(self.first.0)? as usize)
    }

    /// Writes the entries from `from` on, as many as fit, and says where it stopped.
    pub(crate) fn write(&self, from: Frame, writer: &mut BitWriter<'_>) -> Result<Frame, BitError> {
        let start = from.since(self.first) as usize;
        let mut at = from.max(self.first);
        let mut previous = &Entry::Given(InputBytes::EMPTY);
        let mut same = 0u64;
        for entry in self.entries.iter().skip(start) {
            if entry == previous {
                same += 1;
                at += 1;
                continue;
            }
            let bytes = match entry {
                Entry::Given(bytes) => bytes.as_slice(),
                Entry::Repeated => &[],
            };
            // Room for the run, the mark, the length and what follows the streams.
            if writer.remaining() < bytes.len() as u64 * 8 + RESERVED_BITS {
                break;
            }
            writer.gamma(same)?;
            writer.bool(true)?;
            same = 0;
            write_entry(entry, writer)?;
            previous = entry;
            at += 1;
        }
        writer.gamma(same)?;
        writer.bool(false)?;
        Ok(at)
    }

    /// Reads what [`write`](Self::write) wrote and gives each entry with its frame to `take`, from `from` on. Says where it stopped.
    pub(crate) fn read(
        from: Frame,
        reader: &mut BitReader<'_>,
        mut take: impl FnMut(Frame, &Entry),
    ) -> Result<Frame, BitError> {
        let mut at = from;
        let mut previous = Entry::Given(InputBytes::EMPTY);
        loop {
            let same = reader.gamma()?;
            if same > u64::from(RANGE_FRAMES_MAX) || at.since(from) > RANGE_FRAMES_MAX {
                return Err(BitError::OutOfRange);
            }
            for _ in 0..same {
                take(at, &previous);
                at += 1;
            }
            if !reader.bool()? {
                return Ok(at);
            }
            previous = read_entry(reader)?;
            take(at, &previous);
            at += 1;
        }
    }

    /// Writes to a player how far its own inputs have been taken, and which of them others stand in for: it has the bytes.
    pub(crate) fn write_kinds(
        &self,
        from: Frame,
        writer: &mut BitWriter<'_>,
    ) -> Result<Frame, BitError> {
        let start = from.since(self.first) as usize;
        let mut at = from.max(self.first);
        let mut repeated = false;
        let mut run = 0u64;
        for entry in self.entries.iter().skip(start) {
            if (*entry == Entry::Repeated) != repeated {
                if writer.remaining() < RESERVED_BITS {
                    break;
                }
                writer.gamma(run)?;
                writer.bool(true)?;
                run = 0;
                repeated = !repeated;
            }
            run += 1;
            at += 1;
        }
        writer.gamma(run)?;
        writer.bool(false)?;
        Ok(at)
    }

    /// Reads what [`write_kinds`](Self::write_kinds) wrote: `take` is told each frame and whether it was replaced.
    pub(crate) fn read_kinds(
        from: Frame,
        reader: &mut BitReader<'_>,
        mut take: impl FnMut(Frame, bool),
    ) -> Result<Frame, BitError> {
        let mut at = from;
        let mut repeated = false;
        loop {
            let run = reader.gamma()?;
            if run > u64::from(RANGE_FRAMES_MAX) || at.since(from) > RANGE_FRAMES_MAX {
                return Err(BitError::OutOfRange);
            }
            for _ in 0..run {
                take(at, repeated);
                at += 1;
            }
            if !reader.bool()? {
                return Ok(at);
            }
            repeated = !repeated;
        }
    }
}

fn write_entry(entry: &Entry, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
    match entry {
        Entry::Repeated => writer.bool(true),
        Entry::Given(bytes) => {
            writer.bool(false)?;
            writer.gamma(bytes.as_slice().len() as u64)?;
            writer.bytes(bytes.as_slice())
        }
    }
}

fn read_entry(reader: &mut BitReader<'_>) -> Result<Entry, BitError> {
    if reader.bool()? {
        return Ok(Entry::Repeated);
    }
    let len = reader.gamma()?;
    if len > INPUT_BYTES_MAX as u64 {
        return Err(BitError::OutOfRange);
    }
    let mut bytes = [0; INPUT_BYTES_MAX];
    let bytes = &mut bytes[..len as usize];
    reader.bytes(bytes)?;
    Ok(Entry::Given(InputBytes::new(bytes)))
}

/// Largest encoding of one input: several fit into a packet.
pub const INPUT_BYTES_MAX: usize = 512;
/// Frames of one stream in one packet.
const RANGE_FRAMES_MAX: u32 = 8_192;
const INLINE_BYTES: usize = 14;
/// Bits kept free behind a stream, for other streams' ends, checks and controls.
const RESERVED_BITS: u64 = 1_600;

#[cfg(test)]
mod tests {
    use super::*;

    fn given(bytes: &[u8]) -> Entry {
        Entry::Given(InputBytes::new(bytes))
    }

    #[test]
    fn streams_round_trip_from_any_frame() {
        let mut stream = Stream::new(Frame(10));
        let long = [7; 100];
        for entry in [
            given(b""),
            given(b""),
            given(b"a"),
            given(b"a"),
            Entry::Repeated,
            Entry::Repeated,
            given(&long),
            given(b"b"),
        ] {
            stream.push(entry);
        }
        for from in 10..=18 {
            let mut buffer = [0; 1_200];
            let mut writer = BitWriter::new(&mut buffer);
            let end = stream.write(Frame(from), &mut writer).expect("room");
            let len = writer.finish();
            assert_eq!(end, Frame(18));
            let mut taken = Vec::new();
            let mut reader = BitReader::new(&buffer[..len]);
            let read = Stream::read(Frame(from), &mut reader, |frame, entry| {
                taken.push((frame, entry.clone()));
            });
            assert_eq!(read, Ok(end));
            let expected: Vec<(Frame, Entry)> = (from..18)
                .map(|frame| {
                    (
                        Frame(frame),
                        stream.entry(Frame(frame)).expect("known").clone(),
                    )
                })
                .collect();
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_left_for_the_next_packet() {
        let mut stream = Stream::new(Frame(0));
        for index in 0..200u8 {
            stream.push(given(&[index; 20]));
        }
        let mut buffer = [0; 1_000];
        let mut writer = BitWriter::new(&mut buffer);
        let end = stream.write(Frame(0), &mut writer).expect("room");
        assert!((20..45).contains(&end.0), "{end}");
    }

    #[test]
    fn kinds_round_trip() {
        let mut stream = Stream::new(Frame(0));
        for repeated in [false, false, true, true, true, false] {
            stream.push(if repeated {
                Entry::Repeated
            } else {
                given(b"x")
            });
        }
        let mut buffer = [0; 400];
        let mut writer = BitWriter::new(&mut buffer);
        stream.write_kinds(Frame(1), &mut writer).expect("room");
        let len = writer.finish();
        let mut kinds = Vec::new();
        let mut reader = BitReader::new(&buffer[..len]);
        let end = Stream::read_kinds(Frame(1), &mut reader, |frame, repeated| {
            kinds.push((frame.0, repeated));
        });
        assert_eq!(end, Ok(Frame(6)));
        assert_eq!(
            kinds,
            [(1, false), (2, true), (3, true), (4, true), (5, false)]
        );
    }
}
