//! The configuration of a game's connections: channels and their delivery, limits, times, congestion control.
//!
//! [`Config`] is shared by every connection of an endpoint; [`ChannelConfig`] says how one channel delivers. Both
//! have defaults that suit a fast game, and both sides must use the same channels: that is checked at connect.

use std::fmt;
use std::sync::Arc;

use muse_schema::fnv1a;
use muse_wire::partial::Promise;
use muse_wire::{Duration, Link};
use thiserror::Error;

use crate::congestion::Congestion;
use crate::handshake::DESCRIPTION_LEN_MAX;
use crate::memory::{Budgets, message_cost};
use crate::steering::{SHARDS_MAX, Shard};

/// Most channels of a connection.
pub const CHANNELS_MAX: usize = 256;
/// Largest value that [`Config::message_max`] takes.
pub const MESSAGE_LIMIT: usize = 48 << 20;
/// Connections beyond [`Config::connections_max`] that a full server has at most: holders of tokens who come back, until
/// they have taken over their sessions and the old connections are closed. Further ones get no answer until then, and ask again by themselves.
pub const RESUMING_MAX: usize = 64;
/// Messages of one reliable channel that may be on their way at once.
pub const CHANNEL_WINDOW: u64 = 8_192;
/// Bytes of one channel that may be on their way at once; a single larger message may be.
pub const CHANNEL_WINDOW_BYTES: usize = 4 << 20;

/// The delivery guarantee of a channel.
///
/// ```
/// use muse_transport::{ChannelConfig, Config, Delivery};
/// // Positions on channel 0, chat on channel 1.
/// let config = Config::new(1)
///     .channel(ChannelConfig::new(Delivery::Sequenced))
///     .channel(ChannelConfig::new(Delivery::ReliableOrdered))
///     .build()?;
/// assert_eq!(config.channels().len(), 2);
/// # Ok::<(), muse_transport::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// At most once, in any order. For what is worthless when late and complete in itself.
    Unreliable,
    /// At most once, never older than what was delivered before. For positions.
    Sequenced,
    /// Exactly once, in any order, as soon as it arrives. For shots.
    ReliableUnordered,
    /// The newest surely arrives, older ones may be skipped. For a state of which only the last value matters.
    ReliableSequenced,
    /// Exactly once, in the order sent. For chat, loading, activation.
    ReliableOrdered,
    /// In order, and of each aligned window of messages at most a promised share is lost.
    PartiallyReliable(Promise),
}

impl Delivery {
    /// Partially reliable delivery: of each `window` messages at least `percent` per cent arrive, in order.
    pub fn partially_reliable(window: u16, percent: u8) -> Result<Self, ConfigError> {
        let promise = Promise::new(u32::from(window), percent)?;
        if u64::from(window) > CHANNEL_WINDOW / 2 {
            return Err(ConfigError::WindowTooLong { window });
        }
        Ok(Self::PartiallyReliable(promise))
    }

    /// True if what is lost may be sent again for as long as it takes.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Unreliable | Self::Sequenced)
    }

    /// True if messages are delivered in the order sent or not at all.
    pub(crate) const fn is_ordered(self) -> bool {
        !matches!(self, Self::Unreliable | Self::ReliableUnordered)
    }

    /// True if a whole message carries its number.
    pub(crate) const fn is_numbered(self) -> bool {
        !matches!(self, Self::Unreliable)
    }

    /// True if a share of messages may be lost.
    pub(crate) const fn is_partial(self) -> bool {
        matches!(self, Self::PartiallyReliable(_))
    }
}

/// As the description that both sides compare has it.
impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreliable => "unreliable",
            Self::Sequenced => "sequenced",
            Self::ReliableUnordered => "reliable unordered",
            Self::ReliableSequenced => "reliable sequenced",
            Self::ReliableOrdered => "reliable ordered",
            Self::PartiallyReliable(promise) => {
                let (percent, window) = (promise.percent(), promise.window());
                return write!(f, "partially reliable {percent} % of {window}");
            }
        })
    }
}

