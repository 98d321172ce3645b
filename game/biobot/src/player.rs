//! A client's whole side: prediction, others, devices, messages, figures; for browser, bots and tests alike.

mod figures;
mod frame;
pub(crate) mod intent;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use glam::Vec3;
use muse::netcode::interpolation::InterpolationConfig;
use muse::netcode::prediction::EffectChange;
use muse::netcode::smoothing::SmoothingConfig;
use muse::netcode::{Client, EntityId, PacketError, Remotes, Tick, Update};
use muse::wire::{Duration, Instant};

use crate::level::Level;
use crate::messages::{FromPlayer, Name, ToPlayer, VERSION};
use crate::rules::{Effect, Rules};
use crate::states::{Ball, Bolt, Device, Enemy, KindIds, Robot, Round, kinds_of};
use crate::{Command, session_config};
use figures::Figures;
pub use figures::NetStatistics;
pub use frame::{BallShown, BoltShown, DeviceShown, EnemyShown, Frame, OwnShown, RobotShown, Seen};
use intent::Intent;

/// The techniques that are on; all are unless a player wants to feel what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// One's own robot moves at once, ahead of the server's answer.
    pub prediction: bool,
    /// Others move smoothly between what has arrived.
    pub interpolation: bool,
    /// Shots are judged by what was on the screen.
    pub lag_compensation: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            prediction: true,
            interpolation: true,
            lag_compensation: true,
        }
    }
}

/// A client's side of a match.
///
/// Call [`handle_packet`](Self::handle_packet) and [`handle_message`](Self::handle_message) for what arrives,
/// [`poll_packet`](Self::poll_packet) and [`poll_message`](Self::poll_message) until `None`, and draw
/// [`frame`](Self::frame). [`Practice`](crate::Practice) has both sides in one program.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::{Command, Level, Player};
/// use muse::wire::Instant;
/// let now = Instant::from_secs(1);
/// let mut player = Player::new(now, Arc::new(Level::escape()), "Ada");
/// assert!(player.poll_message().is_some(), "it greets");
/// let mut buffer = [0; 1_200];
/// assert_eq!(player.poll_packet(now, Command::default(), &mut buffer), None, "the server has not been heard");
/// assert!(player.frame(now).own.is_none());
/// ```
pub struct Player {
    level: Arc<Level>,
    kinds: KindIds,
    rules: Rules,
    client: Client<Rules>,
    robots: Remotes<Robot>,
    enemies: Remotes<Enemy>,
    balls: Remotes<Ball>,
    bolts: BTreeMap<EntityId, Known<Bolt>>,
    /// For each device, the tick of the newest state.
    device_ticks: Vec<Option<Tick>>,
    device_states: Vec<Device>,
    round: Option<(Tick, Round)>,
    names: Vec<Name>,
    slot: Option<u8>,
    switches: Switches,
    seen: Vec<Seen>,
    shots: BTreeMap<EntityId, u8>,
    outbox: VecDeque<FromPlayer>,
    intent: Intent,
    frame: Frame,
    figures: Figures,
}

/// Something of which the server told, as long as it is shown.
#[derive(Clone, Debug)]
struct Known<S> {
    state: S,
    gone: Option<Tick>,
}

impl Player {
    /// A client that has heard nothing yet, on a level that it has loaded.
    pub fn new(now: Instant, level: Arc<Level>, name: &str) -> Self {
        let (all, kinds) = kinds_of(level.mode);
        let client = Client::new(session_config(), all, kinds.robot, robots_apart, now);
        let rules = Rules::new(Arc::clone(&level));
        let hello = FromPlayer::Hello {
            name: crate::messages::clean(name, crate::messages::NAME_BYTES_MAX),
            version: VERSION,
        };
        Self {
            robots: Remotes::new(kinds.robot, interpolation_of_robots(&client), robots_apart),
            enemies: Remotes::new(kinds.enemy, client.interpolation(), enemies_apart),
            balls: Remotes::new(kinds.ball, interpolation_of_balls(&client), balls_apart),
            bolts: BTreeMap::new(),
            device_ticks: vec![None; level.devices.len()],
            device_states: rules.surroundings.devices().to_vec(),
            round: None,
            names: Vec::new(),
            slot: None,
            switches: Switches::default(),
            seen: Vec::new(),
            shots: BTreeMap::new(),
            outbox: VecDeque::from([hello, FromPlayer::Loaded]),
            intent: Intent::new(Rules::new(Arc::clone(&level))),
            frame: Frame::default(),
            figures: Figures::new(now),
            kinds,
            client,
            rules,
            level,
        }
    }

    /// The level.
    pub fn level(&self) -> &Arc<Level> {
        &self.level
    }

