//! Replays: a match in a file. `docs/replay.md` is the standard.
//!
//! A file is a row of chunks, each with its checksum: a header, states to begin from, inputs to run, checks to compare
//! with, snapshots for games that are watched rather than run. A [`Recorder`] makes one from a session; [`Replay`] reads
//! it, and [`verify`] runs it again. A file that was cut off or damaged says where, and what is before that still plays.
//!
//! ```
//! use muse_lockstep::replay::{Replay, ReplayError};
//! assert_eq!(Replay::parse(b"GIF89a").err(), Some(ReplayError::NotAReplay));
//! ```

mod read;
mod verify;
mod write;

use core::fmt;

use thiserror::Error;

use crate::checksum::checksum;
use crate::config::Mode;
use crate::frame::Frame;

pub use read::{FrameInputs, Replay};
pub use verify::{Outcome, PlayError, play, verify};
pub use write::Recorder;

/// The match that a replay is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The description of the state's type, which names the game and its version better than a number.
    pub state: String,
    /// The description of the input's type.
    pub input: String,
    /// The mode that it was played in.
    pub mode: Mode,
    /// Number of seats.
    pub seats: u8,
    /// The length of a step in microseconds.
    pub frame_micros: u32,
}

/// The reason why nothing of a file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It does not begin as replays do.
    #[error("this is not a Muse replay")]
    NotAReplay,
    /// It is of a version that this program does not know.
    #[error("replay of version {0}; this program reads version {VERSION}")]
    Version(u16),
    /// It ends before the header does.
    #[error("the replay ends within its header")]
    NoHeader,
}

/// A problem of a file whose beginning can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It ends in the middle of something.
    Truncated {
        /// Offset of the chunk that is not whole.
        at: usize,
    },
    /// A chunk's checksum does not fit, or its content makes no sense.
    Damaged {
        /// Offset of the chunk.
        at: usize,
    },
    /// It ends between chunks, without the end that a finished recording has.
    Unfinished,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => write!(f, "the file is cut off in the chunk at byte {at}"),
            Self::Damaged { at } => write!(f, "the chunk at byte {at} is damaged"),
            Self::Unfinished => write!(f, "the recording was not finished"),
        }
    }
}

/// Kinds of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Header,
    State,
    Inputs,
    Checks,
    Snapshot,
    Index,
    End,
}

impl Chunk {
    const ALL: [Self; 7] = [
        Self::Header,
        Self::State,
        Self::Inputs,
        Self::Checks,
        Self::Snapshot,
        Self::Index,
        Self::End,
    ];

    const fn letter(self) -> u8 {
        match self {
            Self::Header => b'H',
            Self::State => b'S',
            Self::Inputs => b'I',
            Self::Checks => b'C',
            Self::Snapshot => b'W',
            Self::Index => b'X',
            Self::End => b'E',
        }
    }
}

/// Appends a chunk: letter, length, checksum, content.
fn push_chunk(file: &mut Vec<u8>, chunk: Chunk, content: &[u8]) {
    file.push(chunk.letter());
    file.extend((content.len() as u32).to_le_bytes());
    file.extend(chunk_sum(chunk.letter(), content).to_le_bytes());
    file.extend(content);
}

/// The low half of the content's checksum, with the letter mixed in.
fn chunk_sum(letter: u8, content: &[u8]) -> u32 {
    (checksum(content) as u32).rotate_left(u32::from(letter) % 32) ^ u32::from(letter)
}

/// A state's place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    frame: Frame,
    offset: u64,
}

const MAGIC: [u8; 8] = *b"MUSERPLY";
const VERSION: u16 = 1;
/// Letter, length, checksum.
const CHUNK_HEADER_BYTES: usize = 9;
/// Largest chunk.
const CHUNK_BYTES_MAX: usize = 32 * 1024 * 1024;
