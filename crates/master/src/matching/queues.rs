//! All queues of a master.

use std::collections::BTreeMap;
use std::{iter, mem};

use muse_master_client::{AccountId, MatchId, Preferences, TicketId};
use muse_wire::Instant;

use super::pass::CHECKS_MAX;
use super::{MatchingConfig, Passed, Queue, QueueRules};
use crate::ticket::{Backfill, Ticket};

/// The queues that have rules of their own, and one for everybody else. A ticket is in one of them: the one that its preferences name.
#[derive(Debug)]
pub struct Queues {
    config: MatchingConfig,
    rules: QueueRules,
    general: Queue,
    named: BTreeMap<String, Queue>,
    /// The queue that is served first in the next pass.
    turn: usize,
}

impl Queues {
    /// Empty queues: `config` is for everybody whose queue has no rules.
    pub fn new(config: MatchingConfig, rules: QueueRules) -> Self {
        let named = rules.names().filter_map(|name| {
            let own = rules.config(name, &config)?;
            Some((name.to_owned(), Queue::new(own)))
        });
        Self {
            general: Queue::new(config.clone()),
            named: named.collect(),
            config,
            rules,
            turn: 0,
        }
    }

    /// Changes the rules. Everybody goes on waiting, with the place they have.
    pub fn set_rules(&mut self, rules: QueueRules) {
        let new = Self::new(self.config.clone(), rules);
        let old = mem::replace(self, new);
        for queue in iter::once(old.general).chain(old.named.into_values()) {
            for entry in queue.entries.into_values() {
                self.of(&entry.ticket.preferences).adopt(entry);
            }
            for backfill in queue.backfills.into_values() {
                self.set_backfill(backfill);
            }
        }
    }

    /// The rules of the named queues.
    pub fn rules(&self) -> &QueueRules {
        &self.rules
    }

    /// Returns how many tickets wait.
    pub fn len(&self) -> usize {
        self.all().map(Queue::len).sum()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.all().all(Queue::is_empty)
    }

    /// The ticket in which this player waits.
    pub fn ticket_of(&self, account: AccountId) -> Option<&Ticket> {
        self.all().find_map(|queue| queue.ticket_of(account))
    }

    /// Every ticket, in no particular order.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.all().flat_map(Queue::tickets)
    }

    /// Takes a ticket in, or replaces the one of the same name. Other tickets of its players are dropped: a player is in at most one.
    pub fn insert(&mut self, ticket: Ticket) {
        self.all_mut().for_each(|queue| queue.displace(&ticket));
        self.of(&ticket.preferences).insert(ticket);
    }

    /// Takes a ticket out.
    pub fn remove(&mut self, id: TicketId) -> Option<Ticket> {
        self.all_mut().find_map(|queue| queue.remove(id))
    }

    /// A player's connection was lost: their ticket waits for them, and ends after the grace period.
    pub fn handle_away(&mut self, now: Instant, account: AccountId) {
        self.all_mut()
            .for_each(|queue| queue.handle_away(now, account));
    }

    /// A player is back.
    pub fn handle_back(&mut self, account: AccountId) {
        self.all_mut().for_each(|queue| {
            queue.handle_back(account);
        });
    }

    /// Notes that the master was paused and may have missed players who came back: everybody who is away has the full grace period again.
    pub fn handle_pause(&mut self, now: Instant) {
        self.all_mut().for_each(|queue| queue.handle_pause(now));
    }

    /// Seats of a running match are open; zero seats takes the request back. One request per match.
    pub fn set_backfill(&mut self, backfill: Backfill) {
        self.of(&backfill.preferences).set_backfill(backfill);
    }

    /// The match is over.
    pub fn remove_backfill(&mut self, match_id: MatchId) {
        self.all_mut()
            .for_each(|queue| queue.remove_backfill(match_id));
    }

    /// Decides who plays together now, in at most so many new matches, and who fills seats of running ones. Its work is bounded; what is left goes on in
    /// the next pass, which begins with the next queue.
    pub fn pass(&mut self, now: Instant, groups_max: usize) -> Passed {
        let mut passed = Passed::default();
        let mut checks = CHECKS_MAX;
        let turn = self.turn;
        let mut queues: Vec<&mut Queue> = self.all_mut().collect();
        let count = queues.len();
        queues.rotate_left(turn % count);
        for queue in queues {
            queue.pass_into(now, groups_max, &mut checks, &mut passed);
        }
        self.turn = (turn + 1) % count;
        passed
    }

    /// The regions in which a match by these preferences may be played, as its queue says.
    pub fn regions(&self, preferences: &Preferences) -> Vec<String> {
        let named = preferences.queue_name();
        let queue = named.and_then(|name| self.named.get(name));
        queue.unwrap_or(&self.general).regions(preferences)
    }

    fn of(&mut self, preferences: &Preferences) -> &mut Queue {
        let named = preferences.queue_name();
        match named.and_then(|name| self.named.get_mut(name)) {
            Some(queue) => queue,
            None => &mut self.general,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Queue> {
        iter::once(&self.general).chain(self.named.values())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        iter::once(&mut self.general).chain(self.named.values_mut())
    }
}
