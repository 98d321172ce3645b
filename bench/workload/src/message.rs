//! The contents of the messages of all workloads.

use std::time::{SystemTime, UNIX_EPOCH};

/// The head of every message: what kind it is, when it was handed to the library, and its number.
///
/// ```
/// use muse_bench_workload::Header;
/// let header = Header { reliable: true, sent_nanos: 5, number: 7 };
/// let mut message = [0; 64];
/// header.write(&mut message);
/// assert_eq!(Header::read(&message), Some(header));
/// assert_eq!(Header::read(&message[..8]), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// It travels as a reliable message.
    pub reliable: bool,
    /// Time of the send call, in nanoseconds since 1970: sender and receiver are two processes of one machine.
    pub sent_nanos: u64,
    /// Number of the message in its stream.
    pub number: u64,
}

impl Header {
    /// Bytes that it takes.
    pub const LEN: usize = 17;

    /// Writes it to the start of `message`, which is at least [`Header::LEN`] long.
    pub fn write(&self, message: &mut [u8]) {
        message[0] = u8::from(self.reliable);
        message[1..9].copy_from_slice(&self.sent_nanos.to_le_bytes());
        message[9..17].copy_from_slice(&self.number.to_le_bytes());
    }

    /// Reads it from the start of `message`.
    pub fn read(message: &[u8]) -> Option<Self> {
        let (&reliable, rest) = message.split_first()?;
        let (sent_nanos, rest) = rest.split_first_chunk::<8>()?;
        let (number, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            reliable: reliable == 1,
            sent_nanos: u64::from_le_bytes(*sent_nanos),
            number: u64::from_le_bytes(*number),
        })
    }

    /// Milliseconds since it was sent.
    pub fn age_ms(&self) -> f32 {
        (unix_nanos().saturating_sub(self.sent_nanos) as f64 / 1e6) as f32
    }
}

/// Nanoseconds since 1970, the clock that all processes of a run share.
pub fn unix_nanos() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
