//! The whole system in one process and in virtual time: the master's leader, game servers, a relay and players over the real transport
//! and the real netcode, a network that does what networks do, crashes, and players who mean harm.
//!
//! Everything follows from the seed. After each step the promises are checked: messages arrive as their channels say, nobody sits in two
//! matches, ports are not leaked, nobody sees what they may not, everybody is in a match or back at the master in the end. A
//! failure names the seed and tells the last things that happened; the same seed fails again.
//!
//! Simulated, not shipped: what the leader's requests are done with (store, fleet, bus, links to players), for the shipped ones need sockets and SQLite.
//! [`Game`] says what is played: a stub, or Biobot as it ships with its bots at the keys. Left out: parties, and the master's HTTP.

mod aid;
mod checks;
mod game;
mod master;
mod player;
mod promise;
mod server;
mod station;
mod told;
mod trouble;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use muse_master::bus::Note;
use muse_master_client::messages::FromMaster;
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_netem::{Network, NodeId};
use muse_relay::{Limits, Relay};
use muse_transport::SeededEntropy;
use muse_transport::token::{TokenGrant, TokenIssuer, TokenVerifier};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

pub use aid::PARTS;
use aid::{Aid, Meter, Part, Plant, Posted};
pub use game::Game;
use game::Ground;
use master::{Heard, Master, Wish};
use player::{Player, Standing, Ticket};
use promise::Agreement;
use server::{Opening, ServerProcess};
pub use told::{Failure, SimConfig, Told};
use trouble::Trouble;

/// The whole system.
pub struct Sim {
    config: SimConfig,
    now: Instant,
    network: Network,
    agreement: Agreement,
    issuer: TokenIssuer,
    entropy: SeededEntropy,
    master: Master,
    master_down_until: Option<Instant>,
    relay: Relay,
    relay_node: NodeId,
    relay_down_until: Option<Instant>,
    ground: Ground,
    servers: BTreeMap<ServerId, ServerProcess>,
    server_nodes: BTreeMap<SocketAddr, (NodeId, Option<ServerId>)>,
    /// Servers that start, and when they will run.
    starting: BTreeMap<ServerId, (Instant, Wish)>,
    /// When servers have ended, in order or not.
    ended: BTreeMap<ServerId, Instant>,
    players: Vec<Player>,
    player_nodes: BTreeMap<SocketAddr, usize>,
    /// Messages of the master that are on their way.
    said: BTreeMap<(Instant, u64), (AccountId, Said)>,
    said_count: u64,
    trouble: Trouble,
    aid: Aid,
    random: fastrand::Rng,
    trace: VecDeque<String>,
    told: Told,
}

/// A message of the master to a player.
enum Said {
    Message(FromMaster),
    Seat(Box<Ticket>),
    Nowhere,
}

impl Sim {
    /// A system in which nothing has happened.
    pub fn new(config: SimConfig) -> Self {
        let mut random = fastrand::Rng::with_seed(config.seed);
        let mut network = Network::new(random.u64(..));
        let mut players = Vec::new();
        let mut player_nodes = BTreeMap::new();
        for number in 0..config.players {
            let address = address_of_player(number, 0);
            network.add_node(address);
            player_nodes.insert(address, players.len());
            let account = AccountId(u64::from(number) + 1);
            players.push(Player::new(account, address, random.u64(..)));
        }
        let mut entropy = SeededEntropy::danger_seeded(random.u64(..));
        let issuer = TokenIssuer::generate(promise::PROTOCOL, 1, &mut entropy);
        let servers_max = (config.players / 2).clamp(2, 400) as u16;
        let now = Instant::from_secs(1);
        let relay_node = network.add_node(RELAY);
        let ground = Ground::new(config.game);
        Self {
            config,
            now,
            network,
            agreement: Agreement::new().expect("the channels are sane"),
            issuer,
            entropy,
            master: Master::new(
                random.u64(..),
                ground.players(),
                servers_max,
                players.iter().map(|player| player.account),
            ),
            master_down_until: None,
            relay: relay(now, &mut random),
            relay_node,
            relay_down_until: None,
            ground,
            servers: BTreeMap::new(),
            server_nodes: BTreeMap::new(),
            starting: BTreeMap::new(),
            ended: BTreeMap::new(),
            players,
            player_nodes,
            said: BTreeMap::new(),
            said_count: 0,
            trouble: Trouble::new(random.u64(..), config.troubles),
            aid: Aid {
                plant: Plant {
                    one_in: config.planted_one_in,
                    random: fastrand::Rng::with_seed(random.u64(..)),
                },
                post: Posted::default(),
                meter: Meter::new(config.stopwatch),
            },
            random,
            trace: VecDeque::new(),
            told: Told::default(),
        }
    }

