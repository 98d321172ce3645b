//! The short code that a friend types, and how guest and host agree on the host's key by it.
//!
//! A [`ShortCode`] has two parts: the room, which the relay knows, and a secret, which it never gets. With the secret as a password both sides run
//! SPAKE2 through the relay. So nobody who carries, reads or forges their packets learns enough to try secrets elsewhere: each guess costs an exchange with
//! the host, who answers few wrong ones ([`KeyGiver`]), or one with a guest that tries to come ([`KeyTaker`]). Bytes and rules are in `docs/relay-v2.md`,
//! reasons in `docs/decisions/0018-short-codes.md`.

mod giver;
mod packet;
mod taker;

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use hkdf::hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use spake2::rand_core::{TryCryptoRng, TryRng};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use thiserror::Error;

use super::code::{CodeError, RoomCode, letters, number};
use super::cookie::Secrets;

pub use giver::KeyGiver;
pub use packet::{CODE_PACKET_LEN_MAX, CodePacket, Denial};
pub use taker::KeyTaker;

/// The secret part of a [`ShortCode`]: 20 bits that the host chooses and the relay never gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CodeSecret(u32);

impl CodeSecret {
    /// From random bytes, of which 20 bits count.
    pub const fn new(random: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(random) & SECRET_MASK)
    }

    /// Its bytes, for the host's heir.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    fn password(self) -> Password {
        Password::new(self.0.to_le_bytes())
    }
}

impl fmt::Debug for CodeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeSecret")
    }
}

/// All that a friend types to come into a room at a relay that their game knows: ten letters, such as `KWXPTR-7Q4M`.
///
/// ```
/// use muse_relay::{CodeSecret, RoomKey, ShortCode};
/// let code = ShortCode::new(RoomKey::new([7; 16]).code(), CodeSecret::new([1, 2, 3, 4]));
/// let text = code.to_string();
/// assert_eq!((text.len(), text.to_lowercase().parse()), (11, Ok(code)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortCode {
    room: RoomCode,
    secret: CodeSecret,
}

impl ShortCode {
    /// The code of a room whose host has chosen this secret.
    pub const fn new(room: RoomCode, secret: CodeSecret) -> Self {
        Self { room, secret }
    }

    /// Returns the part that the relay knows.
    pub const fn room(&self) -> RoomCode {
        self.room
    }

    /// Returns the part that it does not know.
    pub const fn secret(&self) -> CodeSecret {
        self.secret
    }
}

impl fmt::Display for ShortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.room)?;
        letters(f, u64::from(self.secret.0), SECRET_LETTERS)
    }
}

impl FromStr for ShortCode {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        let bits = number(text, RoomCode::LETTERS + SECRET_LETTERS)?;
        let room = RoomCode::from_bits(bits >> (5 * SECRET_LETTERS)).ok_or(CodeError::Length)?;
        let secret = CodeSecret(bits as u32 & SECRET_MASK);
        Ok(Self { room, secret })
    }
}

/// The reason for which a short code led to no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodeRefusal {
    /// The relay has no such room.
    #[error("no room has this code: check it, and that the host is still there")]
    NoSuchRoom,
    /// The host has another secret.
    #[error("the last four letters of the code are wrong: check them")]
    WrongCode,
    /// The host has been told too many wrong codes.
    #[error(
        "too many wrong codes were tried at this room: wait a minute and try again, or ask for the room's link"
    )]
    TooManyTries,
    /// The host answered and then did not know of it, several times.
    #[error("the host was interrupted while it answered: try again")]
    Interrupted,
}

/// The key that both have at the end of an exchange.
#[derive(Clone)]
struct Shared(Hmac<Sha256>);

impl Shared {
    fn mac(&self, label: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(label);
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    fn bytes(&self, label: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        self.mac(label, parts).finalize().into_bytes().into()
    }

    /// The proof that the guest has the secret.
    fn guest_proof(&self, random: &[u8; 8]) -> [u8; 32] {
        self.bytes(b"muse code guest", &[random])
    }

    /// The proof that the host has it, over what it says.
    fn host_proof(&self, random: &[u8; 8], sealed: &[u8; 32]) -> [u8; 32] {
        self.bytes(b"muse code host", &[random, sealed])
    }

    /// Seals the host's key, or opens it. The pad is used once: an exchange has one key to tell.
    fn seal(&self, random: &[u8; 8], key: &[u8; 32]) -> [u8; 32] {
        let pad = self.bytes(b"muse code pad", &[random]);
        std::array::from_fn(|index| key[index] ^ pad[index])
    }
}

/// One side of SPAKE2, with the point to be sent.
struct Exchange {
    spake: Spake2<Ed25519Group>,
    point: Point,
}

impl Exchange {
    fn guest(code: &ShortCode, secrets: &mut Secrets) -> Self {
        let (guest, host) = identities(code);
        let password = code.secret.password();
        let begun = Spake2::start_a_with_rng(&password, &guest, &host, Draws(secrets));
        Self::begun(begun)
    }

    fn host(code: &ShortCode, secrets: &mut Secrets) -> Self {
        let (guest, host) = identities(code);
        let password = code.secret.password();
        let begun = Spake2::start_b_with_rng(&password, &guest, &host, Draws(secrets));
        Self::begun(begun)
    }

    fn begun((spake, message): (Spake2<Ed25519Group>, Vec<u8>)) -> Self {
        let point = message.get(1..).and_then(|point| point.try_into().ok());
        let point = point.expect("a message of SPAKE2 is a letter for the side and a point");
        Self { spake, point }
    }

    /// Returns the key, if the other side's point is one.
    fn finish(self, side: u8, point: &Point) -> Option<Shared> {
        let message = [&[side][..], point].concat();
        let key = self.spake.finish(&message).ok()?;
        let mac = Hmac::new_from_slice(&key).expect("HMAC takes keys of any length");
        Some(Shared(mac))
    }
}

/// The names by which both sides know each other: the room is part of the host's.
fn identities(code: &ShortCode) -> (Identity, Identity) {
    let room = code.room.bits().to_le_bytes();
    let host = [&b"muse code host"[..], &room].concat();
    (Identity::new(b"muse code guest"), Identity::new(&host))
}

/// The random numbers of a link, as SPAKE2 wants them.
struct Draws<'a>(&'a mut Secrets);

impl TryRng for Draws<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.draw() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.draw())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.0.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Draws<'_> {}

/// A compressed point of the curve.
type Point = [u8; 32];
/// The letters in front of the sides' points, as SPAKE2 has them.
const SIDE_GUEST: u8 = b'A';
const SIDE_HOST: u8 = b'B';
const SECRET_LETTERS: u32 = 4;
const SECRET_MASK: u32 = (1 << (5 * SECRET_LETTERS)) - 1;

#[cfg(test)]
mod tests;
