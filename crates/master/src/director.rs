//! The leader of a queue: makes matches and follows each from its first row to its result.
//!
//! The director decides about matches; the [`leader`](crate::leader) decides when it runs, and a shell does what comes of it. Each [`Action`] that touches the store is one transaction there, which checks the leader's epoch;
//! what became of it comes back as a `handle_*`. The match is stored first and gets its server then, so that a master that dies in between
//! leaves a match without a server, which the next leader places, or a server without a match, which is ended.

mod life;
mod room;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muse_master_client::messages::{
    FromMaster, MatchResult, Outcome, QueueState, Report, ServerRefusal,
};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::matching::{Filled, Group, MatchingConfig, QueueRules, Queues};
use crate::pauses::Pauses;
use crate::ticket::Ticket;
use life::{Match, Stage};
pub use room::NoServer;
use room::Room;

/// The machine.
///
/// Begin with [`restore`](Self::restore), call `handle_*` as things happen, then drain [`poll_action`](Self::poll_action) and come back at
/// [`poll_timeout`](Self::poll_timeout). `now` comes from a clock that nobody sets. A leader that comes back much later than it was asked to was
/// paused and heard nobody: then servers and players have their full time again.
///
/// ```
/// use muse_master::director::{Action, Director, DirectorConfig};
/// use muse_master::ticket::{Member, Ticket};
/// use muse_master_client::{AccountId, Preferences, TicketId};
/// use muse_wire::Instant;
/// let mut director = Director::new(DirectorConfig::default(), 1);
/// for n in 1..=2 {
///     let party = vec![Member { account: AccountId(n), rating: 1_500.0 }];
///     let preferences = Preferences::default();
///     let since = Instant::ZERO;
///     director.handle_ticket(since, Ticket { id: TicketId(n), party, preferences, since, attempts: 0 });
/// }
/// director.handle_timeout(Instant::from_secs(1));
/// assert!(matches!(director.poll_action(), Some(Action::CreateMatch(new)) if new.tickets.len() == 2));
/// ```
#[derive(Debug)]
pub struct Director {
    config: DirectorConfig,
    epoch: u64,
    made: u64,
    queue: Queues,
    matches: BTreeMap<MatchId, Match>,
    by_server: FxHashMap<ServerId, MatchId>,
    timers: BTreeSet<(Instant, MatchId)>,
    next_pass: Instant,
    room: Room,
    pauses: Pauses,
    draining: bool,
    actions: VecDeque<Action>,
    /// Things to do about matches that are not known here, and since when: they may be a newer leader's.
    strays: Vec<(Instant, Action)>,
}

/// Options of a [`Director`].
#[derive(Clone, Debug, Default)]
pub struct DirectorConfig {
    matching: MatchingConfig,
    queues: QueueRules,
    times: Times,
}

#[derive(Clone, Debug)]
struct Times {
    pass_every: Duration,
    place: Duration,
    connect: Duration,
    silence: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            pass_every: Duration::from_millis(250),
            place: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(10),
        }
    }
}

impl DirectorConfig {
    /// Sets how tickets are matched.
    pub fn matching(mut self, matching: MatchingConfig) -> Self {
        self.matching = matching;
        self
    }

    /// Sets the rules of named queues; without any, all tickets are matched alike.
    pub fn queues(mut self, queues: QueueRules) -> Self {
        self.queues = queues;
        self
    }

    pub(crate) fn queue_rules(&self) -> &QueueRules {
        &self.queues
    }

    /// Time between passes over the queue, 250 ms by default. A pass over 10,000 tickets costs less than 100 ms.
    pub fn pass_every(mut self, pass_every: Duration) -> Self {
        self.times.pass_every = pass_every;
        self
    }

    /// Time to find a server for a match, 10 seconds by default; then its players go back to the queue. If all servers are busy they go back at once,
    /// and wait for as long as it takes.
    pub fn place(mut self, place: Duration) -> Self {
        self.times.place = place;
        self
    }

    /// Time for all players to connect, and again to load, 10 seconds by default. The game server keeps it; the master waits 2
    /// seconds longer before it calls the match off itself.
    pub fn connect(mut self, connect: Duration) -> Self {
        self.times.connect = connect;
        self
    }

