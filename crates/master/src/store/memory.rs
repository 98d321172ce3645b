//! A leader's part of the store as maps, for simulations in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use muse_master_client::{AccountId, MatchId, TicketId};
use muse_wire::Instant;

use super::{Created, Fill, StoreError};
use crate::director::{Ending, NewMatch, StoredMatch};
use crate::leader::{Looked, Reply, StoreRequest, Transaction};
use crate::lease::Lease;
use crate::matching::Filled;
use crate::ticket::Ticket;

/// Keeps what the database keeps of one queue: whole transactions, with the epoch checked.
///
/// A write that the database's unique keys would refuse is a bug in the leader: it is done all the same and remembered as
/// [`broken`](Self::broken), so that a simulation can say when and with which seed.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    lease: Option<Lease>,
    tickets: BTreeMap<TicketId, Ticket>,
    ticket_of: BTreeMap<AccountId, TicketId>,
    matches: BTreeMap<MatchId, StoredMatch>,
    seat_of: BTreeMap<AccountId, MatchId>,
    ended: BTreeSet<MatchId>,
    broken: Option<String>,
}

impl MemoryStore {
    /// Returns the tickets.
    pub fn tickets(&self) -> &BTreeMap<TicketId, Ticket> {
        &self.tickets
    }

    /// Returns the matches that are not over.
    pub fn matches(&self) -> &BTreeMap<MatchId, StoredMatch> {
        &self.matches
    }

    /// Returns the ticket of a player.
    pub fn ticket_of(&self, account: AccountId) -> Option<TicketId> {
        self.ticket_of.get(&account).copied()
    }

    /// Returns the match in which a player has a seat.
    pub fn seat_of(&self, account: AccountId) -> Option<MatchId> {
        self.seat_of.get(&account).copied()
    }

    /// True if a player has a ticket or a seat.
    pub fn knows(&self, account: AccountId) -> bool {
        self.ticket_of.contains_key(&account) || self.seat_of.contains_key(&account)
    }

