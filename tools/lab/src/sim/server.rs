//! A game server in the simulation: a real endpoint, by itself or behind a relay, and a match on it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_master_client::messages::{MatchResult, Outcome, Phase, PlayerResult, Report};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_netcode::{ClientId, EntityId, Tick};
use muse_relay::{Link, RoomCode, RoomKey};
use muse_transport::token::TokenVerifier;
use muse_transport::{
    Config, ConnectionId, Endpoint, Event, SeededEntropy, ServerKey, ServerOptions, ServerPublicKey,
};
use muse_wire::{Duration, Instant};

use super::aid::{Aid, Part, Plant, Posted};
use super::game::{Hosted, Whom};
use super::promise::{GAME, NETCODE, ORDERED, Received, Sent, turns};
use super::station::Station;

/// A process that hosts one match.
pub(super) struct GameServer {
    pub(super) id: ServerId,
    pub(super) address: SocketAddr,
    pub(super) match_id: MatchId,
    pub(super) key: ServerPublicKey,
    /// At the relay, if that is where it is reached.
    pub(super) room: Option<RoomCode>,
    station: Station,
    game: Box<dyn Hosted>,
    places: u8,
    seated: Vec<AccountId>,
    guests: BTreeMap<ConnectionId, Guest>,
    left: Vec<AccountId>,
    phase: Phase,
    since: Instant,
    length: Duration,
    pub(super) result: Option<MatchResult>,
    pub(super) said_at: Instant,
    talked_at: Instant,
    turn: u32,
    /// How many have come so far.
    came: u32,
    /// It was told to end, and does so when its players have gone, or then.
    stops_at: Option<Instant>,
    pub(super) received: u64,
}

struct Guest {
    account: AccountId,
    client: ClientId,
    sent: Sent,
    received: Received,
    is_over: bool,
}

/// What a server begins with.
pub(super) struct Opening {
    pub(super) id: ServerId,
    pub(super) match_id: MatchId,
    pub(super) address: SocketAddr,
    pub(super) players: Vec<AccountId>,
    pub(super) places: u8,
    pub(super) game: Box<dyn Hosted>,
    pub(super) seed: u64,
    /// The relay through which it is reached, and whether a direct way is looked for.
    pub(super) relay: Option<(SocketAddr, bool)>,
}

impl GameServer {
    pub(super) fn new(
        now: Instant,
        opening: Opening,
        config: &Config,
        verifier: TokenVerifier,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(opening.seed);
        let mut entropy = SeededEntropy::danger_seeded(opening.seed);
        let key = ServerKey::generate(&mut entropy);
        let public = key.public();
        let mut endpoint = Endpoint::new(config.clone(), entropy);
        // Its clock is not quite the master's.
        let skew_s = random.u64(..=2 * SKEW_S);
        let unix = UNIX_ORIGIN_S - SKEW_S + skew_s + now.as_micros() / 1_000_000;
        endpoint.set_unix_time(now, unix);
        endpoint.listen(ServerOptions::new(key).tokens(verifier.address(opening.address)));
        let room = RoomKey::new(random.u128(..).to_le_bytes());
        let link = opening.relay.map(|(relay, direct)| {
            let mut seed = [0; 32];
            random.fill(&mut seed);
            Link::open(now, relay, room, seed).direct(direct)
        });
        Self {
            id: opening.id,
            address: opening.address,
            match_id: opening.match_id,
            key: public,
            room: link.is_some().then(|| room.code()),
            station: Station::new(endpoint, link),
            game: opening.game,
            places: opening.places,
            seated: opening.players,
            guests: BTreeMap::new(),
            left: Vec::new(),
            phase: Phase::Connecting,
            since: now,
            length: Duration::from_secs(u64::from(random.u32(20..90))),
            result: None,
            said_at: now,
            talked_at: now,
            turn: 0,
            came: 0,
            stops_at: None,
            received: 0,
        }
    }

    /// Expects another player.
    pub(super) fn seat(&mut self, account: AccountId) {
        if !self.seated.contains(&account) {
            self.seated.push(account);
        }
        self.left.retain(|left| *left != account);
    }

