//! Noise through `snow`, with randomness from our provider, and the key that a server is known by.
//!
//! `snow` takes part in handshakes and in sealing tokens only; packets are protected by keys derived from its result.

use std::fmt;

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

use super::{Entropy, SECRET_LEN, Secret, expand};

/// The private key that a server proves to hold (X25519). Wiped when dropped.
///
/// ```
/// use muse_transport::{SeededEntropy, ServerKey};
/// let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// assert_eq!(ServerKey::from_bytes(*key.to_bytes()).public(), key.public());
/// ```
#[derive(Clone)]
pub struct ServerKey {
    private: Secret,
    public: ServerPublicKey,
}

impl ServerKey {
    /// A new key.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut private = [0; SECRET_LEN];
        entropy.fill(&mut private);
        Self::from_bytes(private)
    }

    /// The key with these 32 bytes.
    pub fn from_bytes(private: [u8; SECRET_LEN]) -> Self {
        let private = Zeroizing::new(private);
        let mut dh = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .expect("snow is built with X25519");
        dh.set(&private[..]);
        let public = dh
            .pubkey()
            .try_into()
            .expect("an X25519 public key has 32 bytes");
        Self {
            private,
            public: ServerPublicKey(public),
        }
    }

    /// The bytes to keep in a safe place.
    pub fn to_bytes(&self) -> Zeroizing<[u8; SECRET_LEN]> {
        self.private.clone()
    }

    /// Returns the public key, which clients pin.
    pub fn public(&self) -> ServerPublicKey {
        self.public
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// The public key of a server, which a client pins or finds in its connect token. Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerPublicKey([u8; SECRET_LEN]);

impl ServerPublicKey {
    /// The key with these 32 bytes.
    pub const fn from_bytes(bytes: [u8; SECRET_LEN]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; SECRET_LEN] {
        &self.0
    }
}

impl fmt::Display for ServerPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ServerPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerPublicKey({self})")
    }
}

impl std::str::FromStr for ServerPublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        let mut bytes = [0; SECRET_LEN];
        if digits.len() != 2 * SECRET_LEN {
            return Err(InvalidPublicKey);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |index: usize| char::from(pair[index]).to_digit(16).ok_or(InvalidPublicKey);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(Self(bytes))
    }
}

/// The text is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server's public key is written as 64 hexadecimal digits")]
pub struct InvalidPublicKey;

/// A builder for the pattern, of which all randomness comes from `entropy`.
pub(crate) fn builder<'a>(pattern: &str, entropy: &mut dyn Entropy) -> snow::Builder<'a> {
    let params = pattern.parse().expect("a pattern of ours is valid");
    snow::Builder::with_resolver(params, Box::new(Resolver(Ratchet::new(entropy))))
}

/// A generator that is seeded once and forgets what it has given: its state is replaced by one-way steps.
#[derive(Clone)]
pub(crate) struct Ratchet(Secret);

impl Ratchet {
    /// A generator with 32 bytes from `entropy`.
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut seed = Secret::new([0; SECRET_LEN]);
        entropy.fill(&mut seed[..]);
        Self(seed)
    }
}

impl Entropy for Ratchet {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(SECRET_LEN) {
            let mut next = Secret::new([0; SECRET_LEN]);
            expand(&self.0, &[b"muse random"], chunk);
            expand(&self.0, &[b"muse random next"], &mut next[..]);
            self.0 = next;
        }
    }
}

impl Random for Ratchet {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        self.fill(bytes);
        Ok(())
    }
}

/// `snow`'s own primitives with our randomness.
struct Resolver(Ratchet);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(self.0.clone()))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}
