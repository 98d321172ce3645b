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

mod container;
mod read;
mod verify;
mod write;

use core::fmt;

use thiserror::Error;

use crate::config::Mode;

pub use container::{CHUNK_HEADER_BYTES, Chunks, File};
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

const VERSION: u16 = 1;
