//! The Muse protocol, sans-IO: secure connections with every delivery mode.
//!
//! An [`Endpoint`] holds many connections behind one socket, for servers and clients alike. Each connection has up
//! to 256 channels, and each channel delivers as its [`Delivery`] says: unreliable, sequenced, reliable unordered, reliable
//! sequenced, reliable ordered, or partially reliable. What is lost comes back as its [`Repair`] says. Encryption
//! and authentication are on unless an option whose name begins with `danger` turns them off.
//!
//! The main flow: `endpoint.rs` finds the connection, `connection/incoming.rs` takes packets apart,
//! `connection/outgoing.rs` plans and `connection/builder.rs` builds them, `channel/send.rs` and `channel/receive.rs` keep the promises.
//! `docs/protocol.md` describes the bytes.

mod channel;
mod config;
pub mod congestion;
mod connection;
mod crypto;
mod endpoint;
mod event;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod inbox;
mod memory;
mod numbers;
mod packet;
mod parity;
mod received;
mod rtt;
mod sent;
mod stats;
pub mod steering;
mod timer;
pub mod token;
mod traps;
pub mod typed;
mod work;

pub use config::{
    CHANNEL_WINDOW, CHANNEL_WINDOW_BYTES, CHANNELS_MAX, ChannelConfig, Config, ConfigError,
    Delivery, MESSAGE_LIMIT, Priority, RESUMING_MAX, Repair,
};
pub use crypto::{Entropy, InvalidPublicKey, SeededEntropy, ServerKey, ServerPublicKey};
pub use endpoint::{
    ADDRESSES_MAX, AdmissionError, AdmissionLimits, Broadcast, Connect, ConnectError, Endpoint,
    EndpointCounters, ServerOptions,
};
pub use event::{
    CloseReason, ConnectionId, Event, MessageId, Outcome, Receipt, SendError, SendOptions,
};
pub use handshake::{
    DECISION_TIMEOUT_MAX, DESCRIPTION_LEN_MAX, DIFFERENCES_MAX, HandshakeCounters, HandshakeLimits,
    Refusal,
};
pub use memory::{CONNECTION_FLOOR, MESSAGE_OVERHEAD};
/// The differences in [`Refusal::Schema`], here for crates that use the transport alone.
pub use muse_schema::Difference;
pub use stats::{ChannelStats, ConnectionStats};
pub use typed::{DispatchCounters, DispatchError, Dispatcher, MessageError};
