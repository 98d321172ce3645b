//! The events that an endpoint tells the application, and the options of a message.

use std::fmt;
use std::net::SocketAddr;

use muse_wire::Instant;
use thiserror::Error;

use crate::config::Priority;
use crate::handshake::Refusal;

/// Names a connection of one endpoint; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);

impl ConnectionId {
    pub(crate) fn new(index: usize, generation: u32) -> Self {
        Self(index as u64 | u64::from(generation) << 32)
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & 0xFFFF_FFFF) as usize
    }

    /// The id as a number, for logs and foreign interfaces.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The id with this number, as [`to_bits`](Self::to_bits) gave it. One that names no connection is harmless.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// Names a message within its connection and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId {
    /// Its channel.
    pub channel: u8,
    /// Its number in the channel.
    pub number: u64,
}

/// Options of one message, beyond those of its channel.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions};
/// # use muse_wire::{Duration, Instant};
/// use muse_transport::{Event, Priority, SendOptions};
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::ReliableUnordered)).build()?;
/// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// # let connection = client.connect(Instant::ZERO, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()))?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// # server.listen(ServerOptions::new(key));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [here, there] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # for node in [here, there] {
/// #     while simulation.node_mut(node).poll_event(&mut Vec::new()).is_some() {}
/// # }
/// # let now = simulation.now();
/// # let client = simulation.node_mut(here);
/// let options = SendOptions::default().priority(Priority::Urgent).receipt();
/// client.send_with(now, connection, 0, b"with", &options)?;
/// client.send(now, connection, 0, b"without")?;
/// # simulation.run_for(Duration::from_millis(200));
/// # let client = simulation.node_mut(here);
/// // One receipt for two messages.
/// let (mut buffer, mut receipts) = (Vec::new(), 0);
/// while let Some(event) = client.poll_event(&mut buffer) {
///     receipts += u32::from(matches!(event, Event::Receipt { .. }));
/// }
/// assert_eq!(receipts, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions {
    pub(crate) priority: Option<Priority>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) receipt: bool,
}

impl SendOptions {
    /// Ask for a [`Receipt`].
    pub fn receipt(mut self) -> Self {
        self.receipt = true;
        self
    }
}

muse_wire::setters! { SendOptions:
    /// Sets its priority. Default: that of the channel.
    priority: Priority = Some(priority),

    /// Sets the time after which it is worthless: it is then not sent, and not sent again. Default: never.
    deadline: Instant = Some(deadline),
}

/// The outcome of a message for which a receipt was asked.
///
/// ```
/// # use muse_netem::{Network, Simulation};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, SeededEntropy, ServerKey, ServerOptions};
/// # use muse_wire::{Duration, Instant};
/// use muse_transport::{Event, Outcome, SendOptions};
/// /// Whether a message is known to have come: with what was sent with `SendOptions::receipt`.
/// fn arrived(event: &Event<'_>) -> bool {
///     matches!(event, Event::Receipt { receipt, .. } if receipt.outcome == Outcome::Delivered)
/// }
/// # let config = Config::new(1).channel(ChannelConfig::new(Delivery::ReliableUnordered)).build()?;
/// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
/// # let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(2));
/// # let connection = client.connect(Instant::ZERO, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()))?;
/// # let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(3));
/// # server.listen(ServerOptions::new(key));
/// # let mut simulation = Simulation::new(Network::new(1));
/// # let [here, there] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
/// # simulation.run_for(Duration::from_millis(200));
/// # for node in [here, there] {
/// #     while simulation.node_mut(node).poll_event(&mut Vec::new()).is_some() {}
/// # }
/// # let now = simulation.now();
/// # let client = simulation.node_mut(here);
/// client.send_with(now, connection, 0, b"bought", &SendOptions::default().receipt())?;
/// # simulation.run_for(Duration::from_millis(200));
/// # let client = simulation.node_mut(here);
/// assert!(client.poll_event(&mut Vec::new()).is_some_and(|event| arrived(&event)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message.
    pub id: MessageId,
    /// The outcome.
    pub outcome: Outcome,
}

impl Receipt {
    /// Tells the end of the message with this number in a channel.
    pub(crate) const fn new(channel: u8, number: u64, outcome: Outcome) -> Self {
        let id = MessageId { channel, number };
        Self { id, outcome }
    }
}

/// The end of a message's way. Arrivals are certain, losses only reasonably certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer has it. On sequenced and partially reliable channels it may have come too late to be shown. Of an unreliable
    /// message in several pieces it means that all of them arrived: the peer drops the oldest when it has to put more
    /// than eight together at once.
    Delivered,
    /// It was lost and is not sent again.
    Lost,
    /// Its deadline passed, a newer message made it needless, or congestion held it back for too long, before it was known to
    /// have arrived.
    Expired,
}