    /// Returns the first promise that was broken.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Compares everything with everything else. Returns what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let seated = |stored: &StoredMatch| stored.players.len();
        let seats: usize = self.matches.values().map(seated).sum();
        if seats != self.seat_of.len() {
            let stored = self.seat_of.len();
            return Err(format!("{stored} seats for {seats} players in matches"));
        }
        for stored in self.matches.values() {
            for player in &stored.players {
                if self.seat_of(*player) != Some(stored.match_id) {
                    let match_id = stored.match_id;
                    return Err(format!(
                        "account {player} is in match {match_id} without a seat"
                    ));
                }
            }
        }
        let waits = |ticket: &Ticket| ticket.party.len();
        let waiting: usize = self.tickets.values().map(waits).sum();
        if waiting != self.ticket_of.len() {
            let stored = self.ticket_of.len();
            return Err(format!("{stored} tickets for {waiting} players who wait"));
        }
        Ok(())
    }

    /// Stores a ticket, new or changed.
    pub fn put_ticket(&mut self, ticket: Ticket) {
        for member in &ticket.party {
            let account = member.account;
            if self.seat_of.contains_key(&account) {
                self.breaks(format!("account {account} waits and has a seat"));
            }
            let other = self.ticket_of.insert(account, ticket.id);
            if other.is_some_and(|other| other != ticket.id) {
                self.breaks(format!("account {account} has two tickets"));
            }
        }
        self.tickets.insert(ticket.id, ticket);
    }

    /// Removes a ticket, if it is there.
    pub fn remove_ticket(&mut self, id: TicketId) {
        let removed = self.tickets.remove(&id);
        for member in removed.iter().flat_map(|ticket| &ticket.party) {
            self.ticket_of.remove(&member.account);
        }
    }

    /// Does what a leader requests.
    pub fn handle_request(&mut self, now: Instant, request: StoreRequest) -> Option<Reply> {
        match request {
            StoreRequest::Lease { holder } => {
                let lease = Lease::asked(self.lease.as_ref(), holder, now);
                if lease.is_some() {
                    self.lease.clone_from(&lease);
                }
                Some(Reply::Lease(Ok(lease)))
            }
            StoreRequest::ReleaseLease { holder } => {
                if let Some(lease) = self.lease.as_mut().filter(|lease| lease.holder == holder) {
                    lease.until = Instant::ZERO;
                }
                None
            }
            StoreRequest::Restore { epoch } => {
                let restored = self.check_epoch(epoch).map(|()| {
                    let matches = self.matches.values().cloned().collect();
                    (self.tickets.values().cloned().collect(), matches)
                });
                Some(Reply::Restored(restored))
            }
            StoreRequest::Look { epoch } => {
                let looked = self.check_epoch(epoch).map(|()| Looked {
                    tickets: self.tickets.values().cloned().collect(),
                    ..Looked::default()
                });
                Some(Reply::Looked(looked))
            }
            StoreRequest::Commit { epoch, transaction } => Some(match self.check_epoch(epoch) {
                Ok(()) => self.commit(transaction),
                Err(error) => Reply::NotStored(transaction, error),
            }),
        }
    }

    fn check_epoch(&self, epoch: u64) -> Result<(), StoreError> {
        let newest = self.lease.as_ref().map(|lease| lease.epoch);
        match newest == Some(epoch) {
            true => Ok(()),
            false => Err(StoreError::OldEpoch),
        }
    }

    fn commit(&mut self, transaction: Transaction) -> Reply {
        match transaction {
            Transaction::CreateMatch(new) => Reply::Created(new.match_id, self.create(&new)),
            Transaction::FillSeats(filled) => {
                let fill = self.fill(&filled);
                Reply::Filled(filled, fill)
            }
            Transaction::RecordServer(match_id, server) => {
                if let Some(stored) = self.matches.get_mut(&match_id) {
                    stored.server = Some(server);
                }
                Reply::Stored
            }
            Transaction::RecordRunning(match_id) => {
                if let Some(stored) = self.matches.get_mut(&match_id) {
                    stored.running = true;
                }
                Reply::Stored
            }
            Transaction::FreeSeat(match_id, account) => {
                if let Some(stored) = self.matches.get_mut(&match_id) {
                    stored.players.retain(|player| *player != account);
                    stored.left.push(account);
                    self.free(account, match_id);
                }
                Reply::Stored
            }
            Transaction::EndMatch(ending) => Reply::Ended(ending.match_id, self.end(ending)),
            Transaction::EndTicket(ticket) => {
                self.remove_ticket(ticket);
                Reply::Stored
            }
        }
    }

    fn create(&mut self, new: &NewMatch) -> Created {
        // Changed preferences are another ticket as far as this match is concerned.
        let is_gone = |asked: &&Ticket| {
            let stored = self.tickets.get(&asked.id);
            stored.is_none_or(|stored| stored.preferences != asked.preferences)
        };
        let gone = new.tickets.iter().filter(is_gone);
        let gone: Vec<TicketId> = gone.map(|ticket| ticket.id).collect();
        if !gone.is_empty() {
            return Created { gone };
        }
        let stored = StoredMatch {
            match_id: new.match_id,
            preferences: new.preferences.clone(),
            bots: new.bots,
            players: Vec::new(),
            left: Vec::new(),
            server: None,
            running: false,
        };
        if self.matches.insert(new.match_id, stored).is_some() {
            self.breaks(format!("there are two matches {}", new.match_id));
        }
        for ticket in &new.tickets {
            self.seat(ticket, new.match_id);
        }
        Created { gone }
    }

    fn fill(&mut self, filled: &Filled) -> Fill {
        let Some(ticket) = self.tickets.get(&filled.ticket.id).cloned() else {
            return Fill::TicketGone;
        };
        if !self.matches.contains_key(&filled.match_id) {
            return Fill::MatchOver;
        }
        self.seat(&ticket, filled.match_id);
        Fill::Filled
    }

    /// Returns the tickets that are back in the queue, none if the match was over already.
    fn end(&mut self, ending: Ending) -> Option<Vec<Ticket>> {
        let stored = self.matches.remove(&ending.match_id)?;
        if !self.ended.insert(ending.match_id) {
            self.breaks(format!("match {} ends twice", ending.match_id));
        }
        for account in stored.players {
            self.free(account, ending.match_id);
        }
        let mut requeued = ending.requeue;
        // A player who did something else meanwhile stays with that.
        requeued.retain(|ticket| {
            let mut party = ticket.party.iter();
            party.all(|member| !self.knows(member.account))
        });
        for ticket in &requeued {
            self.put_ticket(ticket.clone());
        }
        Some(requeued)
    }

    /// Turns a ticket into seats of a match.
    fn seat(&mut self, ticket: &Ticket, match_id: MatchId) {
        self.remove_ticket(ticket.id);
        for member in &ticket.party {
            let account = member.account;
            if let Some(other) = self.seat_of.insert(account, match_id) {
                self.breaks(format!(
                    "account {account} is in matches {other} and {match_id}"
                ));
            }
        }
        if let Some(stored) = self.matches.get_mut(&match_id) {
            let party = ticket.party.iter().map(|member| member.account);
            stored.players.extend(party);
        }
    }

    fn free(&mut self, account: AccountId, match_id: MatchId) {
        if self.seat_of.remove(&account) != Some(match_id) {
            self.breaks(format!("account {account} has no seat in match {match_id}"));
        }
    }

    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }
}
