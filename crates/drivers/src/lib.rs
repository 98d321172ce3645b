//! The only sockets of Muse.
//!
//! Cores are sans-IO state machines; a [`Driver`] gives one its datagrams. Everything here is generic over
//! [`muse_wire::Machine`], so that one driver serves the transport, the relay and a game's own protocol alike:
//!
//! - [`Client`] and [`Server`]: the transport over UDP for a game loop, which is all that most games need;
//! - [`UdpDriver`]: one non-blocking UDP socket, polled from a game loop, batched across destinations;
//! - [`bind_shards`]: several sockets on one port, with packets steered to them by connection id;
//! - [`memory_pair`]: two machines in one process, for offline play and tests;
//! - [`Clock`] and [`fill_random`]: the time and the randomness that cores never fetch themselves;
//! - [`LanAnnouncer`] and [`LanFinder`]: games on the same local network;
//! - [`load_or_create_key`]: the file with the key that a server is known by;
//! - `WebListener` (feature `web`): browsers, over WebTransport and WebSocket, beside UDP; `UdpWebDriver` has both for any machine;
//! - `MasterLink` (feature `master`): the connection to a master over HTTP and WebSocket, with TLS or without;
//! - `AsyncUdp`, `AsyncClient` and `AsyncServer` (feature `tokio`): the same inside an async service.
//!
//! For your own machine, a game loop is a clock, a driver, the machine, and one `poll` per tick:
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

pub mod driver;
pub mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod native;

pub use driver::Driver;
pub use memory::{MemoryDriver, memory_pair};
/// Relays: rooms, invitations, events, and what hosts on a local network say.
pub use muse_relay as relay;
#[cfg(not(target_arch = "wasm32"))]
pub use native::*;
