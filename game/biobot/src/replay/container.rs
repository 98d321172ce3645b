//! The chunks of a file; `docs/replay.md` is their standard.

use muse::lockstep::Mode;
use muse::lockstep::replay::{Chunks, File, Header, Problem, ReplayError};
use muse::schema::Schema;

use super::RecordingError;
use crate::Command;

/// Offset, letter and content.
type Chunk<'a> = (usize, u8, &'a [u8]);

/// A file for a match with so many slots.
pub(super) fn file(seats: u8) -> File {
    File::new(&Header {
        state: GAME.to_owned(),
        input: <Command as Schema>::TYPE.to_string(),
        mode: Mode::Rollback,
        seats,
        frame_micros: crate::TICK.as_micros() as u32,
    })
}

/// The chunks of a file. What is cut off was not finished, and what is before it plays.
pub(super) fn chunks(
    bytes: &[u8],
) -> Result<impl Iterator<Item = Result<Chunk<'_>, RecordingError>>, RecordingError> {
    let (header, chunks) = Chunks::parse(bytes).map_err(|error| match error {
        ReplayError::NoHeader => RecordingError::OtherGame,
        _ => RecordingError::NotAReplay,
    })?;
    if header.state != GAME {
        return Err(RecordingError::OtherGame);
    }
    Ok(chunks.map_while(|chunk| match chunk {
        Ok(chunk) => Some(Ok(chunk)),
        Err(Problem::Damaged { at }) => Some(Err(RecordingError::Damaged { at })),
        Err(_) => None,
    }))
}

/// Ticks and their checksums.
pub(super) fn checks(content: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    let (checks, _) = content.as_chunks::<12>();
    checks.iter().map(|check| {
        let tick = check[..4].try_into().unwrap_or_default();
        let sum = check[4..].try_into().unwrap_or_default();
        (u32::from_le_bytes(tick), u64::from_le_bytes(sum))
    })
}

/// The name of the state of a frame.
const GAME: &str = "Biobot 1";
