//! Relay v1: passes data between up to 255 clients over TCP and UDP and interprets none of it.
//!
//! [`Relay`] is the server and [`Client`] the other side; both are machines without IO, run by a driver with a TCP stream and a
//! UDP socket (`muse-stream`), as [`StreamMachine`] says. The bytes are in [`packet`], and as a page in `docs/relay-v1.md`.
//!
//! Everything leaves at the tick, every 50 ms, except the address, which a client is told as soon as it connects:
//!
//! ```
//! use muse_relay_v1::{Limits, Relay};
//! use muse_wire::{Instant};
//! use muse_relay_v1::{StreamId, StreamMachine};
//!
//! let mut relay = Relay::new(Instant::ZERO, Limits::default());
//! let peer = "192.0.2.1:50000".parse().expect("an address");
//! assert!(relay.handle_open(Instant::ZERO, StreamId(0), peer));
//! assert!(relay.poll_stream(Instant::ZERO).is_some());
//! assert_eq!(relay.outgoing(StreamId(0)), [1, 0, 0, 1, 0, 1]);
//! ```

mod client;
mod limits;
pub mod packet;
mod server;
mod stats;
mod stream;

pub use client::{Client, Event, SendError, Update};
pub use limits::{CLIENTS_MAX, Limits};
pub use packet::Address;
pub use server::Relay;
pub use stats::Stats;
pub use stream::{StreamAction, StreamId, StreamMachine};
