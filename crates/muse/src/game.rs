//! A networked game in two types: the [netcode](muse_netcode) over connections of any kind, for a game loop.
//!
//! Snapshots and inputs travel on one unreliable channel of the connection; messages have channels of their own. The size of
//! snapshots follows from what congestion control lets through.

mod client;
mod server;

pub use client::GameClient;
pub use server::GameServer;
