//! The master in the simulation: the shipped director, and around it a store, a fleet and links to players that are only as good as the
//! faults let them be.

use std::collections::{BTreeMap, VecDeque};

use muse_master::director::{Action, Director, DirectorConfig, NoServer, StoredMatch};
use muse_master::matching::{Filled, MatchingConfig};
use muse_master::ports::Ports;
use muse_master::ticket::{Member, Ticket};
use muse_master_client::messages::{FromMaster, MatchResult, Report};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

/// What the master is told, by players, game servers, its store and its fleet. All of it takes its time.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Play(AccountId),
    /// A player has lost his match and asks where he belongs.
    Where(AccountId),
    Away(AccountId),
    Back(AccountId),
    Created(MatchId),
    Refused(MatchId, Vec<TicketId>),
    Filled(MatchId, Box<Ticket>),
    NotFilled(Box<Filled>, bool),
    Placed(MatchId, ServerId),
    NotPlaced(MatchId),
    Ended(MatchId, Vec<Ticket>),
    Report(ServerId, Report),
    Result(ServerId, MatchResult),
    Gone(ServerId),
}

/// What the master wants of the rest of the world.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    Start {
        server: ServerId,
        port: u16,
        match_id: MatchId,
        players: Vec<AccountId>,
    },
    /// These players may come to this server: tokens for them.
    Admit {
        match_id: MatchId,
        server: ServerId,
        players: Vec<AccountId>,
        backfill: bool,
    },
    Stop(ServerId),
    Confirm(ServerId),
    Tell(AccountId, FromMaster),
    /// He has no seat and no ticket.
    Nowhere(AccountId),
}

/// The master.
pub(super) struct Master {
    /// `None` while it is down.
    director: Option<Director>,
    epoch: u64,
    players: u8,
    store: Store,
    ports: Ports,
    servers: BTreeMap<ServerId, (u16, MatchId)>,
    next_server: u64,
    heard: BTreeMap<(Instant, u64), Heard>,
    heard_count: u64,
    wishes: VecDeque<Wish>,
    random: fastrand::Rng,
    pub(super) made: u64,
    pub(super) crashes: u64,
}

/// What survives a crash.
#[derive(Default)]
struct Store {
    tickets: BTreeMap<TicketId, Ticket>,
    matches: BTreeMap<MatchId, StoredMatch>,
    seats: BTreeMap<AccountId, MatchId>,
    next_ticket: u64,
}