    /// Silence after which a game server counts as lost, 10 seconds by default.
    pub fn silence(mut self, silence: Duration) -> Self {
        self.times.silence = silence;
        self
    }

    /// The time that game servers are told to give their players.
    pub fn connect_time(&self) -> Duration {
        self.times.connect
    }
}

/// Something that the [`Leader`](crate::leader::Leader) is to have done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Store: the tickets become a match, if all are still there and nobody has a seat. Then [`Director::handle_created`] or
    /// [`Director::handle_refused`].
    CreateMatch(NewMatch),
    /// Store: this ticket becomes seats of a running match. Then [`Director::handle_filled`] or [`Director::handle_not_filled`].
    FillSeats(Filled),
    /// Fleet: a server for this match, with its id as annotation. Then [`Director::handle_placed`] or [`Director::handle_not_placed`].
    Place(Placement),
    /// Store: this match is on this server.
    RecordServer {
        /// The match.
        match_id: MatchId,
        /// Its server.
        server: ServerId,
    },
    /// Store: the match has begun, so that it is not called off but aborted if it is lost.
    RecordRunning {
        /// The match.
        match_id: MatchId,
    },
    /// Make connect tokens for these players and tell them where to go.
    Admit {
        /// The match.
        match_id: MatchId,
        /// Its server.
        server: ServerId,
        /// The players who may come.
        players: Vec<AccountId>,
        /// True if the server does not yet know them: seats that were filled later.
        backfill: bool,
    },
    /// Store: the seat is given up.
    FreeSeat {
        /// The match.
        match_id: MatchId,
        /// The player whose seat it is.
        account: AccountId,
    },
    /// Store: the match is over; results, ratings and freed seats in one transaction, once. Then [`Director::handle_ended`].
    EndMatch(Ending),
    /// Store: the ticket of a player who stayed away.
    EndTicket(TicketId),
    /// Fleet: this server is not needed any more.
    ReleaseServer(ServerId),
    /// Tell a game server that its result needs no repeating.
    ConfirmResult {
        /// The server.
        server: ServerId,
        /// The match.
        match_id: MatchId,
    },
    /// Tell a game server that its result is refused for good.
    RefuseResult {
        /// The server.
        server: ServerId,
        /// The match.
        match_id: MatchId,
        /// The reason.
        refusal: ServerRefusal,
    },
    /// Tell a player, if they are connected.
    Tell(AccountId, FromMaster),
}

/// A match to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMatch {
    /// Its name: the epoch and a number, so that two leaders never make the same.
    pub match_id: MatchId,
    /// The tickets that become it.
    pub tickets: Vec<Ticket>,
    /// The preferences by which it is played.
    pub preferences: Preferences,
    /// Bots that fill it.
    pub bots: u8,
}

impl NewMatch {
    /// Everybody who plays.
    pub fn players(&self) -> impl Iterator<Item = AccountId> {
        let party = self.tickets.iter().flat_map(|ticket| &ticket.party);
        party.map(|member| member.account)
    }
}

/// A server to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// For which match.
    pub match_id: MatchId,
    /// The regions, best first; empty for anywhere.
    pub regions: Vec<String>,
    /// The preferences by which it is played.
    pub preferences: Preferences,
    /// The players.
    pub players: Vec<AccountId>,
    /// Bots that fill it.
    pub bots: u8,
}

/// The end of a match, to store.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The match.
    pub match_id: MatchId,
    /// The outcome.
    pub outcome: Outcome,
    /// The game server's report; only a finished match counts.
    pub result: Option<MatchResult>,
    /// Tickets that go back to the queue with the place they had.
    pub requeue: Vec<Ticket>,
}

/// A match as the store keeps it, for the next leader.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMatch {
    /// Its name.
    pub match_id: MatchId,
    /// The preferences by which it is played.
    pub preferences: Preferences,
    /// Bots that fill it.
    pub bots: u8,
    /// The players who have a seat.
    pub players: Vec<AccountId>,
    /// Those who have given theirs up.
    pub left: Vec<AccountId>,
    /// Its server, if it has been placed.
    pub server: Option<ServerId>,
    /// True if it has begun.
    pub running: bool,
}

