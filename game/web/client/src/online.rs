//! A match on a game server: the player's side on top of a [`Wire`].

use std::sync::Arc;

use muse_biobot::{FromPlayer, Level, PROTOCOL, Player, ToPlayer};
use muse_transport::{ChannelConfig, Config, Connect, Delivery, Event};
use muse_wire::{Duration, Instant};
use serde_json::json;

use crate::conditioned::Weather;
use crate::entropy::BrowserEntropy;
use crate::events::{self, Events};
use crate::hands::Hands;
use crate::wire::Wire;

/// A connection to a game server, and the match on it.
#[derive(Debug)]
pub struct Online {
    wire: Wire,
    name: String,
    /// Known since the welcome.
    level: Option<Arc<Level>>,
    /// From the moment that the page has built the level.
    player: Option<Player>,
    /// What came before.
    early: Vec<ToPlayer>,
    state: State,
    rates: Rates,
    buffer: Vec<u8>,
}

/// How the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being made.
    Connecting,
    /// It is there.
    Connected,
    /// The server has not been heard for a while.
    Interrupted,
    /// It is over.
    Over,
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    since: Instant,
    from: (u64, u64),
    /// Received and sent in the last whole second.
    per_second: (f32, f32),
}

impl Online {
    /// Begins to connect.
    pub fn connect(now: Instant, unix_s: u64, name: &str, how: Connect) -> Result<Self, String> {
        let config = config().build().map_err(|error| error.to_string())?;
        let entropy = BrowserEntropy::new().map_err(|error| error.to_string())?;
        let wire = Wire::connect(now, config, how, entropy, unix_s);
        Ok(Self {
            wire: wire.map_err(|error| error.to_string())?,
            name: name.to_owned(),
            level: None,
            player: None,
            early: Vec::new(),
            state: State::Connecting,
            rates: Rates {
                since: now,
                ..Rates::default()
            },
            buffer: vec![0; PACKET_BYTES],
        })
    }

    /// The page has built the level: play.
    pub fn load(&mut self, now: Instant) {
        if let (None, Some(level)) = (&self.player, &self.level) {
            let mut player = Player::new(now, Arc::clone(level), &self.name);
            for message in self.early.drain(..) {
                player.handle_message(&message);
            }
            self.player = Some(player);
        }
    }

    /// The session received this.
    pub fn handle_datagram(&mut self, now: Instant, bytes: Vec<u8>) {
        self.wire.handle_datagram(now, bytes);
    }

    /// Does everything that is due.
    pub fn advance(&mut self, now: Instant, hands: &mut Hands, events: &mut Events) {
        self.wire.advance(now);
        let mut buffer = Vec::new();
        while let Some(event) = self.wire.poll_event(&mut buffer) {
            match event {
                Event::Message {
                    channel, payload, ..
                } => match channel {
                    PACKETS => {
                        if let Some(player) = &mut self.player {
                            // What is damaged or old is passed over; the netcode counts it.
                            let _ = player.handle_packet(now, payload);
                        }
                    }
                    _ => handle_message(
                        payload,
                        &mut self.level,
                        &mut self.player,
                        &mut self.early,
                        events,
                    ),
                },
                Event::Connected { .. } => {
                    self.state = State::Connected;
                    events.push(json!({"type": "connected", "link": "memory", "encrypted": true}));
                }
                Event::Interrupted { .. } => {
                    self.state = State::Interrupted;
                    events.push(json!({"type": "interrupted"}));
                }
                Event::Resumed { .. } => {
                    self.state = State::Connected;
                    events.push(json!({"type": "resumed", "link": "memory"}));
                }
                Event::Closed { reason, .. } => self.end(events, events::closed(&reason)),
                Event::Refused { reason, .. } => self.end(events, events::refused(&reason)),
                Event::Unanswered { .. } => self.end(events, events::unanswered()),
                _ => {}
            }
        }
        self.say(now, hands);
        self.measure(now);
    }