    /// Simulates all of it.
    pub fn run(mut self) -> Result<Told, Failure> {
        let outcome = self.simulate();
        outcome.map_err(|what| Failure {
            seed: self.config.seed,
            at: self.now,
            trace: self.tell_past(&what),
            what,
        })
    }

    fn simulate(&mut self) -> Result<Told, String> {
        let end = self.now + self.config.length;
        while self.now < end {
            self.cause_trouble();
            self.step()?;
        }
        self.note("the trouble is over".to_owned());
        self.heal();
        let rest = self.now + QUIET;
        while self.now < rest {
            self.step()?;
        }
        self.check_rest()?;
        Ok(self.tell())
    }

    fn step(&mut self) -> Result<(), String> {
        let now = self.now;
        self.aid.meter.begin();
        self.deliver();
        self.run_relay();
        self.run_master();
        self.hear_master();
        self.aid.meter.lap(Part::Master);
        self.run_servers()?;
        for player in &mut self.players {
            if player.standing == Standing::Off {
                continue;
            }
            if let Some(heard) = player.step(now, &mut self.aid)? {
                self.master.tell(now, heard);
            }
        }
        self.send();
        self.aid.meter.lap(Part::Network);
        self.check()?;
        self.aid.meter.lap(Part::Checks);
        self.now += STEP;
        Ok(())
    }

