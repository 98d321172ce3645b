//! The container: a row of chunks, each with its checksum.

use muse_wire::bytes::{EndOfBytes, Reader};

use super::{Header, Problem, ReplayError, VERSION};
use crate::checksum::checksum;
use crate::frame::Frame;

/// A replay that is being written, whichever chunks a game puts into it.
#[derive(Debug)]
pub struct File {
    bytes: Vec<u8>,
    /// Bytes taken before.
    taken: u64,
}

impl File {
    /// A file that begins with this header.
    pub fn new(header: &Header) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        let mut file = Self { bytes, taken: 0 };
        file.push(HEADER, &header.to_bytes());
        file
    }

    /// Appends a chunk: letter, length, checksum, content.
    pub fn push(&mut self, letter: u8, content: &[u8]) {
        self.bytes.push(letter);
        self.bytes.extend((content.len() as u32).to_le_bytes());
        self.bytes.extend(sum(letter, content).to_le_bytes());
        self.bytes.extend(content);
    }

    /// Appends a chunk whose content begins with its frame.
    pub fn push_frame(&mut self, letter: u8, frame: Frame, content: &[u8]) {
        let mut whole = frame.0.to_le_bytes().to_vec();
        whole.extend(content);
        self.push(letter, &whole);
    }

    /// Returns where the next chunk will be.
    pub fn position(&self) -> u64 {
        self.taken + self.bytes.len() as u64
    }

    /// Everything written since this was called last.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.taken = self.position();
        std::mem::take(&mut self.bytes)
    }

    /// The last bytes. `end` is the frame after the last one, `states` the frames and places of states to seek to.
    pub fn finish(mut self, end: Frame, states: &[(Frame, u64)]) -> Vec<u8> {
        let index_at = self.position();
        let mut index = Vec::new();
        for (frame, position) in states {
            index.extend(frame.0.to_le_bytes());
            index.extend(position.to_le_bytes());
        }
        self.push(INDEX, &index);
        self.push_frame(END, end, &index_at.to_le_bytes());
        self.bytes
    }
}

/// The chunks of a file after its header: the offset of each, its letter and its content, up to the first that is not whole.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    /// Reads the header of a file.
    pub fn parse(bytes: &'a [u8]) -> Result<(Header, Self), ReplayError> {
        let mut reader = Reader::new(bytes);
        if reader.array() != Ok(MAGIC) {
            return Err(ReplayError::NotAReplay);
        }
        let version = reader.u16().map_err(|_| ReplayError::NoHeader)?;
        if version != VERSION {
            return Err(ReplayError::Version(version));
        }
        let at = MAGIC.len() + 4;
        let mut chunks = Self { bytes, at };
        let Some(Ok((_, HEADER, content))) = chunks.next() else {
            return Err(ReplayError::NoHeader);
        };
        let header = Header::parse(content).map_err(|_| ReplayError::NoHeader)?;
        Ok((header, chunks))
    }

    fn read(&self) -> Result<(usize, u8, &'a [u8]), Problem> {
        let at = self.at;
        let truncated = |_| Problem::Truncated { at };
        let mut reader = Reader::new(&self.bytes[at..]);
        let mut head =
            || Ok::<_, EndOfBytes>((reader.u8()?, reader.u32()? as usize, reader.u32()?));
        let (letter, len, expected) = head().map_err(truncated)?;
        if len > CHUNK_BYTES_MAX {
            return Err(Problem::Damaged { at });
        }
        let content = reader.slice(len).map_err(truncated)?;
        if sum(letter, content) != expected {
            return Err(Problem::Damaged { at });
        }
        Ok((at, letter, content))
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<(usize, u8, &'a [u8]), Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let found = self.read();
        self.at = match found {
            Ok((at, _, content)) => at + CHUNK_HEADER_BYTES + content.len(),
            Err(_) => self.bytes.len(),
        };
        Some(found)
    }
}

/// The low half of the content's checksum, with the letter mixed in.
fn sum(letter: u8, content: &[u8]) -> u32 {
    (checksum(content) as u32).rotate_left(u32::from(letter) % 32) ^ u32::from(letter)
}

pub(super) const HEADER: u8 = b'H';
pub(super) const STATE: u8 = b'S';
pub(super) const INPUTS: u8 = b'I';
pub(super) const CHECKS: u8 = b'C';
pub(super) const SNAPSHOT: u8 = b'W';
const INDEX: u8 = b'X';
pub(super) const END: u8 = b'E';

const MAGIC: [u8; 8] = *b"MUSERPLY";
/// Letter, length, checksum.
pub const CHUNK_HEADER_BYTES: usize = 9;
/// Largest chunk.
const CHUNK_BYTES_MAX: usize = 32 * 1024 * 1024;
