//! A match on a game server: the player's side on top of a [`Wire`].

use muse::SystemEntropy;
use muse::drivers::Clock;
use muse::transport::{Config, Connect};
use muse::wire::{Duration, Instant};
use muse_biobot::net::{MatchClient, MatchNews, protocol};
use muse_biobot::{FromPlayer, Player, ToPlayer};
use serde_json::json;

use crate::conditioned::Weather;
use crate::events::{self, Events};
use crate::hands::Hands;
use crate::wire::Wire;

/// A connection to a game server, and the match on it.
#[derive(Debug)]
pub struct Online {
    wire: Wire,
    client: MatchClient,
    state: State,
    rates: Rates,
    /// Tells how long work takes, whatever the time of the game is.
    clock: Clock,
}

/// State of the connection.
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
        let entropy = SystemEntropy::new().map_err(|error| error.to_string())?;
        let wire = Wire::connect(now, config, how, entropy, unix_s);
        let wire = wire.map_err(|error| error.to_string())?;
        Ok(Self {
            client: MatchClient::new(wire.connection(), name, None),
            wire,
            state: State::Connecting,
            clock: Clock::start(),
            rates: Rates {
                since: now,
                ..Rates::default()
            },
        })
    }

    /// The page has built the level: play.
    pub fn load(&mut self, now: Instant) {
        self.client.load(now);
    }

    /// The session received this.
    pub fn handle_datagram(&mut self, now: Instant, bytes: Vec<u8>) {
        self.wire.handle_datagram(now, bytes);
    }

    /// Does everything that is due.
    pub fn advance(&mut self, now: Instant, hands: &mut Hands, events: &mut Events) {
        self.wire.advance(now);
        let mut buffer = Vec::new();
        let from = self.clock.now();
        while let Some(event) = self.wire.poll_event(&mut buffer) {
            match self.client.handle_event(now, event) {
                Some(MatchNews::Welcomed(ToPlayer::Welcome {
                    slot, mode, seed, ..
                })) => {
                    if let Some(level) = self.client.level() {
                        events.welcome(slot, mode, seed, level);
                    }
                }
                Some(MatchNews::Connected) => {
                    self.state = State::Connected;
                    events.push(json!({"type": "connected", "link": "memory", "encrypted": true}));
                }
                Some(MatchNews::Interrupted) => {
                    self.state = State::Interrupted;
                    events.push(json!({"type": "interrupted"}));
                }
                Some(MatchNews::Resumed) => {
                    self.state = State::Connected;
                    events.push(json!({"type": "resumed", "link": "memory"}));
                }
                Some(MatchNews::Ended(error)) => {
                    self.state = State::Over;
                    events.push(events::ended(&error));
                }
                _ => {}
            }
        }
        self.say(now, hands);
        if let Some(player) = self.client.player_mut() {
            player.handle_cost(now, self.clock.now().saturating_since(from));
        }
        self.measure(now);
    }

    /// Returns the next datagram that the session is to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.wire.poll_transmit(now)
    }

    /// When to call [`advance`](Self::advance) next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        [self.wire.poll_timeout(), self.client.poll_timeout()]
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
        if let Some(player) = self.client.player_mut() {
            player.send(message);
        }
    }

    /// Tells the server that we go.
    pub fn leave(&mut self, now: Instant) {
        self.wire.close(now);
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// The player's side, once the page has built the level.
    pub fn player_mut(&mut self) -> Option<&mut Player> {
        self.client.player_mut()
    }

    /// Bytes a second, received and sent.
    pub fn bytes_per_second(&self) -> (f32, f32) {
        self.rates.per_second
    }

    fn say(&mut self, now: Instant, hands: &mut Hands) {
        if self.state == State::Over {
            return;
        }
        let endpoint = self.wire.endpoint_mut();
        self.client.send_messages(now, endpoint);
        while self.client.send_packet(now, endpoint, hands.command()) {
            hands.taken();
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

/// Returns the settings of connections, the same as the game server's.
pub fn config() -> Config {
    protocol().0.config()
}
