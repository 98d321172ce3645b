//! A player in the simulation: at the master, on the way to a match, or in it, over a real endpoint and with the game's client.

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse::session::{ClientEvent, ClientSession};
use muse_master_client::messages::FromMaster;
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_netcode::{EntityId, Tick};
use muse_relay::{Link, RoomCode};
use muse_transport::token::ConnectToken;
use muse_transport::{CloseReason, Connect, Endpoint, SeededEntropy};
use muse_wire::{Duration, Instant};

use super::aid::{Aid, Part, Plant};
use super::game::{Ground, Played};
use super::master::Heard;
use super::promise::{Agreement, GAME, Received, Sent, turns};
use super::station::Station;

/// A player and their program.
pub(super) struct Player {
    pub(super) account: AccountId,
    pub(super) address: SocketAddr,
    pub(super) standing: Standing,
    /// Since when.
    pub(super) since: Instant,
    /// The link to the master is up.
    pub(super) is_online: bool,
    /// Sends nonsense to the game server now and then.
    pub(super) is_hostile: bool,
    seat: Option<MatchConnection>,
    /// The time to leave at the latest, after the master has said that the match is over.
    leaves_at: Option<Instant>,
    asked_at: Instant,
    patience: Duration,
    skew_ppm: i64,
    random: fastrand::Rng,
    /// Their earlier states, for the report of a failure.
    past: VecDeque<(Instant, Standing, Option<ServerId>)>,
    pub(super) received: u64,
    pub(super) played: Duration,
}

/// The state of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The program does not run.
    Off,
    /// At the master, doing nothing.
    Idle,
    /// At the master, waiting for a match.
    Waits,
    /// A match was found, or lost; the player is to get or has got a seat.
    Seated,
    /// In a match.
    Plays,
}

/// A connection to a game server.
struct MatchConnection {
    match_id: MatchId,
    server: ServerId,
    station: Station,
    agreement: Agreement,
    session: ClientSession,
    game: Box<dyn Played>,
    sent: Sent,
    received: Received,
    talked_at: Instant,
}

/// The master's invitation of a player to a match.
pub(super) struct Ticket {
    pub(super) match_id: MatchId,
    pub(super) server: ServerId,
    pub(super) address: SocketAddr,
    /// The relay and the room in it, if that is where the server is, and whether a direct way is looked for.
    pub(super) room: Option<(SocketAddr, RoomCode, bool)>,
    pub(super) token: ConnectToken,
    pub(super) seed: u64,
}

