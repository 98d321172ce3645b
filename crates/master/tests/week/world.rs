//! Players, game servers, hosts and masters, and the events of their week.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use muse_master::bus::Note;
use muse_master::director::{DirectorConfig, NoServer, Placement};
use muse_master::leader::{Ended, Leader, Reply, Request, StoreRequest, Transaction};
use muse_master::matching::MatchingConfig;
use muse_master::ports::{FIRST_PORT, Ports};
use muse_master::store::{Fill, MemoryStore, StoreError};
use muse_master::ticket::{Member, Ticket};
use muse_master_client::messages::{
    FromMaster, MatchResult, Outcome, Phase, Report, ToServer, decode,
};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

pub(crate) struct World {
    now: Instant,
    rng: fastrand::Rng,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    sequence: u64,
    players: Vec<Player>,
    servers: BTreeMap<ServerId, Server>,
    hosts: Vec<Ports>,
    store: MemoryStore,
    leader: Option<Leader>,
    /// Leaders so far, by which each has a name of its own.
    holders: u64,
    /// Requests that the last leader still had when it was stopped.
    late: Vec<Request>,
    next_id: u64,
    open: bool,
    waited: Vec<u64>,
    /// Two tickets that could be a match and have waited long, with how often each had been tried.
    suspects: Vec<[(TicketId, u8); 2]>,
    figures: Figures,
}

/// The figures of a week.
#[derive(Clone, Debug, Default)]
#[allow(dead_code, reason = "printed")]
pub(crate) struct Figures {
    pub(crate) finished: u64,
    pub(crate) cancelled: u64,
    pub(crate) aborted: u64,
    pub(crate) filled: u64,
    /// Matches that found all servers busy.
    pub(crate) full: u64,
    pub(crate) leaders: u64,
    pub(crate) refused_old_epoch: u64,
    pub(crate) waited_p50_ms: u64,
    pub(crate) waited_p95_ms: u64,
    pub(crate) matches_at_once: usize,
    pub(crate) events: u64,
}

#[derive(Default)]
struct Player {
    online: bool,
    /// Raised whenever what was planned for them is void.
    plan: u32,
    rating: f64,
}

struct Server {
    host: usize,
    port: u16,
    match_id: MatchId,
    phase: Phase,
    seated: Vec<AccountId>,
    present: Vec<AccountId>,
    left: Vec<AccountId>,
    until: Instant,
    /// Nothing is heard of it any more.
    dead: bool,
    result: Option<MatchResult>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(u64),
    GiveUp(u64, u32),
    Drop(u64, u32),
    Back(u64, u32),
    Connect(u64, ServerId),
    Beat(ServerId),
    Crash(ServerId),
    Reaped(ServerId),
    /// The so-manieth, if it still leads.
    MasterDies(u64),
    MasterComes,
    Look,
    LookAgain,
}

impl World {
    pub(crate) fn new(seed: u64, players: u64, hosts: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let player = |rng: &mut fastrand::Rng| Player {
            // Roughly bell-shaped around 1,500.
            rating: 600.0 + 600.0 * (rng.f64() + rng.f64() + rng.f64()),
            ..Player::default()
        };
        let mut world = Self {
            now: Instant::ZERO,
            players: (0..players).map(|_| player(&mut rng)).collect(),
            rng,
            events: BinaryHeap::new(),
            sequence: 0,
            servers: BTreeMap::new(),
            hosts: (0..hosts)
                .map(|_| Ports::new(FIRST_PORT, MATCHES_PER_HOST))
                .collect(),
            store: MemoryStore::default(),
            leader: None,
            holders: 0,
            late: Vec::new(),
            next_id: 1,
            open: true,
            waited: Vec::new(),
            suspects: Vec::new(),
            figures: Figures::default(),
        };
        world.after(0.0, Event::MasterComes);
        world.after(3_600.0, Event::Look);
        for player in 0..players {
            let first = world.rng.f64() * DAY_S * 2.0;
            world.after(first, Event::Arrive(player));
        }
        world
    }

