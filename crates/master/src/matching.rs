//! Matching: which tickets play together.
//!
//! A pass takes backfill seats first, then tickets in order of waiting. The longest waiting one is the anchor of a match; the longest
//! waiting compatible tickets join it until it is full. Hard preferences must not contradict each other; rating and latency are soft, and
//! what is accepted widens with waiting time until anything goes, so that nobody waits for ever while a compatible player waits.
//!
//! Tickets with the same hard preferences and party size stand in one lane, so an anchor looks only at lanes that can fit. Work per pass is
//! bounded; a pass that reaches the bound goes on from there next time.

mod lanes;
mod pass;
mod queues;
mod rules;

use std::collections::BTreeMap;

use muse_master_client::{AccountId, MatchId, Preferences, TicketId};
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;

use crate::ticket::{Backfill, Ticket};
use lanes::{Interner, Lanes, Signature};
pub use pass::{Filled, Group, Passed};
pub use queues::Queues;
pub use rules::{QueueRules, RulesError};

/// A queue of tickets.
///
/// ```
/// use muse_master::matching::{MatchingConfig, Queue};
/// use muse_master::ticket::{Member, Ticket};
/// use muse_master_client::{AccountId, Preferences, TicketId};
/// use muse_wire::Instant;
/// let mut queue = Queue::new(MatchingConfig::default());
/// for n in 1..=2 {
///     let party = vec![Member { account: AccountId(n), rating: 1_500.0 }];
///     let preferences = Preferences::default();
///     queue.insert(Ticket { id: TicketId(n), party, preferences, since: Instant::ZERO, attempts: 0 });
/// }
/// let passed = queue.pass(Instant::from_secs(1), usize::MAX);
/// assert_eq!(passed.groups[0].tickets.len(), 2);
/// ```
#[derive(Debug)]
pub struct Queue {
    config: MatchingConfig,
    entries: FxHashMap<TicketId, Entry>,
    by_account: FxHashMap<AccountId, TicketId>,
    lanes: Lanes,
    interner: Interner,
    /// Number of words at which the interner is rebuilt, so that nonsense of players is forgotten.
    words_max: usize,
    backfills: BTreeMap<(Instant, MatchId), Backfill>,
    /// The place where the last pass stopped because of its bound.
    resume: Option<(Instant, TicketId)>,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    signature: Signature,
    rating: f64,
    /// Regions in which it may be played, with round trips.
    regions: Vec<(u8, u16)>,
    /// Players of the ticket who are disconnected, with the time at which the ticket ends.
    away: Vec<(AccountId, Instant)>,
    bots_offered: bool,
}

/// Options of a [`Queue`].
#[derive(Clone, Debug)]
pub struct MatchingConfig {
    players: u8,
    size: Option<u8>,
    rating_start: f64,
    rating_per_second: f64,
    latency_start_ms: f64,
    latency_ms_per_second: f64,
    latency_max_ms: Option<u16>,
    anything_after: Duration,
    grace: Duration,
    bots_after: Option<Duration>,
    regions: Vec<String>,
}

impl Default for MatchingConfig {
    fn default() -> Self {
        Self {
            players: 2,
            size: None,
            rating_start: 100.0,
            rating_per_second: 20.0,
            latency_start_ms: 80.0,
            latency_ms_per_second: 5.0,
            latency_max_ms: None,
            anything_after: Duration::from_secs(60),
            grace: Duration::from_secs(30),
            bots_after: None,
            regions: Vec::new(),
        }
    }
}

impl MatchingConfig {
    /// Difference of ratings that is accepted at first, 100 by default, and how much more with every second, 20 by default. Narrower
    /// makes fairer matches and longer waits.
    pub fn rating(mut self, start: f64, per_s: f64) -> Self {
        (self.rating_start, self.rating_per_second) = (start, per_s);
        self
    }

    /// Round trip to a region that is accepted at first, 80 ms by default, and how much more with every second, 5 ms by default.
    pub fn latency_ms(mut self, start: f64, per_s: f64) -> Self {
        (self.latency_start_ms, self.latency_ms_per_second) = (start, per_s);
        self
    }

