//! Deterministic matches, in lockstep or with rollback, over encrypted connections.
//!
//! Every machine runs the same [`DeterministicGame`] and only inputs travel; one machine, a player who hosts or a server, puts them in
//! order. [`DeterministicSession`] is all that a game needs. Below it, [`Participant`] is the same without sockets
//! and clocks: it carries a match in one unreliable channel of an [`Endpoint`](crate::Endpoint), whatever link that runs over
//! (UDP, WebTransport, WebSocket, memory, a relay's room, a simulated network), and leaves the other channels to the game.
//!
//! A player is known by the connection, which is encrypted and bound to the host's key, and by the account of the connect token if
//! there is one. [`muse_lockstep`](crate::lockstep) has the session and the orderer themselves.

mod links;
mod participant;
mod session;
#[cfg_attr(
    not(all(feature = "relay", not(target_arch = "wasm32"))),
    path = "deterministic/no_succession.rs"
)]
mod succession;

use muse_lockstep::{DeterministicGame, Frame, GameEvent, MatchConfig, OverReason, Report, Seat};
use muse_transport::{ChannelConfig, Config, Delivery, Priority, Refusal};

pub use crate::session::Applicant;
pub use participant::Participant;
pub use session::DeterministicSession;

/// Something that happened in a match. `E` is [`DeterministicGame::Event`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MatchEvent<E> {
    /// A client waits to be [admitted](DeterministicSession::admit) or [denied](DeterministicSession::deny), at once or later; at a host that
    /// [asks](crate::Listen::ask) only.
    Asking(Applicant),
    /// The match began, or this machine is in it now, from this frame on.
    Begun(Frame),
    /// Somebody plays from this frame on.
    Joined(Seat, Frame),
    /// Somebody is gone from this frame on.
    Left(Seat, Frame),
    /// The game emitted this, as far as this machine knows: for sounds and effects, which must come at once.
    Predicted(Frame, E),
    /// It did not happen after all: a guess was wrong.
    Cancelled(Frame, E),
    /// It happened for certain and on all machines: for scores, and everything that cannot be taken back.
    Confirmed(Frame, E),
    /// This machine's state differed from the others' and is being repaired. The report names the first frame and field that differ.
    Desynced(Box<Report>),
    /// The state was set back to that of a frame, and run again from there.
    Mended(Frame),
    /// A server that only orders noticed that this player's state differs, at this check.
    Differed(Seat, Frame),
    /// Another machine hosts the match now; it goes on where it was.
    HostChanged,
    /// The host is out of reach; this machine tries to come back to its seat.
    Interrupted,
    /// The host refused the connection: another game or version, no room, a token that does not hold.
    Refused(Refusal),
    /// The match is over for this machine.
    Over(OverReason),
    /// The host could not be reached (again) in time.
    Lost,
}

impl<E> From<GameEvent<E>> for MatchEvent<E> {
    fn from(event: GameEvent<E>) -> Self {
        match event {
            GameEvent::Predicted(frame, event) => Self::Predicted(frame, event),
            GameEvent::Cancelled(frame, event) => Self::Cancelled(frame, event),
            GameEvent::Confirmed(frame, event) => Self::Confirmed(frame, event),
        }
    }
}

/// Returns the channel that a match needs, to be declared beside the channels of the game's own.
pub fn match_channel() -> ChannelConfig {
    ChannelConfig::new(Delivery::Unreliable)
        .priority(Priority::High)
        .queue_messages(QUEUE_MESSAGES_MAX)
}

/// Returns the transport's settings for a match with no channels of its own: [`MATCH_CHANNEL`] is the only one, and a machine with
/// another game, version or settings is refused when it connects.
pub fn transport_config<G: DeterministicGame>(config: &MatchConfig) -> Config {
    Config::new(MATCH_PROTOCOL)
        .channel(match_channel())
        .channel(succession_channel())
        .shared(&config.describe::<G>())
        .connections_max(CONNECTIONS_MAX)
}

/// Returns the channel by which a host prepares its succession, to be declared beside [`match_channel`].
pub fn succession_channel() -> ChannelConfig {
    ChannelConfig::new(Delivery::ReliableOrdered)
}

/// The channel of a host's succession in [`transport_config`].
pub const SUCCESSION_CHANNEL: u8 = 1;
/// The channel of a match in [`transport_config`].
pub const MATCH_CHANNEL: u8 = 0;
/// The protocol id of [`transport_config`], which issuers of connect tokens need: `museplay` as a number.
pub const MATCH_PROTOCOL: u64 = 0x6d75_7365_706c_6179;
/// Packets that may wait; a newer one holds all that an older one did, so that more would only be late.
const QUEUE_MESSAGES_MAX: usize = 256;
/// Players, spectators, and room for strangers who hold a connection and say nothing.
const CONNECTIONS_MAX: usize = 512;
