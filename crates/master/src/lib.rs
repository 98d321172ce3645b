//! The master server: sessions, matchmaking, game servers on demand, friends, chat, ranking.
//!
//! Decisions are pure: [`sessions`], [`ticket`], [`matching`], [`director`] (the life of every match), [`leader`] (who leads, and what is stored, started
//! and sent when), [`rating`], [`lease`] and [`ports`] know neither sockets nor clocks nor databases. A week of ten thousand players is simulated with them in
//! seconds (`tests/week`), and the laboratory's simulator of the whole system runs the same leader.
//!
//! The shell carries them out: [`store`], [`bus`] and [`fleet`] are traits with an implementation for one machine each, `leading.rs` drives the
//! leader with them, and `http.rs` answers players and game servers. [`Master`] puts it together.
//!
//! A reader begins with [`leader::Leader`], then [`director::Director`].

pub mod bus;
mod clock;
mod config;
mod connections;
pub mod director;
pub mod fleet;
mod hashing;
pub mod hosts;
mod http;
pub mod hub;
mod journal;
mod key_ring;
pub mod leader;
mod leading;
pub mod lease;
pub mod matching;
pub mod operators;
pub mod pauses;
pub mod ports;
mod proxies;
mod queue_file;
pub mod rating;
mod recent;
mod relays;
mod retention;
mod sealing;
pub mod secrets;
mod server;
mod serving;
pub mod sessions;
mod several;
mod shared;
mod sockets;
pub mod store;
pub mod ticket;
mod tls;

pub use config::MasterConfig;
pub use proxies::{NoNetwork, TrustedProxy};
pub use retention::Retention;
pub use server::{Master, StartError};