impl Master {
    pub(super) fn new(seed: u64, players: u8, servers_max: u16) -> Self {
        Self {
            director: Some(Director::new(config(players), 1)),
            epoch: 1,
            players,
            store: Store::default(),
            ports: Ports::new(FIRST_PORT, servers_max),
            servers: BTreeMap::new(),
            next_server: 1,
            heard: BTreeMap::new(),
            heard_count: 0,
            wishes: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed),
            made: 0,
            crashes: 0,
        }
    }

    /// Something is said to the master; it hears it in a moment.
    pub(super) fn tell(&mut self, now: Instant, heard: Heard) {
        let way = Duration::from_millis(u64::from(self.random.u32(1..120)));
        self.heard_count += 1;
        self.heard.insert((now + way, self.heard_count), heard);
    }

    /// Everything in memory is lost, with what was being said to it.
    pub(super) fn crash(&mut self) {
        self.director = None;
        self.crashes += 1;
        // Game servers and players say it again; answers of the store and the fleet are lost with who asked.
        self.heard.clear();
        // Processes are the fleet's, and live on.
        self.wishes
            .retain(|wish| matches!(wish, Wish::Start { .. } | Wish::Stop(_)));
    }

    /// Another leader takes over. `online` are the players whose links are up.
    pub(super) fn restart(&mut self, now: Instant, online: impl Iterator<Item = AccountId>) {
        self.epoch += 1;
        let mut director = Director::new(config(self.players), self.epoch);
        let tickets = self.store.tickets.values().cloned().collect();
        let matches = self.store.matches.values().cloned().collect();
        director.restore(now, tickets, matches);
        let fleet: Vec<(ServerId, MatchId)> = self
            .servers
            .iter()
            .map(|(server, (_, match_id))| (*server, *match_id))
            .collect();
        director.handle_fleet(&fleet);
        online.for_each(|account| director.handle_back(account));
        self.director = Some(director);
    }

    pub(super) const fn is_up(&self) -> bool {
        self.director.is_some()
    }

    /// Does what is due.
    pub(super) fn step(&mut self, now: Instant) {
        while let Some(entry) = self.heard.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let heard = entry.remove();
            self.hear(now, heard);
        }
        let due = |director: &Director| director.poll_timeout().is_some_and(|at| at <= now);
        if let Some(director) = self.director.as_mut().filter(|director| due(director)) {
            director.handle_timeout(now);
        }
        while let Some(action) = self.director.as_mut().and_then(Director::poll_action) {
            self.act(now, action);
        }
    }

    pub(super) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// A server's process has ended.
    pub(super) fn handle_exit(&mut self, now: Instant, server: ServerId) {
        if let Some((port, _)) = self.servers.remove(&server) {
            self.ports.give_back(port);
            self.tell(now, Heard::Gone(server));
        }
    }

    /// What must hold at every instant.
    pub(super) fn check(&self, servers_alive: usize) -> Result<(), String> {
        let mut seats = 0;
        for stored in self.store.matches.values() {
            for player in &stored.players {
                seats += 1;
                if self.store.seats.get(player) != Some(&stored.match_id) {
                    return Err(format!(
                        "account {player} is in match {} without a seat, or in two",
                        stored.match_id
                    ));
                }
            }
        }
        if seats != self.store.seats.len() {
            return Err(format!(
                "{} seats for {seats} players in matches",
                self.store.seats.len()
            ));
        }
        for ticket in self.store.tickets.values() {
            for member in &ticket.party {
                if self.store.seats.contains_key(&member.account) {
                    return Err(format!("account {} waits and has a seat", member.account));
                }
            }
        }
        if self.ports.taken() != servers_alive || self.servers.len() != servers_alive {
            return Err(format!(
                "{} ports are taken by {} servers, {servers_alive} are alive",
                self.ports.taken(),
                self.servers.len()
            ));
        }
        Ok(())
    }

    /// What must hold when nothing has gone wrong for a while: every server has a match, and every match a server.
    pub(super) fn check_quiet(&self) -> Result<(), String> {
        for (server, (port, match_id)) in &self.servers {
            if !self.store.matches.contains_key(match_id) {
                return Err(format!(
                    "server {server} keeps port {port} for match {match_id}, which is over"
                ));
            }
        }
        Ok(())
    }

    /// Whether a player has a seat or waits for one.
    pub(super) fn knows(&self, account: AccountId) -> bool {
        let waits = |ticket: &Ticket| ticket.has(account);
        self.store.seats.contains_key(&account) || self.store.tickets.values().any(waits)
    }

    /// The match in which a player has a seat.
    pub(super) fn seat_of(&self, account: AccountId) -> Option<MatchId> {
        self.store.seats.get(&account).copied()
    }

    /// Whether a match goes on.
    pub(super) fn has_match(&self, match_id: MatchId) -> bool {
        self.store.matches.contains_key(&match_id)
    }

    fn hear(&mut self, now: Instant, heard: Heard) {
        let Some(director) = &mut self.director else {
            return;
        };
        match heard {
            Heard::Play(account) => self.play(now, account),
            Heard::Where(account) => self.seat_again(account),
            Heard::Away(account) => director.handle_away(now, account),
            Heard::Back(account) => director.handle_back(account),
            Heard::Created(match_id) => director.handle_created(now, match_id),
            Heard::Refused(match_id, gone) => director.handle_refused(now, match_id, &gone),
            Heard::Filled(match_id, ticket) => director.handle_filled(match_id, &ticket),
            Heard::NotFilled(filled, gone) => director.handle_not_filled(*filled, gone),
            Heard::Placed(match_id, server) => director.handle_placed(now, match_id, server),
            Heard::NotPlaced(match_id) => {
                director.handle_not_placed(now, match_id, NoServer::Full);
            }
            Heard::Ended(match_id, requeued) => director.handle_ended(now, match_id, requeued),
            Heard::Report(server, report) => director.handle_report(now, server, &report),
            Heard::Result(server, result) => director.handle_result(now, server, result),
            Heard::Gone(server) => director.handle_server_gone(now, server),
        }
    }

    fn play(&mut self, now: Instant, account: AccountId) {
        if self.knows(account) {
            return self.seat_again(account);
        }
        self.store.next_ticket += 1;
        let ticket = Ticket {
            id: TicketId(self.store.next_ticket),
            party: vec![Member {
                account,
                rating: 1_400.0 + (account.0 % 9) as f64 * 25.0,
            }],
            preferences: Preferences::default(),
            since: now,
            attempts: 0,
        };
        self.store.tickets.insert(ticket.id, ticket.clone());
        if let Some(director) = &mut self.director {
            director.handle_ticket(now, ticket);
            director.handle_back(account);
        }
    }

    /// Tells a player where he belongs: to his match if it can be joined.
    fn seat_again(&mut self, account: AccountId) {
        if !self.knows(account) {
            self.wishes.push_back(Wish::Nowhere(account));
            return;
        }
        let seat = self.store.seats.get(&account).copied();
        let open =
            seat.and_then(|match_id| Some((match_id, self.director.as_ref()?.seat(match_id)?.0)));
        if let Some((match_id, server)) = open {
            self.wishes.push_back(Wish::Admit {
                match_id,
                server,
                players: vec![account],
                backfill: false,
            });
        }
    }

    fn act(&mut self, now: Instant, action: Action) {
        match action {
            Action::CreateMatch(new) => {
                let gone: Vec<TicketId> = new
                    .tickets
                    .iter()
                    .filter(|ticket| !self.store.tickets.contains_key(&ticket.id))
                    .map(|ticket| ticket.id)
                    .collect();
                if !gone.is_empty() {
                    return self.tell(now, Heard::Refused(new.match_id, gone));
                }
                let players: Vec<AccountId> = new.players().collect();
                for ticket in &new.tickets {
                    self.store.tickets.remove(&ticket.id);
                }
                self.seat(&players, new.match_id);
                self.made += 1;
                let stored = StoredMatch {
                    match_id: new.match_id,
                    preferences: new.preferences,
                    bots: new.bots,
                    players,
                    server: None,
                    running: false,
                };
                self.store.matches.insert(new.match_id, stored);
                self.tell(now, Heard::Created(new.match_id));
            }
            Action::FillSeats(filled) => self.fill(now, filled),
            Action::Place(place) => self.place(now, place.match_id, place.players),
            Action::RecordServer { match_id, server } => {
                if let Some(stored) = self.store.matches.get_mut(&match_id) {
                    stored.server = Some(server);
                }
            }
            Action::RecordRunning { match_id } => {
                if let Some(stored) = self.store.matches.get_mut(&match_id) {
                    stored.running = true;
                }
            }
            Action::Admit {
                match_id,
                server,
                players,
                backfill,
            } => self.wishes.push_back(Wish::Admit {
                match_id,
                server,
                players,
                backfill,
            }),
            Action::FreeSeat { match_id, account } => {
                if let Some(stored) = self.store.matches.get_mut(&match_id) {
                    stored.players.retain(|player| *player != account);
                    if self.store.seats.get(&account) == Some(&match_id) {
                        self.store.seats.remove(&account);
                    }
                }
            }
            Action::EndMatch(ending) => {
                if let Some(stored) = self.store.matches.remove(&ending.match_id) {
                    for player in stored.players {
                        self.store.seats.remove(&player);
                    }
                }
                let mut requeue = ending.requeue;
                requeue.retain(|ticket| {
                    ticket
                        .party
                        .iter()
                        .all(|member| !self.knows(member.account))
                });
                for ticket in &requeue {
                    self.store.tickets.insert(ticket.id, ticket.clone());
                }
                self.tell(now, Heard::Ended(ending.match_id, requeue));
            }
            Action::EndTicket(ticket) => {
                self.store.tickets.remove(&ticket);
            }
            Action::ReleaseServer(server) => self.wishes.push_back(Wish::Stop(server)),
            Action::ConfirmResult { server, .. } => self.wishes.push_back(Wish::Confirm(server)),
            Action::Tell(account, message) => self.wishes.push_back(Wish::Tell(account, message)),
            _ => {}
        }
    }

    fn fill(&mut self, now: Instant, filled: Filled) {
        let is_gone = !self.store.tickets.contains_key(&filled.ticket.id);
        let (match_id, ticket) = (filled.match_id, filled.ticket.clone());
        if is_gone || !self.store.matches.contains_key(&match_id) {
            return self.tell(now, Heard::NotFilled(Box::new(filled), is_gone));
        }
        self.store.tickets.remove(&ticket.id);
        let players: Vec<AccountId> = ticket.party.iter().map(|member| member.account).collect();
        self.seat(&players, match_id);
        if let Some(stored) = self.store.matches.get_mut(&match_id) {
            stored.players.extend(players);
        }
        self.tell(now, Heard::Filled(match_id, Box::new(ticket)));
    }

    fn seat(&mut self, players: &[AccountId], match_id: MatchId) {
        for player in players {
            self.store.seats.insert(*player, match_id);
        }
    }

    /// The fleet: a server at the lowest free port, if there is one.
    fn place(&mut self, now: Instant, match_id: MatchId, players: Vec<AccountId>) {
        let Some(port) = self.ports.take(now) else {
            return self.tell(now, Heard::NotPlaced(match_id));
        };
        let server = ServerId(self.next_server);
        self.next_server += 1;
        self.servers.insert(server, (port, match_id));
        self.wishes.push_back(Wish::Start {
            server,
            port,
            match_id,
            players,
        });
        self.tell(now, Heard::Placed(match_id, server));
    }
}

fn config(players: u8) -> DirectorConfig {
    DirectorConfig::default().matching(MatchingConfig::default().players(players))
}

const FIRST_PORT: u16 = 8_888;