/// The price that a reliable channel pays for low latency under loss.
///
/// Measured at 110 ms round trip, 60 messages of 100 bytes a second: see `docs/measurements.md`. The extra bytes follow the measured
/// loss: on a clean path all three cost the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Repair {
    /// Nothing extra on first transmission; what was lost goes out twice.
    Frugal,
    /// Parity over recent packets, up to 42 % extra bytes.
    #[default]
    Balanced,
    /// Parity with every packet, up to 114 % extra bytes.
    Fast,
}

/// The urgency of a message, in sending and, where the delivery mode leaves it free, in dispatch at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Before everything else.
    Urgent,
    /// Before what is normal.
    High,
    /// The default.
    #[default]
    Normal,
    /// Sent when nothing else waits.
    Low,
}

impl Priority {
    /// The number of priorities.
    pub(crate) const COUNT: usize = 4;

    pub(crate) const fn level(self) -> u8 {
        self as u8
    }
}

/// One channel: how it delivers and what it may use.
///
/// ```
/// use muse_transport::{ChannelConfig, Delivery, Priority, Repair};
/// let shots = ChannelConfig::new(Delivery::ReliableUnordered).repair(Repair::Fast).priority(Priority::High);
/// assert_eq!(shots.delivery(), Delivery::ReliableUnordered);
/// ```
#[derive(Clone, Debug)]
pub struct ChannelConfig {
    pub(crate) delivery: Delivery,
    pub(crate) repair: Repair,
    pub(crate) priority: Priority,
    pub(crate) weight: u8,
    pub(crate) queue_bytes: usize,
    pub(crate) queue_messages: usize,
    pub(crate) queue_age: Duration,
}

impl ChannelConfig {
    /// A channel that delivers as `delivery` says, balanced, of normal priority.
    pub const fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            repair: Repair::Balanced,
            priority: Priority::Normal,
            weight: 16,
            queue_bytes: 8 << 20,
            queue_messages: 65_536 / 2,
            queue_age: QUEUE_AGE,
        }
    }

    /// Returns its delivery guarantee.
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }
}

muse_wire::setters! { const ChannelConfig:
    /// Sets the price paid for latency under loss. Default: balanced. Unreliable channels ignore it.
    repair: Repair,

    /// Priority of its messages unless a message says otherwise. Default: normal.
    priority: Priority,

    /// Share of the bandwidth beside channels of the same priority, 1 to 255. Default: 16.
    weight: u8 = if weight == 0 { 1 } else { weight },

    /// Bytes that may wait to be sent or acknowledged before sending fails. Default: 8 MiB; a message that is larger is
    /// taken when nothing else waits.
    queue_bytes: usize,

    /// Messages that may wait to be sent or acknowledged before sending fails, at most 32,768. Default: 32,768.
    queue_messages: usize = if queue_messages > 32_768 { 32_768 } else { queue_messages },

    /// Longest time that congestion may hold back a message of an [unreliable](Delivery::Unreliable) or
    /// [sequenced](Delivery::Sequenced) channel before it is dropped unsent, the oldest first. Default: 250 ms.
    ///
    /// Without it a path that is too narrow makes everything late, by as much as the queue holds. The newest message of a
    /// sequenced channel stays however old it is, for nothing better has come; so does one whose first fragment has left.
    /// Nothing is dropped while the path carries what is sent, however rarely the endpoint is polled. Longer loses less and
    /// delivers later; [`Duration::MAX`] never drops. Reliable channels, which must deliver, ignore it.
    queue_age: Duration,
}

/// Everything that an endpoint's connections share.
///
/// ```
/// use muse_transport::{ChannelConfig, Config, Delivery};
/// let config = Config::new(0x6d79_6761_6d65)
///     .channel(ChannelConfig::new(Delivery::Sequenced))
///     .channel(ChannelConfig::new(Delivery::ReliableOrdered))
///     .build()
///     .expect("two sensible channels");
/// assert_eq!(config.channels().len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) protocol: u64,
    /// Lines that both sides must share.
    shared: Vec<String>,
    pub(crate) channels: Vec<ChannelConfig>,
    pub(crate) link: Link,
    pub(crate) congestion: Congestion,
    pub(crate) message_max: usize,
    pub(crate) ack_delay: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) silence: Duration,
    pub(crate) resume_within: Duration,
    pub(crate) connections_max: usize,
    connection_memory: Option<usize>,
    endpoint_memory: Option<usize>,
    pub(crate) rekey_after: u64,
    pub(crate) shard: Shard,
}

