//! The master in the simulation: the shipped leader, and around it a store, a fleet and links to players that are only as good as the
//! faults let them be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muse_master::bus::Note;
use muse_master::director::{DirectorConfig, NoServer, Placement};
use muse_master::leader::{Leader, Reply, Request};
use muse_master::matching::MatchingConfig;
use muse_master::ports::{FIRST_PORT, Ports};
use muse_master::store::MemoryStore;
use muse_master::ticket::{Member, Ticket};
use muse_master_client::messages::{FromMaster, ToServer, decode};
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

/// A message to the master, from players, game servers, its store or its fleet. All of them take their time.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Play(AccountId),
    /// A player has lost their match and asks where they belong.
    Where(AccountId),
    Note(Note),
    /// An answer to the leader of this name.
    Reply(u64, Reply),
}

/// A request of the master to the rest of the world.
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
    },
    /// This server is to expect another player.
    Seat(ServerId, AccountId),
    Stop(ServerId),
    Tell(AccountId, FromMaster),
    /// This player has no seat and no ticket.
    Nowhere(AccountId),
    /// A line for whoever asks how it came to this.
    Journal(String),
}

/// The master.
pub(super) struct Master {
    config: DirectorConfig,
    is_up: bool,
    /// `None` while it is down and between two attempts to lead.
    leader: Option<Leader>,
    /// Attempts so far, by which each has a name of its own.
    holders: u64,
    leads_again_at: Instant,
    /// Players whose links to it are up.
    here: BTreeSet<AccountId>,
    store: MemoryStore,
    ports: Ports,
    servers: BTreeMap<ServerId, (u16, MatchId)>,
    /// When matches were over.
    over: BTreeMap<MatchId, Instant>,
    next_server: u64,
    next_ticket: u64,
    heard: BTreeMap<(Instant, u64), Heard>,
    heard_count: u64,
    wishes: VecDeque<Wish>,
    random: fastrand::Rng,
    pub(super) made: u64,
    pub(super) crashes: u64,
}