impl Director {
    /// A leader with this epoch, and nothing to lead yet.
    pub fn new(config: DirectorConfig, epoch: u64) -> Self {
        Self {
            queue: Queues::new(config.matching.clone(), config.queues.clone()),
            config,
            epoch,
            made: 0,
            matches: BTreeMap::new(),
            by_server: FxHashMap::default(),
            timers: BTreeSet::new(),
            next_pass: Instant::ZERO,
            room: Room::default(),
            pauses: Pauses::default(),
            draining: false,
            actions: VecDeque::new(),
            strays: Vec::new(),
        }
    }

    /// The store has said that nobody else led when it was asked at that time: matches that were not known before are nobody's, and their servers are ended.
    pub fn handle_led(&mut self, asked: Instant) {
        let done = self.strays.extract_if(.., |(since, _)| *since < asked);
        self.actions.extend(done.map(|(_, action)| action));
    }

    /// Does something about a match that is not known here as soon as it is certain that no newer leader has it. Reports of the same repeat.
    fn stray(&mut self, now: Instant, action: Action) {
        if !self.strays.iter().any(|(_, known)| *known == action) {
            self.strays.push((now, action));
        }
    }

    /// Takes over what the store holds. Players count as away until [`handle_back`](Self::handle_back) says otherwise, servers as
    /// alive for as long as they may be silent.
    pub fn restore(&mut self, now: Instant, tickets: Vec<Ticket>, matches: Vec<StoredMatch>) {
        self.pauses.start(now);
        for ticket in tickets {
            let party: Vec<AccountId> = ticket.party.iter().map(|member| member.account).collect();
            self.queue.insert(ticket);
            for account in party {
                self.queue.handle_away(now, account);
            }
        }
        for stored in matches {
            self.restore_match(now, stored);
        }
    }

    /// Returns how many tickets wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many matches there are.
    pub fn matches(&self) -> usize {
        self.matches.len()
    }

    /// The queue as its players see it.
    pub fn queue_state(&self, now: Instant, account: AccountId) -> Option<QueueState> {
        let ticket = self.queue.ticket_of(account)?;
        Some(QueueState {
            ticket: ticket.id,
            waited_ms: (now - ticket.since).as_millis(),
            preferences: ticket.preferences.clone(),
        })
    }

    /// Makes no match from now on, or makes them again; running ones finish.
    pub fn drain(&mut self, draining: bool) {
        self.draining = draining;
    }

    /// Changes the rules of named queues. Everybody goes on waiting, with the place they have.
    pub fn set_queues(&mut self, now: Instant, queues: QueueRules) {
        self.queue.set_rules(queues);
        self.next_pass = self.next_pass.min(now);
    }

    /// Sets how many more matches the fleet has room for. Unlimited until this is called.
    pub fn handle_room(&mut self, matches: usize) {
        self.room.handle_fleet(matches);
    }

    /// A ticket was stored, new or changed.
    pub fn handle_ticket(&mut self, now: Instant, ticket: Ticket) {
        self.pauses.start(now);
        self.queue.insert(ticket);
        self.next_pass = self.next_pass.max(now);
    }

    /// A ticket was taken back.
    pub fn handle_ticket_gone(&mut self, ticket: TicketId) {
        self.queue.remove(ticket);
    }

    /// Compares the queue with what the store holds, for a leader that may have missed something: tickets that it does not know wait from now on, and those that are no
    /// longer there are forgotten. Returns how many are new. Their players count as present, because nobody can be asked while the bus is lost.
    pub fn handle_tickets(&mut self, now: Instant, stored: Vec<Ticket>) -> usize {
        let known: FxHashSet<TicketId> = self.queue.tickets().map(|ticket| ticket.id).collect();
        let kept: FxHashSet<TicketId> = stored.iter().map(|ticket| ticket.id).collect();
        let playing = self.matches.values().flat_map(|found| &found.players);
        let playing: FxHashSet<AccountId> = playing.copied().collect();
        // One that is younger may have been stored since the store was asked.
        let gone = self
            .queue
            .tickets()
            .filter(|ticket| !kept.contains(&ticket.id) && ticket.since + TICKETS_SETTLE < now);
        let mut gone: Vec<TicketId> = gone.map(|ticket| ticket.id).collect();
        gone.sort_unstable();
        for ticket in gone {
            self.queue.remove(ticket);
        }
        let mut new = 0;
        for ticket in stored {
            let mut party = ticket.party.iter().map(|member| member.account);
            if known.contains(&ticket.id) || party.any(|account| playing.contains(&account)) {
                continue;
            }
            self.handle_ticket(now, ticket);
            new += 1;
        }
        new
    }

