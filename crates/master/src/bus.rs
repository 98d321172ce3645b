//! Notes that masters send each other, and themselves.
//!
//! A note may be lost: everything that matters is in the store, and a master that missed something reads it there again. So a bus needs no
//! memory, no order between masters and no acknowledgement.

#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod seal;

use std::collections::BTreeMap;

use muse_master_client::messages::{MatchResult, Report, ToServer};
use muse_master_client::{AccountId, MatchId, ServerId, TicketId};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::secrets::SignInId;
use crate::ticket::Ticket;
#[cfg(feature = "nats")]
pub use nats::{NatsBus, NatsConfig, NatsError};

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Note {
    /// A ticket was stored or changed.
    Ticket(Ticket),
    /// A ticket was taken back.
    TicketGone(TicketId),
    /// A player connected.
    Back(AccountId),
    /// A player's connection is gone.
    Away(AccountId),
    /// A player gave up their seat.
    SeatLeft(MatchId, AccountId),
    /// A game server reports how its match goes.
    Report(ServerId, Report),
    /// A game server reports the end of its match.
    Result(ServerId, MatchResult),
    /// The result of a game server was refused, so that its match is over without one.
    ResultRefused(ServerId, MatchId),
    /// A game server is gone.
    ServerGone(ServerId),
    /// To a player, wherever they are connected: a message as JSON.
    Tell(AccountId, String),
    /// To a game server, wherever it is connected.
    ToServer(ServerId, ToServer),
    /// To every player: a message as JSON.
    TellAll(String),
    /// Remove a player, who is told why.
    Kick(AccountId, String),
    /// The tokens of an account are void, but for those of one sign-in: the connections that were opened with the others are closed.
    Revoked(AccountId, SignInId),
    /// A player connected to this master, so that others close their connections of this player.
    Entered(AccountId, u64),
    /// A player's latency to relays, in milliseconds by region.
    Measured(AccountId, BTreeMap<String, u16>),
    /// Asks every master to say which of these players are [`Back`](Self::Back), because they are connected to it.
    WhoIsHere(Vec<AccountId>),
}

/// A bus.
pub trait Bus: Send + Sync {
    /// Tells everybody, the caller's own master too.
    fn publish(&self, note: Note);
    /// Returns everything from now on. A reader that is too slow is told that it missed something.
    fn subscribe(&self) -> broadcast::Receiver<Note>;
    /// True if other masters use it too. Then notes can be lost on the way, and a leader looks into the store from time to time.
    fn is_shared(&self) -> bool {
        false
    }
}

/// The bus of one master.
#[derive(Debug)]
pub struct LocalBus {
    notes: broadcast::Sender<Note>,
}

impl Default for LocalBus {
    fn default() -> Self {
        let (notes, _) = broadcast::channel(NOTES_MAX);
        Self { notes }
    }
}

impl Bus for LocalBus {
    fn publish(&self, note: Note) {
        // Without a listener there is nobody to tell.
        let _ = self.notes.send(note);
    }

    fn subscribe(&self) -> broadcast::Receiver<Note> {
        self.notes.subscribe()
    }
}

/// Notes that wait for a slow reader.
const NOTES_MAX: usize = 16_384;
