//! Multiplayer networking for games: the one library that a game depends on.
//!
//! - [`GameServer`] and [`GameClient`]: a world that a server simulates and clients predict and show, for a game that
//!   implements [`Game`].
//! - [`Server`] and [`Client`]: typed messages, each delivered as its type declares ([`Delivery`]): positions may be lost and
//!   never come late, shots arrive once in any order, chat arrives once and in order.
//! - [`Protocol`]: what both sides share, declared once and compared when a client connects.
//! - `DeterministicSession` (feature `lockstep`): games that send inputs instead of state, in lockstep or with rollback.
//! - [`session`]: the same without sockets, on any [`Endpoint`]: in the browser, in an engine, in a simulation.
//!
//! Everything is encrypted and the server is known by its key; risky options have `danger` in their name. There is no async
//! runtime: a game loop calls [`tick`](Server::tick). With feature `web`, browsers reach a server as well; with `relay`, players behind
//! routers meet; `master` has accounts, queues and seats; `lagcomp` judges shots by what the shooter saw.
//!
//! A complete server and client:
//!
//! ```
//! use muse::prelude::*;
//!
//! #[derive(Message, Debug)]
//! #[message(id = 1)]
//! struct Say {
//!     #[field(max = 200)]
//!     text: String,
//! }
//!
//! fn protocol() -> Protocol {
//!     Protocol::new("hello/1").message::<Say>(Delivery::ReliableOrdered)
//! }
//!
//! fn serve(mut server: Server) -> muse::Result<()> {
//!     loop {
//!         server.tick(|server, event| match event {
//!             Received(_, message) => message.read::<Say>().map_or(Ok(()), |say| server.broadcast(&say)),
//!             _ => Ok(()),
//!         })?;
//!     }
//! }
//!
//! fn main() -> muse::Result<()> {
//!     let server = Server::listen(Listen::at("127.0.0.1:0").key(muse::new_key()?), protocol())?; // or at "[::]:7000"
//!     let mut client = Client::connect(&server.address(), protocol())?; // or the line that a server prints
//!     std::thread::spawn(|| serve(server));
//!     client.send_when_connected(&Say { text: "hello".into() })?;
//!     let mut heard = None;
//!     while heard.is_none() {
//!         client.wait(Duration::from_millis(16))?;
//!         client.tick(|_, event| {
//!             if let ClientEvent::Received(message) = event {
//!                 heard = message.read::<Say>();
//!             }
//!             Ok(())
//!         })?;
//!     }
//!     assert_eq!(heard.map(|say| say.text).as_deref(), Some("hello"));
//!     Ok(()) // dropping the client says goodbye
//! }
//! ```
//!
//! The folder `examples` has a game (`tag`), one whose players push things around together (`puck`), a chat, two friends who meet through a relay, shots judged by what the shooter saw
//! (`hitscan`), a file transfer and a connection that survives a cut.
//!
//! In the browser (`wasm32`) there are no sockets: a page carries the datagrams of a [`Client`] or a [`GameClient`] itself
//! ([`Join::carried`]), and a whole game can run [offline](Listen::offline).

mod address;
#[cfg(feature = "lockstep")]
pub mod deterministic;
mod error;
mod protocol;
pub mod session;

mod client;
mod game;
#[cfg(feature = "master")]
pub mod master;
mod place;
mod server;

pub use address::{InvalidServerAddress, ServerAddress};
pub use error::{Error, Result};
pub use protocol::{Channel, Protocol, ProtocolError};
pub use session::{Applicant, ClientEvent, ClientInfo, Incoming, ServerEvent};

pub use client::Client;
pub use game::{GameClient, GameServer};
#[cfg(feature = "relay")]
pub use place::RoomLoss;
pub use place::{Join, Listen};
pub use server::Server;

pub use glam;
pub use muse_drivers as drivers;
#[cfg(feature = "lagcomp")]
pub use muse_lagcomp as lagcomp;
#[cfg(feature = "lockstep")]
pub use muse_lockstep as lockstep;
pub use muse_netcode as netcode;
pub use muse_schema as schema;
pub use muse_transport as transport;
pub use muse_wire as wire;

pub use muse_drivers::SystemEntropy;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub use muse_drivers::{AsyncClientDriver, AsyncEndpointDriver};
#[cfg(not(target_arch = "wasm32"))]
pub use muse_drivers::{UdpDriver, UdpOptions, load_or_create_key, new_key};
#[cfg(all(feature = "web", not(target_arch = "wasm32")))]
pub use muse_drivers::{WebListener, WebOptions};
pub use muse_netcode::prediction::{Game, StepContext};
pub use muse_netcode::{ClientId, Tick};
pub use muse_schema::{Message, Registry, Schema, State};
pub use muse_transport::congestion::{Budget, Congestion};
pub use muse_transport::token;
pub use muse_transport::{
    Broadcast, ChannelConfig, ChannelStats, CloseReason, Config, ConfigError, Connect,
    ConnectionId, ConnectionStats, Delivery, DispatchError, Dispatcher, Endpoint, Event,
    HandshakeLimits, MessageError, MessageId, Outcome, Priority, Receipt, Refusal, Repair,
    SendError, SendOptions, ServerKey, ServerOptions, ServerPublicKey,
};
pub use muse_wire::{Duration, Instant};

/// The names that the first fifty lines of a game need: `use muse::prelude::*;`.
pub mod prelude {
    #[cfg(feature = "lockstep")]
    pub use crate::deterministic::{DeterministicSession, MatchEvent};
    pub use crate::glam::{Quat, Vec2, Vec3};
    #[cfg(feature = "lockstep")]
    pub use crate::lockstep::{DeterministicGame, Frame, MatchConfig, Seat, Step};
    #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
    pub use crate::master::{
        Account, HostEvent, Master, MasterEvent, MatchClient, MatchHost, MatchHostConfig,
    };
    #[cfg(feature = "master")]
    pub use crate::master::{AccountId, MatchOutcome, MatchPlan, Preferences};
    pub use crate::session::ClientEvent;
    pub use crate::session::ServerEvent::{
        self, Asking, Emitted, Joined, Left, Received, Returned, TickFinished,
    };
    #[cfg(feature = "master")]
    pub use crate::session::ServerEvent::{MatchAssigned, MatchStarted};
    #[cfg(feature = "relay")]
    pub use crate::session::ServerEvent::{RoomLost, RoomOpened};
    pub use crate::{
        ChannelConfig, ClientId, CloseReason, Delivery, Duration, Game, Message, Priority,
        Protocol, Repair, Schema, SendOptions, ServerAddress, State, StepContext, Tick,
    };
    pub use crate::{Client, GameClient, GameServer, Join, Listen, Server};
}

/// The programs of the guides are compiled and run as this crate's own.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guide/start-rust.md")]
    struct StartRust;
    #[doc = include_str!("../../../docs/guide/delivery.md")]
    struct Delivery;
    #[cfg(feature = "master")]
    #[doc = include_str!("../../../docs/guide/start-master.md")]
    struct StartMaster;
    #[cfg(feature = "lockstep")]
    #[doc = include_str!("../../../docs/guide/start-rollback.md")]
    struct StartRollback;
    #[cfg(feature = "lockstep")]
    #[doc = include_str!("../../../docs/deterministic.md")]
    struct Deterministic;
    #[cfg(feature = "lagcomp")]
    #[doc = include_str!("../../../docs/netcode.md")]
    struct Netcode;
}
