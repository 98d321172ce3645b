//! The packets by which guest and host agree on a key. They travel as the content of forwarded datagrams; their first bytes are among those of the relay's
//! packets, where nothing of the transport is.

use muse_wire::bytes::{EndOfBytes, Reader, Writer};

use super::Point;

/// A packet between a guest and a host with a short code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodePacket {
    /// From the guest: the first message of SPAKE2.
    Ask {
        /// Names the exchange.
        random: [u8; 8],
        /// The guest's point.
        point: [u8; 32],
    },
    /// From the host: the second one.
    Answer {
        /// Of the Ask.
        random: [u8; 8],
        /// The host's point.
        point: [u8; 32],
    },
    /// From the guest: the proof that it has the secret.
    Confirm {
        /// Of the Ask.
        random: [u8; 8],
        /// The proof.
        proof: [u8; 32],
    },
    /// From the host: its key.
    Key {
        /// Of the Ask.
        random: [u8; 8],
        /// The host's public key, sealed.
        sealed: [u8; 32],
        /// The proof that the host has the secret.
        proof: [u8; 32],
    },
    /// From the host: no.
    Denied {
        /// Of the Ask.
        random: [u8; 8],
        /// The reason.
        reason: Denial,
    },
}

/// The reason for which a host denies its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Denial {
    /// The guest has another secret.
    WrongCode,
    /// There were too many wrong ones.
    TooManyTries,
    /// The host does not know the exchange: the guest is to begin another.
    Unknown,
}

impl CodePacket {
    /// Reads a packet; `None` when it is none, or is shorter than its kind has to be. Bytes after it are ignored.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8().ok()?;
        if kind == KIND_CONFIRM && bytes.len() < KEY_LEN {
            return None;
        }
        let random = reader.array().ok()?;
        Some(match kind {
            KIND_ASK => Self::Ask {
                random,
                point: reader.array().ok()?,
            },
            KIND_ANSWER => Self::Answer {
                random,
                point: reader.array().ok()?,
            },
            KIND_CONFIRM => Self::Confirm {
                random,
                proof: reader.array().ok()?,
            },
            KIND_KEY => Self::Key {
                random,
                sealed: reader.array().ok()?,
                proof: reader.array().ok()?,
            },
            KIND_DENIED => Self::Denied {
                random,
                reason: match reader.u8().ok()? {
                    1 => Denial::WrongCode,
                    2 => Denial::TooManyTries,
                    3 => Denial::Unknown,
                    _ => return None,
                },
            },
            _ => return None,
        })
    }

    /// Writes the packet and returns its length.
    pub fn emit(&self, buffer: &mut [u8; CODE_PACKET_LEN_MAX]) -> usize {
        buffer.fill(0);
        let mut writer = Writer::new(buffer);
        self.write(&mut writer)
            .expect("every packet fits into the buffer");
        match self {
            // No shorter than its answer.
            Self::Confirm { .. } => KEY_LEN,
            _ => writer.len(),
        }
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        let (kind, random, first, second): (_, _, &[u8], &[u8]) = match self {
            Self::Ask { random, point } => (KIND_ASK, random, point, &[]),
            Self::Answer { random, point } => (KIND_ANSWER, random, point, &[]),
            Self::Confirm { random, proof } => (KIND_CONFIRM, random, proof, &[]),
            Self::Key {
                random,
                sealed,
                proof,
            } => (KIND_KEY, random, sealed, proof),
            Self::Denied { random, reason } => {
                let reason: &[u8] = match reason {
                    Denial::WrongCode => &[1],
                    Denial::TooManyTries => &[2],
                    Denial::Unknown => &[3],
                };
                (KIND_DENIED, random, reason, &[])
            }
        };
        writer.u8(kind)?;
        writer.slice(random)?;
        writer.slice(first)?;
        writer.slice(second)
    }
}

/// Length of the longest packet.
pub const CODE_PACKET_LEN_MAX: usize = KEY_LEN;
const KEY_LEN: usize = 1 + 8 + size_of::<Point>() + 32;
const KIND_ASK: u8 = 0x57;
const KIND_ANSWER: u8 = 0x58;
const KIND_CONFIRM: u8 = 0x59;
const KIND_KEY: u8 = 0x5A;
const KIND_DENIED: u8 = 0x5B;
