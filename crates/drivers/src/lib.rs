//! The only sockets of Muse.
//!
//! Cores are sans-IO state machines; a [`Driver`] gives one its datagrams. Everything here is generic over
//! [`muse_wire::Machine`], so that one driver serves the transport, the relay and a game's own protocol alike:
//!
//! - [`EndpointDriver`] and [`ClientDriver`]: the transport for a game loop, over UDP, browsers, a relay and memory alike;
//! - [`UdpDriver`]: one non-blocking UDP socket, polled from a game loop, batched across destinations;
//! - [`bind_shards`]: several sockets on one port, with packets steered to them by connection id and token;
//! - [`memory_pair`]: two machines in one process, for offline play and tests;
//! - [`Clock`] and [`fill_random`]: the time and the randomness that cores never fetch themselves;
//! - [`load_or_create_key`]: the file with the key that a server is known by;
//! - `relay` (feature `relay`): rooms for players behind routers; `LanAnnouncer` and `LanFinder`: games on the same local network;
//! - `WebListener` (feature `web`): browsers, over WebTransport and WebSocket, beside UDP; `UdpWebDriver` has both for any machine;
//! - `MasterLink` (feature `master`): the connection to a master over HTTP and WebSocket, with TLS or without;
//! - `TlsCertificate` (feature `tls`): the certificate of a server, replaced without a restart when its files change;
//! - `AsyncUdp`, `AsyncEndpointDriver` and `AsyncClientDriver` (feature `tokio`): the same inside an async service.
//!
//! In the browser (`wasm32`) there are no sockets: the page carries datagrams, to and from the other end of a [`memory_pair`], or of a machine by
//! [`carried::Carried`].
//!
//! For a machine of your own, a game loop is a clock, a driver, the machine, and one `poll` per tick:
//!
//! ```
//! # use muse_wire::{Datagram, Instant, Machine, Transmit};
//! # struct Quiet;
//! # impl Machine for Quiet {
//! #     fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}
//! #     fn handle_timeout(&mut self, _: Instant) {}
//! #     fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> { None }
//! #     fn poll_timeout(&mut self) -> Option<Instant> { None }
//! # }
//! use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions};
//!
//! # fn main() -> std::io::Result<()> {
//! # let mut machine = Quiet;
//! let clock = Clock::start();
//! let mut driver = UdpDriver::bind("127.0.0.1:0".parse().expect("an address"), &UdpOptions::default())?;
//! for _tick in 0..3 {
//!     driver.poll(clock.now(), &mut machine)?;
//! }
//! assert_eq!(driver.counters().datagrams_sent, 0); // this machine has nothing to say
//! # Ok(())
//! # }
//! ```

mod beside;
pub mod carried;
mod client_driver;
pub mod clock;
pub mod driver;
mod endpoint_driver;
pub mod entropy;
pub mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod sockets;

pub use client_driver::ClientDriver;
pub use clock::Clock;
pub use driver::Driver;
pub use endpoint_driver::EndpointDriver;
pub use entropy::{SystemEntropy, fill_random};
pub use memory::{MemoryDriver, memory_pair};
/// Relays: rooms, invitations, events, and what hosts on a local network say.
#[cfg(feature = "relay")]
pub use muse_relay as relay;
#[cfg(not(target_arch = "wasm32"))]
use native::sockets;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;