    /// Sends what was posted over the network.
    fn send(&mut self) {
        let post = &mut self.aid.post;
        let mut bytes = post.bytes.as_slice();
        for (from, to, len) in post.letters.drain(..) {
            let (payload, rest) = bytes.split_at(len);
            bytes = rest;
            self.network
                .send(self.now, from, to, Ecn::NotCapable, payload);
        }
        post.bytes.clear();
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            self.told.datagrams += 1;
            self.aid.meter.lap(Part::Network);
            let (from, payload) = (delivery.from, delivery.payload);
            if let Some(player) = self.player_nodes.get(&delivery.to) {
                self.players[*player].handle_datagram(self.now, from, payload);
                self.aid.meter.lap(Part::PlayerTransport);
            } else if let Some((_, Some(server))) = self.server_nodes.get(&delivery.to) {
                self.trouble.overhear(from, delivery.to, payload);
                if let Some(server) = self.servers.get_mut(server) {
                    server.handle_datagram(self.now, from, payload);
                }
                self.aid.meter.lap(Part::ServerTransport);
            } else if delivery.to == RELAY && self.relay_down_until.is_none() {
                self.told.relayed += 1;
                self.trouble.overhear(from, delivery.to, payload);
                let ecn = Ecn::NotCapable;
                self.relay
                    .handle_datagram(self.now, Datagram { from, ecn, payload });
                self.aid.meter.lap(Part::Relay);
            }
        }
    }

    fn run_relay(&mut self) {
        let now = self.now;
        if let Some(until) = self.relay_down_until {
            if until > now {
                return;
            }
            self.relay_down_until = None;
            self.relay = relay(now, &mut self.random);
            self.note("the relay runs again, and knows of nobody".to_owned());
        }
        if self.relay.poll_timeout().is_some_and(|at| at <= now) {
            self.relay.handle_timeout(now);
        }
        let mut buffer = [0; 1_500];
        while let Some(transmit) = self.relay.poll_transmit(now, &mut buffer) {
            for datagram in transmit.datagrams(&buffer) {
                self.aid.post.send(RELAY, transmit.to, datagram);
            }
        }
        self.aid.meter.lap(Part::Relay);
    }

    fn run_master(&mut self) {
        if let Some(until) = self.master_down_until
            && until <= self.now
        {
            self.master_down_until = None;
            let online = self.players.iter().filter(|player| player.is_online);
            let online: Vec<AccountId> = online.map(|player| player.account).collect();
            self.master.restart(self.now, online.into_iter());
            self.note("another master takes over".to_owned());
        }
        self.master.step(self.now);
        while let Some(wish) = self.master.poll_wish() {
            self.fulfil(wish);
        }
    }

    fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Start { server, .. } => {
                let takes = Duration::from_millis(u64::from(self.random.u32(50..1_500)));
                self.starting.insert(server, (self.now + takes, wish));
            }
            Wish::Admit {
                match_id,
                server,
                players,
            } => {
                let Some(running) = self.servers.get(&server) else {
                    return;
                };
                let (address, key) = (running.address, running.key);
                let room = running.room;
                let unix = server::UNIX_ORIGIN_S + self.now.as_micros() / 1_000_000;
                for account in players {
                    let grant = TokenGrant::new(account.0, key, address);
                    let token = self.issuer.issue(&grant, unix, &mut self.entropy);
                    let direct = looks_for_direct_way(match_id);
                    let ticket = Ticket {
                        match_id,
                        server,
                        address,
                        room: room.map(|code| (RELAY, code, direct)),
                        token: token.expect("within the limits"),
                        seed: self.random.u64(..),
                    };
                    self.say(account, Said::Seat(Box::new(ticket)));
                }
            }
            Wish::Stop(server) => match self.servers.get_mut(&server) {
                Some(running) => running.stop(self.now),
                None => self.end_server(server),
            },
            Wish::Seat(server, account) => {
                if let Some(running) = self.servers.get_mut(&server) {
                    running.seat(account);
                }
            }
            Wish::Journal(line) => self.note(line),
            Wish::Tell(account, message) => self.say(account, Said::Message(message)),
            Wish::Nowhere(account) => self.say(account, Said::Nowhere),
        }
    }

    fn say(&mut self, account: AccountId, said: Said) {
        let way = Duration::from_millis(u64::from(self.random.u32(5..120)));
        self.said_count += 1;
        self.said
            .insert((self.now + way, self.said_count), (account, said));
    }

    fn hear_master(&mut self) {
        while let Some(entry) = self.said.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (account, said) = entry.remove();
            let player = &mut self.players[account.0 as usize - 1];
            if !player.is_online {
                continue;
            }
            match said {
                Said::Message(message) => player.hear(self.now, &message),
                Said::Seat(ticket) => {
                    player.take_seat(self.now, *ticket, &self.agreement, &self.ground);
                }
                Said::Nowhere => player.hear_nowhere(self.now),
            }
        }
    }

    fn run_servers(&mut self) -> Result<(), String> {
        let due = |(at, _): &(Instant, Wish)| *at <= self.now;
        let ready: Vec<ServerId> = self
            .starting
            .iter()
            .filter(|(_, starting)| due(starting))
            .map(|(server, _)| *server)
            .collect();
        for server in ready {
            self.start_server(server);
        }
        let over = |server: &&ServerProcess| server.is_over(self.now);
        let over = self.servers.values().filter(over);
        let over: Vec<ServerId> = over.map(|server| server.id).collect();
        for server in over {
            if let Some(running) = self.servers.get_mut(&server) {
                running.close_room(self.now, &mut self.aid.post);
                let left = running.present();
                self.note(format!("server {server} ends before {left:?} have gone"));
            }
            self.end_server(server);
        }
        for server in self.servers.values_mut() {
            server.step(self.now, &mut self.aid)?;
            if self.now >= server.said_at + REPORT {
                server.said_at = self.now;
                let note = match &server.result {
                    Some(result) => Note::Result(server.id, result.clone()),
                    None => Note::Report(server.id, server.report()),
                };
                if self.master.is_up() {
                    self.master.tell(self.now, Heard::Note(note));
                }
            }
        }
        Ok(())
    }

    fn start_server(&mut self, server: ServerId) {
        let Some((
            _,
            Wish::Start {
                port,
                match_id,
                players,
                ..
            },
        )) = self.starting.remove(&server)
        else {
            return;
        };
        let address = SocketAddr::new(IpAddr::V4(SERVER_HOST), port);
        if !self.server_nodes.contains_key(&address) {
            let node = self.network.add_node(address);
            self.server_nodes.insert(address, (node, None));
            self.set_links_to(node);
        }
        let mut verifier = TokenVerifier::new();
        let public = self.issuer.public_key();
        verifier
            .add_key(self.issuer.key_id(), &public)
            .expect("the issuer's own key");
        let seed = self.random.u64(..);
        self.note(format!(
            "server {server} starts at port {port} for match {match_id}"
        ));
        let relay = match_id
            .0
            .is_multiple_of(RELAYED_ONE_IN)
            .then(|| (RELAY, looks_for_direct_way(match_id)));
        let opening = Opening {
            id: server,
            match_id,
            address,
            players,
            places: self.ground.players(),
            game: self.ground.host(self.now, seed),
            seed,
            relay,
        };
        let running = ServerProcess::new(self.now, opening, &self.agreement, verifier);
        if let Some(node) = self.server_nodes.get_mut(&address) {
            node.1 = Some(server);
        }
        self.servers.insert(server, running);
    }

    /// A server's process ends, in order or not.
    fn end_server(&mut self, server: ServerId) {
        self.starting.remove(&server);
        if let Some(running) = self.servers.remove(&server) {
            self.told.messages += running.received;
            self.ended.insert(server, self.now);
            if let Some(node) = self.server_nodes.get_mut(&running.address) {
                node.1 = None;
            }
        }
        self.master.handle_exit(self.now, server);
    }

    fn tell(&self) -> Told {
        let playing = self.players.iter().map(|player| {
            let now = match player.standing {
                Standing::Plays => self.now - player.since,
                _ => Duration::ZERO,
            };
            player.played + now
        });
        let received: u64 = self.players.iter().map(|player| player.received).sum();
        let hosted: u64 = self.servers.values().map(|server| server.received).sum();
        Told {
            time: self.now - Instant::from_secs(1),
            played: playing.fold(Duration::ZERO, |sum, played| sum + played),
            matches: self.master.made,
            messages: self.told.messages + received + hosted,
            crashes: [
                self.told.crashes[0],
                self.told.crashes[1],
                self.master.crashes,
                self.told.crashes[3],
            ],
            spent: self.aid.meter.spent,
            ..self.told
        }
    }

    /// Returns what happened before a promise was broken: to everybody, then to those it names.
    fn tell_past(&self, what: &str) -> Vec<String> {
        let mut trace: Vec<String> = self.trace.iter().cloned().collect();
        for player in &self.players {
            let named = format!("account {} ", player.account);
            if what.replace(':', " ").contains(&named) {
                trace.extend(player.tell_past());
            }
        }
        trace
    }

    fn note(&mut self, line: String) {
        if self.trace.len() == TRACE_MAX {
            self.trace.pop_front();
        }
        let at = self.now.as_secs_f64();
        self.trace.push_back(format!("{at:9.3} s  {line}"));
    }
}