impl Config {
    /// The defaults, for a game with protocol id `protocol`: any number that other games do not use. No channels
    /// yet.
    pub fn new(protocol: u64) -> Self {
        Self {
            protocol,
            shared: Vec::new(),
            channels: Vec::new(),
            link: Link::UDP,
            congestion: Congestion::adaptive(),
            message_max: 16 << 20,
            ack_delay: Duration::from_millis(50),
            keep_alive: Duration::from_secs(2),
            silence: Duration::from_secs(6),
            resume_within: Duration::from_secs(30),
            connections_max: 16_384,
            connection_memory: None,
            endpoint_memory: None,
            rekey_after: 1 << 20,
            shard: Shard::ALONE,
        }
    }

    /// Adds a channel; channels are numbered from 0 in the order they are added.
    pub fn channel(mut self, channel: ChannelConfig) -> Self {
        self.channels.push(channel);
        self
    }

    /// Adds what both sides must share, a line for each thing: `muse_schema::Registry::describe()` for messages, `tick rate 50`, and so on.
    /// It is compared at connect, and a client that differs is told the lines that do, see [`Refusal::Schema`](crate::Refusal::Schema). The order of
    /// lines does not matter; lines with the same first two words, or the same number at the front, are taken for the same thing. Together with the
    /// channels at most [`DESCRIPTION_LEN_MAX`] bytes. Anybody can read it: a server tells it to clients without a token, too. Default: nothing.
    ///
    /// ```
    /// # use muse_netem::{Network, Simulation};
    /// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, Endpoint, Event, SeededEntropy, ServerKey, ServerOptions};
    /// # use muse_wire::{Duration, Instant};
    /// # let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(1));
    /// let config = Config::new(1).channel(ChannelConfig::new(Delivery::Sequenced));
    /// let old = config.clone().shared("7 Say { text: text max 100 }\ntick rate 50").build()?;
    /// let new = config.shared("7 Say { text: text max 200 }\ntick rate 50").build()?;
    /// # let mut client = Endpoint::new(old, SeededEntropy::danger_seeded(2));
    /// # let mut server = Endpoint::new(new, SeededEntropy::danger_seeded(3));
    /// # client.connect(Instant::ZERO, ([192, 0, 2, 2], 2).into(), Connect::pinned(key.public()))?;
    /// # server.listen(ServerOptions::new(key));
    /// # let mut simulation = Simulation::new(Network::new(1));
    /// # let [here, _] = [(1, client), (2, server)].map(|(host, endpoint)| simulation.add(([192, 0, 2, host], 2).into(), endpoint));
    /// # simulation.run_for(Duration::from_millis(200));
    /// # let client = simulation.node_mut(here);
    /// // An old client at a new server:
    /// let mut buffer = Vec::new();
    /// let Some(Event::Refused { reason, .. }) = client.poll_event(&mut buffer) else {
    ///     unreachable!("their messages differ")
    /// };
    /// assert!(reason.to_string().ends_with("`7 Say` differs: text: text max 100 here, text: text max 200 there"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shared(mut self, description: &str) -> Self {
        let lines = description.lines().filter(|line| !line.is_empty());
        self.shared.extend(lines.map(str::to_owned));
        self
    }

    /// Sets the place of this endpoint among `count` that share a port, numbered from 0, at most [`SHARDS_MAX`]. Default: it is alone.
    ///
    /// The number becomes the low byte of every connection id, and tokens that belong to another endpoint are refused: give each the datagrams that
    /// [`shard_of`](crate::steering::shard_of) says are its, the same [secret for cookies](crate::ServerOptions::cookie_secret) and the same clock.
    pub fn shard(mut self, number: usize, count: usize) -> Self {
        self.shard = Shard { number, count };
        self
    }

    /// Returns the protocol id, which connect tokens name too.
    pub fn protocol_id(&self) -> u64 {
        self.protocol
    }

    /// The channels, in order.
    pub fn channels(&self) -> &[ChannelConfig] {
        &self.channels
    }

    /// Checks that everything fits together.
    pub fn build(self) -> Result<Self, ConfigError> {
        if self.channels.is_empty() || self.channels.len() > CHANNELS_MAX {
            return Err(ConfigError::Channels {
                count: self.channels.len(),
            });
        }
        if self.message_max == 0 || self.message_max > MESSAGE_LIMIT {
            return Err(ConfigError::MessageMax {
                bytes: self.message_max,
            });
        }
        let budgets = self.budgets();
        let least = 2 * budgets.reserve;
        if budgets.connection < least || budgets.endpoint < budgets.connection {
            return Err(ConfigError::Memory {
                connection: budgets.connection,
                endpoint: budgets.endpoint,
                least,
            });
        }
        if self.link.datagram_min < DATAGRAM_MIN || self.link.datagram_max < self.link.datagram_min
        {
            return Err(ConfigError::Datagram {
                bytes: self.link.datagram_min,
            });
        }
        if self.keep_alive.is_zero() || self.silence < self.keep_alive * 2 {
            return Err(ConfigError::KeepAlive);
        }
        if self.connections_max == 0 || self.connections_max > CONNECTIONS_LIMIT {
            return Err(ConfigError::Connections {
                count: self.connections_max,
            });
        }
        if !self.shard.is_possible() {
            let Shard { number, count } = self.shard;
            return Err(ConfigError::Shard { number, count });
        }
        let bytes = self.agreement().description.len();
        if bytes > DESCRIPTION_LEN_MAX {
            return Err(ConfigError::Shared { bytes });
        }
        Ok(self)
    }

    /// Returns the memory budgets of received messages.
    pub(crate) fn budgets(&self) -> Budgets {
        let reserve = message_cost(self.message_max);
        let connection = self.connection_memory;
        let connection = connection.unwrap_or_else(|| CONNECTION_MEMORY.max(2 * reserve));
        let endpoint = self.endpoint_memory;
        let endpoint =
            endpoint.unwrap_or_else(|| ENDPOINT_MEMORY.max(connection.saturating_mul(4)));
        Budgets {
            connection,
            endpoint,
            reserve,
        }
    }

    /// True if whole messages of a channel carry their number; `None` if there is no such channel.
    #[inline]
    pub(crate) fn is_numbered(&self, channel: u8) -> Option<bool> {
        let channel = self.channels.get(usize::from(channel))?;
        Some(channel.delivery.is_numbered())
    }

    /// Everything that both sides must share, the channels too.
    pub(crate) fn agreement(&self) -> Agreement {
        let mut lines = self.shared.clone();
        let channels = self.channels.iter().enumerate();
        lines.extend(
            channels.map(|(number, channel)| format!("channel {number} {}", channel.delivery)),
        );
        lines.sort_unstable();
        lines.dedup();
        let mut description = lines.join("\n");
        description.push('\n');
        Agreement {
            hash: fnv1a(description.as_bytes()),
            description: description.into(),
        }
    }
}

