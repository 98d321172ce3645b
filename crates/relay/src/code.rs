//! Rooms by name: the key that a host makes up, the code that it tells its friends, and the invitation that says everything.
//!
//! The code follows from the key, so a host can open its room again after the relay has lost its memory, at any relay. What friends type is the code with a
//! secret behind it, a [`ShortCode`](super::ShortCode).

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use muse_wire::bytes::{Reader, Writer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::packet::{read_address, write_address};

/// The key of a room: anyone who has it has the room. 16 random bytes, from a driver's `fill_random`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RoomKey([u8; 16]);

impl RoomKey {
    /// From random bytes.
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// The code of the room.
    pub fn code(&self) -> RoomCode {
        let hash = self.hash();
        let (first, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
        RoomCode(u64::from_le_bytes(*first) & CODE_MASK)
    }

    /// Returns what the relay knows the owner of the room by: two keys may have the same code, but not this.
    pub(super) fn owner(&self) -> [u8; 16] {
        let hash = self.hash();
        *hash.last_chunk().expect("a hash has 32 bytes")
    }

    fn hash(&self) -> [u8; 32] {
        let hash = Sha256::new()
            .chain_update(b"muse room")
            .chain_update(self.0);
        hash.finalize().into()
    }

    pub(super) const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for RoomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomKey")
    }
}

/// The code by which the relay knows a room: 30 bits, written as six letters and digits that are hard to confuse. It leads to the room, and to nothing in it: a
/// guest needs the host's key as well, from a [`ShortCode`](super::ShortCode) or an [`Invitation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomCode(u64);

impl RoomCode {
    /// Letters of a code.
    pub(super) const LETTERS: u32 = 6;

    /// From its number, unless that has more than 30 bits.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits > CODE_MASK {
            None
        } else {
            Some(Self(bits))
        }
    }

    /// Its number.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RoomCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        letters(f, self.0, Self::LETTERS)
    }
}

impl FromStr for RoomCode {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        Ok(Self(number(text, Self::LETTERS)?))
    }
}

/// All that a guest needs: where the relay is, the room, and the host's key, by which the guest knows that it speaks with the host and
/// not with the relay. One line of text, to be copied.
///
/// ```
/// use muse_relay::{Invitation, RoomKey};
/// let invitation = Invitation {
///     relay: "203.0.113.5:7788".parse()?,
///     code: RoomKey::new([7; 16]).code(),
///     host_key: [9; 32],
/// };
/// assert_eq!(invitation.to_string().parse(), Ok(invitation));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The relay.
    pub relay: SocketAddr,
    /// The room.
    pub code: RoomCode,
    /// Public key of the host, to be pinned.
    pub host_key: [u8; 32],
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; INVITATION_LEN];
        let mut writer = Writer::new(&mut bytes);
        write_address(&mut writer, self.relay)
            .and_then(|()| writer.u64(self.code.0))
            .and_then(|()| writer.slice(&self.host_key))
            .expect("the buffer has just this length");
        let check = checksum(&bytes[..INVITATION_LEN - 1]);
        bytes[INVITATION_LEN - 1] = check;
        f.write_str(PREFIX)?;
        let (mut held, mut count) = (0_u32, 0);
        for byte in bytes {
            held = held << 8 | u32::from(byte);
            count += 8;
            while count >= 5 {
                count -= 5;
                write!(f, "{}", char::from(ALPHABET[(held >> count & 31) as usize]))?;
            }
        }
        debug_assert_eq!(count, 0, "60 bytes are 96 letters");
        Ok(())
    }
}

impl FromStr for Invitation {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let text = text.trim();
        let rest = text
            .get(..PREFIX.len())
            .filter(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
            .and_then(|_| text.get(PREFIX.len()..))
            .ok_or(CodeError::Prefix)?;
        let mut bytes = [0; INVITATION_LEN];
        let (mut held, mut count, mut len) = (0_u32, 0, 0);
        for value in values(rest) {
            held = held << 5 | u32::from(value?);
            count += 5;
            if count >= 8 {
                count -= 8;
                *bytes.get_mut(len).ok_or(CodeError::Length)? = (held >> count) as u8;
                len += 1;
            }
        }
        if len != INVITATION_LEN || count != 0 {
            return Err(CodeError::Length);
        }
        if checksum(&bytes[..INVITATION_LEN - 1]) != bytes[INVITATION_LEN - 1] {
            return Err(CodeError::Mistyped);
        }
        let mut reader = Reader::new(&bytes);
        let relay = read_address(&mut reader).map_err(|_| CodeError::Length)?;
        let code = reader.u64().ok().and_then(RoomCode::from_bits);
        let (Some(relay), Some(code), Ok(host_key)) = (relay, code, reader.array()) else {
            return Err(CodeError::Mistyped);
        };
        Ok(Self {
            relay,
            code,
            host_key,
        })
    }
}