    /// What the session is to send next.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.wire.poll_transmit(now)
    }

    /// When to call [`advance`](Self::advance) next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let player = self.player.as_ref().and_then(Player::poll_timeout);
        [self.wire.poll_timeout(), player]
            .into_iter()
            .flatten()
            .min()
    }

    /// Worsens the link from now on.
    pub fn set_weather(&mut self, now: Instant, weather: Weather) {
        self.wire.set_weather(now, weather);
    }

    /// Says something to the server.
    pub fn send(&mut self, message: FromPlayer) {
        if let Some(player) = &mut self.player {
            player.send(message);
        }
    }

    /// Tells the server that we go.
    pub fn leave(&mut self, now: Instant) {
        self.wire.close(now);
    }

    /// How the connection is.
    pub fn state(&self) -> State {
        self.state
    }

    /// The player's side, once the page has built the level.
    pub fn player_mut(&mut self) -> Option<&mut Player> {
        self.player.as_mut()
    }

    /// Bytes a second, received and sent.
    pub fn bytes_per_second(&self) -> (f32, f32) {
        self.rates.per_second
    }

    fn end(&mut self, events: &mut Events, event: serde_json::Value) {
        self.state = State::Over;
        events.push(event);
    }

    fn say(&mut self, now: Instant, hands: &mut Hands) {
        let Some(player) = &mut self.player else {
            return;
        };
        if self.state == State::Over {
            return;
        }
        while let Some(message) = player.poll_message() {
            // A queue that is full means a server that is gone; the transport says so.
            let _ = self.wire.send(now, MESSAGES, &message.encode());
        }
        while let Some(len) = player.poll_packet(now, hands.command(), &mut self.buffer) {
            hands.taken();
            let _ = self.wire.send(now, PACKETS, &self.buffer[..len]);
        }
    }

    fn measure(&mut self, now: Instant) {
        let past = now.saturating_since(self.rates.since);
        if past < Duration::from_secs(1) {
            return;
        }
        let (sent, received) = self.wire.bytes();
        let seconds = past.as_secs_f64() as f32;
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f32 / seconds;
        self.rates = Rates {
            per_second: (
                rate(received, self.rates.from.0),
                rate(sent, self.rates.from.1),
            ),
            from: (received, sent),
            since: now,
        };
    }
}

/// The channels that both sides have; a server of Biobot has the same. Nothing heard for 10 s is the end of a connection.
pub fn config() -> Config {
    Config::new(u64::from(PROTOCOL))
        .schema(muse_biobot::schema())
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .message_max(muse_biobot::MESSAGE_MAX)
        .connection_memory(muse_biobot::CONNECTION_MEMORY)
        .endpoint_memory(muse_biobot::ENDPOINT_MEMORY)
        .keep_alive(Duration::from_millis(500))
        .silence(Duration::from_secs(2))
        .resume_within(Duration::from_secs(8))
}

fn handle_message(
    payload: &[u8],
    level: &mut Option<Arc<Level>>,
    player: &mut Option<Player>,
    early: &mut Vec<ToPlayer>,
    events: &mut Events,
) {
    let Ok(message) = ToPlayer::decode(payload) else {
        return;
    };
    if let ToPlayer::Welcome {
        slot, mode, seed, ..
    } = &message
        && level.is_none()
    {
        let built = Arc::new(Level::of(*mode));
        events.welcome(*slot, *mode, *seed, &built);
        *level = Some(built);
    }
    match player {
        Some(player) => player.handle_message(&message),
        None if early.len() < EARLY_MAX => early.push(message),
        None => {}
    }
}

/// Channel of the netcode's packets.
const PACKETS: u8 = 0;
/// Channel of messages.
const MESSAGES: u8 = 1;
/// Messages that may wait for the level.
const EARLY_MAX: usize = 64;
/// Bytes of the netcode's packets.
const PACKET_BYTES: usize = 4_096;
