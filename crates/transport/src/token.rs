//! Connect tokens: a master gives them to players so that a game server admits them.
//!
//! A token names an account, carries user data, holds for a short time on named servers only, and can be used once.
//! The master signs it with Ed25519; servers hold public keys only, so a stolen server cannot make
//! tokens. Inside, sealed to the key of one server, lie the account, the user data and a secret that the client
//! has as well: the client proves that it holds the secret, so that a token seen on the wire is of no use to a thief, and the
//! same secret lets it resume its session after a cut.
//!
//! ```
//! use muse_transport::token::{ConnectToken, TokenGrant, TokenIssuer};
//! use muse_transport::{SeededEntropy, ServerKey};
//! let mut entropy = SeededEntropy::danger_seeded(1);
//! let server = ServerKey::generate(&mut entropy);
//! let issuer = TokenIssuer::generate(0xCAFE, 1, &mut entropy);
//! let address = "203.0.113.5:9000".parse().expect("an address");
//! let grant = TokenGrant::new(42, server.public(), address).user_data(b"blue team").lifetime_s(30);
//! let token = issuer.issue(&grant, 1_700_000_000, &mut entropy).expect("within the limits");
//! // Through HTTP to the client, as text.
//! let held = ConnectToken::from_text(&token.to_text()).expect("what to_text made");
//! assert_eq!(held.servers(), [address]);
//! ```

mod format;
mod replay;
mod shown;
mod text;
mod verifier;

use std::fmt;
use std::net::SocketAddr;

use ed25519_dalek::{Signer, SigningKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::crypto::{Entropy, SECRET_LEN, Secret, ServerPublicKey, noise_builder};
use format::PublicToken;
pub(crate) use format::{PUBLIC_LEN_MAX, TOKEN_ID_OFFSET};
pub use shown::{SHOWN_LEN_MAX, TokenHolder};
pub(crate) use verifier::Verified;
pub use verifier::{KeyError, TokenError, TokenVerifier};

/// The name of a token, random; single use is counted by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId([u8; TOKEN_ID_LEN]);

impl TokenId {
    /// The token with these 16 bytes as its name.
    pub const fn from_bytes(bytes: [u8; TOKEN_ID_LEN]) -> Self {
        Self(bytes)
    }

    /// Its 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; TOKEN_ID_LEN] {
        &self.0
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The rights that a token is to give.
#[derive(Clone, Debug)]
pub struct TokenGrant {
    account: u64,
    user_data: Vec<u8>,
    server_key: ServerPublicKey,
    servers: Vec<SocketAddr>,
    lifetime_s: u64,
}

impl TokenGrant {
    /// Lets `account` into the server with this key at this address, for 60 seconds, without user data.
    pub fn new(account: u64, server_key: ServerPublicKey, server: SocketAddr) -> Self {
        Self {
            account,
            user_data: Vec::new(),
            server_key,
            servers: vec![server],
            lifetime_s: LIFETIME_S_DEFAULT,
        }
    }

    /// One more address of the server; at most 8 in all.
    pub fn server(mut self, server: SocketAddr) -> Self {
        self.servers.push(server);
        self
    }
}

muse_wire::setters! { TokenGrant:
    /// Bytes for the game server, which the player cannot read or change; at most 256.
    user_data: &[u8] = user_data.to_vec(),

    /// Sets how long the token may be used, 60 seconds by default, at most a day. A server remembers used tokens for as long.
    lifetime_s: u64,
}

/// A grant goes beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IssueError {
    /// Too much user data.
    #[error("user data is longer than {USER_DATA_LEN_MAX} bytes")]
    UserData,
    /// Too many servers.
    #[error("a token names at most {SERVERS_MAX} addresses")]
    Servers,
    /// The lifetime is zero or too long.
    #[error("a token is valid for 1 to {LIFETIME_S_MAX} seconds")]
    Lifetime,
}

/// Makes tokens; the master's side. Wiped when dropped.
///
/// ```
/// use muse_transport::token::{ConnectToken, TokenGrant, TokenIssuer};
/// use muse_transport::{SeededEntropy, ServerKey};
/// let mut entropy = SeededEntropy::danger_seeded(1); // a master uses the operating system's randomness
/// let server = ServerKey::generate(&mut entropy).public(); // the game server's key
/// let issuer = TokenIssuer::generate(0x6d79_6761_6d65, 1, &mut entropy);
/// let grant = TokenGrant::new(42, server, "203.0.113.7:7000".parse()?).user_data(b"team red");
/// let token = issuer.issue(&grant, 1_700_000_000, &mut entropy)?;
/// // As text to the player, who connects with it: `Connect::token(token)`.
/// let token = ConnectToken::from_text(&token.to_text())?;
/// assert_eq!(token.expires_s(), 1_700_000_060);
/// assert_eq!(token.server_key(), server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenIssuer {
    protocol_id: u64,
    key_id: u32,
    signing: SigningKey,
}