muse_wire::setters! { Config:
    /// Sets the properties of the link below. Default: UDP.
    link: Link,

    /// Sets the congestion controller of connections. Default: adaptive.
    congestion: Congestion,

    /// Largest message taken and accepted. Default: 16 MiB. Both sides should have the same; a game whose messages are
    /// small should say so, because it bounds from below what a [connection](Self::connection_memory) may hold.
    message_max: usize,

    /// Longest time an acknowledgement of reliable data waits for a packet to travel in. Default: 50 ms. Shorter costs
    /// packets, longer costs latency after a loss at the end of a burst.
    ack_delay: Duration,

    /// A silent connection sends a ping this often. Default: 2 s.
    keep_alive: Duration,

    /// Nothing heard for this long interrupts a connection. Default: 6 s.
    silence: Duration,

    /// An interrupted connection that comes back within this time goes on where it was; later it is lost. Default: 30 s.
    resume_within: Duration,

    /// Connections accepted at once; further clients are told that the server is full. Default and maximum: 16,384. The
    /// holder of a token who comes back takes over their session on a full server too; up to [`RESUMING_MAX`] connections
    /// are there twice meanwhile.
    connections_max: usize,

    /// Bytes of memory that one connection may hold for received messages: fragments of unfinished ones, those that wait
    /// for earlier ones, and those that wait for [`poll_event`](crate::Endpoint::poll_event). Each message or fragment
    /// counts [`MESSAGE_OVERHEAD`](crate::MESSAGE_OVERHEAD) bytes beside its payload. Default: 32 MiB, or twice what
    /// the largest message takes if that is more.
    ///
    /// Bytes beyond it are refused, and counted in [`ConnectionStats`](crate::ConnectionStats). Unfinished unreliable messages
    /// make room first, the oldest before the others. A packet of which anything was refused is not acknowledged: its sender slows
    /// down and sends again what must arrive. It must hold the largest message twice, so that there is room for the one that
    /// others wait for; and it should hold what arrives in a round trip, or a loss costs the sender its speed.
    connection_memory: usize = Some(connection_memory),

    /// Bytes of memory that all connections together may hold for received messages, as
    /// [`connection_memory`](Self::connection_memory) counts them. Default: 256 MiB, or as much as 4 connections may hold
    /// if that is more.
    ///
    /// When it is exhausted, a connection may still hold [`CONNECTION_FLOOR`](crate::CONNECTION_FLOOR) bytes, so that those
    /// who hold much do not starve the others: the memory is bounded by this and so many bytes for every connection.
    endpoint_memory: usize = Some(endpoint_memory),

    /// Packets sent before a connection renews its keys, at least 1 and at most 2^23. Default: 2^20. A renewal costs both
    /// sides about two microseconds.
    rekey_after: u64,
}

