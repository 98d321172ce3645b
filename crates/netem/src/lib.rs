//! Seeded network conditioner and virtual network in virtual time.
//!
//! - [`Conditions`] say what one direction of a link does to datagrams; a [`Conditioner`] does it, sans-IO.
//! - [`Network`] joins any number of nodes by such links, shared pipes and NATs.
//! - [`Simulation`] runs machines over such a network, as a driver runs them over sockets.
//! - [`Capture`] writes what passes as a pcap file, [`PcapNg`] what passes a proxy as a pcapng file.
//! - [`Profile`] names common access networks.
//!
//! Everything follows from seeds: a failure seen once is seen again. `docs/netem.md` defines every knob exactly.
//!
//! ```
//! use std::net::SocketAddr;
//! use muse_netem::{Conditions, Network, Simulation};
//! use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};
//!
//! /// Returns whatever it gets; serves again when nothing came for a second.
//! struct Player {
//!     opponent: SocketAddr,
//!     has_ball: bool,
//!     serve_at: Option<Instant>,
//!     returns: u32,
//! }
//!
//! impl Machine for Player {
//!     fn handle_datagram(&mut self, now: Instant, _: Datagram<'_>) {
//!         self.has_ball = true;
//!         self.returns += 1;
//!         self.serve_at = self.serve_at.map(|_| now + Duration::from_secs(1));
//!     }
//!     fn handle_timeout(&mut self, now: Instant) {
//!         if self.serve_at.is_some_and(|at| at <= now) {
//!             self.has_ball = true;
//!             self.serve_at = Some(now + Duration::from_secs(1));
//!         }
//!     }
//!     fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
//!         if !std::mem::take(&mut self.has_ball) {
//!             return None;
//!         }
//!         buffer[..4].copy_from_slice(b"ball");
//!         Some(Transmit { to: self.opponent, len: 4, segment: None, ecn: Ecn::NotCapable })
//!     }
//!     fn poll_timeout(&mut self) -> Option<Instant> {
//!         self.serve_at
//!     }
//! }
//!
//! let a = SocketAddr::from(([192, 0, 2, 1], 1));
//! let b = SocketAddr::from(([192, 0, 2, 2], 2));
//! let mut network = Network::new(42);
//! network.set_default(Conditions::default().delay(Duration::from_millis(20)).loss(0.05));
//! let mut simulation = Simulation::new(network);
//! let player = |opponent, serve_at| Player { opponent, has_ball: false, serve_at, returns: 0 };
//! let first = simulation.add(a, player(b, Some(Instant::ZERO)));
//! let second = simulation.add(b, player(a, None));
//!
//! simulation.run_for(Duration::from_secs(60));
//! let returns = simulation.node(first).returns;
//! assert!((300..1_500).contains(&returns), "one each 40 ms, with a second's pause after a loss: {returns}");
//! assert!(simulation.node(second).returns >= returns);
//! assert!(simulation.network().stats(first).sent.ip_bytes >= u64::from(returns) * (4 + 28));
//! ```

mod capture;
mod conditioner;
mod conditions;
mod math;
mod network;
mod packet_bytes;
mod pcapng;
mod simulation;

pub use capture::Capture;
pub use conditioner::{Cause, Conditioner, Counters, Damage, Fate, Fates, Packet};
pub use conditions::{Conditions, GilbertElliott, Jitter, Profile, Queue, TextError};
pub use network::{
    Delivery, Firewall, NatId, NatKind, Network, NodeId, NodeStats, PipeId, Sighting, Stage,
    Traffic, Unrouted,
};
pub use pcapng::{PcapNg, Side};
pub use simulation::Simulation;