    /// Regions in which there are servers, at most 64, none by default. Latencies to others are not looked at.
    pub fn regions(mut self, regions: &[&str]) -> Self {
        let kept = regions.iter().take(REGIONS_OF_QUEUE_MAX);
        self.regions = kept.map(|&region| region.to_owned()).collect();
        self
    }

    /// The number of a region.
    fn region(&self, name: Option<&str>) -> Option<u8> {
        let name = name?;
        let found = self.regions.iter().position(|region| region == name)?;
        u8::try_from(found).ok()
    }
}

muse_wire::setters! { MatchingConfig:
    /// Players of a match for which nobody asked a number, 2 by default.
    players: u8 = players.max(1),

    /// Players of every match, whatever its players ask for; none by default.
    size: Option<u8> = size.map(|players| players.max(1)),

    /// Round trip above which a player is kept out of a region however long they wait, and whoever measured none; none by default.
    latency_max_ms: Option<u16>,

    /// Waiting time after which rating and latency no longer matter, a minute by default.
    anything_after: Duration,

    /// Sets the time for which the ticket of a disconnected player is kept, 30 seconds by default. It is not matched meanwhile.
    grace: Duration,

    /// Waiting time after which bots are offered, and fill the match of who accepts them; never by default.
    bots_after: Option<Duration>,
}

impl Queue {
    /// An empty queue.
    pub fn new(config: MatchingConfig) -> Self {
        Self {
            config,
            entries: FxHashMap::default(),
            by_account: FxHashMap::default(),
            lanes: Lanes::default(),
            interner: Interner::default(),
            words_max: WORDS_MAX,
            backfills: BTreeMap::new(),
            resume: None,
        }
    }

    /// Returns how many tickets wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The ticket in which this player waits.
    pub fn ticket_of(&self, account: AccountId) -> Option<&Ticket> {
        let id = self.by_account.get(&account)?;
        self.entries.get(id).map(|entry| &entry.ticket)
    }

