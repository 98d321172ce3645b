//! What the store promises, as maps: whole transactions, the epoch checked, and unique keys that panic when they are broken.

use std::collections::{BTreeMap, BTreeSet};

use muse_master::director::{Ending, NewMatch, StoredMatch};
use muse_master::ticket::Ticket;
use muse_master_client::messages::Outcome;
use muse_master_client::{AccountId, MatchId, ServerId, TicketId};

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) epoch: u64,
    pub(crate) tickets: BTreeMap<TicketId, Ticket>,
    pub(crate) ticket_of: BTreeMap<AccountId, TicketId>,
    pub(crate) seat_of: BTreeMap<AccountId, MatchId>,
    pub(crate) matches: BTreeMap<MatchId, StoredMatch>,
    ended: BTreeSet<MatchId>,
    rated: BTreeSet<MatchId>,
}

/// The caller no longer leads.
#[derive(Debug)]
pub(crate) struct OldEpoch;

impl Store {
    fn check(&self, epoch: u64) -> Result<(), OldEpoch> {
        if epoch == self.epoch {
            Ok(())
        } else {
            Err(OldEpoch)
        }
    }

    pub(crate) fn put_ticket(&mut self, ticket: Ticket) {
        for member in &ticket.party {
            assert!(
                !self.seat_of.contains_key(&member.account),
                "a ticket and a match"
            );
            let other = self.ticket_of.insert(member.account, ticket.id);
            assert!(other.is_none_or(|other| other == ticket.id), "two tickets");
        }
        self.tickets.insert(ticket.id, ticket);
    }

    pub(crate) fn remove_ticket(&mut self, id: TicketId) -> bool {
        let Some(ticket) = self.tickets.remove(&id) else {
            return false;
        };
        for member in &ticket.party {
            self.ticket_of.remove(&member.account);
        }
        true
    }

    /// The tickets that are gone, if any: then nothing is written.
    pub(crate) fn create(&mut self, epoch: u64, new: &NewMatch) -> Result<Vec<TicketId>, OldEpoch> {
        self.check(epoch)?;
        let ids = new.tickets.iter().map(|ticket| ticket.id);
        let gone: Vec<TicketId> = ids.filter(|id| !self.tickets.contains_key(id)).collect();
        if !gone.is_empty() {
            return Ok(gone);
        }
        for ticket in &new.tickets {
            self.remove_ticket(ticket.id);
        }
        for account in new.players() {
            let other = self.seat_of.insert(account, new.match_id);
            assert_eq!(other, None, "{account} is in two matches");
        }
        let stored = StoredMatch {
            match_id: new.match_id,
            preferences: new.preferences.clone(),
            bots: new.bots,
            players: new.players().collect(),
            server: None,
            running: false,
        };
        let other = self.matches.insert(new.match_id, stored);
        assert!(other.is_none(), "two matches of one name");
        Ok(gone)
    }

    pub(crate) fn fill(
        &mut self,
        epoch: u64,
        match_id: MatchId,
        id: TicketId,
    ) -> Result<Option<bool>, OldEpoch> {
        self.check(epoch)?;
        let Some(ticket) = self.tickets.get(&id).cloned() else {
            return Ok(Some(true));
        };
        if !self.matches.contains_key(&match_id) {
            return Ok(Some(false));
        }
        self.remove_ticket(id);
        for member in &ticket.party {
            let other = self.seat_of.insert(member.account, match_id);
            assert_eq!(other, None, "{} is in two matches", member.account);
        }
        let players = ticket.party.iter().map(|member| member.account);
        if let Some(stored) = self.matches.get_mut(&match_id) {
            stored.players.extend(players);
        }
        Ok(None)
    }

    pub(crate) fn record(
        &mut self,
        epoch: u64,
        id: MatchId,
        server: Option<ServerId>,
    ) -> Result<(), OldEpoch> {
        self.check(epoch)?;
        if let Some(stored) = self.matches.get_mut(&id) {
            match server {
                Some(server) => stored.server = Some(server),
                None => stored.running = true,
            }
        }
        Ok(())
    }

    pub(crate) fn free_seat(
        &mut self,
        epoch: u64,
        id: MatchId,
        account: AccountId,
    ) -> Result<(), OldEpoch> {
        self.check(epoch)?;
        if let Some(stored) = self.matches.get_mut(&id) {
            stored.players.retain(|player| *player != account);
            let seat = self.seat_of.remove(&account);
            assert_eq!(seat, Some(id), "the seat of another match");
        }
        Ok(())
    }

    /// The tickets that are back in the queue, none if the match was over already.
    pub(crate) fn end(
        &mut self,
        epoch: u64,
        ending: &Ending,
    ) -> Result<Option<Vec<Ticket>>, OldEpoch> {
        self.check(epoch)?;
        let Some(stored) = self.matches.remove(&ending.match_id) else {
            return Ok(None);
        };
        assert!(self.ended.insert(ending.match_id), "a match ends once");
        for account in &stored.players {
            let seat = self.seat_of.remove(account);
            assert_eq!(seat, Some(ending.match_id), "a seat of another match");
        }
        if ending.outcome == Outcome::Finished {
            assert!(
                self.rated.insert(ending.match_id),
                "ratings are applied once"
            );
        }
        let back = |ticket: &&Ticket| {
            let mut party = ticket.party.iter();
            party.all(|member| !self.ticket_of.contains_key(&member.account))
        };
        let requeued: Vec<Ticket> = ending.requeue.iter().filter(back).cloned().collect();
        for ticket in &requeued {
            self.put_ticket(ticket.clone());
        }
        Ok(Some(requeued))
    }
}