/// An event, as [`Endpoint::poll_event`](crate::Endpoint::poll_event) tells it.
///
/// ```
/// use muse_transport::{CloseReason, ConnectionId, Event};
/// fn log(event: Event<'_>) -> String {
///     match event {
///         Event::Connected { account, .. } => format!("account {account} came"),
///         Event::Message { channel, payload, .. } => format!("{} bytes on {channel}", payload.len()),
///         Event::Closed { reason, .. } => format!("gone: {reason:?}"),
///         // There may be more in a later version.
///         _ => String::new(),
///     }
/// }
/// let connection = ConnectionId::from_bits(1);
/// assert_eq!(log(Event::Message { connection, channel: 2, payload: b"hello" }), "5 bytes on 2");
/// assert_eq!(log(Event::Closed { connection, reason: CloseReason::Lost }), "gone: Lost");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A connection is there, made by us or by a client.
    Connected {
        /// Its id.
        connection: ConnectionId,
        /// The account, by connect token; 0 without one.
        account: u64,
        /// The data of the token's issuer about the player (at a server), or of the server (at a client).
        user_data: &'a [u8],
        /// The data of the client from [`Connect::hello`](crate::Connect::hello), at a server.
        hello: &'a [u8],
    },
    /// A client has passed the handshake's checks and waits for [`Endpoint::admit`](crate::Endpoint::admit) or
    /// [`Endpoint::deny`](crate::Endpoint::deny); at a server with
    /// [`ServerOptions::admission`](crate::ServerOptions::admission) only. After an `admit`, `Connected` or `Closed` follows;
    /// a client that leaves before the decision is `Closed`.
    Asking {
        /// The id that its connection will have.
        connection: ConnectionId,
        /// The account of its connect token; 0 without one.
        account: u64,
        /// Data about the player that the token's issuer put into the token.
        user_data: &'a [u8],
        /// The client's [`Connect::hello`](crate::Connect::hello). Somebody who recorded it may repeat it.
        hello: &'a [u8],
        /// The client's address.
        address: SocketAddr,
    },
    /// The server refused to admit us.
    Refused {
        /// The id that `connect` returned.
        connection: ConnectionId,
        /// The reason.
        reason: Refusal,
    },
    /// Our attempt to connect got no answer in time: wrong address, another protocol id, or nobody there.
    Unanswered {
        /// The id that `connect` returned.
        connection: ConnectionId,
    },
    /// A message.
    Message {
        /// The connection that sent it.
        connection: ConnectionId,
        /// The channel.
        channel: u8,
        /// The message.
        payload: &'a [u8],
    },
    /// The outcome of a message sent with [`SendOptions::receipt`].
    Receipt {
        /// The connection that it was sent to.
        connection: ConnectionId,
        /// The message and its outcome.
        receipt: Receipt,
    },
    /// Nothing has been heard for a while; the connection is kept and may come back.
    Interrupted {
        /// The connection.
        connection: ConnectionId,
    },
    /// An interrupted connection is back; nothing reliable was lost and nothing comes twice.
    Resumed {
        /// The connection.
        connection: ConnectionId,
    },
    /// The peer is reached at another address now.
    AddressChanged {
        /// The connection.
        connection: ConnectionId,
        /// The new address, proven.
        address: SocketAddr,
    },
    /// The connection is over; nothing more comes of it.
    Closed {
        /// The connection.
        connection: ConnectionId,
        /// The reason.
        reason: CloseReason,
    },
}

/// The reason for which a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed it.
    ByPeer {
        /// The peer's number for it.
        code: u16,
        /// The peer's words.
        text: String,
    },
    /// We closed it.
    ByUs,
    /// Nothing was heard for too long.
    Lost,
    /// The peer broke the protocol.
    Protocol,
    /// One side acknowledged a packet that the other never sent: it does not tell the truth about what it has received, so that it is sent
    /// more than the path carries.
    FalseAck,
    /// The holder of its token connected again.
    Replaced,
    /// The application did not decide in time about the client, which was refused as by a busy server.
    Undecided,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPeer { text, .. } if !text.is_empty() => f.write_str(text),
            Self::ByPeer { code, .. } => write!(f, "closed by the peer with code {code}"),
            Self::ByUs => f.write_str("closed here"),
            Self::Lost => f.write_str("nothing was heard for too long"),
            Self::Protocol => f.write_str("the peer broke the protocol"),
            Self::FalseAck => f.write_str("a packet was acknowledged that was never sent"),
            Self::Replaced => f.write_str("the same player connected again"),
            Self::Undecided => f.write_str("the application did not decide in time"),
        }
    }
}

/// An error that keeps a message from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such connection, or it is over.
    #[error("no such connection: it was closed or never existed")]
    NoConnection,
    /// The connection has no such channel.
    #[error("no channel {channel}: add it with Config::channel on both sides")]
    NoChannel {
        /// The channel asked for.
        channel: u8,
    },
    /// Too much waits on the channel already: send less, or later.
    #[error(
        "the channel's queue is full ({bytes} bytes, {messages} messages wait): send less or try again later"
    )]
    QueueFull {
        /// Bytes that wait.
        bytes: usize,
        /// Messages that wait.
        messages: usize,
    },
    /// The message is larger than [`Config::message_max`](crate::Config::message_max).
    #[error("message of {len} bytes: the limit is {limit} (Config::message_max)")]
    TooLong {
        /// Its length.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// A partially reliable channel keeps its promise by counting; a deadline would break it.
    #[error("a message on a partially reliable channel cannot have a deadline")]
    DeadlineOnPartial,
    /// The connection is about to close.
    #[error("the connection is closing")]
    Closing,
}