impl Player {
    pub(super) fn new(account: AccountId, address: SocketAddr, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            account,
            address,
            standing: Standing::Idle,
            since: Instant::ZERO,
            is_online: true,
            is_hostile: random.u32(..12) == 0,
            seat: None,
            leaves_at: None,
            asked_at: Instant::ZERO,
            patience: Duration::from_millis(u64::from(random.u32(100..4_000))),
            skew_ppm: random.i64(-200..=200),
            random,
            past: VecDeque::new(),
            received: 0,
            played: Duration::ZERO,
        }
    }

    /// Returns the entities that the player knows of, and of which tick.
    pub(super) fn sees(&self) -> Option<(ServerId, Vec<(EntityId, Tick)>)> {
        let seat = self.seat.as_ref()?;
        let mut known = Vec::new();
        seat.game
            .sees(&mut |entity, tick| known.push((entity, tick)));
        Some((seat.server, known))
    }

    /// Returns the match that the player is in or on the way to.
    pub(super) fn match_id(&self) -> Option<MatchId> {
        self.seat.as_ref().map(|seat| seat.match_id)
    }

    /// Returns the server that the player is at or on the way to.
    pub(super) fn server(&self) -> Option<ServerId> {
        self.seat.as_ref().map(|seat| seat.server)
    }

    /// Returns their latest states, a line each.
    pub(super) fn tell_past(&self) -> impl Iterator<Item = String> {
        self.past.iter().map(|(at, standing, server)| {
            let server = server.map_or(String::new(), |server| format!(", server {server}"));
            let at = at.as_secs_f64();
            format!("{at:9.3} s  account {}: {standing:?}{server}", self.account)
        })
    }

    /// Kills the program.
    pub(super) fn crash(&mut self, now: Instant) {
        self.leave_seat();
        self.stand(now, Standing::Off);
    }

    /// Starts the program again.
    pub(super) fn start(&mut self, now: Instant) {
        self.stand(now, Standing::Idle);
        self.patience = Duration::from_millis(200);
    }

    /// The master says something.
    pub(super) fn hear(&mut self, now: Instant, message: &FromMaster) {
        match (message, self.standing) {
            (_, Standing::Off) => {}
            (FromMaster::Queue(_), Standing::Idle | Standing::Waits | Standing::Seated) => {
                self.leave_seat();
                self.stand(now, Standing::Waits);
            }
            (FromMaster::LeftQueue, Standing::Waits) => self.stand(now, Standing::Idle),
            (FromMaster::MatchFound { .. }, Standing::Idle | Standing::Waits) => {
                self.stand(now, Standing::Seated);
            }
            (FromMaster::MatchOver { match_id, .. }, Standing::Seated)
                if self.match_id().is_none_or(|own| own == *match_id) =>
            {
                self.leave_seat();
                self.stand(now, Standing::Idle);
            }
            // Who plays awaits what still arrives of its end, for the promises are about that, too.
            (FromMaster::MatchOver { match_id, .. }, Standing::Plays)
                if self.match_id() == Some(*match_id) =>
            {
                self.leaves_at.get_or_insert(now + FAREWELL);
            }
            _ => {}
        }
    }

    /// Handles the master's answer that there is neither a seat nor a ticket.
    pub(super) fn hear_nowhere(&mut self, now: Instant) {
        if matches!(self.standing, Standing::Waits | Standing::Seated) {
            self.leave_seat();
            self.stand(now, Standing::Idle);
        }
    }

    /// Takes the seat that the master gave.
    pub(super) fn take_seat(
        &mut self,
        now: Instant,
        ticket: Ticket,
        agreement: &Agreement,
        ground: &Ground,
    ) {
        let is_there = self.standing == Standing::Plays && self.match_id() == Some(ticket.match_id);
        if self.standing == Standing::Off || is_there {
            return;
        }
        self.leave_seat();
        let local = self.local(now);
        let entropy = SeededEntropy::danger_seeded(ticket.seed);
        let mut endpoint = Endpoint::new(agreement.config.clone(), entropy);
        let link = ticket.room.map(|(relay, code, direct)| {
            let mut seed = [0; 32];
            fastrand::Rng::with_seed(ticket.seed).fill(&mut seed);
            Link::join(local, relay, code, seed).direct(direct)
        });
        let address = match &link {
            Some(_) => Link::host_address(),
            None => ticket.address,
        };
        let Ok(connection) = endpoint.connect(local, address, Connect::token(ticket.token)) else {
            return;
        };
        self.seat = Some(MatchConnection {
            match_id: ticket.match_id,
            server: ticket.server,
            station: Station::new(endpoint, link),
            agreement: agreement.clone(),
            session: ClientSession::new(agreement.protocol.clone(), connection),
            game: ground.play(local, self.account, ticket.seed),
            sent: Sent::default(),
            received: Received::default(),
            talked_at: now,
        });
        self.stand(now, Standing::Seated);
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        let local = self.local(now);
        if let Some(seat) = &mut self.seat {
            seat.station.handle_datagram(local, from, payload);
        }
    }

    /// Lets time pass until `now`; says what the player tells the master, or which promise was broken.
    pub(super) fn step(&mut self, now: Instant, aid: &mut Aid) -> Result<Option<Heard>, String> {
        self.take_events(now, aid)?;
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.leave_seat();
            self.stand(now, Standing::Idle);
        }
        self.play(now, aid);
        let local = self.local(now);
        if let Some(seat) = &mut self.seat {
            seat.station.handle_time(local);
            seat.station.send(local, self.address, &mut aid.post);
        }
        aid.meter.lap(Part::PlayerTransport);
        Ok(self.ask(now))
    }

    /// Returns what the player says to the master, if it can be reached: repeated, since the master may have been down.
    fn ask(&mut self, now: Instant) -> Option<Heard> {
        if !self.is_online || now < self.asked_at + ASK_AGAIN {
            return None;
        }
        let heard = match self.standing {
            Standing::Idle if now > self.since + self.patience => {
                self.patience = Duration::from_millis(u64::from(self.random.u32(100..4_000)));
                self.stand(now, Standing::Waits);
                Heard::Play(self.account)
            }
            Standing::Waits => Heard::Play(self.account),
            Standing::Seated if self.seat.is_none() => Heard::Where(self.account),
            _ => return None,
        };
        self.asked_at = now;
        Some(heard)
    }

    fn take_events(&mut self, now: Instant, aid: &mut Aid) -> Result<(), String> {
        let local = self.local(now);
        let mut buffer = Vec::new();
        loop {
            let Some(seat) = &mut self.seat else {
                return Ok(());
            };
            let Some(event) = seat.station.endpoint.poll_event(&mut buffer) else {
                return Ok(());
            };
            match seat.session.handle_event(event) {
                Some(ClientEvent::Connected) => self.stand(now, Standing::Plays),
                Some(ClientEvent::Packet(packet)) => {
                    aid.meter.lap(Part::PlayerTransport);
                    seat.game.handle_packet(local, packet);
                    aid.meter.lap(Part::PlayerGame);
                }
                Some(ClientEvent::Received(message)) => match message.channel().number() {
                    GAME => {
                        aid.meter.lap(Part::PlayerTransport);
                        seat.game.handle_message(message.bytes());
                        aid.meter.lap(Part::PlayerGame);
                    }
                    channel => {
                        seat.take(self.account, channel, message.bytes(), &mut aid.plant)?;
                    }
                },
                Some(ClientEvent::Ended(error)) => {
                    let standing = match error {
                        muse::Error::Closed(CloseReason::ByPeer { code, .. })
                            if code == super::CODE_OVER =>
                        {
                            seat.close(self.account)?;
                            Standing::Idle
                        }
                        // Lost: the master knows where the player belongs.
                        _ => Standing::Seated,
                    };
                    self.leave_seat();
                    self.stand(now, standing);
                }
                _ => {}
            }
        }
    }

    /// Sends inputs and messages.
    fn play(&mut self, now: Instant, aid: &mut Aid) {
        let local = self.local(now);
        let is_playing = self.standing == Standing::Plays;
        let Some(seat) = self.seat.as_mut().filter(|_| is_playing) else {
            return;
        };
        let (endpoint, session) = (&mut seat.station.endpoint, &mut seat.session);
        let channel = seat.agreement.channel(GAME);
        while let Some(message) = seat.game.poll_message() {
            let _ = session.send_bytes(local, endpoint, channel, &message);
        }
        if seat.game.due().is_some_and(|at| at <= local) {
            aid.meter.lap(Part::PlayerTransport);
            let (random, is_hostile) = (&mut self.random, self.is_hostile);
            seat.game.play(local, &mut |packet| {
                if is_hostile && random.u8(..20) == 0 {
                    let at = random.u32(..packet.len().max(1) as u32) as usize;
                    packet[at] ^= random.u8(1..);
                }
                // A connection that closes takes nothing more.
                let _ = session.send_packet(local, endpoint, packet);
            });
            aid.meter.lap(Part::PlayerGame);
        }
        if now < seat.talked_at + TALK {
            return;
        }
        seat.talked_at = now;
        for channel in turns((now.as_millis() / TALK.as_millis()) as u32) {
            if endpoint.queued(session.connection(), *channel).1 > QUEUE_MAX {
                continue;
            }
            let message = seat.sent.message(*channel, false);
            let channel = seat.agreement.channel(*channel);
            let sent = session.send_bytes(local, endpoint, channel, &message);
            if sent.is_err() {
                // It was not taken, so it does not count; what was counted is over with the connection.
                break;
            }
        }
    }

    fn leave_seat(&mut self) {
        self.leaves_at = None;
        if let Some(seat) = self.seat.take() {
            self.received += seat.received.count();
        }
    }

    fn stand(&mut self, now: Instant, standing: Standing) {
        if self.standing == Standing::Plays {
            self.played += now - self.since;
        }
        if self.standing != standing {
            self.since = now;
        }
        self.standing = standing;
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        let server = self.server();
        self.past.push_back((now, standing, server));
    }

    /// The player's own clock, which is a little faster or slower, and started at another time.
    fn local(&self, now: Instant) -> Instant {
        let micros = now.as_micros() as i64;
        Instant::from_micros(
            (micros + micros * self.skew_ppm / 1_000_000) as u64
                + 5_000_000
                + self.account.0 * 1_000,
        )
    }
}

impl MatchConnection {
    fn take(
        &mut self,
        account: AccountId,
        channel: u8,
        payload: &[u8],
        plant: &mut Plant,
    ) -> Result<(), String> {
        let taken = self.received.take(channel, payload, plant);
        taken.map_err(|broken| self.tell(account, &broken))
    }

    /// The match ended in order: has everything come?
    fn close(&self, account: AccountId) -> Result<(), String> {
        let closed = self.received.close();
        closed.map_err(|broken| self.tell(account, &broken))
    }

    fn tell(&self, account: AccountId, broken: &str) -> String {
        format!("account {account} from server {}: {broken}", self.server)
    }
}

/// The interval at which requests to the master are repeated.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// The time for which a player waits for the end of a match that the master says is over.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);
const TALK: Duration = Duration::from_millis(400);
const QUEUE_MAX: usize = 200;
const PAST_MAX: usize = 12;
