//! The master server: sessions, matchmaking, game servers on demand, friends, chat, ranking (OA-1 to OA-11, OA-24).
//!
//! What decides is pure: [`sessions`], [`ticket`], [`matching`], [`director`] (the life of every match), [`rating`], [`lease`] and [`ports`]
//! know neither sockets nor clocks nor databases, and a week of ten thousand players is simulated with them in seconds
//! (`tests/week`).
//!
//! A reader begins with [`director::Director`].

pub mod director;
pub mod lease;
pub mod matching;
pub mod ports;
pub mod rating;
pub mod sessions;
pub mod ticket;
