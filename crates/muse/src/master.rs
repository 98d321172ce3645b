//! The connection to a master: sign in, queue, be seated and come back for a player; enrol, admit, report and hand in results for a game server.
//!
//! - [`Master`] is a player's connection, polled by a game loop; [`MatchClient`] plays a [`Game`](crate::Game) over it from the queue to the
//!   result and back.
//! - [`MatchHost`] is a game server's; [`GameServer::hosted`](crate::GameServer::hosted) is a whole server with it.
//! - [`HostedMatch`] and [`PlayerLink`] are the machines below, without sockets and clocks: for the browser, where the page's own WebSocket
//!   carries their texts, and for simulations.
//!
//! Both work over `https://` and `http://`. `docs/guide/start-master.md` has a whole program for each side.

mod hosted_match;
mod outcome;

#[cfg(not(target_arch = "wasm32"))]
mod account;
#[cfg(not(target_arch = "wasm32"))]
mod host;
#[cfg(not(target_arch = "wasm32"))]
mod hosted_game;
#[cfg(not(target_arch = "wasm32"))]
mod match_client;
#[cfg(not(target_arch = "wasm32"))]
mod player;
#[cfg(not(target_arch = "wasm32"))]
mod relay_pass;

pub use hosted_match::{HostEvent, HostedMatch};
pub use muse_master_client::messages::{
    Assignment as MatchPlan, ChatLine, Outcome as MatchEnding, Phase as MatchPhase, PlayerProfile,
    QueueState, ServerMessage, ServerRefusal,
};
pub use muse_master_client::{
    AccountId, LinkState, MasterMachine, MasterStep, MatchId, PlayerAction, PlayerEvent,
    PlayerLink, PlayerLinkConfig, Preferences, PreferencesError, QueueStatus,
};
pub use outcome::MatchOutcome;

#[cfg(not(target_arch = "wasm32"))]
pub use account::Account;
#[cfg(not(target_arch = "wasm32"))]
pub use host::{MatchHost, MatchHostConfig};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use hosted_game::Hosting;
#[cfg(not(target_arch = "wasm32"))]
pub use match_client::MatchClient;
#[cfg(not(target_arch = "wasm32"))]
pub use muse_drivers::master::{MasterAnswer, MasterCredentials, MasterRefusal};
#[cfg(not(target_arch = "wasm32"))]
pub use player::{Master, MasterEvent, MasterOptions, MatchSeat};
#[cfg(not(target_arch = "wasm32"))]
pub use relay_pass::RelayPass;