/// The reason for which a text is no code or invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A character that codes do not have.
    #[error("{0:?} is not a letter of a code")]
    Letter(char),
    /// Too long or too short.
    #[error(
        "a short code has 10 letters, the code of a room 6 of them, an invitation 96 behind its prefix"
    )]
    Length,
    /// An invitation begins otherwise.
    #[error("an invitation begins with muse2:")]
    Prefix,
    /// The letters do not belong together.
    #[error("the invitation's checksum is wrong: copy all of it again")]
    Mistyped,
}

/// Writes a number as so many letters.
pub(super) fn letters(f: &mut fmt::Formatter<'_>, bits: u64, count: u32) -> fmt::Result {
    (0..count).rev().try_for_each(|index| {
        let value = bits >> (5 * index) & 31;
        write!(f, "{}", char::from(ALPHABET[value as usize]))
    })
}

/// Reads a number of just so many letters, at most twelve.
pub(super) fn number(text: &str, count: u32) -> Result<u64, CodeError> {
    let (mut bits, mut read) = (0, 0);
    for value in values(text) {
        bits = bits << 5 | u64::from(value?);
        read += 1;
        if read > count {
            return Err(CodeError::Length);
        }
    }
    (read == count).then_some(bits).ok_or(CodeError::Length)
}

/// The letters' values, without blanks and hyphens; those that look alike count as the same.
fn values(text: &str) -> impl Iterator<Item = Result<u8, CodeError>> + '_ {
    let letters = text
        .chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '-');
    letters.map(|letter| {
        let wanted = match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            upper => upper,
        };
        ALPHABET
            .iter()
            .position(|known| char::from(*known) == wanted)
            .map(|index| index as u8)
            .ok_or(CodeError::Letter(letter))
    })
}

fn checksum(bytes: &[u8]) -> u8 {
    let hash: [u8; 32] = Sha256::digest(bytes).into();
    hash[0]
}

/// Crockford's: without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const CODE_MASK: u64 = (1 << (5 * RoomCode::LETTERS)) - 1;
const PREFIX: &str = "muse2:";
/// Address, code, key, checksum.
const INVITATION_LEN: usize = 19 + 8 + 32 + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = RoomCode::from_bits(0x0012_3456).expect("21 bits");
        let text = code.to_string();
        assert_eq!((text.len(), &text[..2]), (6, "01"));
        assert_eq!(text.to_lowercase().parse(), Ok(code));
        assert_eq!(text.replace('0', "o").replace('1', "l").parse(), Ok(code));
        assert_eq!("ABC".parse::<RoomCode>(), Err(CodeError::Length));
        assert_eq!(
            format!("{text}0").parse::<RoomCode>(),
            Err(CodeError::Length)
        );
        assert_eq!("U".parse::<RoomCode>(), Err(CodeError::Letter('U')));
        assert_eq!(RoomCode::from_bits(1 << 30), None);
    }

    #[test]
    fn an_invitation_survives_copying_and_shows_mistakes() {
        for relay in ["203.0.113.5:7788", "[2001:db8::1]:1"] {
            let invitation = Invitation {
                relay: relay.parse().expect("an address"),
                code: RoomKey::new([1; 16]).code(),
                host_key: [200; 32],
            };
            let text = invitation.to_string();
            assert_eq!(text.len(), PREFIX.len() + 96);
            assert_eq!(format!(" {text}\n").parse(), Ok(invitation));
            let mut wrong = text.clone().into_bytes();
            let last = wrong.len() - 10;
            wrong[last] = if wrong[last] == b'7' { b'8' } else { b'7' };
            let wrong = String::from_utf8(wrong).expect("letters");
            assert_eq!(wrong.parse::<Invitation>(), Err(CodeError::Mistyped));
            assert_eq!(text[1..].parse::<Invitation>(), Err(CodeError::Prefix));
        }
    }
}