    /// The netcode, to look at.
    pub const fn client(&self) -> &Client<Rules> {
        &self.client
    }

    /// Returns one's own slot; `None` before the welcome, and for one who only watches.
    pub const fn slot(&self) -> Option<u8> {
        self.slot
    }

    /// Returns the players.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// The match, as far as it is known.
    pub fn round(&self) -> Option<&Round> {
        self.round.as_ref().map(|(_, round)| round)
    }

    /// One's own robot as predicted: where the rules say that it is.
    pub fn predicted(&self) -> Option<&Robot> {
        self.client.predicted()
    }

    /// Returns the techniques that are on.
    pub const fn switches(&self) -> Switches {
        self.switches
    }

    /// Turns techniques on and off.
    pub const fn set_switches(&mut self, switches: Switches) {
        self.switches = switches;
    }

    /// Sends what is pressed even if it leads to nothing, as a modified client would: to try a server.
    pub const fn danger_send_everything(&mut self) {
        self.intent.set_everything(true);
    }

    /// Takes note of the time that [`handle_packet`](Self::handle_packet) took: a slow machine predicts fewer robots near the ball.
    pub fn handle_cost(&mut self, now: Instant, spent: Duration) {
        self.client.handle_cost(now, spent);
    }

    /// A packet of the netcode arrived.
    pub fn handle_packet(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PacketError> {
        self.figures.handle_in(now, bytes.len());
        let result = self.client.handle_packet(now, &mut self.rules, bytes);
        while let Some(update) = self.client.poll_update() {
            self.handle_update(&update);
        }
        // The game has no events of the netcode's; what came is let go.
        while self.client.poll_event().is_some() {}
        self.collect_effects();
        result
    }

    /// A message arrived.
    pub fn handle_message(&mut self, message: &ToPlayer) {
        match message {
            ToPlayer::Welcome { slot, movement, .. } => {
                self.slot = *slot;
                self.intent.set_movement(*movement);
                self.rules.set_movement(*movement);
            }
            ToPlayer::Names { names } => self.names.clone_from(names),
            _ => {}
        }
        if self.seen.len() < SEEN_MAX {
            self.seen.push(Seen::Message(message.clone()));
        }
    }

    /// A message arrived, as bytes; what is damaged is dropped.
    pub fn handle_message_bytes(&mut self, bytes: &[u8]) {
        if let Ok(message) = ToPlayer::decode(bytes) {
            self.handle_message(&message);
        }
    }

    /// Simulates what is due with what the player does now, and writes the next datagram to the front of `buffer`. Says how long it is;
    /// `None` when there is nothing more to do now.
    pub fn poll_packet(
        &mut self,
        now: Instant,
        command: Command,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let claim = match self.switches.lag_compensation && command.fire {
            true => command.claim.or_else(|| self.client.claim()),
            false => None,
        };
        let pressed = Command { claim, ..command };
        let mut robot = self.client.predicted().cloned();
        let intent = &mut self.intent;
        let input = |tick: Tick| intent.command(tick, pressed, robot.as_mut());
        let len = self.client.poll_packet(now, &mut self.rules, input, buffer);
        self.collect_effects();
        self.figures.handle_out(now, len?);
        len
    }

    /// Returns the time at which [`poll_packet`](Self::poll_packet) has something next; `None` until the server has been heard.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    /// The next message to the server.
    pub fn poll_message(&mut self) -> Option<FromPlayer> {
        self.outbox.pop_front()
    }

    /// Sends a message to the server.
    pub fn send(&mut self, message: FromPlayer) {
        if self.outbox.len() < OUTBOX_MAX {
            self.outbox.push_back(message);
        }
    }

    /// The view that a shot fired now would claim.
    pub fn claim(&self) -> Option<muse::netcode::Claim> {
        self.client.claim()
    }

    /// The device that one would use now, for a hint on the screen.
    pub fn usable(&mut self) -> Option<usize> {
        let robot = self.client.predicted()?.clone();
        let tick = self.client.clock().play_time()?.tick;
        self.rules.usable(&robot, tick)
    }

    fn handle_update(&mut self, update: &Update) {
        self.robots.handle_update(&self.client, update);
        self.enemies.handle_update(&self.client, update);
        self.balls.handle_update(&self.client, update);
        match *update {
            Update::State { entity, kind, tick } if kind == self.kinds.device.id() => {
                let state = self
                    .client
                    .receiver()
                    .state_at(self.kinds.device, entity, tick);
                if let Some(state) = state {
                    self.handle_device(tick, state);
                }
            }
            Update::State { entity, kind, tick } if kind == self.kinds.bolt.id() => {
                let state = self
                    .client
                    .receiver()
                    .state_at(self.kinds.bolt, entity, tick);
                if let Some(state) = state {
                    self.handle_bolt(entity, state);
                }
            }
            Update::State { entity, kind, tick } if kind == self.kinds.round.id() => {
                let newer = self.round.as_ref().is_none_or(|(known, _)| *known <= tick);
                let state = self
                    .client
                    .receiver()
                    .state_at(self.kinds.round, entity, tick);
                if let Some(state) = state.filter(|_| newer) {
                    self.round = Some((tick, state));
                }
            }
            Update::Despawned { entity, tick } => {
                self.shots.remove(&entity);
                if let Some(known) = self.bolts.get_mut(&entity) {
                    known.gone = Some(tick);
                }
            }
            _ => {}
        }
    }

    fn handle_device(&mut self, tick: Tick, state: Device) {
        let index = usize::from(state.index);
        let Some(known) = self.device_ticks.get_mut(index) else {
            return;
        };
        if known.is_none_or(|known| known <= tick) {
            *known = Some(tick);
            self.device_states[index] = state.clone();
            self.intent.surroundings_mut().set(state.clone());
            self.rules.surroundings.set(state);
        }
    }

    fn handle_bolt(&mut self, entity: EntityId, bolt: Bolt) {
        let known = Known {
            state: bolt,
            gone: None,
        };
        self.bolts.insert(entity, known);
    }

    /// Shows the events of one's own steps at once, and takes back those that the server does not agree with.
    fn collect_effects(&mut self) {
        while let Some(effect) = self.client.poll_effect() {
            let tick = effect.tick;
            match (effect.change, effect.event) {
                (EffectChange::Emitted, event) => {
                    if self.seen.len() < SEEN_MAX {
                        self.seen.push(Seen::Own {
                            tick,
                            effect: event,
                        });
                    }
                }
                (EffectChange::Cancelled, event) => self.take_back(tick, event),
                // The server's robot knows whether it fired; of the rest its devices tell, and steps leave no trace.
                (EffectChange::Contradicted, event) if self.missed(tick, &event) => {
                    self.take_back(tick, event);
                }
                (EffectChange::Confirmed | EffectChange::Contradicted, _) => {}
            }
        }
    }

    fn take_back(&mut self, tick: Tick, effect: Effect) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push(Seen::Cancelled { tick, effect });
        }
    }

    /// True for a shot that one's own robot did not fire at the server.
    fn missed(&self, tick: Tick, effect: &Effect) -> bool {
        let robot = self.client.player().and_then(|entity| {
            let (_, robot) = self.client.receiver().state(self.kinds.robot, entity)?;
            Some(robot)
        });
        let fired = robot.is_none_or(|robot| robot.kicked >= tick.0);
        matches!(effect, Effect::Fired { .. }) && !fired
    }
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player")
            .field("slot", &self.slot)
            .field("switches", &self.switches)
            .finish_non_exhaustive()
    }
}

