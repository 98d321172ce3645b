//! The events that a host reports to its application, and the names it uses.

use std::fmt;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// This side's application wished it.
    ByUs,
    /// The peer sent an END.
    ByPeer,
    /// The peer no longer answers pings.
    TimedOut,
    /// The peer answers, but does not acknowledge a message that was sent as often as allowed.
    Unacknowledged,
    /// The peer began a new connection from the same address: it has restarted.
    Replaced,
}

/// The reason that a connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailReason {
    /// No answer, as often as was tried.
    Unanswered,
    /// The server's window or percentage makes no sense or is beyond the limits.
    BadOffer,
    /// The server ended it.
    ByPeer,
    /// This side's application gave up.
    ByUs,
}