    /// Every ticket, in no particular order.
    pub fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.entries.values().map(|entry| &entry.ticket)
    }

    /// Takes a ticket in, or replaces the one of the same name. Other tickets of its players are dropped: a player is in at most one.
    pub fn insert(&mut self, ticket: Ticket) {
        self.displace(&ticket);
        for member in &ticket.party {
            self.by_account.insert(member.account, ticket.id);
        }
        if self.interner.len() >= self.words_max {
            self.rebuild();
        }
        let signature = self.signature(&ticket.preferences);
        let place = (ticket.since, ticket.id);
        self.lanes
            .insert(signature.clone(), ticket.party.len(), place);
        let latencies = ticket.preferences.latency_ms.iter();
        let region =
            |(name, &latency): (&String, &u16)| Some((self.config.region(Some(name))?, latency));
        let entry = Entry {
            rating: ticket.rating(),
            regions: latencies.filter_map(region).collect(),
            signature,
            away: Vec::new(),
            bots_offered: false,
            ticket,
        };
        self.entries.insert(entry.ticket.id, entry);
    }

    /// Drops the ticket of the same name, and those of its players.
    fn displace(&mut self, ticket: &Ticket) {
        let mut old: Vec<TicketId> = vec![ticket.id];
        let earlier = ticket.party.iter().map(|member| member.account);
        old.extend(earlier.filter_map(|account| self.by_account.get(&account).copied()));
        for id in old {
            self.remove(id);
        }
    }

    /// Takes over an entry of a queue that is no more.
    fn adopt(&mut self, entry: Entry) {
        let id = entry.ticket.id;
        self.insert(entry.ticket);
        if let Some(adopted) = self.entries.get_mut(&id) {
            adopted.away = entry.away;
            adopted.bots_offered = entry.bots_offered;
        }
    }

    /// Takes a ticket out.
    pub fn remove(&mut self, id: TicketId) -> Option<Ticket> {
        let entry = self.entries.remove(&id)?;
        for member in &entry.ticket.party {
            self.by_account.remove(&member.account);
        }
        let key = (entry.ticket.since, id);
        let size = entry.ticket.party.len();
        self.lanes.remove(&entry.signature, size, key);
        Some(entry.ticket)
    }

    /// A player's connection was lost: their ticket waits for them, and ends after the grace period.
    pub fn handle_away(&mut self, now: Instant, account: AccountId) {
        let until = now + self.config.grace;
        if let Some(entry) = self.entry_of(account)
            && !entry.away.iter().any(|(who, _)| *who == account)
        {
            entry.away.push((account, until));
        }
    }

    /// A player is back. Returns their ticket, to tell them again.
    pub fn handle_back(&mut self, account: AccountId) -> Option<&Ticket> {
        let entry = self.entry_of(account)?;
        entry.away.retain(|(who, _)| *who != account);
        Some(&entry.ticket)
    }

    /// The regions in which a match of this queue may be played, the best for its players first: those in which there are servers, in order of the worst round trip.
    /// None if nobody measured any. What else players name is not handed on.
    pub fn regions(&self, preferences: &Preferences) -> Vec<String> {
        let regions = regions_by_latency(preferences, self.config.latency_max_ms).into_iter();
        let with_servers = regions.filter(|region| self.config.regions.contains(region));
        with_servers.cloned().collect()
    }

    /// Notes that the master was paused and may have missed players who came back: everybody who is away has the full grace period again.
    pub fn handle_pause(&mut self, now: Instant) {
        let until = now + self.config.grace;
        let away = self.entries.values_mut().flat_map(|entry| &mut entry.away);
        for (_, ends) in away {
            *ends = until;
        }
    }

    /// Seats of a running match are open; zero seats takes the request back. One request per match.
    pub fn set_backfill(&mut self, backfill: Backfill) {
        let match_id = backfill.match_id;
        let since = self
            .backfills
            .keys()
            .find(|key| key.1 == match_id)
            .map_or(backfill.since, |key| key.0);
        self.backfills.remove(&(since, match_id));
        if backfill.seats > 0 {
            self.backfills.insert((since, match_id), backfill);
        }
    }

    /// The match is over.
    pub fn remove_backfill(&mut self, match_id: MatchId) {
        self.backfills.retain(|key, _| key.1 != match_id);
    }

    /// Renumbers all words.
    fn rebuild(&mut self) {
        self.interner = Interner::default();
        self.lanes = Lanes::default();
        for entry in self.entries.values_mut() {
            entry.signature = sized(
                self.interner.signature(&entry.ticket.preferences),
                &self.config,
            );
            let place = (entry.ticket.since, entry.ticket.id);
            let size = entry.ticket.party.len();
            self.lanes.insert(entry.signature.clone(), size, place);
        }
        self.words_max = WORDS_MAX.max(2 * self.interner.len());
    }

    fn signature(&mut self, preferences: &Preferences) -> Signature {
        sized(self.interner.signature(preferences), &self.config)
    }

    /// Returns by how much rating and latency may differ after this wait; none if anything goes.
    fn accepted(&self, waited: Duration) -> Option<(f64, f64)> {
        if waited >= self.config.anything_after {
            return None;
        }
        let seconds = waited.as_secs_f64();
        Some((
            self.config.rating_start + self.config.rating_per_second * seconds,
            self.config.latency_start_ms + self.config.latency_ms_per_second * seconds,
        ))
    }

    fn entry_of(&mut self, account: AccountId) -> Option<&mut Entry> {
        let id = self.by_account.get(&account)?;
        self.entries.get_mut(id)
    }
}

/// Hard preferences in a queue that may decide the number of players itself.
fn sized(mut signature: Signature, config: &MatchingConfig) -> Signature {
    signature.players = config.size.or(signature.players);
    signature
}

/// The regions of a match in order of the worst round trip of its players; empty if nobody measured any.
fn regions_by_latency(preferences: &Preferences, most: Option<u16>) -> Vec<&String> {
    let latencies = preferences.latency_ms.iter();
    let near = latencies.filter(|(_, latency)| most.is_none_or(|most| **latency <= most));
    let mut regions: Vec<(u16, &String)> =
        near.map(|(region, &latency)| (latency, region)).collect();
    regions.sort_unstable();
    regions.into_iter().map(|(_, name)| name).collect()
}

/// Regions are bits of a mask.
const REGIONS_OF_QUEUE_MAX: usize = 64;
const WORDS_MAX: usize = 65_536;

#[cfg(test)]
mod tests;
