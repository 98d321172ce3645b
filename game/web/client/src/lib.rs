//! The browser's side of Biobot, for a Worker.
//!
//! One [`Client`] does connection, clock, prediction, interpolation and the life with the master; the Worker gives it datagrams, texts
//! and the time, and takes datagrams, texts and frames. Nothing here touches a socket or a timer, so all of it runs in native tests too.
//!
//! - [`frame`] is the layout of what the page draws;
//! - [`online`] is a match on a server, over [`wire`]; [`offline`] a match in this program alone; [`watched`] a recorded one;
//! - [`conditioned`] are the sliders of the net graph;
//! - [`master`] is the way to a match; [`trial`] a match that plays itself, to compare programs by.

pub mod conditioned;
pub mod events;
pub mod frame;
pub mod hands;
pub mod master;
pub mod offline;
pub mod online;
pub mod trial;
pub mod watched;
pub mod wire;

use muse::transport::{Connect, ServerPublicKey};
use muse::wire::Instant;
use muse_biobot::messages::{CHAT_BYTES_MAX, clean};
use muse_biobot::player::{Seen, Switches};
use muse_biobot::{FromPlayer, Player};
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::conditioned::Weather;
use crate::events::Events;
use crate::frame::{Connection, Happenings, flags};
use crate::hands::Hands;
use crate::master::Master;
use crate::offline::{Offline, Wanted};
use crate::online::{Online, State};
use crate::watched::Watched;

/// Everything that a Worker runs.
///
/// Times are milliseconds of `performance.now()`. After anything was given to it: [`advance`](Self::advance), then
/// [`poll_event`](Self::poll_event), [`poll_master_action`](Self::poll_master_action) and [`poll_transmit`](Self::poll_transmit) until they
/// return nothing; again when [`poll_timeout`](Self::poll_timeout) has passed.
///
/// ```
/// let mut client = muse_biobot_web::Client::new();
/// client.start_practice(0.0, r#"{"game":"cooperative","name":"Ada","bots":1}"#);
/// for now in 0..100 {
///     client.advance(f64::from(now) * 20.0);
/// }
/// assert!(client.frame(2_000.0).is_some());
/// let mut events = std::iter::from_fn(|| client.poll_event(2_000.0));
/// assert!(events.any(|event| event.contains("welcome")));
/// ```
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Client {
    game: Game,
    hands: Hands,
    events: Events,
    happenings: Happenings,
    master: Option<Master>,
    weather: Weather,
    switches: Switches,
    link: u8,
}

/// The match that is played or watched.
#[derive(Debug, Default)]
enum Game {
    #[default]
    Nothing,
    Offline(Box<Offline>),
    Online(Box<Online>),
    Watched(Box<Watched>),
}

/// A message of the page that concerns the client alone; see `protocol.ts`.
#[derive(Debug, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
enum FromPage {
    Loaded,
    Chat {
        text: String,
    },
    Vote {
        choice: Choice,
    },
    Conditions {
        delay_ms: f32,
        jitter_ms: f32,
        loss_percent: f32,
    },
    Switches {
        prediction: bool,
        interpolation: bool,
        lag_compensation: bool,
    },
    Play {
        preferences: serde_json::Value,
    },
    LeaveQueue,
    LeaveMatch,
    Replay {
        speed: Option<f64>,
        tick: Option<f64>,
        slot: Option<u8>,
    },
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    Continue,
    Finish,
}

#[wasm_bindgen]
impl Client {
    /// A client that does nothing yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Of the program.
    pub fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// Begins a match without a server; `wanted` is `StartPractice` of `protocol.ts`.
    #[wasm_bindgen(js_name = startPractice)]
    pub fn start_practice(&mut self, now: f64, wanted: &str) {
        let wanted: Wanted = match serde_json::from_str(wanted) {
            Ok(wanted) => wanted,
            Err(error) => {
                let text = format!("This practice cannot be had: {error}");
                self.events.push(json!({"type": "error", "text": text}));
                return;
            }
        };
        let now = instant(now);
        let mut offline = Offline::start(now, &wanted, seed());
        offline.set_weather(now, self.weather);
        offline.player_mut().set_switches(self.switches);
        let level = std::sync::Arc::clone(offline.stage().level());
        self.begin(Game::Offline(Box::new(offline)));
        let connected = json!({"type": "connected", "link": "memory", "encrypted": false});
        self.events.push(connected);
        let seed = wanted.seed.unwrap_or(0);
        self.events
            .welcome(Some(0), level.mode, seed.into(), &level);
    }

