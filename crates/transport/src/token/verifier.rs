//! The game server's side of tokens: who signed it, is it for us, is it still good, was it used.

use std::net::SocketAddr;

use ed25519_dalek::{Signature, VerifyingKey};
use thiserror::Error;
use zeroize::Zeroizing;

use super::format::{self, PublicToken};
use super::replay::ReplayCache;
use super::{LIFETIME_S_MAX, SEAL_PATTERN, SEALED_FIXED_LEN, TokenId, USER_DATA_LEN_MAX};
use crate::crypto::{Entropy, SECRET_LEN, Secret, ServerKey, noise_builder};

/// Checks connect tokens and remembers the used ones.
///
/// The checks run from cheap to expensive: structure, time, server, use, then the signature, then opening the seal.
///
/// ```
/// use muse_transport::token::{TokenIssuer, TokenVerifier};
/// use muse_transport::SeededEntropy;
/// let mut entropy = SeededEntropy::danger_seeded(1);
/// let issuer = TokenIssuer::generate(0xCAFE, 1, &mut entropy);
/// let mut verifier = TokenVerifier::new();
/// verifier.add_key(issuer.key_id(), &issuer.public_key()).expect("a public key");
/// assert!(verifier.remove_key(1));
/// ```
#[derive(Debug)]
pub struct TokenVerifier {
    keys: Vec<(u32, VerifyingKey)>,
    addresses: Vec<SocketAddr>,
    used: ReplayCache,
}

impl TokenVerifier {
    /// A verifier that trusts no key yet and takes any address in a token for its own.
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            addresses: Vec::new(),
            used: ReplayCache::new(USED_TOKENS_MAX_DEFAULT),
        }
    }

    /// Remembers up to `limit` used tokens, 65,536 by default, each about 40 bytes until it expires. When full, new
    /// tokens are refused.
    pub fn used_tokens_max(mut self, limit: usize) -> Self {
        self.used = ReplayCache::new(limit);
        self
    }

    /// Accepts only tokens that name this address (or another one given so). Without any, the server's key alone
    /// decides.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.addresses.push(canonical(address));
        self
    }

    /// Trusts the master's key with this number, in place of any other with that number. At most 16 keys.
    pub fn add_key(&mut self, key_id: u32, public_key: &[u8; 32]) -> Result<(), KeyError> {
        let key = VerifyingKey::from_bytes(public_key).map_err(|_| KeyError::Invalid)?;
        // For a weak key, signatures exist that fit any message.
        if key.is_weak() {
            return Err(KeyError::Invalid);
        }
        self.remove_key(key_id);
        if self.keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        self.keys.push((key_id, key));
        Ok(())
    }

    /// No longer trusts the key with this number; says whether there was one.
    pub fn remove_key(&mut self, key_id: u32) -> bool {
        let before = self.keys.len();
        self.keys.retain(|(id, _)| *id != key_id);
        self.keys.len() < before
    }

    /// Used tokens that are remembered now.
    pub fn used_tokens(&self) -> usize {
        self.used.len()
    }

    /// Everything that costs no cryptography. `resumable` says whether a token's session still lives, in which case its
    /// holder may come again.
    pub(crate) fn check<'a>(
        &self,
        public: &'a [u8],
        protocol_id: u64,
        server_key: &ServerKey,
        unix_now_s: u64,
        resumable: &dyn Fn(&TokenId) -> bool,
    ) -> Result<Checked<'a>, TokenError> {
        let token = PublicToken::parse(public).ok_or(TokenError::Invalid)?;
        let lifetime_s = token
            .expires_s
            .checked_sub(token.issued_s)
            .ok_or(TokenError::Invalid)?;
        if lifetime_s > LIFETIME_S_MAX {
            return Err(TokenError::Invalid);
        }
        // Errors from here on reveal only what is in the token, in the server's public key and on its clock: nothing that a forger
        // does not have.
        if token.protocol_id != protocol_id {
            return Err(TokenError::OtherProtocol);
        }
        if self.key(&token).is_none() {
            return Err(TokenError::UnknownKey);
        }
        if token.issued_s > unix_now_s.saturating_add(CLOCK_LEEWAY_S) {
            return Err(TokenError::NotYetValid);
        }
        if token.server_key != server_key.public() || !self.is_ours(&token) {
            return Err(TokenError::WrongServer);
        }
        let (used, expired) = (
            self.used.contains(token.expires_s, token.id),
            unix_now_s > token.expires_s,
        );
        let resumes = resumable(&token.id);
        // The holder of a living session may come back to it, even after the token has expired.
        match (resumes, used, expired) {
            (true, _, _) | (false, false, false) => Ok(Checked { token, resumes }),
            (false, _, true) => Err(TokenError::Expired),
            (false, true, false) => Err(TokenError::Used),
        }
    }

    /// Checks the signature: one operation with a public key.
    pub(crate) fn verify(&self, checked: &Checked<'_>) -> Result<(), TokenError> {
        let token = &checked.token;
        let key = self.key(token).ok_or(TokenError::UnknownKey)?;
        let signature = Signature::from_bytes(&token.signature);
        // Strict, so that a token has one signature and not several that are equivalent.
        key.verify_strict(&format::signed(token.unsigned), &signature)
            .map_err(|_| TokenError::Invalid)
    }

    /// Counts the token as used. A session that resumes counts once.
    pub(crate) fn mark_used(
        &mut self,
        verified: &Verified,
        unix_now_s: u64,
    ) -> Result<(), TokenError> {
        if verified.resumes {
            return Ok(());
        }
        // Checked again, for two attempts with one token may have been under way at the same time.
        if self.used.contains(verified.expires_s, verified.id) {
            return Err(TokenError::Used);
        }
        self.used
            .insert(unix_now_s, verified.expires_s, verified.id)
            .map_err(|_| TokenError::Full)
    }

    /// The key that a token says it is signed with.
    fn key(&self, token: &PublicToken<'_>) -> Option<&VerifyingKey> {
        let mut keys = self.keys.iter();
        keys.find_map(|(id, key)| (*id == token.key_id).then_some(key))
    }

    fn is_ours(&self, token: &PublicToken<'_>) -> bool {
        self.addresses.is_empty()
            || token
                .servers()
                .any(|server| self.addresses.contains(&canonical(server)))
    }
}