/// A relay that knows of nobody.
fn relay(now: Instant, random: &mut fastrand::Rng) -> Relay {
    let mut seed = [0; 32];
    random.fill(&mut seed);
    // All game servers stand on one machine here, which a public relay would find suspicious.
    let limits = Limits::default()
        .rooms_per_ip(4_096)
        .rooms_per_prefix(4_096)
        .requests_per_second(1_000);
    Relay::danger_open(now, limits, seed)
}

/// True if the two sides of a match that meet at the relay look for a direct way.
const fn looks_for_direct_way(match_id: MatchId) -> bool {
    (match_id.0 / RELAYED_ONE_IN).is_multiple_of(2)
}

/// Returns the address of a player after so many changes of address.
fn address_of_player(number: u32, change: u32) -> SocketAddr {
    let [_, _, high, low] = number.to_be_bytes();
    SocketAddr::from((
        [10, (change / 200) as u8, high, low],
        20_000 + (change % 200) as u16,
    ))
}

/// Of time, from one look at everything to the next.
const STEP: Duration = Duration::from_millis(5);
/// The interval at which game servers report.
const REPORT: Duration = Duration::from_secs(1);
/// At the end, without troubles.
const QUIET: Duration = Duration::from_secs(120);
const TRACE_MAX: usize = 40;
/// One of so many matches is reached through the relay.
const RELAYED_ONE_IN: u64 = 3;
const RELAY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)), 7_788);
const SERVER_HOST: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// With which game servers close connections when a match is over.
const CODE_OVER: u16 = 100;