/// Returns the visible distance between two states of a robot; another life is another place.
fn robots_apart(a: &Robot, b: &Robot) -> f32 {
    if a.lives != b.lives {
        return f32::MAX;
    }
    a.feet().distance(b.feet())
}

fn enemies_apart(a: &Enemy, b: &Enemy) -> f32 {
    Vec3::from(a.position).distance(b.position.into())
}

/// Returns the visible distance between two states of the ball; after it was put back it is at another place.
fn balls_apart(a: &Ball, b: &Ball) -> f32 {
    if a.serves != b.serves {
        return f32::MAX;
    }
    a.middle().distance(b.middle())
}

/// Returns how other robots are shown. After a kick-off everybody runs another way than they were predicted to: they are seen to go where they are, and do not
/// appear there.
pub fn interpolation_of_robots(client: &Client<Rules>) -> InterpolationConfig {
    let smoothing = SmoothingConfig::default()
        .time(Duration::from_millis(60))
        .snap_above(ROBOT_SNAP_ABOVE);
    client.interpolation().smoothing(smoothing)
}

/// Returns how balls are shown. One that somebody else kicked is soon metres from where it was predicted: it is seen to fly there, however far it is.
pub fn interpolation_of_balls(client: &Client<Rules>) -> InterpolationConfig {
    let smoothing = SmoothingConfig::default().snap_above(BALL_SNAP_ABOVE);
    client.interpolation().smoothing(smoothing)
}

/// Further than a robot gets in a second: then it was not heard of for long.
const ROBOT_SNAP_ABOVE: f32 = 10.0;
/// Further than the pitch is long: only a ball that was put back appears elsewhere at once.
const BALL_SNAP_ABOVE: f32 = 100.0;
/// Things to be seen that wait for a frame.
const SEEN_MAX: usize = 256;
/// Messages that wait to be sent.
const OUTBOX_MAX: usize = 64;