    pub(crate) fn run(mut self, days: u64) -> Figures {
        let week = Instant::from_secs(days * DAY_S as u64);
        self.run_until(week);
        // Everybody goes home; what runs may finish.
        self.open = false;
        let mut end = week + Duration::from_secs(4 * 3_600);
        self.run_until(end);
        // A leader may be gone just then, and another has not yet followed.
        while !self.is_led() {
            end += Duration::from_secs(60);
            assert!(end < week + Duration::from_secs(5 * 3_600), "nobody leads");
            self.run_until(end);
        }
        self.assert_nothing_is_left();
        self.waited.sort_unstable();
        let percentile = |p: usize| self.waited[(self.waited.len() - 1) * p / 100];
        self.figures.waited_p50_ms = percentile(50);
        self.figures.waited_p95_ms = percentile(95);
        self.figures
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let timeout = self.leader.as_ref().and_then(Leader::poll_timeout);
            let next = [event, timeout].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.figures.events += 1;
            if event == Some(next) {
                let Some(Reverse((_, _, event))) = self.events.pop() else {
                    break;
                };
                self.happen(event);
            } else if let Some(leader) = &mut self.leader {
                leader.handle_timeout(self.now);
            }
            self.act();
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(player) => self.arrive(player),
            Event::GiveUp(player, plan) if self.current(player, plan) => self.go_home(player),
            Event::Drop(player, plan) if self.current(player, plan) => self.drop_player(player),
            Event::Back(player, plan) if self.current(player, plan) => self.back(player),
            Event::GiveUp(..) | Event::Drop(..) | Event::Back(..) => {}
            Event::Connect(player, server) => self.connect(player, server),
            Event::Beat(server) => self.beat(server),
            Event::Crash(server) => {
                if let Some(crashed) = self.servers.get_mut(&server) {
                    crashed.dead = true;
                    // Some crashes are seen by the fleet, others by silence alone.
                    let seen = if self.rng.bool() { 1.0 } else { 60.0 };
                    self.after(seen, Event::Reaped(server));
                }
            }
            Event::Reaped(server) => {
                self.close_server(server);
                self.note(Note::ServerGone(server));
            }
            Event::MasterDies(holder) if holder == self.holders && self.leader.is_some() => {
                self.master_dies();
            }
            Event::MasterDies(_) => {}
            Event::MasterComes => self.master_comes(),
            Event::Look => self.look(),
            Event::LookAgain => self.look_again(),
        }
    }

    fn current(&self, player: u64, plan: u32) -> bool {
        self.players[player as usize].plan == plan
    }

    fn arrive(&mut self, player: u64) {
        if !self.open || self.players[player as usize].online {
            return;
        }
        self.back(player);
        let patience = 300.0 + self.exponential(600.0);
        let plan = self.players[player as usize].plan;
        self.after(patience, Event::GiveUp(player, plan));
        if self.rng.f64() < 0.2 {
            let when = self.exponential(60.0);
            self.after(when, Event::Drop(player, plan));
        }
    }

    /// They are connected, and want a match if they have neither ticket nor seat.
    fn back(&mut self, player: u64) {
        let account = AccountId(player + 1);
        self.players[player as usize].online = true;
        self.note(Note::Back(account));
        self.play(player);
    }

    fn play(&mut self, player: u64) {
        let account = AccountId(player + 1);
        let online = self.players[player as usize].online;
        if self.store.knows(account) || !self.open || self.leader.is_none() || !online {
            return;
        }
        self.next_id += 1;
        let mut party = vec![self.member(player)];
        // Some bring the friend who comes next in the list.
        let friend = (player + 1) % self.players.len() as u64;
        let free = !self.store.knows(AccountId(friend + 1));
        if self.players[friend as usize].online && free && self.rng.f64() < 0.3 {
            party.push(self.member(friend));
        }
        let ticket = Ticket {
            id: TicketId(self.next_id),
            preferences: self.preferences(party.len()),
            party,
            since: self.now,
            attempts: 0,
        };
        self.store.put_ticket(ticket.clone());
        self.note(Note::Ticket(ticket));
    }

    fn member(&self, player: u64) -> Member {
        Member {
            account: AccountId(player + 1),
            rating: self.players[player as usize].rating,
        }
    }

    fn preferences(&mut self, party: usize) -> Preferences {
        let mut preferences = Preferences::default();
        if self.rng.f64() < 0.5 {
            let mode = ["escape", "race", "war"][self.rng.u8(0..3) as usize];
            preferences = preferences.choice("mode", mode);
        }
        if party > 1 || self.rng.f64() < 0.3 {
            let players = [2, 3, 4][self.rng.u8(0..3) as usize];
            preferences = preferences.players(players.max(party as u8));
        }
        let near = self.rng.bool();
        preferences
            .latency("eu", if near { 30 } else { 110 })
            .latency("us", if near { 120 } else { 25 })
    }

    fn go_home(&mut self, player: u64) {
        let account = AccountId(player + 1);
        if let Some(ticket) = self.store.ticket_of(account) {
            self.store.remove_ticket(ticket);
            self.note(Note::TicketGone(ticket));
        }
        if self.store.seat_of(account).is_some() {
            // They finish what they play.
            let plan = self.players[player as usize].plan;
            self.after(300.0, Event::GiveUp(player, plan));
            return;
        }
        let state = &mut self.players[player as usize];
        state.online = false;
        state.plan += 1;
        let next = 3_600.0 + self.exponential(2.0 * DAY_S);
        // More come in the evening.
        let hour = (self.now.as_secs_f64() + next) % DAY_S / 3_600.0;
        let shift = if (17.0..23.0).contains(&hour) {
            0.0
        } else {
            self.rng.f64() * 6.0 * 3_600.0
        };
        self.after(next + shift, Event::Arrive(player));
    }

    fn drop_player(&mut self, player: u64) {
        self.note(Note::Away(AccountId(player + 1)));
        let state = &mut self.players[player as usize];
        state.online = false;
        let plan = state.plan;
        let away = self.rng.f64() * 60.0;
        self.after(away, Event::Back(player, plan));
    }

    fn connect(&mut self, player: u64, server: ServerId) {
        let account = AccountId(player + 1);
        if !self.players[player as usize].online {
            return;
        }
        if let Some(server) = self.servers.get_mut(&server)
            && server.seated.contains(&account)
            && !server.present.contains(&account)
        {
            server.present.push(account);
        }
    }

    /// A game server's second, or nine of them when nothing happens.
    fn beat(&mut self, id: ServerId) {
        let leave = self.rng.f64() < 0.005;
        let connecting = Duration::from_secs_f64(self.rng.f64() * 4.0);
        let length = self.exponential(300.0);
        let now = self.now;
        let Some(server) = self.servers.get_mut(&id).filter(|server| !server.dead) else {
            return;
        };
        match server.phase {
            Phase::Ready => {
                server.phase = Phase::Connecting;
                server.until = now + Duration::from_secs(10);
            }
            Phase::Connecting if server.present.len() == server.seated.len() => {
                server.phase = Phase::Loading;
                server.until = now + connecting;
            }
            Phase::Connecting if server.until <= now => server.finish(Outcome::Cancelled),
            Phase::Loading if server.until <= now => {
                server.phase = Phase::Running;
                server.until = now + Duration::from_secs_f64(60.0 + length);
            }
            Phase::Running if server.until <= now => server.finish(Outcome::Finished),
            Phase::Running if leave && server.seated.len() > 1 => {
                // One leaves for good, and their seat is offered.
                let account = server.seated.pop().expect("two are seated");
                server.present.retain(|present| *present != account);
                server.left.push(account);
            }
            _ => {}
        }
        let next = if server.phase == Phase::Running {
            9.0
        } else {
            0.5
        };
        self.report(id);
        self.after(next, Event::Beat(id));
    }

    fn report(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id) else {
            return;
        };
        if let Some(result) = server.result.clone() {
            // Sent again with every beat until the server is released.
            return self.note(Note::Result(id, result));
        }
        let report = Report {
            match_id: Some(server.match_id),
            phase: server.phase,
            seated: server.seated.clone(),
            present: server.present.clone(),
            left: server.left.clone(),
            open_seats: server.left.len() as u8,
        };
        self.note(Note::Report(id, report));
    }

    /// Something comes over the master's bus.
    fn note(&mut self, note: Note) {
        let players = &self.players;
        if let Some(leader) = &mut self.leader {
            let is_online = |account: AccountId| players[account.0 as usize - 1].online;
            leader.handle_note(self.now, note, is_online);
        }
    }

    fn is_led(&self) -> bool {
        self.leader.as_ref().is_some_and(Leader::is_leading)
    }

    fn master_dies(&mut self) {
        // Half of them are only stopped, and wake up with things still to do.
        if let Some(mut leader) = self.leader.take()
            && self.rng.bool()
        {
            let soon = self.now + Duration::from_secs(1);
            leader.handle_timeout(soon);
            let left = std::iter::from_fn(|| leader.poll_request(soon, soon));
            self.late.extend(left);
        }
        let away = 1.0 + self.rng.f64() * 60.0;
        self.after(away, Event::MasterComes);
    }

    /// A master asks for the lease, which one that has just died may still hold.
    fn master_comes(&mut self) {
        self.holders += 1;
        let matching = MatchingConfig::default().regions(&["eu", "us"]);
        let config = DirectorConfig::default()
            .matching(matching)
            .pass_every(Duration::from_secs(1));
        self.leader = Some(Leader::new(config, self.holders));
        self.act();
        if self.is_led() {
            self.master_leads();
        }
    }

    fn master_leads(&mut self) {
        self.figures.leaders += 1;
        for request in std::mem::take(&mut self.late) {
            if let Some(Reply::NotStored(_, error)) = self.fulfil(request) {
                assert_eq!(error, StoreError::OldEpoch);
                self.figures.refused_old_epoch += 1;
            }
        }
        // Who was connected comes back within a few seconds.
        for player in 0..self.players.len() as u64 {
            if self.players[player as usize].online {
                let plan = self.players[player as usize].plan;
                let back = self.rng.f64() * 11.0;
                self.after(back, Event::Back(player, plan));
            }
        }
        if self.open {
            let next = 600.0 + self.exponential(4.0 * 3_600.0);
            self.after(next, Event::MasterDies(self.holders));
        }
    }

    fn act(&mut self) {
        while let Some(leader) = &mut self.leader {
            let Some(request) = leader.poll_request(self.now, self.now) else {
                break;
            };
            let reply = self.fulfil(request);
            if let (Some(leader), Some(reply)) = (&mut self.leader, reply) {
                leader.handle_reply(self.now, reply);
            }
            assert_eq!(self.store.broken(), None, "at {}", self.now);
            // Now and then the master dies between two steps.
            if self.is_led() && self.rng.u32(0..20_000) == 0 {
                self.master_dies();
            }
        }
        if let Some(leader) = self
            .leader
            .as_ref()
            .filter(|leader| leader.ended().is_some())
        {
            // Nothing but another leader's lease ends one here.
            assert_eq!(leader.ended(), Some(&Ended::OtherLeads), "at {}", self.now);
            let again = leader.again_after();
            self.leader = None;
            self.after(again.as_secs_f64(), Event::MasterComes);
        }
    }

    /// Does what a leader requests, also one that does not lead any more.
    fn fulfil(&mut self, request: Request) -> Option<Reply> {
        match request {
            Request::Store(request) => return self.store(request),
            Request::Allocate(placement) => return Some(self.place(placement)),
            Request::Release(server) => self.close_server(server),
            Request::ListServers => {
                let servers = self.servers.iter();
                let servers = servers.map(|(id, server)| (*id, server.match_id));
                return Some(Reply::Servers(servers.collect()));
            }
            Request::Publish(Note::ToServer(server, ToServer::Admit { account })) => {
                if let Some(server) = self.servers.get_mut(&server) {
                    server.left.pop();
                    server.seated.push(account);
                }
            }
            Request::Publish(Note::Tell(account, message)) => {
                let message = decode::<FromMaster>(&message).expect("a message");
                let over = matches!(message, FromMaster::MatchOver { .. });
                if over && self.rng.f64() < 0.6 {
                    self.play(account.0 - 1);
                }
            }
            Request::Admit {
                server, players, ..
            } => self.admit(server, &players),
            // Players come back to a new master by themselves, and nobody reads the journal.
            Request::Publish(_) | Request::Journal(..) => {}
        }
        None
    }

    fn store(&mut self, request: StoreRequest) -> Option<Reply> {
        let now = self.now;
        let StoreRequest::Commit { transaction, .. } = &request else {
            return self.store.handle_request(now, request);
        };
        let transaction = transaction.clone();
        let unplaced = self.unplaced_players(&transaction);
        let reply = self.store.handle_request(now, request);
        match (&reply, transaction) {
            (Some(Reply::Created(_, created)), Transaction::CreateMatch(new))
                if created.gone.is_empty() =>
            {
                let waits = new.tickets.iter();
                let waits = waits.map(|ticket| (now - ticket.since).as_millis());
                self.waited.extend(waits);
            }
            (Some(Reply::Filled(_, Fill::Filled)), _) => self.figures.filled += 1,
            (Some(Reply::Ended(_, Some(requeued))), Transaction::EndMatch(ending)) => {
                match ending.outcome {
                    Outcome::Finished => self.figures.finished += 1,
                    Outcome::Cancelled => self.figures.cancelled += 1,
                    Outcome::Aborted => self.figures.aborted += 1,
                }
                for account in unplaced {
                    let waits = requeued.iter().any(|ticket| ticket.has(account));
                    assert!(waits, "{account} was expelled from the queue");
                }
            }
            _ => {}
        }
        reply
    }

    /// Servers never fail here, they are only busy: a match that is called off before it has one gives everybody back to the queue.
    fn unplaced_players(&self, transaction: &Transaction) -> Vec<AccountId> {
        let Transaction::EndMatch(ending) = transaction else {
            return Vec::new();
        };
        let found = self.store.matches().get(&ending.match_id);
        let unplaced = found.filter(|found| found.server.is_none());
        unplaced.map_or(Vec::new(), |found| found.players.clone())
    }

    fn place(&mut self, placement: Placement) -> Reply {
        let near = if placement
            .regions
            .first()
            .is_some_and(|region| region == "us")
        {
            1
        } else {
            0
        };
        let hosts = self.hosts.len();
        let mut order = (0..hosts).map(|n| (near + n) % hosts);
        let found = order.find_map(|host| Some((host, self.hosts[host].take(self.now)?)));
        let Some((host, port)) = found else {
            self.figures.full += 1;
            return Reply::Placed(placement.match_id, Err(NoServer::Full));
        };
        self.next_id += 1;
        let id = ServerId(self.next_id);
        let server = Server {
            host,
            port,
            match_id: placement.match_id,
            phase: Phase::Ready,
            seated: placement.players,
            present: Vec::new(),
            left: Vec::new(),
            until: Instant::ZERO,
            dead: false,
            result: None,
        };
        self.servers.insert(id, server);
        self.figures.matches_at_once = self.figures.matches_at_once.max(self.servers.len());
        self.after(0.2, Event::Beat(id));
        if self.rng.f64() < 0.01 {
            let when = self.exponential(120.0);
            self.after(when, Event::Crash(id));
        }
        Reply::Placed(placement.match_id, Ok(id))
    }

    fn admit(&mut self, id: ServerId, players: &[AccountId]) {
        if !self.servers.contains_key(&id) {
            return;
        }
        for account in players {
            if self.rng.f64() < 0.99 {
                let way = 0.2 + self.rng.f64() * 3.0;
                self.after(way, Event::Connect(account.0 - 1, id));
            }
        }
    }

    fn close_server(&mut self, id: ServerId) {
        if let Some(server) = self.servers.remove(&id) {
            self.hosts[server.host].give_back(server.port);
        }
    }

    /// Once an hour: who has waited long has nobody to play with. A match that failed puts its players back with the time they
    /// had waited, so two may be found just before they are tried again: a minute later they must have been.
    fn look(&mut self) {
        if self.open {
            self.after(3_600.0, Event::Look);
        }
        let long = |ticket: &&Ticket| {
            let online = ticket
                .party
                .iter()
                .all(|m| self.players[m.account.0 as usize - 1].online);
            online && ticket.party.len() == 1 && self.now - ticket.since > Duration::from_secs(120)
        };
        let waiting: Vec<&Ticket> = self.store.tickets().values().filter(long).collect();
        let mut suspects = Vec::new();
        for (index, one) in waiting.iter().enumerate() {
            for other in &waiting[index + 1..] {
                let together = one.preferences.merged(&other.preferences);
                if together.is_some_and(|both| both.players.unwrap_or(2) == 2) {
                    suspects.push([(one.id, one.attempts), (other.id, other.attempts)]);
                }
            }
        }
        self.suspects = suspects;
        self.after(60.0, Event::LookAgain);
    }

    fn look_again(&mut self) {
        // Where servers are short, there may be room just now and others first in line.
        let short = self.hosts.len() < 2;
        let room = self
            .hosts
            .iter()
            .any(|host| !short && host.taken() < usize::from(MATCHES_PER_HOST));
        let led = self.is_led();
        for pair in std::mem::take(&mut self.suspects) {
            let waits = |(id, attempts): &(TicketId, u8)| {
                let ticket = self.store.tickets().get(id);
                ticket.is_some_and(|ticket| {
                    let member = ticket.party[0].account;
                    ticket.attempts == *attempts && self.players[member.0 as usize - 1].online
                })
            };
            assert!(
                !(pair.iter().all(waits) && room && led),
                "{pair:?} have waited for each other at {}",
                self.now
            );
        }
    }

    fn assert_nothing_is_left(&self) {
        let taken: usize = self.hosts.iter().map(Ports::taken).sum();
        assert_eq!(taken, 0, "ports");
        assert_eq!(self.servers.len(), 0, "servers");
        assert_eq!(self.store.matches().len(), 0, "matches");
        assert_eq!(self.store.tickets().len(), 0, "tickets");
        assert_eq!(self.store.check(), Ok(()), "seats and players of tickets");
        let leader = self.leader.as_ref().expect("somebody leads");
        assert_eq!((leader.matches(), leader.queued()), (0, 0));
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.sequence += 1;
        let at = self.now + Duration::from_secs_f64(seconds);
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.f64()).ln()
    }
}

impl Server {
    fn finish(&mut self, outcome: Outcome) {
        self.result = Some(MatchResult {
            match_id: self.match_id,
            outcome,
            players: Vec::new(),
        });
    }
}

const DAY_S: f64 = 86_400.0;
const MATCHES_PER_HOST: u16 = 20;
