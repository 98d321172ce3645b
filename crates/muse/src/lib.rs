//! Multiplayer networking for games: the one library that a game depends on.
//!
//! A connection has up to 256 channels, and each delivers as the game chooses ([`Delivery`]): positions may be lost and
//! never come late, shots arrive once in any order, chat arrives once and in order. Everything is encrypted and the server is
//! known by its key; risky options have `danger` in their name. There is no async runtime: a game loop calls
//! [`tick`](Server::tick), and a service may await instead (feature `tokio`). With feature `web`,
//! browsers reach a server as well.
//!
//! A complete server and client:
//!
//! ```
//! use muse::prelude::*;
//!
//! fn config() -> Config {
//!     Config::new(0x6d79_6761_6d65).channel(ChannelConfig::new(Delivery::ReliableOrdered))
//! }
//!
//! fn serve(mut server: Server) -> std::io::Result<()> {
//!     let mut open = true;
//!     while open {
//!         server.wait(Duration::from_millis(16))?;
//!         server.tick(|server, event| match event {
//!             Event::Message { channel, payload, .. } => drop(server.broadcast(channel, payload)),
//!             Event::Closed { .. } => open = false, // the player went
//!             _ => {}
//!         })?;
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> std::io::Result<()> {
//!     let key = muse::new_key()?; // load_or_create_key("server.key") keeps it
//!     let how = Connect::pinned(key.public()); // clients are told the public key
//!     let server = Server::bind("127.0.0.1:0", config(), ServerOptions::new(key))?;
//!     let mut client = Client::connect(server.local_addr()?, config(), how)?;
//!     let serving = std::thread::spawn(|| serve(server));
//!     let mut answer = Vec::new();
//!     while answer.is_empty() {
//!         client.wait(Duration::from_millis(16))?;
//!         client.tick(|client, event| match event {
//!             Event::Connected { .. } => client.send(0, b"hello").map(drop).expect("connected"),
//!             Event::Message { payload, .. } => answer.extend_from_slice(payload),
//!             other => panic!("{other:?}"),
//!         })?;
//!     }
//!     assert_eq!(answer, b"hello");
//!     drop(client); // says goodbye
//!     serving.join().expect("the server does not panic")
//! }
//! ```
//!
//! Types instead of bytes: derive [`Message`], send with `send_message`, and give payloads to a [`Dispatcher`]. The folder
//! `examples` has an echo, a chat with every delivery mode, a file transfer and a connection that survives a cut.
//!
//! A world that a server simulates and clients predict and show: [`netcode`], and [`game`] for it over a connection; the example
//! `predicted_player` is the smallest whole game.
//!
//! In the browser (`wasm32`) there are no UDP sockets: [`Endpoint`] and everything else that needs none is there.

mod address;
mod error;
mod protocol;
pub mod session;

#[cfg(not(target_arch = "wasm32"))]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod game;
#[cfg(feature = "master")]
pub mod master;
#[cfg(not(target_arch = "wasm32"))]
mod place;
#[cfg(not(target_arch = "wasm32"))]
mod server;

pub use address::{InvalidServerAddress, ServerAddress};
pub use error::{Error, Result};
pub use protocol::{Channel, Protocol, ProtocolError};
pub use session::{ClientEvent, ClientInfo, Incoming, ServerEvent};

#[cfg(not(target_arch = "wasm32"))]
pub use client::Client;
#[cfg(not(target_arch = "wasm32"))]
pub use game::{GameClient, GameServer};
#[cfg(not(target_arch = "wasm32"))]
pub use place::{Join, Listen};
#[cfg(not(target_arch = "wasm32"))]
pub use server::Server;

pub use glam;
pub use muse_drivers as drivers;
pub use muse_netcode as netcode;
pub use muse_schema as schema;
pub use muse_transport as transport;
pub use muse_wire as wire;

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub use muse_drivers::{AsyncClient, AsyncServer};
#[cfg(not(target_arch = "wasm32"))]
pub use muse_drivers::{SystemEntropy, UdpDriver, UdpOptions, load_or_create_key, new_key};
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

/// What the first fifty lines of a game need: `use muse::prelude::*;`.
pub mod prelude {
    pub use crate::glam::{Quat, Vec2, Vec3};
    #[cfg(all(feature = "master", not(target_arch = "wasm32")))]
    pub use crate::master::{
        Account, Master, MasterEvent, MatchClient, MatchEvent, MatchHost, MatchHostConfig,
    };
    #[cfg(feature = "master")]
    pub use crate::master::{AccountId, MatchOutcome, MatchPlan, Preferences};
    pub use crate::session::ClientEvent;
    pub use crate::session::ServerEvent::{
        self, Emitted, Joined, Left, Received, Returned, TickFinished,
    };
    #[cfg(feature = "master")]
    pub use crate::session::ServerEvent::{MatchAssigned, MatchStarted};
    pub use crate::{
        ChannelConfig, ClientId, CloseReason, Delivery, Duration, Game, Message, Priority,
        Protocol, Repair, Schema, SendOptions, ServerAddress, State, StepContext, Tick,
    };
    #[cfg(not(target_arch = "wasm32"))]
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
}
