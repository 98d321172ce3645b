//! The requests of a leader to its shell, and the replies to them.

use muse_master_client::{AccountId, MatchId, ServerId, TicketId};

use crate::bus::Note;
use crate::director::{Ending, NewMatch, NoServer, Placement, StoredMatch};
use crate::lease::Lease;
use crate::matching::Filled;
use crate::store::{Created, Fill, StoreError, StoredReport};
use crate::ticket::Ticket;

/// Something that the shell is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Begin this transaction now, after those that were requested before it.
    Store(StoreRequest),
    /// Find a server for this match and send it its assignment. Then [`Reply::Placed`].
    Allocate(Placement),
    /// Give a server back to the fleet.
    Release(ServerId),
    /// List the servers that the fleet has given to matches. Then [`Reply::Servers`].
    ListServers,
    /// Tell every master, this one included.
    Publish(Note),
    /// Send connect tokens for this match to these players.
    Admit {
        /// The match.
        match_id: MatchId,
        /// Its server.
        server: ServerId,
        /// The players to admit.
        players: Vec<AccountId>,
    },
    /// Write down for the operators what was done about a match.
    Journal(MatchId, String),
}

/// A transaction that the store is to begin.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreRequest {
    /// Ask for the lease, or renew it. Then [`Reply::Lease`].
    Lease {
        /// The name of this term.
        holder: u64,
    },
    /// Give the lease back. Nothing follows.
    ReleaseLease {
        /// The name of this term.
        holder: u64,
    },
    /// Read everything that a new leader takes over. Then [`Reply::Restored`].
    Restore {
        /// The leader's epoch.
        epoch: u64,
    },
    /// Read again what notes may have been lost about. Then [`Reply::Looked`].
    Look {
        /// The leader's epoch.
        epoch: u64,
    },
    /// Write. Then the reply that [`Transaction`] names, or [`Reply::NotStored`].
    Commit {
        /// The leader's epoch.
        epoch: u64,
        /// The transaction to write.
        transaction: Transaction,
    },
}

/// A transaction that changes something.
#[derive(Clone, Debug, PartialEq)]
pub enum Transaction {
    /// Turns tickets into a match, if all are still there. Then [`Reply::Created`].
    CreateMatch(NewMatch),
    /// Turns a ticket into seats of a running match. Then [`Reply::Filled`].
    FillSeats(Filled),
    /// Records the server of a match. Then [`Reply::Stored`].
    RecordServer(MatchId, ServerId),
    /// Records that a match has begun. Then [`Reply::Stored`].
    RecordRunning(MatchId),
    /// Frees the seat of a player. Then [`Reply::Stored`].
    FreeSeat(MatchId, AccountId),
    /// Ends a match. Then [`Reply::Ended`].
    EndMatch(Ending),
    /// Removes a ticket. Then [`Reply::Stored`].
    EndTicket(TicketId),
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The lease, or none if another master holds it.
    Lease(Result<Option<Lease>, StoreError>),
    /// The tickets and matches that are stored.
    Restored(Result<(Vec<Ticket>, Vec<StoredMatch>), StoreError>),
    /// The store's knowledge that this leader may have missed.
    Looked(Result<Looked, StoreError>),
    /// The match is created, or some of its tickets are gone.
    Created(MatchId, Created),
    /// The ticket went into the match, or did not.
    Filled(Filled, Fill),
    /// The match is over and these tickets are back in the queue; none if it was over already.
    Ended(MatchId, Option<Vec<Ticket>>),
    /// The transaction is written and nothing follows from it.
    Stored,
    /// The transaction failed.
    NotStored(Transaction, StoreError),
    /// The match has a server, or there is none to be had.
    Placed(MatchId, Result<ServerId, NoServer>),
    /// The servers that the fleet has given to matches.
    Servers(Vec<(ServerId, MatchId)>),
}

/// The store's knowledge, for a leader that may have missed notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    /// Every ticket.
    pub tickets: Vec<Ticket>,
    /// The last report of every match.
    pub reports: Vec<StoredReport>,
    /// Players with a ticket who are connected to any master.
    pub here: Vec<AccountId>,
}
