//! The handshake, sans-IO: from nothing to keys in two round trips, without state on the server before the address is proven.
//!
//! Client and server exchange *Hello*, *Cookie*, *Connect* and *Accept* (or *Refuse*). [`Connecting`] is the client's
//! side, [`Listener`] the server's. The order of the server's checks is the order of their cost: protocol id,
//! version, cookie, rate per prefix, schema, token without cryptography, token's signature, Diffie-Hellman; the last two are
//! limited in operations per second, replies before the cookie in number, and no reply is longer than its question.
//! Keys come from Noise (`NK` with a pinned server key, `NKpsk0` with a connect token's secret). `docs/handshake.md` is the
//! byte-exact description, `docs/security.md` the threat model.

mod connecting;
mod cookie;
mod inquiry;
mod limits;
mod listener;
mod packet;
mod recent;
mod session;

use muse_schema::Difference;
use muse_wire::Duration;
use thiserror::Error;

pub(crate) use connecting::{Connecting, ConnectingConfig, Established, Progress, Trust};
pub use inquiry::{DESCRIPTION_LEN_MAX, DIFFERENCES_MAX};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use inquiry::{Inquiry, differences, page_of};
pub use limits::HandshakeLimits;
pub use listener::HandshakeCounters;
pub(crate) use listener::{ConnectRequest, Listener, ListenerConfig, Outcome};
pub(crate) use packet::CONNECT_TOKEN_OFFSET;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use packet::repair as repair_for_fuzzing;

use crate::token::TokenError;

/// Sixteen random bytes that name one attempt to connect; only who sees the client's packets knows them.
pub(crate) type ClientRandom = [u8; CLIENT_RANDOM_LEN];

/// The reason for which a server refused a client.
///
/// Refusals are not authenticated: anyone who can read the client's packets can forge one, as they could cut the line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The server does not speak the client's version of the protocol.
    #[error(
        "the server speaks versions {server_min} to {server_max} of the protocol, the client {client}"
    )]
    Version {
        /// The version that the client speaks.
        client: u16,
        /// Oldest that the server speaks.
        server_min: u16,
        /// Newest that the server speaks.
        server_max: u16,
    },
    /// The sides do not share what they must: messages, channels, and what [`Config::shared`](crate::Config::shared) describes.
    #[error("{}", tell_mismatch(*client, *server, differences))]
    Schema {
        /// Hash of the client's description.
        client: u64,
        /// Hash of the server's description.
        server: u64,
        /// The first [`DIFFERENCES_MAX`] differences; *here* is the client and *there* the server. Empty if the server did not say.
        differences: Vec<Difference>,
    },
    /// As many connections as the server allows.
    #[error("the server is full")]
    Full,
    /// The server wants a connect token.
    #[error("the server requires a connect token")]
    TokenRequired,
    /// The token does not let its holder in.
    #[error("{0}")]
    Token(TokenError),
    /// The server could not read the handshake.
    #[error("the server does not have the key that the client expects")]
    WrongKey,
    /// The application on the server said no, see [`Endpoint::deny`](crate::Endpoint::deny).
    #[error("the server denied the connection: {text} (code {code})")]
    Denied {
        /// The application's number for it.
        code: u16,
        /// The application's words, at most 128 bytes.
        text: String,
    },
    /// Too much to do now; worth another attempt later.
    #[error("the server is busy")]
    Busy,
    /// There is no way to the server: the reason in words, from [`Endpoint::pin`](crate::Endpoint::pin). The server said nothing.
    #[error("{0}")]
    NoWay(String),
    /// The server does not take part in unprotected connections.
    #[error("the server accepts no unprotected connections")]
    Insecure,
    /// A reason that this version does not know.
    #[error("the server refused with reason {0}")]
    Other(u8),
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Full => Self::Busy,
            other => Self::Token(other),
        }
    }
}

fn tell_mismatch(client: u64, server: u64, differences: &[Difference]) -> String {
    if differences.is_empty() {
        return format!(
            "what both sides must share differs: the server has {server:016x}, the client {client:016x}; build both from the same messages, channels and kinds"
        );
    }
    let told: Vec<String> = differences
        .iter()
        .take(DIFFERENCES_TOLD)
        .map(Difference::to_string)
        .collect();
    let more = match differences.len() - told.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!(
        "client (here) and server (there) do not share what they must: {}{more}",
        told.join("; ")
    )
}

/// The version of the protocol that this implementation speaks.
pub(crate) const VERSION: u16 = 1;
/// Longest application payload in a Connect, and longest settings in an Accept.
pub(crate) const PAYLOAD_LEN_MAX: usize = 256;
/// Longest text with which an application denies a connection; the rest is cut off.
pub(crate) const DENIED_TEXT_LEN_MAX: usize = 128;
/// Longest time that an application may take to decide about a client, and that a client waits for it.
pub const DECISION_TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// Room that a reply needs at most.
pub(crate) const REPLY_LEN_MAX: usize = packet::DESCRIPTION_PACKET_LEN_MAX;
/// Differences that the text of a refusal names.
const DIFFERENCES_TOLD: usize = 8;
/// Longest handshake packet.
pub(crate) const HANDSHAKE_LEN_MAX: usize = packet::CONNECT_LEN_MAX;
const CLIENT_RANDOM_LEN: usize = 16;

#[cfg(test)]
mod tests;