    /// Begins to connect to a server, by its public key in hexadecimal digits or by a connect token. Returns what is wrong with
    /// either.
    #[wasm_bindgen(js_name = startServer)]
    pub fn start_server(
        &mut self,
        now: f64,
        unix_s: f64,
        name: &str,
        key: &str,
        token: &str,
    ) -> Option<String> {
        let how = match connect(key, token) {
            Ok(how) => how,
            Err(problem) => return Some(problem),
        };
        let now = instant(now);
        match Online::connect(now, unix_s as u64, name, how) {
            Ok(mut online) => {
                online.set_weather(now, self.weather);
                self.begin(Game::Online(Box::new(online)));
                None
            }
            Err(problem) => Some(problem),
        }
    }

    /// Opens a recorded match.
    #[wasm_bindgen(js_name = startReplay)]
    pub fn start_replay(&mut self, now: f64, bytes: Vec<u8>) {
        match Watched::open(instant(now), bytes) {
            Ok(watched) => {
                watched.introduce(&mut self.events);
                self.begin(Game::Watched(Box::new(watched)));
            }
            Err(error) => {
                let text = format!("This recording cannot be shown: {error}");
                self.events.push(json!({"type": "error", "text": text}));
            }
        }
    }

    /// Leaves whatever is played.
    pub fn stop(&mut self, now: f64) {
        self.leave_server(now);
        self.begin(Game::Nothing);
    }

    /// Tells the server that we go; what it is told is sent by [`poll_transmit`](Self::poll_transmit), once.
    #[wasm_bindgen(js_name = leaveServer)]
    pub fn leave_server(&mut self, now: f64) {
        if let Game::Online(online) = &mut self.game
            && online.state() != State::Over
        {
            online.leave(instant(now));
        }
    }

    /// Sets the link that carries the packets: 1 WebTransport, 2 WebSocket.
    #[wasm_bindgen(js_name = setLink)]
    pub fn set_link(&mut self, link: u8) {
        self.link = link;
    }

    /// Sets the player's input; see [`Hands::set`].
    pub fn input(&mut self, forward: i8, right: i8, buttons: u8, weapon: u8, yaw: f32, pitch: f32) {
        self.hands
            .set((forward, right), buttons, weapon, (yaw, pitch));
    }

    /// A message of the page: `loaded`, `chat`, `vote`, `conditions`, `switches`, `play`, `leave-queue`, `leave-match`. Others are passed over.
    pub fn handle(&mut self, now: f64, message: &str) {
        let now = instant(now);
        let Ok(message) = serde_json::from_str(message) else {
            return;
        };
        match message {
            FromPage::Loaded => {
                if let Game::Online(online) = &mut self.game {
                    online.load(now);
                    if let Some(player) = online.player_mut() {
                        player.set_switches(self.switches);
                    }
                }
            }
            FromPage::Chat { text } => {
                let text = clean(text.trim(), CHAT_BYTES_MAX);
                if !text.is_empty() {
                    self.send(FromPlayer::Chat { text });
                }
            }
            FromPage::Vote { choice } => self.send(FromPlayer::Vote {
                go_on: choice == Choice::Continue,
            }),
            FromPage::Conditions {
                delay_ms,
                jitter_ms,
                loss_percent,
            } => self.set_weather(now, Weather::new(delay_ms, jitter_ms, loss_percent / 100.0)),
            FromPage::Switches {
                prediction,
                interpolation,
                lag_compensation,
            } => {
                self.switches = Switches {
                    prediction,
                    interpolation,
                    lag_compensation,
                };
                let switches = self.switches;
                if let Some(player) = self.player() {
                    player.set_switches(switches);
                }
            }
            FromPage::Play { preferences } => {
                if let Some(master) = &mut self.master {
                    let _ = master.queue(&preferences.to_string());
                }
            }
            FromPage::LeaveQueue => {
                if let Some(master) = &mut self.master {
                    master.leave_queue();
                }
            }
            FromPage::LeaveMatch => {
                if let Some(master) = &mut self.master {
                    master.leave_match();
                }
            }
            FromPage::Replay { speed, tick, slot } => {
                if let Game::Watched(watched) = &mut self.game {
                    watched.steer(speed, tick, slot);
                }
            }
        }
    }

