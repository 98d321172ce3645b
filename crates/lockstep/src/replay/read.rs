//! Reads a replay, whole or not.

use muse_wire::bytes::{EndOfBytes, Reader};

use crate::config::Mode;
use crate::frame::{Frame, SEATS_MAX};
use crate::replay::{
    CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, Chunk, Header, MAGIC, Place, Problem, ReplayError,
    VERSION, chunk_sum,
};

/// A replay in memory.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    bytes: &'a [u8],
    header: Header,
    /// Chunks of inputs: their first frame, how many, and their content.
    inputs: Vec<(Frame, u32, &'a [u8])>,
    states: Vec<Place>,
    checks: Vec<(Frame, u64)>,
    snapshots: Vec<(Frame, &'a [u8])>,
    problem: Option<Problem>,
}

/// The inputs of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameInputs<'a> {
    /// Steps of the frame.
    pub steps: u8,
    /// By seat: an encoded input, `None` where nobody sits.
    pub inputs: Vec<Option<&'a [u8]>>,
}

impl<'a> Replay<'a> {
    /// Reads a file. An error only if not even its header can be read; for the rest see [`problem`](Self::problem).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReplayError> {
        let mut reader = Reader::new(bytes);
        if reader.array() != Ok(MAGIC) {
            return Err(ReplayError::NotAReplay);
        }
        let version = reader.u16().map_err(|_| ReplayError::NoHeader)?;
        if version != VERSION {
            return Err(ReplayError::Version(version));
        }
        let first = MAGIC.len() + 4;
        let (chunk, content, next) = chunk_at(bytes, first).map_err(|_| ReplayError::NoHeader)?;
        let header = match chunk {
            Some(Chunk::Header) => Header::parse(content).map_err(|_| ReplayError::NoHeader)?,
            _ => return Err(ReplayError::NoHeader),
        };
        let mut replay = Self {
            bytes,
            header,
            inputs: Vec::new(),
            states: Vec::new(),
            checks: Vec::new(),
            snapshots: Vec::new(),
            problem: Some(Problem::Unfinished),
        };
        replay.read_chunks(next);
        Ok(replay)
    }

    /// Returns what the file says about its match.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the first problem of the file, if it has one. Everything before it still plays.
    pub fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// The first frame that can be run, and the one after the last.
    pub fn frames(&self) -> (Frame, Frame) {
        let first = self.states.first().map_or(Frame(0), |place| place.frame);
        let mut end = first;
        for (start, count, _) in &self.inputs {
            // Frames after a gap cannot be run.
            if *start <= end {
                end = end.max(*start + *count);
            }
        }
        (first, end)
    }

    /// The newest stored state that is not after `frame`, encoded.
    pub fn state_before(&self, frame: Frame) -> Option<(Frame, &'a [u8])> {
        let index = self.states.partition_point(|place| place.frame <= frame);
        let place = self.states.get(index.checked_sub(1)?)?;
        let (_, content, _) = chunk_at(self.bytes, place.offset as usize).ok()?;
        Some((place.frame, content.get(4..)?))
    }

    /// The inputs of a frame.
    pub fn inputs(&self, frame: Frame) -> Option<FrameInputs<'a>> {
        let index = self.inputs.partition_point(|(first, ..)| *first <= frame);
        let (first, count, content) = self.inputs.get(index.checked_sub(1)?)?;
        if frame.since(*first) >= *count {
            return None;
        }
        let mut reader = Reader::new(content);
        let mut current = FrameInputs::default();
        for _ in 0..=frame.since(*first) {
            read_frame(&mut reader, usize::from(self.header.seats), &mut current).ok()?;
        }
        Some(current)
    }

    /// The checksums of states before frames.
    pub fn checks(&self) -> &[(Frame, u64)] {
        &self.checks
    }

    /// Snapshots to be watched, by frame.
    pub fn snapshots(&self) -> &[(Frame, &'a [u8])] {
        &self.snapshots
    }

    /// Returns the number of stored states.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    fn read_chunks(&mut self, mut at: usize) {
        while at < self.bytes.len() {
            let (chunk, content, next) = match chunk_at(self.bytes, at) {
                Ok(found) => found,
                Err(problem) => {
                    self.problem = Some(problem);
                    return;
                }
            };
            let read = match chunk {
                Some(chunk) => self.read_chunk(chunk, content, at),
                // Of a later version that this one can do without.
                None => Ok(()),
            };
            if read.is_err() {
                self.problem = Some(Problem::Damaged { at });
                return;
            }
            at = next;
        }
    }

    fn read_chunk(&mut self, chunk: Chunk, content: &'a [u8], at: usize) -> Result<(), EndOfBytes> {
        let mut reader = Reader::new(content);
        match chunk {
            Chunk::State => {
                let place = Place {
                    frame: Frame(reader.u32()?),
                    offset: at as u64,
                };
                // In order, or seeking would go astray.
                if self
                    .states
                    .last()
                    .is_some_and(|last| last.frame >= place.frame)
                {
                    return Err(EndOfBytes);
                }
                self.states.push(place);
            }
            Chunk::Inputs => {
                let first = Frame(reader.u32()?);
                let after = self
                    .inputs
                    .last()
                    .map_or(Frame(0), |(first, count, _)| *first + *count);
                let rest = reader.rest();
                let mut count = 0;
                let mut current = FrameInputs::default();
                while !reader.is_empty() {
                    read_frame(&mut reader, usize::from(self.header.seats), &mut current)?;
                    count += 1;
                }
                if first < after || count > FRAMES_PER_CHUNK_MAX {
                    return Err(EndOfBytes);
                }
                self.inputs.push((first, count, rest));
            }
            Chunk::Checks => {
                while !reader.is_empty() {
                    self.checks.push((Frame(reader.u32()?), reader.u64()?));
                }
            }
            Chunk::Snapshot => self.snapshots.push((Frame(reader.u32()?), reader.rest())),
            Chunk::End => self.problem = None,
            // Only needed by who does not want to read the whole file.
            Chunk::Index | Chunk::Header => {}
        }
        Ok(())
    }
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, EndOfBytes> {
        let mut reader = Reader::new(bytes);
        let mut text = || {
            let len = reader.u32()? as usize;
            Ok(String::from_utf8_lossy(reader.slice(len)?).into_owned())
        };
        let (state, input) = (text()?, text()?);
        let mode = match reader.u8()? {
            0 => Mode::Lockstep,
            1 => Mode::Rollback,
            _ => return Err(EndOfBytes),
        };
        let seats = reader.u8()?;
        if seats == 0 || usize::from(seats) > SEATS_MAX {
            return Err(EndOfBytes);
        }
        Ok(Self {
            state,
            input,
            mode,
            seats,
            frame_micros: reader.u32()?,
        })
    }
}