impl TokenIssuer {
    /// An issuer with a new key, which verifiers know by `key_id`. To rotate, give every verifier the new public key,
    /// then issue with the new key, then remove the old key when its last token has expired.
    pub fn generate(protocol_id: u64, key_id: u32, entropy: &mut dyn Entropy) -> Self {
        let mut seed = Secret::new([0; SECRET_LEN]);
        entropy.fill(&mut seed[..]);
        Self::from_bytes(protocol_id, key_id, &seed)
    }

    /// An issuer with the Ed25519 key of this seed.
    pub fn from_bytes(protocol_id: u64, key_id: u32, seed: &[u8; SECRET_LEN]) -> Self {
        Self {
            protocol_id,
            key_id,
            signing: SigningKey::from_bytes(seed),
        }
    }

    /// The seed, to keep in a safe place.
    pub fn to_bytes(&self) -> Zeroizing<[u8; SECRET_LEN]> {
        Zeroizing::new(self.signing.to_bytes())
    }

    /// The key's number.
    pub fn key_id(&self) -> u32 {
        self.key_id
    }

    /// Returns the public key that verifiers need, with [`key_id`](Self::key_id).
    pub fn public_key(&self) -> [u8; 32] {
        self.signing.verifying_key().to_bytes()
    }

    /// Makes a token at `unix_now_s`, seconds since 1970.
    pub fn issue(
        &self,
        grant: &TokenGrant,
        unix_now_s: u64,
        entropy: &mut dyn Entropy,
    ) -> Result<ConnectToken, IssueError> {
        if grant.user_data.len() > USER_DATA_LEN_MAX {
            return Err(IssueError::UserData);
        }
        if grant.servers.len() > SERVERS_MAX {
            return Err(IssueError::Servers);
        }
        if !(1..=LIFETIME_S_MAX).contains(&grant.lifetime_s) {
            return Err(IssueError::Lifetime);
        }
        let mut id = [0; TOKEN_ID_LEN];
        let mut secret = Secret::new([0; SECRET_LEN]);
        entropy.fill(&mut id);
        entropy.fill(&mut secret[..]);
        let mut public = Vec::with_capacity(PUBLIC_LEN_MAX);
        format::write_header(&mut public, self, grant, TokenId(id), unix_now_s);
        self.seal(grant, &secret, &mut public, entropy);
        let signature = self.signing.sign(&format::signed(&public));
        public.extend_from_slice(&signature.to_bytes());
        let bytes = [&[CONNECT_TOKEN_VERSION], &secret[..], &public].concat();
        Ok(ConnectToken::from_bytes(&bytes).expect("a token that was just made is valid"))
    }

