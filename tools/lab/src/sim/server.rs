//! A game server in the simulation: a real endpoint, by itself or behind a relay, and a match on it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse::session::{ServerEvent, ServerSession};
use muse_master_client::messages::{MatchResult, Outcome, Phase, PlayerResult, Report};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_netcode::{ClientId, EntityId, Tick};
use muse_relay::{Link, RoomCode, RoomKey};
use muse_transport::token::TokenVerifier;
use muse_transport::{Endpoint, SeededEntropy, ServerKey, ServerOptions, ServerPublicKey};
use muse_wire::{Duration, Instant};

use super::aid::{Aid, Part, Plant, Posted};
use super::game::{Hosted, Whom};
use super::promise::{Agreement, GAME, ORDERED, Received, Sent, turns};
use super::station::Station;

/// A process that hosts one match.
pub(super) struct ServerProcess {
    pub(super) id: ServerId,
    pub(super) address: SocketAddr,
    pub(super) match_id: MatchId,
    pub(super) key: ServerPublicKey,
    /// At the relay, if that is where it is reached.
    pub(super) room: Option<RoomCode>,
    station: Station,
    agreement: Agreement,
    session: ServerSession,
    game: Box<dyn Hosted>,
    places: u8,
    seated: Vec<AccountId>,
    guests: BTreeMap<ClientId, ConnectedPlayer>,
    left: Vec<AccountId>,
    phase: Phase,
    since: Instant,
    length: Duration,
    pub(super) result: Option<MatchResult>,
    pub(super) said_at: Instant,
    talked_at: Instant,
    turn: u32,
    /// It was told to end, and does so when its players have gone, or then.
    stops_at: Option<Instant>,
    pub(super) received: u64,
}

struct ConnectedPlayer {
    account: AccountId,
    sent: Sent,
    received: Received,
    is_over: bool,
}

/// The settings of a new server.
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

impl ServerProcess {
    pub(super) fn new(
        now: Instant,
        opening: Opening,
        agreement: &Agreement,
        verifier: TokenVerifier,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(opening.seed);
        let mut entropy = SeededEntropy::danger_seeded(opening.seed);
        let key = ServerKey::generate(&mut entropy);
        let public = key.public();
        let mut endpoint = Endpoint::new(agreement.config.clone(), entropy);
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
            agreement: agreement.clone(),
            session: ServerSession::new(agreement.protocol.clone()),
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
            let endpoint = &mut self.station.endpoint;
            for client in self.guests.keys() {
                let text = "the server closes";
                self.session.disconnect(now, endpoint, *client, 4, text);
            }
        }
    }

    /// Returns the accounts that are connected.
    pub(super) fn present(&self) -> Vec<u64> {
        self.guests.values().map(|guest| guest.account.0).collect()
    }

    /// True if its process ends.
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

    /// True if a player was allowed to see an entity at a tick.
    pub(super) fn shows(&self, account: AccountId, entity: EntityId, tick: Tick) -> bool {
        self.game.shows(account, entity, tick)
    }

    fn take_events(&mut self, now: Instant, aid: &mut Aid) -> Result<(), String> {
        let mut buffer = Vec::new();
        while let Some(event) = self.station.endpoint.poll_event(&mut buffer) {
            let endpoint = &mut self.station.endpoint;
            match self.session.handle_event::<()>(now, endpoint, event) {
                Some(ServerEvent::Joined(client)) => self.welcome(now, client),
                Some(ServerEvent::Left(client, _)) => self.dismiss(client),
                Some(ServerEvent::Packet(client, packet)) if self.guests.contains_key(&client) => {
                    aid.meter.lap(Part::ServerTransport);
                    self.game.handle_packet(now, client, packet);
                    aid.meter.lap(Part::ServerGame);
                }
                Some(ServerEvent::Received(client, message)) => {
                    let Some(guest) = self.guests.get_mut(&client) else {
                        continue;
                    };
                    match message.channel().number() {
                        GAME => {
                            aid.meter.lap(Part::ServerTransport);
                            self.game.handle_message(client, message.bytes());
                            aid.meter.lap(Part::ServerGame);
                        }
                        channel => {
                            guest.take(self.id, channel, message.bytes(), &mut aid.plant)?;
                            self.received += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn welcome(&mut self, now: Instant, client: ClientId) {
        // An account that comes back by another connection keeps its number.
        self.dismiss(client);
        let account = self.session.info(client).map_or(0, |info| info.account);
        let account = AccountId(account);
        let is_ending = self.result.is_some() || self.stops_at.is_some();
        let endpoint = &mut self.station.endpoint;
        if !self.seated.contains(&account) || is_ending {
            return self.session.disconnect(now, endpoint, client, 2, "no seat");
        }
        if !self.game.join(client, account) {
            return self.session.disconnect(now, endpoint, client, 3, "full");
        }
        let guest = ConnectedPlayer {
            account,
            sent: Sent::default(),
            received: Received::default(),
            is_over: false,
        };
        self.guests.insert(client, guest);
    }

    fn dismiss(&mut self, client: ClientId) {
        if self.guests.remove(&client).is_some() {
            self.game.leave(client);
        }
    }

    fn tick(&mut self, now: Instant) {
        let (endpoint, session) = (&mut self.station.endpoint, &mut self.session);
        let (guests, channel) = (&self.guests, self.agreement.channel(GAME));
        // A connection that closes takes nothing more.
        self.game.tick(now, &mut |whom, bytes| match whom {
            Whom::Packet(client) => {
                let _ = session.send_packet(now, endpoint, client, bytes);
            }
            Whom::Message(to) => {
                let meant = |client: &&ClientId| to.is_none_or(|to| to == **client);
                for client in guests.keys().filter(meant) {
                    let _ = session.send_bytes(now, endpoint, *client, channel, bytes);
                }
            }
        });
    }

    /// Messages on the channels that promise something.
    fn talk(&mut self, now: Instant) {
        self.turn = self.turn.wrapping_add(1);
        let endpoint = &mut self.station.endpoint;
        for (client, guest) in self.guests.iter_mut().filter(|(_, guest)| !guest.is_over) {
            let Some(connection) = self.session.connection(*client) else {
                continue;
            };
            for channel in turns(self.turn) {
                if endpoint.queued(connection, *channel).1 > QUEUE_MAX {
                    continue;
                }
                let message = guest.sent.message(*channel, false);
                let channel = self.agreement.channel(*channel);
                let session = &mut self.session;
                let _ = session.send_bytes(now, endpoint, *client, channel, &message);
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
        let (endpoint, session) = (&mut self.station.endpoint, &mut self.session);
        let channel = self.agreement.channel(ORDERED);
        for (client, guest) in &mut self.guests {
            guest.is_over = true;
            let last = guest.sent.message(ORDERED, true);
            let _ = session.send_bytes(now, endpoint, *client, channel, &last);
            let text = "the match is over";
            session.finish(now, endpoint, *client, super::CODE_OVER, text);
        }
    }
}

impl ConnectedPlayer {
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
/// A client with a longer queue is sent less.
const QUEUE_MAX: usize = 200;
/// The time within which players have to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// The time that a server which is no longer needed has for its last messages.
const STOP: Duration = Duration::from_secs(5);
/// Unix time at the beginning of the simulation.
pub(super) const UNIX_ORIGIN_S: u64 = 1_700_000_000;
/// The largest error of a server's clock.
const SKEW_S: u64 = 3;