    /// The session received a datagram.
    #[wasm_bindgen(js_name = handleDatagram)]
    pub fn handle_datagram(&mut self, now: f64, bytes: Vec<u8>) {
        if let Game::Online(online) = &mut self.game {
            online.handle_datagram(instant(now), bytes);
        }
    }

    /// Returns the next datagram that the session is to send.
    #[wasm_bindgen(js_name = pollTransmit)]
    pub fn poll_transmit(&mut self, now: f64) -> Option<Vec<u8>> {
        match &mut self.game {
            Game::Online(online) => online.poll_transmit(instant(now)),
            _ => None,
        }
    }

    /// Does everything that is due.
    pub fn advance(&mut self, now: f64) {
        let now = instant(now);
        match &mut self.game {
            Game::Nothing => {}
            Game::Offline(offline) => {
                let due = offline.player_mut().poll_timeout();
                offline.advance(now, self.hands.command());
                if due.is_some_and(|due| due <= now) {
                    self.hands.taken();
                }
            }
            Game::Online(online) => online.advance(now, &mut self.hands, &mut self.events),
            Game::Watched(watched) => watched.advance(now, &mut self.events),
        }
        if let Some(master) = &mut self.master {
            master.advance(now);
        }
    }

    /// Milliseconds until [`advance`](Self::advance) has something to do.
    #[wasm_bindgen(js_name = pollTimeout)]
    pub fn poll_timeout(&mut self, now: f64) -> f64 {
        let game = match &mut self.game {
            Game::Nothing | Game::Watched(_) => None,
            Game::Offline(offline) => offline.poll_timeout(),
            Game::Online(online) => online.poll_timeout(),
        };
        let master = self.master.as_ref().and_then(Master::poll_timeout);
        let due = [game, master].into_iter().flatten().min();
        let wait = due.map(|due| due.saturating_since(instant(now)).as_micros());
        wait.map_or(IDLE_MS, |micros| (micros as f64 / 1_000.0).min(IDLE_MS))
    }

    /// The next event, as JSON of `GameEvent` in `protocol.ts`.
    #[wasm_bindgen(js_name = pollEvent)]
    pub fn poll_event(&mut self, now: f64) -> Option<String> {
        let event = self.events.poll();
        let of_master = || self.master.as_mut()?.poll_event(instant(now));
        event.or_else(of_master).map(|event| event.to_string())
    }

    /// Everything to draw, as [`frame`] lays it out; nothing before there is a match.
    pub fn frame(&mut self, now: f64) -> Option<Vec<f32>> {
        let mut connection = self.connection(now);
        let happenings = &mut self.happenings;
        let player = match &mut self.game {
            Game::Nothing => return None,
            Game::Watched(watched) => {
                connection.slot = Some(watched.slot());
                let (shown, level) = watched.frame();
                return Some(frame::write(shown, level, happenings, &connection));
            }
            Game::Offline(offline) => offline.player_mut(),
            Game::Online(online) => online.player_mut()?,
        };
        player.frame(instant(now));
        for seen in &player.last_frame().seen {
            if let Seen::Message(message) = seen {
                self.events.message(message, player.last_frame().time.tick);
            }
        }
        connection.slot = player.slot();
        connection.correction = correction(player);
        let shown = player.last_frame();
        Some(frame::write(shown, player.level(), happenings, &connection))
    }
}

/// With the master.
#[wasm_bindgen]
impl Client {
    /// Begins to connect to the master, and stays with it.
    #[wasm_bindgen(js_name = masterStart)]
    pub fn master_start(&mut self, now: f64) {
        self.master = Some(Master::start(instant(now), seed()));
    }

    /// Leaves the master and everything that came of it.
    #[wasm_bindgen(js_name = masterStop)]
    pub fn master_stop(&mut self) {
        if let Some(master) = &mut self.master {
            master.stop();
        }
    }

    /// The WebSocket is open.
    #[wasm_bindgen(js_name = masterConnected)]
    pub fn master_connected(&mut self, now: f64) {
        if let Some(master) = &mut self.master {
            master.handle_connected(instant(now));
        }
    }