    /// Appends what only the server may read, bound to the header before it.
    fn seal(
        &self,
        grant: &TokenGrant,
        secret: &Secret,
        public: &mut Vec<u8>,
        entropy: &mut dyn Entropy,
    ) {
        let inner =
            Zeroizing::new([&secret[..], &grant.account.to_le_bytes(), &grant.user_data].concat());
        let mut sealed = vec![0; inner.len() + SEALED_OVERHEAD];
        let len = noise_builder(SEAL_PATTERN, entropy)
            .prologue(public)
            .and_then(|builder| builder.remote_public_key(grant.server_key.as_bytes()))
            .and_then(|builder| builder.build_initiator())
            .and_then(|mut noise| noise.write_message(&inner, &mut sealed))
            .expect("any 32 bytes are a public key, and the buffer has room");
        public.extend_from_slice(&(len as u16).to_le_bytes());
        public.extend_from_slice(&sealed[..len]);
    }
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// A token as the client holds it: what it shows to the server and the secret that proves it is the holder's.
///
/// Keep it like a password until it has expired. `Debug` shows nothing secret.
#[derive(Clone)]
pub struct ConnectToken {
    secret: Secret,
    public: Vec<u8>,
    id: TokenId,
    expires_s: u64,
    server_key: ServerPublicKey,
    servers: Vec<SocketAddr>,
}

impl ConnectToken {
    /// Reads what [`to_bytes`](Self::to_bytes) made. The signature is the server's to check.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidToken> {
        let (&version, rest) = bytes.split_first().ok_or(InvalidToken)?;
        let (secret, public) = rest.split_first_chunk::<SECRET_LEN>().ok_or(InvalidToken)?;
        if version != CONNECT_TOKEN_VERSION {
            return Err(InvalidToken);
        }
        let token = PublicToken::parse(public).ok_or(InvalidToken)?;
        Ok(Self {
            secret: Zeroizing::new(*secret),
            public: public.to_vec(),
            id: token.id,
            expires_s: token.expires_s,
            server_key: token.server_key,
            servers: token.servers().collect(),
        })
    }

    /// At most [`CONNECT_TOKEN_LEN_MAX`] bytes.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&[CONNECT_TOKEN_VERSION], &self.secret[..], &self.public].concat())
    }

    /// Reads what [`to_text`](Self::to_text) made.
    pub fn from_text(text: &str) -> Result<Self, InvalidToken> {
        let bytes = Zeroizing::new(text::decode(text, CONNECT_TOKEN_LEN_MAX).ok_or(InvalidToken)?);
        Self::from_bytes(&bytes)
    }

    /// The bytes as base64url without padding, for HTTP and JSON.
    pub fn to_text(&self) -> String {
        text::encode(&self.to_bytes())
    }

    /// Its name.
    pub fn id(&self) -> TokenId {
        self.id
    }

    /// Returns the time after which it cannot be used for a new session, in seconds since 1970.
    pub fn expires_s(&self) -> u64 {
        self.expires_s
    }

    /// The key of the server that it is for.
    pub fn server_key(&self) -> ServerPublicKey {
        self.server_key
    }

    /// Returns the addresses of that server.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Returns the part that is shown to the server.
    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret that proves the holder.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }
}

impl fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectToken")
            .field("id", &self.id)
            .field("expires_s", &self.expires_s)
            .field("server_key", &self.server_key)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// These bytes or this text are no connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a connect token")]
pub struct InvalidToken;

/// Longest connect token, secret included.
pub const CONNECT_TOKEN_LEN_MAX: usize = 1 + SECRET_LEN + PUBLIC_LEN_MAX;
/// Longest user data of a token.
pub const USER_DATA_LEN_MAX: usize = 256;
/// Most addresses in a token.
pub const SERVERS_MAX: usize = 8;
/// Longest life of a token, in seconds.
pub const LIFETIME_S_MAX: u64 = 86_400;
const LIFETIME_S_DEFAULT: u64 = 60;
const TOKEN_ID_LEN: usize = 16;
const CONNECT_TOKEN_VERSION: u8 = 1;
/// Sealing to a known key by nobody in particular; the signature says who sealed.
const SEAL_PATTERN: &str = "Noise_N_25519_ChaChaPoly_BLAKE2s";
/// An ephemeral public key and a tag.
const SEALED_OVERHEAD: usize = 32 + 16;
/// Secret and account, which precede the user data.
const SEALED_FIXED_LEN: usize = SECRET_LEN + 8;