impl Master {
    pub(super) fn new(
        seed: u64,
        players: u8,
        servers_max: u16,
        online: impl Iterator<Item = AccountId>,
    ) -> Self {
        Self {
            config: DirectorConfig::default().matching(MatchingConfig::default().players(players)),
            is_up: true,
            leader: None,
            holders: 0,
            leads_again_at: Instant::ZERO,
            here: online.collect(),
            store: MemoryStore::default(),
            ports: Ports::new(FIRST_PORT, servers_max),
            servers: BTreeMap::new(),
            over: BTreeMap::new(),
            next_server: 1,
            next_ticket: 1,
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
        self.is_up = false;
        self.leader = None;
        self.here.clear();
        self.crashes += 1;
        // Game servers and players say it again; answers of the store and the fleet are lost with who asked.
        self.heard.clear();
        // Processes are the fleet's, and live on.
        self.wishes
            .retain(|wish| matches!(wish, Wish::Start { .. } | Wish::Stop(_)));
    }

    /// Another master takes over. `online` are the players whose links are up.
    pub(super) fn restart(&mut self, now: Instant, online: impl Iterator<Item = AccountId>) {
        self.is_up = true;
        self.leads_again_at = now;
        self.here = online.collect();
    }

    pub(super) const fn is_up(&self) -> bool {
        self.is_up
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
        if self.is_up && self.leader.is_none() && self.leads_again_at <= now {
            self.holders += 1;
            self.leader = Some(Leader::new(self.config.clone(), self.holders));
        }
        let Some(mut leader) = self.leader.take() else {
            return;
        };
        if leader.poll_timeout().is_some_and(|at| at <= now) {
            leader.handle_timeout(now);
        }
        while let Some(request) = leader.poll_request(now, now) {
            self.fulfil(now, request);
        }
        match leader.ended() {
            Some(_) => self.leads_again_at = now + leader.again_after(),
            None => self.leader = Some(leader),
        }
    }

    pub(super) fn poll_wish(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// A server's process has ended.
    pub(super) fn handle_exit(&mut self, now: Instant, server: ServerId) {
        if let Some((port, _)) = self.servers.remove(&server) {
            self.ports.give_back(port);
            self.tell(now, Heard::Note(Note::ServerGone(server)));
        }
    }

    /// Checks what must hold at every instant.
    pub(super) fn check(&self, servers_alive: usize) -> Result<(), String> {
        self.store.check()?;
        if self.ports.taken() != servers_alive || self.servers.len() != servers_alive {
            return Err(format!(
                "{} ports are taken by {} servers, {servers_alive} are alive",
                self.ports.taken(),
                self.servers.len()
            ));
        }
        Ok(())
    }

    /// Checks what must hold when nothing has gone wrong for a while: every server has a match, or had one until just now.
    pub(super) fn check_quiet(&self, now: Instant) -> Result<(), String> {
        for (server, (port, match_id)) in &self.servers {
            let over = self.over.get(match_id);
            let just_now = over.is_some_and(|at| *at + RELEASE > now);
            if !self.has_match(*match_id) && !just_now {
                return Err(format!(
                    "server {server} keeps port {port} for match {match_id}, which is over"
                ));
            }
        }
        Ok(())
    }

    /// True if a player has a seat or waits for one.
    pub(super) fn knows(&self, account: AccountId) -> bool {
        self.store.knows(account)
    }

    /// Returns the match in which a player has a seat.
    pub(super) fn seat_of(&self, account: AccountId) -> Option<MatchId> {
        self.store.seat_of(account)
    }

    /// True while a match goes on.
    pub(super) fn has_match(&self, match_id: MatchId) -> bool {
        self.store.matches().contains_key(&match_id)
    }

    fn hear(&mut self, now: Instant, heard: Heard) {
        if !self.is_up {
            return;
        }
        match heard {
            Heard::Play(account) => self.play(now, account),
            Heard::Where(account) => self.seat_again(account),
            Heard::Note(note) => {
                match note {
                    Note::Back(account) => _ = self.here.insert(account),
                    Note::Away(account) => _ = self.here.remove(&account),
                    _ => {}
                }
                self.note(now, note);
            }
            Heard::Reply(holder, reply) if holder == self.holders => {
                if let Some(leader) = &mut self.leader {
                    leader.handle_reply(now, reply);
                }
            }
            Heard::Reply(..) => {}
        }
    }

    fn note(&mut self, now: Instant, note: Note) {
        if let Some(leader) = &mut self.leader {
            leader.handle_note(now, note, |account| self.here.contains(&account));
        }
    }

    fn play(&mut self, now: Instant, account: AccountId) {
        if self.knows(account) {
            return self.seat_again(account);
        }
        let ticket = Ticket {
            id: TicketId(self.next_ticket),
            party: vec![Member {
                account,
                rating: 1_400.0 + (account.0 % 9) as f64 * 25.0,
            }],
            preferences: Preferences::default(),
            since: now,
            attempts: 0,
        };
        self.next_ticket += 1;
        self.store.put_ticket(ticket.clone());
        self.note(now, Note::Ticket(ticket));
    }

    /// Tells a player where they belong: to their match if it has a server.
    fn seat_again(&mut self, account: AccountId) {
        if !self.knows(account) {
            self.wishes.push_back(Wish::Nowhere(account));
            return;
        }
        let seat = self.seat_of(account);
        let stored = seat.and_then(|match_id| self.store.matches().get(&match_id));
        if let Some((stored, server)) = stored.and_then(|stored| Some((stored, stored.server?))) {
            self.wishes.push_back(Wish::Admit {
                match_id: stored.match_id,
                server,
                players: vec![account],
            });
        }
    }

    fn fulfil(&mut self, now: Instant, request: Request) {
        let reply = match request {
            Request::Store(request) => {
                let reply = self.store.handle_request(now, request);
                match &reply {
                    Some(Reply::Created(_, created)) => {
                        self.made += u64::from(created.gone.is_empty());
                    }
                    Some(Reply::Ended(match_id, Some(_))) => {
                        self.over.insert(*match_id, now);
                    }
                    _ => {}
                }
                reply
            }
            Request::Allocate(placement) => Some(self.place(now, placement)),
            Request::Release(server) => {
                self.wishes.push_back(Wish::Stop(server));
                None
            }
            Request::ListServers => {
                let servers = self.servers.iter();
                let servers = servers.map(|(server, (_, match_id))| (*server, *match_id));
                Some(Reply::Servers(servers.collect()))
            }
            Request::Publish(note) => {
                self.deliver(now, note);
                None
            }
            Request::Admit {
                match_id,
                server,
                players,
            } => {
                self.wishes.push_back(Wish::Admit {
                    match_id,
                    server,
                    players,
                });
                None
            }
            Request::Journal(match_id, text) => {
                let line = format!("match {match_id}: {text}");
                self.wishes.push_back(Wish::Journal(line));
                None
            }
        };
        if let Some(reply) = reply {
            self.tell(now, Heard::Reply(self.holders, reply));
        }
    }

    /// Hands a note of the leader to whom it is for.
    fn deliver(&mut self, now: Instant, note: Note) {
        match note {
            Note::Tell(account, message) => {
                let message = decode(&message).expect("a message of the leader");
                self.wishes.push_back(Wish::Tell(account, message));
            }
            Note::ToServer(server, ToServer::Admit { account }) => {
                self.wishes.push_back(Wish::Seat(server, account));
            }
            Note::WhoIsHere(accounts) => {
                for account in accounts {
                    if self.here.contains(&account) {
                        self.tell(now, Heard::Note(Note::Back(account)));
                    }
                }
            }
            // A server that is told that its result is stored ends by being released.
            _ => {}
        }
    }

    /// The fleet: a server at the lowest free port, if there is one.
    fn place(&mut self, now: Instant, placement: Placement) -> Reply {
        let match_id = placement.match_id;
        let Some(port) = self.ports.take(now) else {
            return Reply::Placed(match_id, Err(NoServer::Full));
        };
        let server = ServerId(self.next_server);
        self.next_server += 1;
        self.servers.insert(server, (port, match_id));
        self.wishes.push_back(Wish::Start {
            server,
            port,
            match_id,
            players: placement.players,
        });
        Reply::Placed(match_id, Ok(server))
    }
}

/// Time for a server to hear that its match is over, say the last things and end.
const RELEASE: Duration = Duration::from_secs(6);
