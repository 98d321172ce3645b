//! Reads a replay, whole or not.

use muse_wire::bytes::{EndOfBytes, Reader};

use crate::config::Mode;
use crate::frame::{Frame, SEATS_MAX};
use crate::replay::container::{CHECKS, Chunks, END, INPUTS, SNAPSHOT, STATE};
use crate::replay::{Header, Problem, ReplayError};

/// A replay in memory.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    header: Header,
    /// Chunks of inputs: their first frame, how many, and their content.
    inputs: Vec<(Frame, u32, &'a [u8])>,
    states: Vec<(Frame, &'a [u8])>,
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
        let (header, chunks) = Chunks::parse(bytes)?;
        let mut replay = Self {
            header,
            inputs: Vec::new(),
            states: Vec::new(),
            checks: Vec::new(),
            snapshots: Vec::new(),
            problem: Some(Problem::Unfinished),
        };
        if let Err(problem) = replay.read_chunks(chunks) {
            replay.problem = Some(problem);
        }
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
        let first = self.states.first().map_or(Frame(0), |(first, _)| *first);
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
        let index = self.states.partition_point(|(at, _)| *at <= frame);
        self.states.get(index.checked_sub(1)?).copied()
    }

    /// The inputs of a frame.
    pub fn inputs(&self, frame: Frame) -> Option<FrameInputs<'a>> {
        let mut cursor = Cursor::new(self);
        cursor.seek(frame)?;
        Some(cursor.current)
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

    fn read_chunks(&mut self, chunks: Chunks<'a>) -> Result<(), Problem> {
        for chunk in chunks {
            let (at, letter, content) = chunk?;
            let read = self.read_chunk(letter, content);
            read.map_err(|_| Problem::Damaged { at })?;
        }
        Ok(())
    }

    fn read_chunk(&mut self, letter: u8, content: &'a [u8]) -> Result<(), EndOfBytes> {
        let mut reader = Reader::new(content);
        match letter {
            STATE => {
                let frame = Frame(reader.u32()?);
                // In order, or seeking would go astray.
                if self.states.last().is_some_and(|(last, _)| *last >= frame) {
                    return Err(EndOfBytes);
                }
                self.states.push((frame, reader.rest()));
            }
            INPUTS => {
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
            CHECKS => {
                while !reader.is_empty() {
                    self.checks.push((Frame(reader.u32()?), reader.u64()?));
                }
            }
            SNAPSHOT => self.snapshots.push((Frame(reader.u32()?), reader.rest())),
            END => self.problem = None,
            // The index, for who does not want to read the whole file, and what this version can do without.
            _ => {}
        }
        Ok(())
    }
}

/// Reads the inputs of one frame after the other, and each byte of them once: a frame may be as it was before, so that to look each one up
/// from the beginning of its chunk would take the square of their number.
#[derive(Debug)]
pub(super) struct Cursor<'r, 'a> {
    replay: &'r Replay<'a>,
    /// The chunk that is being read, and how many frames of it have been.
    chunk: Option<usize>,
    read: u32,
    reader: Reader<'a>,
    current: FrameInputs<'a>,
}

impl<'r, 'a> Cursor<'r, 'a> {
    pub(super) fn new(replay: &'r Replay<'a>) -> Self {
        Self {
            replay,
            chunk: None,
            read: 0,
            reader: Reader::new(&[]),
            current: FrameInputs::default(),
        }
    }

    /// Returns the inputs of a frame; quickly if it is the one after the last.
    pub(super) fn seek(&mut self, frame: Frame) -> Option<&FrameInputs<'a>> {
        let chunks = &self.replay.inputs;
        let index = chunks.partition_point(|(first, ..)| *first <= frame);
        let index = index.checked_sub(1)?;
        let (first, count, content) = chunks.get(index)?;
        let wanted = frame.since(*first);
        if wanted >= *count {
            return None;
        }
        if self.chunk != Some(index) || self.read > wanted + 1 {
            self.chunk = Some(index);
            self.read = 0;
            self.reader = Reader::new(content);
            self.current = FrameInputs::default();
        }
        let seats = usize::from(self.replay.header.seats);
        while self.read <= wanted {
            read_frame(&mut self.reader, seats, &mut self.current).ok()?;
            self.read += 1;
        }
        Some(&self.current)
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
