//! Muse for Bevy: components that the server owns and clients see, a player that its client predicts, others that are interpolated.
//!
//! Only `bevy_app`, `bevy_ecs` and `bevy_time` are used, so it builds fast and runs headless. A [`Protocol`] says what is replicated; both sides
//! build the same one and give it to [`ServerPlugin`] or [`ClientPlugin`]. An app is either a server or a client.
//!
//! Under `DefaultPlugins`, `MinimalPlugins` or no other plugins at all, systems in `FixedUpdate` run once in each tick of the session: the session
//! takes the place of Bevy's fixed loop, in `RunFixedMainLoop`. There, `Time` has the length of a tick; `Time<Fixed>` goes along with the session and
//! says how much of the next tick has passed. Pausing or scaling `Time<Virtual>` does not change that, for the server goes on. Without a session there
//! are no ticks; a menu that wants fixed steps adds `bevy_time::run_fixed_main_schedule` to `RunFixedMainLoop`, with a condition on
//! [`ConnectionState`].
//!
//! On the server, spawn entities with [`Replicated`] and a registered component; [`Owner`] makes one a client's, and if it has the player's component,
//! the client plays it. [`VisibleTo`] limits who sees an entity. On the client the same entities appear, with [`NetId`]; what the components hold is what is
//! to be drawn: the own player as predicted, others as interpolated, the rest as last told.
//!
//! The player in `examples/predicted_runner.rs` takes less than 120 lines, server and client.

mod client;
mod components;
mod connection;
mod events;
mod kinds;
mod protocol;
mod server;
mod ticks;

pub use client::{ClientPlugin, NetClient};
pub use components::{NetId, Owner, Predicted, Replicated, VisibleTo};
pub use connection::{
    ClientAsking, ClientJoined, ClientLeft, ConnectTo, ConnectionChanged, ConnectionState,
    Diagnostics, MessageFrom, MessageReceived, NetTick, OnScreen, PlayerInput, ReceiptReceived,
    ServeOn,
};
pub use events::{Emitted, FromClient, FromServer, ToClients, ToServer};
pub use muse;
pub use protocol::{BevyGame, Protocol, Replicable};
pub use server::{NetServer, ServerPlugin};

/// The names that almost every game needs: `use muse_bevy::prelude::*;`.
pub mod prelude {
    pub use crate::{
        BevyGame, ClientAsking, ClientJoined, ClientLeft, ClientPlugin, ConnectTo, ConnectionState,
        Diagnostics, Emitted, FromClient, FromServer, NetClient, NetId, NetServer, NetTick,
        OnScreen, Owner, PlayerInput, Predicted, Protocol, Replicable, Replicated, ServeOn,
        ServerPlugin, ToClients, ToServer, VisibleTo,
    };
    pub use muse::netcode::prediction::{Candidate, Game, Scene, StepContext};
    pub use muse::netcode::{Audience, ClientId, EventClass, KindOptions, SessionConfig};
    pub use muse::{Duration, Schema, State};
}

/// The program of the guide is compiled and run as this crate's own.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/start-bevy.md")]
struct StartBevy;