    /// A player's connection was lost.
    pub fn handle_away(&mut self, now: Instant, account: AccountId) {
        self.queue.handle_away(now, account);
    }

    /// A player is back.
    pub fn handle_back(&mut self, account: AccountId) {
        self.queue.handle_back(account);
    }

    /// Makes matches and does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(gap) = self.pauses.tick(now) {
            self.forgive(now, gap);
        }
        if self.next_pass <= now {
            self.next_pass = now + self.config.times.pass_every;
            if !self.draining {
                self.pass(now);
            }
        }
        while let Some(&(at, match_id)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.check(now, match_id);
        }
        if self.queue.is_empty() && self.matches.is_empty() {
            self.pauses.stop();
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pass = (!self.queue.is_empty()).then_some(self.next_pass);
        let timer = self.timers.first().map(|(at, _)| *at);
        let tick = self.pauses.poll_timeout();
        [pass, timer, tick].into_iter().flatten().min()
    }

    /// Servers could not be heard until now, whatever they said: they have their full time again.
    pub fn handle_deaf(&mut self, now: Instant) {
        for found in self.matches.values_mut() {
            found.heard = now;
        }
    }

    /// True if the match of a silent server is about to be given up.
    pub fn is_giving_up(&self, now: Instant) -> bool {
        let limit = self.config.times.silence - GIVING_UP;
        let is_open = |found: &&Match| !matches!(found.stage, Stage::Ending(_));
        let mut open = self.matches.values().filter(is_open);
        open.any(|found| found.server.is_some() && found.heard + limit <= now)
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A game server said how its match goes.
    pub fn handle_report(&mut self, now: Instant, server: ServerId, report: &Report) {
        self.report(now, server, report);
    }

    fn pass(&mut self, now: Instant) {
        // While there is no room, matches wait as tickets: in order, and free to leave.
        let placing = self.matches.values().filter(|found| found.is_placed_next());
        let groups_max = match self.starved() {
            true => 0,
            false => self.room.free(now, placing.count()),
        };
        let passed = self.queue.pass(now, groups_max);
        for ticket in passed.ended {
            self.actions.push_back(Action::EndTicket(ticket.id));
            for member in ticket.party {
                self.tell(member.account, FromMaster::LeftQueue);
            }
        }
        for account in passed.bots_offered {
            self.tell(account, FromMaster::BotsOffered);
        }
        for filled in passed.filled {
            self.fill(filled);
        }
        for group in passed.groups {
            self.create(now, group);
        }
    }

    fn create(&mut self, now: Instant, group: Group) {
        self.made += 1;
        let new = NewMatch {
            match_id: MatchId((self.epoch << COUNTER_BITS) | self.made),
            tickets: group.tickets,
            preferences: group.preferences,
            bots: group.bots,
        };
        self.matches.insert(new.match_id, Match::new(now, &new));
        self.actions.push_back(Action::CreateMatch(new));
    }

    /// Gives everybody their full time again after a pause of this leader, and each step of a match as much as it had left.
    fn forgive(&mut self, now: Instant, gap: Duration) {
        for found in self.matches.values_mut() {
            found.forgive(now, gap);
        }
        self.queue.handle_pause(now);
    }

    fn starved(&self) -> bool {
        let waits = |found: &Match| matches!(found.stage, Stage::Placing { refused: true, .. });
        self.matches.values().any(waits)
    }

    fn tell(&mut self, account: AccountId, message: FromMaster) {
        self.actions.push_back(Action::Tell(account, message));
    }
}

/// Matches that one leader may make in one epoch, as bits; epochs have the rest of the 53 that JavaScript reads.
const COUNTER_BITS: u32 = 32;

/// Time before the end of a match whose server is silent in which a leader looks for reports that it may have missed.
const GIVING_UP: Duration = Duration::from_secs(2);

/// Time that a ticket may take from the store to its leader.
const TICKETS_SETTLE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
