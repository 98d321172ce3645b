//! Deterministic sessions: lockstep and rollback.
//!
//! Only inputs travel. Every machine runs the same [`DeterministicGame`] on them and has the same state. A [`Session`] is one machine of a
//! match; an [`Orderer`] puts everybody's inputs in order and forwards them, either as a server that does not know the game or as
//! a part of the player who hosts. All of it is sans-IO: bytes in and out, time as an argument. Packets are neither encrypted nor
//! authenticated: `muse::deterministic` carries them in a channel of an encrypted connection.
//!
//! - [`MatchConfig::lockstep`]: commands run two turns after they were given; speed control sets the length of turns.
//! - [`MatchConfig::rollback`]: nobody waits; missing inputs are guessed, and wrong guesses are run again.
//! - Checksums are compared all the time. A machine that differs is repaired, and a [`Report`] names the first frame and field.
//! - Players may join a match under way, come back, or watch; a [`replay`] holds a match in a file.
//! - When the orderer is lost, another machine may take over: [`Recovery`], [`Session::resume`].
//! - Aids for determinism: [`Rng`], [`strict`], [`SyncTest`], and `templates/clippy.toml` for the game's crate; [`Schedule`] lets entities sleep.
//!
//! `docs/lockstep.md` defines the packets, `docs/replay.md` the file.

mod blob;
mod checksum;
mod config;
mod diff;
mod frame;
mod game;
mod link;
mod orderer;
mod packet;
pub mod replay;
mod rng;
#[cfg(feature = "samples")]
pub mod samples;
mod schedule;
mod session;
mod stream;
pub mod strict;
mod succession;
mod sync_test;

pub use checksum::checksum;
pub use config::{DELAY_MAX, HISTORY_MAX, Late, MatchConfig, MatchConfigError, Mode};
pub use diff::{Difference, describe, differences, is_lossless};
pub use frame::{Frame, SEATS_MAX, Seat};
pub use game::{DeterministicGame, EVENTS_PER_FRAME_MAX, STATE_BYTES_LIMIT, Step, decode, encode};
pub use orderer::{LinkId, Notice, Orderer};
pub use packet::{OverReason, PACKET_BYTES_MAX};
pub use rng::Rng;
pub use schedule::Schedule;
pub use session::{
    GAME_EVENTS_MAX, GameEvent, History, InputError, Report, Role, Session, SessionEvent,
    Statistics, Status, Target, Trace,
};
pub use stream::INPUT_BYTES_MAX;
pub use succession::Recovery;
pub use sync_test::{SyncError, SyncTest};