impl Default for TokenVerifier {
    fn default() -> Self {
        Self::new()
    }
}

/// A token that passed what costs nothing.
pub(crate) struct Checked<'a> {
    token: PublicToken<'a>,
    resumes: bool,
}

impl Checked<'_> {
    /// Returns the token's name.
    pub(crate) fn id(&self) -> TokenId {
        self.token.id
    }

    /// Opens what is sealed to the server: one Diffie-Hellman. Call it after [`TokenVerifier::verify`].
    pub(crate) fn open(
        &self,
        server_key: &ServerKey,
        entropy: &mut dyn Entropy,
    ) -> Result<Verified, TokenError> {
        let private = server_key.to_bytes();
        let mut inner = Zeroizing::new([0; SEALED_FIXED_LEN + USER_DATA_LEN_MAX]);
        let len = noise_builder(SEAL_PATTERN, entropy)
            .prologue(self.token.header)
            .and_then(|builder| builder.local_private_key(&private[..]))
            .and_then(|builder| builder.build_responder())
            .and_then(|mut noise| noise.read_message(self.token.sealed, &mut inner[..]))
            .map_err(|_| TokenError::Invalid)?;
        let (secret, rest) = inner[..len]
            .split_first_chunk::<SECRET_LEN>()
            .ok_or(TokenError::Invalid)?;
        let (account, user_data) = rest.split_first_chunk::<8>().ok_or(TokenError::Invalid)?;
        Ok(Verified {
            id: self.token.id,
            expires_s: self.token.expires_s,
            account: u64::from_le_bytes(*account),
            user_data: user_data.to_vec(),
            secret: Zeroizing::new(*secret),
            resumes: self.resumes,
        })
    }
}

/// The contents of an authentic token.
pub(crate) struct Verified {
    pub(crate) id: TokenId,
    pub(crate) expires_s: u64,
    pub(crate) account: u64,
    pub(crate) user_data: Vec<u8>,
    pub(crate) secret: Secret,
    pub(crate) resumes: bool,
}

/// The reason for which a token does not admit its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// No token, or its signature or seal is not right.
    #[error("the token is not valid")]
    Invalid,
    /// Made for another protocol id than the server's.
    #[error(
        "the token is for another protocol id: the master and the game server must have the same"
    )]
    OtherProtocol,
    /// Signed with a key that the server does not trust, or no longer.
    #[error("the token is signed with a key that the server does not know")]
    UnknownKey,
    /// Issued more than a minute in the server's future.
    #[error("the token is not valid yet: the clocks of the master and the game server differ")]
    NotYetValid,
    /// Too late.
    #[error("the token has expired")]
    Expired,
    /// Its single use is spent and its session no longer lives.
    #[error("the token has been used")]
    Used,
    /// For another server.
    #[error("the token is for another server")]
    WrongServer,
    /// The server cannot remember more used tokens.
    #[error("the server cannot accept more tokens now")]
    Full,
}

/// A key cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a point of the curve, or a weak one.
    #[error("not an Ed25519 public key")]
    Invalid,
    /// Remove one first.
    #[error("a verifier trusts at most {KEYS_MAX} keys")]
    TooMany,
}

/// A dual-stack socket reports IPv4 addresses inside IPv6 ones; they are the same address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

const KEYS_MAX: usize = 16;
const USED_TOKENS_MAX_DEFAULT: usize = 65_536;
/// The most that the master's clock may be ahead of ours.
const CLOCK_LEEWAY_S: u64 = 60;
