//! The chunks of a file; `docs/replay.md` is their standard.

use muse::lockstep::checksum;
use muse::schema::Schema;

use super::RecordingError;
use crate::Command;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct File {
    bytes: Vec<u8>,
    /// Bytes taken before.
    taken: u64,
}

impl File {
    pub(super) fn new(seats: u8) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        let mut file = Self { bytes, taken: 0 };
        let mut header = Vec::new();
        for text in [GAME.to_owned(), <Command as Schema>::TYPE.to_string()] {
            header.extend((text.len() as u32).to_le_bytes());
            header.extend(text.as_bytes());
        }
        header.extend([1, seats]);
        header.extend((crate::TICK.as_micros() as u32).to_le_bytes());
        file.push(b'H', &header);
        file
    }

    pub(super) fn push(&mut self, letter: u8, content: &[u8]) {
        self.bytes.push(letter);
        self.bytes.extend((content.len() as u32).to_le_bytes());
        self.bytes.extend(sum(letter, content).to_le_bytes());
        self.bytes.extend(content);
    }

    pub(super) fn push_frame(&mut self, letter: u8, frame: u32, content: &[u8]) {
        let mut whole = frame.to_le_bytes().to_vec();
        whole.extend(content);
        self.push(letter, &whole);
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        self.taken += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }

    /// The last bytes; `end` is the frame after the last one.
    pub(super) fn finish(mut self, end: u32) -> Vec<u8> {
        let index_at = self.taken + self.bytes.len() as u64;
        self.push(b'X', &[]);
        let mut last = end.to_le_bytes().to_vec();
        last.extend(index_at.to_le_bytes());
        self.push(b'E', &last);
        self.bytes
    }
}

/// The chunks of a file, up to the first that is not whole.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, RecordingError> {
        let head = bytes.get(..FIRST).ok_or(RecordingError::NotAReplay)?;
        if head[..8] != MAGIC || head[8..10] != VERSION.to_le_bytes() {
            return Err(RecordingError::NotAReplay);
        }
        let chunks = Self { bytes, at: FIRST };
        let first = chunks.clone().next();
        let (_, letter, content) = first.ok_or(RecordingError::OtherGame)??;
        let name = content.get(4..4 + GAME.len());
        if letter != b'H' || name != Some(GAME.as_bytes()) {
            return Err(RecordingError::OtherGame);
        }
        Ok(chunks)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<(usize, u8, &'a [u8]), RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..)?;
        // What is cut off was not finished, and what is before it plays.
        let head = rest.get(..HEAD)?;
        let number = |from: usize| {
            let bytes = head[from..from + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let (letter, len) = (head[0], number(1) as usize);
        let content = rest.get(HEAD..)?.get(..len)?;
        if len > CHUNK_BYTES_MAX || sum(letter, content) != number(5) {
            self.at = self.bytes.len();
            return Some(Err(RecordingError::Damaged { at }));
        }
        self.at = at + HEAD + len;
        Some(Ok((at, letter, content)))
    }
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

/// The low half of the content's checksum, with the letter mixed in.
fn sum(letter: u8, content: &[u8]) -> u32 {
    (checksum(content) as u32).rotate_left(u32::from(letter) % 32) ^ u32::from(letter)
}

const MAGIC: [u8; 8] = *b"MUSERPLY";
const VERSION: u16 = 1;
/// The name of the state of a frame.
const GAME: &str = "Biobot 1";
/// Offset of the first chunk.
const FIRST: usize = 12;
/// Letter, length and sum.
const HEAD: usize = 9;
const CHUNK_BYTES_MAX: usize = 32 * 1024 * 1024;