/// The description that both sides must share: lines in order, each with a line feed, and their hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    pub(crate) hash: u64,
    pub(crate) description: Arc<str>,
}

/// An error in a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No channel, or more than 256.
    #[error(
        "{count} channels: a connection needs 1 to {CHANNELS_MAX}; add them with Config::channel"
    )]
    Channels {
        /// The number given.
        count: usize,
    },
    /// A message limit of zero or beyond what the protocol carries.
    #[error("message limit of {bytes} bytes: it must be 1 to {MESSAGE_LIMIT}")]
    MessageMax {
        /// The limit.
        bytes: usize,
    },
    /// The memory for received messages does not hold the largest message twice, or the endpoint's not one connection's.
    #[error(
        "memory of {connection} bytes for a connection and {endpoint} for the endpoint: with this message limit a connection needs {least}, and the endpoint as much as a connection"
    )]
    Memory {
        /// The budget of a connection.
        connection: usize,
        /// The budget of the endpoint.
        endpoint: usize,
        /// The least that a connection must be able to hold.
        least: usize,
    },
    /// The link's datagrams are too small.
    #[error(
        "datagrams of {bytes} bytes: a link must carry {DATAGRAM_MIN} and no less than its minimum"
    )]
    Datagram {
        /// The link's minimum.
        bytes: usize,
    },
    /// A ping must fit at least twice into the silence that interrupts.
    #[error("keep_alive must be above zero and at most half of silence")]
    KeepAlive,
    /// No connections, or too many.
    #[error(
        "{count} connections: it must be 1 to {CONNECTIONS_LIMIT}; use more shards beyond that"
    )]
    Connections {
        /// The number given.
        count: usize,
    },
    /// The endpoint has no place among those that share its port.
    #[error(
        "shard {number} of {count}: numbers are 0 to {count} - 1, and there are at most {SHARDS_MAX}"
    )]
    Shard {
        /// The number given.
        number: usize,
        /// The number of endpoints.
        count: usize,
    },
    /// The description of what both sides must share is too long.
    #[error(
        "{bytes} bytes describe what both sides must share: it must be at most {DESCRIPTION_LEN_MAX}; describe less, or give a line with the hash of the rest"
    )]
    Shared {
        /// Its length.
        bytes: usize,
    },
    /// The promise of a partially reliable channel is impossible.
    #[error(transparent)]
    Promise(#[from] muse_wire::partial::PromiseError),
    /// The window of a partially reliable channel is longer than a channel may have on its way.
    #[error("window of {window} messages: it must be at most half of {CHANNEL_WINDOW}")]
    WindowTooLong {
        /// The window.
        window: u16,
    },
}