    pub(super) fn report(&self) -> Report {
        let present = self.guests.values().map(|guest| guest.account);
        let open = usize::from(self.places).saturating_sub(self.seated.len());
        Report {
            match_id: Some(self.match_id),
            phase: self.phase,
            seated: self.seated.clone(),
            present: present.collect(),
            left: self.left.clone(),
            open_seats: match self.phase {
                Phase::Running => open as u8,
                _ => 0,
            },
        }
    }

    /// It is not needed any more. What its players are still to hear is awaited for a moment; if they play, they hear that it closes, as
    /// from the game server that ships.
    pub(super) fn stop(&mut self, now: Instant) {
        if self.stops_at.is_some() {
            return;
        }
        self.stops_at = Some(now + STOP);
        if self.result.is_none() {
            for connection in self.guests.keys() {
                let endpoint = &mut self.station.endpoint;
                endpoint.close(now, *connection, 4, "the server closes");
            }
        }
    }

    /// Who is connected.
    pub(super) fn present(&self) -> Vec<u64> {
        self.guests.values().map(|guest| guest.account.0).collect()
    }

    /// Whether its process ends.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.stops_at
            .is_some_and(|at| at <= now || self.guests.is_empty())
    }

    /// Its process ends in order, which it tells the relay.
    pub(super) fn close_room(&mut self, now: Instant, post: &mut Posted) {
        self.station.leave(now, self.address, post);
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        self.station.handle_datagram(now, from, payload);
    }

    /// Lets time pass until `now`, and says which promise was broken.
    pub(super) fn step(&mut self, now: Instant, aid: &mut Aid) -> Result<(), String> {
        self.take_events(now, aid)?;
        if self.game.due() <= now {
            aid.meter.lap(Part::ServerTransport);
            self.tick(now);
            aid.meter.lap(Part::ServerGame);
            self.follow_match(now);
        }
        if now >= self.talked_at + TALK {
            self.talked_at = now;
            self.talk(now);
        }
        self.station.handle_time(now);
        self.take_events(now, aid)?;
        self.station.send(now, self.address, &mut aid.post);
        aid.meter.lap(Part::ServerTransport);
        Ok(())
    }

    /// Whether a player was allowed to see an entity at a tick.
    pub(super) fn shows(&self, account: AccountId, entity: EntityId, tick: Tick) -> bool {
        self.game.shows(account, entity, tick)
    }

    fn take_events(&mut self, now: Instant, aid: &mut Aid) -> Result<(), String> {
        let mut buffer = Vec::new();
        loop {
            match self.station.endpoint.poll_event(&mut buffer) {
                None => return Ok(()),
                Some(Event::Connected {
                    connection,
                    account,
                    ..
                }) => self.welcome(now, connection, AccountId(account)),
                Some(Event::Message {
                    connection,
                    channel,
                    payload,
                }) => {
                    let Some(guest) = self.guests.get_mut(&connection) else {
                        continue;
                    };
                    if channel == NETCODE || channel == GAME {
                        aid.meter.lap(Part::ServerTransport);
                        match channel {
                            NETCODE => self.game.handle_packet(now, guest.client, payload),
                            _ => self.game.handle_message(guest.client, payload),
                        }
                        aid.meter.lap(Part::ServerGame);
                    } else {
                        guest.take(self.id, channel, payload, &mut aid.plant)?;
                        self.received += 1;
                    }
                }
                Some(Event::Closed { connection, .. }) => self.dismiss(connection),
                Some(_) => {}
            }
        }
    }

    fn welcome(&mut self, now: Instant, connection: ConnectionId, account: AccountId) {
        let before = self
            .guests
            .iter()
            .find(|(_, guest)| guest.account == account);
        if let Some((old, _)) = before {
            let old = *old;
            self.station.endpoint.close(now, old, 1, "connected anew");
            self.dismiss(old);
        }
        let is_ending = self.result.is_some() || self.stops_at.is_some();
        if !self.seated.contains(&account) || is_ending {
            self.station.endpoint.close(now, connection, 2, "no seat");
            return;
        }
        self.came += 1;
        let client = ClientId(self.came);
        if !self.game.join(client, account) {
            self.station.endpoint.close(now, connection, 3, "full");
            return;
        }
        let guest = Guest {
            account,
            client,
            sent: Sent::default(),
            received: Received::default(),
            is_over: false,
        };
        self.guests.insert(connection, guest);
    }

    fn dismiss(&mut self, connection: ConnectionId) {
        if let Some(guest) = self.guests.remove(&connection) {
            self.game.leave(guest.client);
        }
    }

    fn tick(&mut self, now: Instant) {
        let (endpoint, guests) = (&mut self.station.endpoint, &self.guests);
        self.game.tick(now, &mut |whom, bytes| {
            let (to, channel) = match whom {
                Whom::Packet(client) => (Some(client), NETCODE),
                Whom::Message(to) => (to, GAME),
            };
            let meant = |guest: &Guest| to.is_none_or(|client| guest.client == client);
            for (connection, _) in guests.iter().filter(|(_, guest)| meant(guest)) {
                // A connection that closes takes nothing more.
                let _ = endpoint.send(now, *connection, channel, bytes);
            }
        });
    }

    /// Messages on the channels that promise something.
    fn talk(&mut self, now: Instant) {
        self.turn = self.turn.wrapping_add(1);
        let endpoint = &mut self.station.endpoint;
        for (connection, guest) in self.guests.iter_mut().filter(|(_, guest)| !guest.is_over) {
            for channel in turns(self.turn) {
                if endpoint.queued(*connection, *channel).1 > QUEUE_MAX {
                    continue;
                }
                let message = guest.sent.message(*channel, false);
                let _ = endpoint.send(now, *connection, *channel, &message);
            }
        }
    }

    /// From connecting to the result.
    fn follow_match(&mut self, now: Instant) {
        let waited = now - self.since;
        let all = self.guests.len() >= self.seated.len();
        match self.phase {
            Phase::Connecting if all || waited > CONNECT => {
                if self.guests.len() < 2 {
                    return self.end(now, Outcome::Cancelled);
                }
                let present: Vec<AccountId> =
                    self.guests.values().map(|guest| guest.account).collect();
                self.left = self
                    .seated
                    .iter()
                    .filter(|seat| !present.contains(seat))
                    .copied()
                    .collect();
                self.seated.retain(|seat| present.contains(seat));
                self.phase = Phase::Running;
                self.since = now;
            }
            Phase::Running if waited > self.length || self.game.is_over() => {
                self.end(now, Outcome::Finished);
            }
            Phase::Connecting if self.game.is_over() => self.end(now, Outcome::Cancelled),
            _ => {}
        }
    }

    fn end(&mut self, now: Instant, outcome: Outcome) {
        if self.result.is_some() {
            return;
        }
        let points = |(account, points): (&AccountId, i64)| PlayerResult {
            account: *account,
            points,
            team: None,
        };
        self.result = Some(MatchResult {
            match_id: self.match_id,
            outcome,
            players: self.seated.iter().zip(0..).map(points).collect(),
        });
        for (connection, guest) in &mut self.guests {
            guest.is_over = true;
            let last = guest.sent.message(ORDERED, true);
            let endpoint = &mut self.station.endpoint;
            let _ = endpoint.send(now, *connection, ORDERED, &last);
            endpoint.finish(now, *connection, super::CODE_OVER, "the match is over");
        }
    }
}

impl Guest {
    fn take(
        &mut self,
        server: ServerId,
        channel: u8,
        payload: &[u8],
        plant: &mut Plant,
    ) -> Result<(), String> {
        let account = self.account;
        let taken = self.received.take(channel, payload, plant);
        taken.map_err(|broken| format!("server {server} from account {account}: {broken}"))
    }
}

const TALK: Duration = Duration::from_millis(400);
/// Who does not keep up is told less.
const QUEUE_MAX: usize = 200;
/// How long players may take to come.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that is not needed any more says the last things.
const STOP: Duration = Duration::from_secs(5);
/// Unix time at the beginning of the simulation.
pub(super) const UNIX_ORIGIN_S: u64 = 1_700_000_000;
/// How wrong a server's clock may be.
const SKEW_S: u64 = 3;
