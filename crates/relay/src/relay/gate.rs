//! The right to open a room: hosts show a token that their master signed.

use std::fmt;
use std::str::FromStr;

use muse_transport::token::{KeyError, TokenError, TokenId, TokenIssuer, TokenVerifier};
use muse_transport::{Entropy, InvalidPublicKey, ServerKey, ServerPublicKey};

use super::super::code::RoomKey;
use super::super::cookie::{Cookie, Secrets};
use super::super::packet::ShownToken;

/// The tokens by which hosts open rooms at a [`Relay`](super::Relay): those that a master signed for this relay's key.
///
/// A token opens one room at a time, as often as its holder wants until it expires. It is a
/// [`ConnectToken`](muse_transport::token::ConnectToken) of [`host_token_issuer`].
///
/// ```
/// use muse_relay::{HostTokens, Limits, MasterKey, Relay, host_token_issuer};
/// use muse_transport::{SeededEntropy, ServerKey};
/// use muse_wire::Instant;
/// let mut entropy = SeededEntropy::danger_seeded(1); // programs use the operating system's randomness
/// let master = host_token_issuer(&[7; 32]); // a secret seed of the master
/// let tokens = HostTokens::new(ServerKey::generate(&mut entropy)).master_key(&MasterKey::of(&master))?;
/// let mut relay = Relay::new(Instant::ZERO, Limits::default(), tokens, [0; 32]);
/// relay.set_unix_time(Instant::ZERO, 1_700_000_000);
/// # Ok::<(), muse_transport::token::KeyError>(())
/// ```
pub struct HostTokens {
    verifier: TokenVerifier,
    key: ServerKey,
}

impl HostTokens {
    /// Tokens for the relay with this key, signed by nobody yet.
    pub fn new(key: ServerKey) -> Self {
        Self {
            verifier: TokenVerifier::new(),
            key,
        }
    }

    /// Trusts this key of a master besides, 16 at most.
    pub fn master_key(mut self, key: &MasterKey) -> Result<Self, KeyError> {
        self.verifier.add_key(key.id(), &key.0)?;
        Ok(self)
    }

    /// Returns the public key of the relay, for which masters sign tokens.
    pub fn relay_key(&self) -> ServerPublicKey {
        self.key.public()
    }

    /// Checks a token that was shown in this request.
    pub(super) fn check(
        &self,
        shown: &ShownToken,
        context: &[u8],
        unix_now_s: u64,
        secrets: &mut Secrets,
    ) -> Result<TokenId, TokenError> {
        let holder = self.verifier.check_shown(
            shown.as_slice(),
            context,
            RELAY_PROTOCOL,
            &self.key,
            unix_now_s,
            &mut Draws(secrets),
        )?;
        Ok(holder.id)
    }
}

impl fmt::Debug for HostTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTokens")
            .field("relay", &self.key.public())
            .finish_non_exhaustive()
    }
}

/// The public key of a master that signs tokens for hosts; 64 hexadecimal digits as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterKey([u8; 32]);

impl MasterKey {
    /// The public key of this issuer.
    pub fn of(issuer: &TokenIssuer) -> Self {
        Self(issuer.public_key())
    }

    /// The number by which a token names the key: its first bytes, so that keys of several masters need no agreement.
    fn id(&self) -> u32 {
        let (first, _) = self.0.split_first_chunk().expect("a key has 32 bytes");
        u32::from_le_bytes(*first)
    }
}

impl FromStr for MasterKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Written as a server's key is.
        let key: ServerPublicKey = text.parse()?;
        Ok(Self(*key.as_bytes()))
    }
}

impl fmt::Display for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ServerPublicKey::from_bytes(self.0), f)
    }
}

/// Returns the issuer of tokens for hosts whose Ed25519 key has this seed; the master's side of [`HostTokens`].
pub fn host_token_issuer(seed: &[u8; 32]) -> TokenIssuer {
    let key = MasterKey::of(&TokenIssuer::from_bytes(RELAY_PROTOCOL, 0, seed));
    TokenIssuer::from_bytes(RELAY_PROTOCOL, key.id(), seed)
}

/// Returns the occasion on which a token is shown: this room, from this address, now.
pub(crate) fn occasion(random: &[u8; 8], cookie: &Cookie, key: &RoomKey) -> Vec<u8> {
    [&random[..], cookie, key.bytes()].concat()
}

/// The relay's random numbers as bytes.
struct Draws<'a>(&'a mut Secrets);

impl Entropy for Draws<'_> {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.0.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
}

/// The protocol id of tokens for relays, so that no token for a game server opens a room.
const RELAY_PROTOCOL: u64 = u64::from_le_bytes(*b"musrelay");