/// Longest time that congestion may hold back what need not arrive, by default.
const QUEUE_AGE: Duration = Duration::from_millis(250);
/// Memory for received messages of a connection, by default.
const CONNECTION_MEMORY: usize = 32 << 20;
/// Memory for received messages of an endpoint, by default.
const ENDPOINT_MEMORY: usize = 256 << 20;
/// Smallest datagram a link must carry: a fragment, its headers and a full acknowledgement block.
pub(crate) const DATAGRAM_MIN: usize = 1_200;
/// Most connections of one endpoint: 16 bits of the connection id.
pub(crate) const CONNECTIONS_LIMIT: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let one = || Config::new(1).channel(ChannelConfig::new(Delivery::Unreliable));
        assert!(one().build().is_ok());
        assert!(matches!(
            Config::new(1).build(),
            Err(ConfigError::Channels { count: 0 })
        ));
        assert!(matches!(
            one().message_max(0).build(),
            Err(ConfigError::MessageMax { .. })
        ));
        assert!(matches!(
            one().keep_alive(Duration::from_secs(4)).build(),
            Err(ConfigError::KeepAlive)
        ));
        assert!(matches!(
            one().connections_max(0).build(),
            Err(ConfigError::Connections { .. })
        ));
        assert!(one().shard(255, 256).build().is_ok());
        for (number, count) in [(1, 1), (0, 0), (0, 257)] {
            let wrong = one().shard(number, count).build();
            assert!(matches!(wrong, Err(ConfigError::Shard { .. })));
        }
        let large = || one().message_max(MESSAGE_LIMIT);
        assert!(large().build().is_ok(), "the defaults follow");
        for wrong in [
            large().connection_memory(64 << 20),
            large().endpoint_memory(96 << 20),
            one().message_max(1_000).connection_memory(2_000),
        ] {
            assert!(matches!(wrong.build(), Err(ConfigError::Memory { .. })));
        }
        assert!(Delivery::partially_reliable(0, 50).is_err());
        assert!(Delivery::partially_reliable(5_000, 50).is_err());
    }

    #[test]
    fn the_agreement_depends_on_channels_and_shared_lines() {
        let a = Config::new(1).channel(ChannelConfig::new(Delivery::Unreliable));
        let b = Config::new(1).channel(ChannelConfig::new(Delivery::Sequenced));
        assert_ne!(a.agreement(), b.agreement());
        assert_ne!(a.agreement(), a.clone().shared("tick rate 50").agreement());
        assert_eq!(
            a.clone().shared("2 B\n\n1 A").shared("3 C").agreement(),
            a.clone().shared("3 C").shared("1 A\n2 B\n").agreement(),
            "whatever the order"
        );
        let c = a.clone().channel(ChannelConfig::new(
            Delivery::partially_reliable(100, 90).expect("sensible"),
        ));
        let description = c.shared("1 A").agreement().description;
        assert_eq!(
            &*description,
            "1 A\nchannel 0 unreliable\nchannel 1 partially reliable 90 % of 100\n"
        );
        let long = "x".repeat(DESCRIPTION_LEN_MAX);
        assert!(matches!(
            a.clone().shared(&long).build(),
            Err(ConfigError::Shared { .. })
        ));
        assert_eq!(
            a.agreement(),
            a.clone().ack_delay(Duration::ZERO).agreement()
        );
    }

    #[test]
    fn repair_and_reliability_are_ordered_by_cost_and_kind() {
        let video = Delivery::partially_reliable(100, 90).expect("a sensible promise");
        assert!(video.is_reliable() && Delivery::ReliableOrdered.is_reliable());
        assert!(!Delivery::Unreliable.is_reliable() && !Delivery::Sequenced.is_reliable());
        assert!(Repair::Frugal < Repair::default() && Repair::default() < Repair::Fast);
    }
}
