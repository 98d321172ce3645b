//! Deterministic sessions: lockstep and rollback.
//!
//! Only inputs travel. Every machine runs the same [`Game`] on them and has the same state. A [`Session`] is one machine of a
//! match; an [`Orderer`] puts everybody's inputs in order and forwards them, either as a server that does not know the game
//! ([`Server`]) or as a part of the player who hosts ([`Host`]). All of it is sans-IO: bytes in and out, time as an argument.
//!
//! - [`Config::lockstep`]: commands run two turns after they were given; speed control sets the length of turns.
//! - [`Config::rollback`]: nobody waits; missing inputs are guessed, and wrong guesses are run again.
//! - Checksums are compared all the time. A machine that differs is mended, and a [`Report`] names the first frame and field.
//! - Players may join a match under way, come back, or watch; a [`replay`] holds a match in a file.
//! - Aids for determinism: [`Rng`], [`Fixed`], [`strict`], [`SyncTest`], [`lint`]; [`Schedule`] lets entities sleep.
//!
//! `docs/lockstep.md` defines the packets, `docs/replay.md` the file.

mod blob;
mod checksum;
mod config;
mod diff;
mod fixed;
mod frame;
mod game;
mod link;
pub mod lint;
mod machine;
mod orderer;
mod packet;
pub mod replay;
mod rng;
pub mod samples;
mod schedule;
mod session;
mod stream;
pub mod strict;
mod sync_test;

pub use checksum::checksum;
pub use config::{Config, ConfigError, DELAY_MAX, HISTORY_MAX, Late, Mode};
pub use diff::{Difference, describe, differences, is_lossless};
pub use fixed::Fixed;
pub use frame::{Frame, SEATS_MAX, Seat};
pub use game::{EVENTS_PER_FRAME_MAX, Game, STATE_BYTES_LIMIT, Step, decode, encode};
pub use machine::{Client, Host, Peer, Server};
pub use orderer::{LinkId, Notice, Orderer};
pub use packet::{PACKET_BYTES_MAX, Refusal};
pub use rng::Rng;
pub use schedule::Schedule;
pub use session::{
    Event, HAPPENINGS_MAX, Happening, History, InputError, Report, Role, Session, Statistics,
    Status, Target, Trace,
};
pub use stream::INPUT_BYTES_MAX;
pub use sync_test::{SyncError, SyncTest};