/// A chunk and where the next one begins; `None` for a kind that is not known.
type Found<'a> = (Option<Chunk>, &'a [u8], usize);

fn chunk_at(bytes: &[u8], at: usize) -> Result<Found<'_>, Problem> {
    let truncated = Problem::Truncated { at };
    let rest = bytes.get(at..).ok_or(truncated)?;
    let mut reader = Reader::new(rest);
    let mut head = || Ok::<_, EndOfBytes>((reader.u8()?, reader.u32()? as usize, reader.u32()?));
    let (letter, len, sum) = head().map_err(|_| truncated)?;
    if len > CHUNK_BYTES_MAX {
        return Err(Problem::Damaged { at });
    }
    let content = reader.slice(len).map_err(|_| truncated)?;
    if chunk_sum(letter, content) != sum {
        return Err(Problem::Damaged { at });
    }
    let chunk = Chunk::ALL
        .into_iter()
        .find(|chunk| chunk.letter() == letter);
    Ok((chunk, content, at + CHUNK_HEADER_BYTES + len))
}

/// Reads one frame over the one before it.
fn read_frame<'a>(
    reader: &mut Reader<'a>,
    seats: usize,
    current: &mut FrameInputs<'a>,
) -> Result<(), EndOfBytes> {
    let steps = reader.u8()?;
    if steps == 0 {
        // As before; the first of a chunk has nothing before it.
        return if current.steps == 0 {
            Err(EndOfBytes)
        } else {
            Ok(())
        };
    }
    let mask = reader.u16()?;
    current.steps = steps;
    current.inputs.clear();
    for seat in 0..seats {
        let input = match mask >> seat & 1 {
            0 => None,
            _ => {
                let len = reader.u16()?;
                Some(reader.slice(usize::from(len))?)
            }
        };
        current.inputs.push(input);
    }
    Ok(())
}

const FRAMES_PER_CHUNK_MAX: u32 = 65_536;
