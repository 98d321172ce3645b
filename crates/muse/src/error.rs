//! One error for everything that a game's loop can meet.

use std::{fmt, io};

use muse_netcode::{ClientId, WorldError};
use muse_transport::{CloseReason, ConfigError, ConnectError, MessageError, Refusal, SendError};
use thiserror::Error;

use crate::ProtocolError;

/// The outcome of what a game asks of its network.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of [`Server`](crate::Server), [`Client`](crate::Client) and what is built on them.
#[derive(Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket or a file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The declarations contradict each other.
    #[error("the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The settings of the connections contradict each other.
    #[error("the protocol's settings: {0}")]
    Config(#[from] ConfigError),
    /// An attempt to connect could not begin.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server refused the connection.
    #[error("the server refused: {0}")]
    Refused(Refusal),
    /// Nobody answered in time.
    #[error("nobody answers there: is the server running, and can its UDP port be reached?")]
    Unanswered,
    /// The connection is over.
    #[error("the connection ended: {0}")]
    Closed(CloseReason),
    /// No such client is connected.
    #[error("client {} is not connected", .0.0)]
    NoSuchClient(ClientId),
    /// The message type is not part of the protocol.
    #[error("{0} is not declared: add `.message::<{0}>(delivery)` to the protocol")]
    Undeclared(&'static str),
    /// The world did not take a change.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The settings of a deterministic match contradict each other.
    #[cfg(feature = "lockstep")]
    #[error("the match's settings: {0}")]
    Match(#[from] muse_lockstep::MatchConfigError),
    /// An input is too long to travel.
    #[cfg(feature = "lockstep")]
    #[error(transparent)]
    Input(#[from] muse_lockstep::InputError),
    /// The master refused what this server said of its match, and its match is over.
    #[cfg(feature = "master")]
    #[error("the master refused this server: {0}")]
    MatchRefused(muse_master_client::messages::ServerRefusal),
    /// A message could not be sent.
    #[error(transparent)]
    Message(#[from] MessageError),
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Self::Message(MessageError::Send(error))
    }
}

/// Prints the words of [`Display`](fmt::Display), so that a `main` that returns an error tells the user what to do.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