    /// The WebSocket closed or could not be opened.
    #[wasm_bindgen(js_name = masterLost)]
    pub fn master_lost(&mut self, now: f64) {
        if let Some(master) = &mut self.master {
            master.handle_lost(instant(now));
        }
    }

    /// The master said this.
    #[wasm_bindgen(js_name = masterMessage)]
    pub fn master_message(&mut self, now: f64, text: &str) {
        if let Some(master) = &mut self.master {
            master.handle_message(instant(now), text);
        }
    }

    /// The game server of the master's let us in.
    #[wasm_bindgen(js_name = masterGameConnected)]
    pub fn master_game_connected(&mut self) {
        if let Some(master) = &mut self.master {
            master.handle_game_connected();
        }
    }

    /// The game server of the master's is lost.
    #[wasm_bindgen(js_name = masterGameLost)]
    pub fn master_game_lost(&mut self, now: f64) {
        if let Some(master) = &mut self.master {
            master.handle_game_lost(instant(now));
        }
    }

    /// Returns the next thing to do for the connection with the master; see [`Master::poll_action`].
    #[wasm_bindgen(js_name = pollMasterAction)]
    pub fn poll_master_action(&mut self) -> Option<String> {
        let action = self.master.as_mut()?.poll_action()?;
        Some(action.to_string())
    }
}

impl Client {
    fn connection(&self, now: f64) -> Connection {
        let (flags, link, bytes) = match &self.game {
            Game::Nothing => (0, 0, None),
            Game::Offline(_) => (flags::CONNECTED | flags::PRACTICE, 0, None),
            Game::Watched(_) => (flags::CONNECTED | flags::REPLAY, 0, None),
            Game::Online(online) => {
                let flags = match online.state() {
                    State::Connected => flags::CONNECTED,
                    State::Interrupted => flags::INTERRUPTED,
                    State::Connecting | State::Over => 0,
                };
                (flags, self.link, Some(online.bytes_per_second()))
            }
        };
        Connection {
            flags,
            link,
            bytes,
            weather: self.weather,
            switches: self.switches,
            slot: None,
            time_ms: now as f32,
            correction: 0.0,
        }
    }

    fn begin(&mut self, game: Game) {
        self.game = game;
        self.hands.let_go();
        self.happenings = Happenings::default();
    }

    fn player(&mut self) -> Option<&mut Player> {
        match &mut self.game {
            Game::Nothing | Game::Watched(_) => None,
            Game::Offline(offline) => Some(offline.player_mut()),
            Game::Online(online) => online.player_mut(),
        }
    }

    fn send(&mut self, message: FromPlayer) {
        match &mut self.game {
            Game::Nothing | Game::Watched(_) => {}
            Game::Offline(offline) => offline.send(message),
            Game::Online(online) => online.send(message),
        }
    }

    fn set_weather(&mut self, now: Instant, weather: Weather) {
        self.weather = weather;
        match &mut self.game {
            Game::Nothing | Game::Watched(_) => {}
            Game::Offline(offline) => offline.set_weather(now, weather),
            Game::Online(online) => online.set_weather(now, weather),
        }
    }
}

/// Chooses how to connect: a token names its server, a key is checked against the server.
fn connect(key: &str, token: &str) -> Result<Connect, String> {
    if !token.is_empty() {
        let token = muse::transport::token::ConnectToken::from_text(token);
        return token
            .map(Connect::token)
            .map_err(|error| format!("the connect token is damaged: {error}"));
    }
    key.parse()
        .map(|key: ServerPublicKey| Connect::pinned(key))
        .map_err(|error| error.to_string())
}

/// Distance between the shown and the predicted place of the own robot.
fn correction(player: &Player) -> f32 {
    let (Some(own), Some(predicted)) = (&player.last_frame().own, player.predicted()) else {
        return 0.0;
    };
    own.robot.feet().distance(predicted.feet())
}

/// Returns a seed for what need not be secret.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness nothing can connect, which says so itself.
    let _ = muse::drivers::fill_random(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn instant(ms: f64) -> Instant {
    Instant::from_micros((ms * 1_000.0) as u64)
}

/// Milliseconds after which it is asked again at the latest.
const IDLE_MS: f64 = 1_000.0;
