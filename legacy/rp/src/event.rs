//! The events that a host reports to its application, and the names it uses.

use std::fmt;

use thiserror::Error;

/// One of the two channels of a connection, and so one of a host's two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Everything arrives, in order.
    Reliable,
    /// All but a promised share of each window arrives, in order.
    Partial,
}

impl Channel {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Reliable, Self::Partial];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reliable => "reliable",
            Self::Partial => "partial",
        })
    }
}

/// A connection of a [`Host`](crate::Host). Never used twice by the same host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u64);

/// An event of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A connection is open.
    Connected {
        /// The connection.
        connection: ConnectionId,
    },
    /// A message arrived.
    Message(Message),
    /// An open connection has ended.
    Disconnected {
        /// The connection.
        connection: ConnectionId,
        /// The reason.
        reason: EndReason,
    },
    /// A connection that this host asked for did not come about.
    ConnectFailed {
        /// The connection.
        connection: ConnectionId,
        /// The reason.
        reason: FailReason,
    },
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// From whom.
    pub connection: ConnectionId,
    /// On which channel.
    pub channel: Channel,
    /// Its type, by which handlers are chosen.
    pub kind: u16,
    /// Its number on the wire.
    pub sequence: u32,
    /// Number of messages just before it that are lost for good; always 0 on the reliable channel.
    pub skipped: u32,
    /// The bytes that were sent.
    pub payload: Vec<u8>,
}

/// The reason that an open connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndReason {
    /// This side's application wished it.
    #[error("this side ended it")]
    ByUs,
    /// The peer sent an END.
    #[error("the peer ended it")]
    ByPeer,
    /// The peer no longer answers pings.
    #[error("the peer no longer answers")]
    TimedOut,
    /// The peer answers, but does not acknowledge a message that was sent as often as allowed.
    #[error("the peer does not acknowledge what was sent")]
    Unacknowledged,
    /// The peer began a new connection from the same address: it has restarted.
    #[error("the peer has restarted")]
    Replaced,
}

/// The reason that a connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FailReason {
    /// No answer, as often as was tried: nobody listens there, or the server is full.
    #[error("no answer")]
    Unanswered,
    /// The server answered the call and then never opened its partial channel: it filled up meanwhile and says nothing of it, as
    /// the original does, or that port cannot be reached.
    #[error(
        "the server answered, but did not let the client in: it is full, or its partial port cannot be reached"
    )]
    NotAdmitted,
    /// The server's window or percentage makes no sense or is beyond the limits.
    #[error("the server offers a window or percentage beyond the limits")]
    BadOffer,
    /// The server ended it: it filled up meanwhile, or it closes.
    #[error("the server refused: it is full or closing")]
    ByPeer,
    /// This side's application gave up.
    #[error("this side gave up")]
    ByUs,
}
