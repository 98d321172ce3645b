//! The server's side of a match: authoritative, and without IO.

mod ball;
mod combat;
mod conduct;
mod devices;
mod past;
mod phases;
mod seats;

use std::collections::VecDeque;
use std::sync::Arc;

use muse::netcode::inputs::InputError;
use muse::netcode::{ClientId, EntityId, PacketError, Server, Tick};
use muse::wire::Instant;
use thiserror::Error;

use crate::cheats::{CheatConfig, Offence, PlayerReport, Report};
use crate::enemies::{Horde, HordeContext, RobotThere};
use crate::level::Level;
use crate::messages::{FromPlayer, Line, ToPlayer};
use crate::movement::Movement;
use crate::replay::{Figures, Operation, Recorder};
use crate::rules::{Effect, Rules};
use crate::states::{KindIds, Mode, Phase, Robot, Round, SLOTS_MAX, kinds_of};
use crate::{TICKS_PER_SECOND, session_config};
use combat::Combat;
use devices::Devices;
use seats::Seat;

/// Settings of a [`Stage`].
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::{Level, StageConfig};
/// let config = StageConfig::new(Arc::new(Level::arena())).seed(7).slots(4).difficulty(2);
/// ```
#[derive(Clone, Debug)]
pub struct StageConfig {
    level: Arc<Level>,
    seed: u64,
    difficulty: u8,
    slots: u8,
    cancels: bool,
    kills_to_win: u16,
    goals_to_win: u8,
    play_ticks: u32,
    movement: Movement,
    cheats: CheatConfig,
}

impl StageConfig {
    /// A match on this level, for as many players as the level is made for, or 2 in versus and with the ball.
    pub fn new(level: Arc<Level>) -> Self {
        let slots = match level.mode {
            Mode::Cooperative => level.slots,
            Mode::Versus | Mode::Ball => 2,
        };
        Self {
            level,
            seed: 1,
            difficulty: 1,
            slots,
            cancels: true,
            kills_to_win: 20,
            goals_to_win: 5,
            play_ticks: 300 * TICKS_PER_SECOND,
            movement: Movement::Server,
            cheats: CheatConfig::default(),
        }
    }

    /// Sets how many players the match waits for, at most as many as the level has slots for.
    #[must_use]
    pub fn slots(mut self, slots: u8) -> Self {
        self.slots = slots.clamp(1, self.level.slots);
        self
    }

    /// The level.
    pub fn level(&self) -> &Arc<Level> {
        &self.level
    }

    /// The side that moves the robots. Beside the ball it is the server in any case: it knows what is in the way.
    pub(crate) fn moved_by(&self) -> Movement {
        match self.level.mode {
            Mode::Ball => Movement::Server,
            _ => self.movement,
        }
    }

    pub(crate) const fn slot_count(&self) -> u8 {
        self.slots
    }

    /// Seed, difficulty, slots, whether it cancels, kills and goals to win, and ticks to play.
    pub(crate) const fn parts(&self) -> (u64, u8, u8, bool, (u16, u8), u32) {
        (
            self.seed,
            self.difficulty,
            self.slots,
            self.cancels,
            (self.kills_to_win, self.goals_to_win),
            self.play_ticks,
        )
    }
}

muse::wire::setters! { StageConfig:
    /// Sets the random seed: which enemies appear. Default: 1.
    seed: u64,
    /// 0 easy, 1 normal, 2 hard. Default: 1.
    difficulty: u8 = difficulty.min(2),
    /// Sets whether a match is cancelled for which not everybody came or loaded within 10 s each. Default: true; else it
    /// begins with the players who are there.
    cancels: bool,
    /// Kills that win a versus match; 20 by default.
    kills_to_win: u16 = kills_to_win.max(1),
    /// Goals that win a match with the ball; 5 by default.
    goals_to_win: u8 = goals_to_win.max(1),
    /// Longest match of versus or with the ball in ticks; 5 minutes by default.
    play_ticks: u32 = play_ticks.max(1),
    /// Sets the side that moves the robots; the server by default, and always in a match with the ball.
    movement: Movement,
    /// Sets what counts as a cheat.
    cheats: CheatConfig,
}

/// A player as the master knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Its id at the master; who comes back with the same id gets its seat back.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The slot it wants.
    pub slot: Option<u8>,
    /// The checkpoint that it unlocked; a co-operative match begins at the least of its players'.
    pub checkpoint: u8,
    /// The weapons that it unlocked.
    pub owned: u8,
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody.
    Everyone,
    /// One client.
    One(ClientId),
}

/// The outcome of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// [`Phase::Won`], [`Phase::Lost`] or [`Phase::Over`].
    pub phase: Phase,
    /// True if it never began.
    pub cancelled: bool,
    /// The number of ticks that were played.
    pub ticks: u32,
    /// The players, the best first.
    pub table: Vec<Line>,
}

/// The reason for which a client cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Every seat is taken.
    #[error("every seat of the match is taken")]
    Full,
    /// The match is over.
    #[error("the match is over")]
    Over,
    /// The client is there already.
    #[error("the client is there already")]
    Twice,
}

/// The server's side of a match.
///
/// Call [`join`](Self::join) and [`leave`](Self::leave) as connections come and go, [`handle_packet`](Self::handle_packet) and
/// [`handle_message`](Self::handle_message) for what arrives, [`poll_tick`](Self::poll_tick) until `None`, then
/// [`poll_packet`](Self::poll_packet) and [`poll_message`](Self::poll_message) until `None`.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::{Level, Phase, Profile, Stage, StageConfig};
/// use muse::netcode::ClientId;
/// use muse::wire::Instant;
/// let config = StageConfig::new(Arc::new(Level::escape()));
/// let mut stage = Stage::new(config, Instant::ZERO);
/// stage.join(ClientId(1), Profile { id: 1, name: "Ada".into(), ..Profile::default() })?;
/// while stage.poll_tick(Instant::from_secs(1)).is_some() {}
/// assert_eq!(stage.round().phase, Phase::Waiting);
/// # Ok::<(), muse_biobot::stage::JoinError>(())
/// ```
#[derive(Debug)]
pub struct Stage {
    config: StageConfig,
    level: Arc<Level>,
    kinds: KindIds,
    server: Server<Rules>,
    rules: Rules,
    seats: Vec<Seat>,
    watchers: Vec<ClientId>,
    /// Those who have left for good, for the report.
    left: Vec<PlayerReport>,
    excuse: conduct::Excuse,
    devices: Devices,
    combat: Combat,
    horde: Horde,
    /// The ball, if there is one, and how often it was put back.
    ball: Option<EntityId>,
    serves: u8,
    round: Round,
    round_entity: EntityId,
    tick: Tick,
    vote: Option<seats::Vote>,
    raised: Vec<(ClientId, Effect)>,
    outbox: VecDeque<(Audience, ToPlayer)>,
    outcome: Option<Outcome>,
    recorder: Option<Box<Recorder>>,
    /// The time of a match that is run again.
    pub(crate) replay_micros: u64,
}

impl Stage {
    /// A match whose tick 0 is at `now`.
    pub fn new(config: StageConfig, now: Instant) -> Self {
        let (all, kinds) = kinds_of(config.level.mode);
        let mut server = Server::new(session_config(), all, kinds.robot, now);
        let level = Arc::clone(&config.level);
        let round = Round::new(level.mode);
        let devices = Devices::new(&level, kinds, server.world_mut());
        let round_entity = server
            .world_mut()
            .spawn(kinds.round, &round)
            .expect("the world has room for a round");
        let rules = Rules::new(Arc::clone(&level)).judging(config.moved_by());
        let ball = rules.kick_off().map(|ball| {
            let spawned = server.world_mut().spawn(kinds.ball, &ball);
            spawned.expect("the world has room for a ball")
        });
        let mut stage = Self {
            rules,
            ball,
            serves: 0,
            horde: Horde::new(&level, config.seed, config.difficulty),
            combat: Combat::new(),
            seats: (0..config.slots).map(Seat::new).collect(),
            watchers: Vec::new(),
            left: Vec::new(),
            excuse: conduct::Excuse::default(),
            kinds,
            server,
            level,
            devices,
            round,
            round_entity,
            tick: Tick(0),
            vote: None,
            raised: Vec::new(),
            outbox: VecDeque::new(),
            outcome: None,
            recorder: None,
            replay_micros: now.as_micros(),
            config,
        };
        stage.enter(Phase::Waiting, phases::WAIT_TICKS);
        stage
    }

    /// The level.
    pub fn level(&self) -> &Arc<Level> {
        &self.level
    }

    /// The match.
    pub const fn round(&self) -> &Round {
        &self.round
    }

    /// The last tick.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// The netcode, to look at: its world, its counters.
    pub const fn server(&self) -> &Server<Rules> {
        &self.server
    }

    /// The kinds of its world.
    pub const fn kinds(&self) -> KindIds {
        self.kinds
    }

    /// The enemies.
    pub const fn horde(&self) -> &Horde {
        &self.horde
    }

    /// A datagram of a player arrived.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        client: ClientId,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        self.log(Some(now), || Operation::Packet {
            client: client.0,
            bytes: bytes.to_vec(),
        });
        let second = self.tick.0 / TICKS_PER_SECOND;
        let config = self.config.cheats;
        let slot = self.slot_of(client);
        if let Some(slot) = slot
            && !self.seats[slot].conduct.admits_packet(&config, second)
        {
            return Ok(());
        }
        let result = self.server.handle_packet(now, client, bytes);
        // Ticks out of reach are counted with the inputs.
        let reach = PacketError::Inputs(InputError::OutOfReach);
        if let (Some(slot), Err(error)) = (slot, &result)
            && *error != reach
        {
            self.seats[slot].conduct.note(Offence::BadPacket);
        }
        result
    }

    /// A message arrived, as bytes. What is damaged is dropped and counted.
    pub fn handle_message_bytes(&mut self, client: ClientId, bytes: &[u8]) {
        self.log(None, || Operation::Message {
            client: client.0,
            bytes: bytes.to_vec(),
        });
        match FromPlayer::decode(bytes) {
            Ok(message) => self.take_message(client, &message),
            Err(_) => self.note(client, Offence::BadMessage),
        }
    }

    /// Simulates the next tick if it is time.
    pub fn poll_tick(&mut self, now: Instant) -> Option<Tick> {
        let raised = &mut self.raised;
        let raise = |client, effect| raised.push((client, effect));
        let tick = self.server.poll_tick(now, &mut self.rules, raise)?;
        self.tick = tick;
        self.set_budgets();
        self.log(Some(now), || Operation::Tick);
        self.move_orphans();
        self.follow_kick_offs();
        let mut robots = self.robots();
        self.check_falls(&mut robots);
        let there = (&*self.level, self.kinds);
        self.combat.record(&self.server, there, tick, &robots);
        self.handle_effects();
        self.watch_conduct();
        self.fly_bolts();
        self.move_enemies();
        self.tick_devices();
        self.respawn();
        self.tick_phase();
        self.write_round();
        self.remember_robots();
        self.server.commit();
        self.record_tick();
        Some(tick)
    }

    /// Returns the time at which [`poll_tick`](Self::poll_tick) has something next.
    pub fn poll_timeout(&self) -> Instant {
        self.server.poll_timeout()
    }

    /// Writes the next packet of the netcode to the front of `buffer`, and says whose it is and how long.
    pub fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(ClientId, usize)> {
        let room = buffer.len() as u32;
        self.log(Some(now), || Operation::Drain { room });
        self.server.poll_packet(now, buffer)
    }

    /// From now on everything is recorded, which has to begin before anybody comes: see [`replay`](crate::replay). Costs about 10 kB a
    /// second for two players.
    pub fn start_recording(&mut self, now: Instant) {
        let recorder = Recorder::new(&self.config, now.as_micros());
        self.recorder = Some(Box::new(recorder));
    }

    /// Returns what has been recorded since this was called last, to be appended to a file.
    pub fn take_recording(&mut self) -> Vec<u8> {
        let recorder = self.recorder.as_mut();
        recorder.map(|recorder| recorder.take()).unwrap_or_default()
    }

    /// The end of the recording.
    pub fn finish_recording(&mut self) -> Vec<u8> {
        let recorder = self.recorder.take();
        recorder
            .map(|recorder| recorder.finish(self.tick.0))
            .unwrap_or_default()
    }

    /// The next message, and for whom.
    pub fn poll_message(&mut self) -> Option<(Audience, ToPlayer)> {
        self.outbox.pop_front()
    }

    /// Returns the outcome of the match; `None` while it goes on.
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the cheats that players tried.
    pub fn report(&self) -> Report {
        let there = self.seats.iter().filter(|seat| seat.id.is_some());
        let lines = there.map(|seat| self.report_of(seat));
        let mut players: Vec<PlayerReport> = lines.chain(self.left.iter().cloned()).collect();
        players.sort_by_key(|player| player.slot);
        Report { players }
    }

    /// One number for everything in the world: the same on every machine for the same match.
    pub fn checksum(&self) -> u64 {
        let world = self.server.world();
        let mut sum = Sum::new(self.tick.0);
        for entity in world.entities() {
            sum.add(entity.bits());
            let ids = [
                self.kinds.robot.id(),
                self.kinds.enemy.id(),
                self.kinds.device.id(),
                self.kinds.bolt.id(),
                self.kinds.round.id(),
                self.kinds.ball.id(),
            ];
            for row in ids.into_iter().filter_map(|kind| world.row(kind, entity)) {
                row.iter().for_each(|value| sum.add(*value as u32));
            }
        }
        sum.value
    }

    fn report_of(&self, seat: &Seat) -> PlayerReport {
        PlayerReport {
            slot: seat.slot,
            id: seat.id.unwrap_or_default(),
            name: seat.name.clone(),
            suspect: seat.conduct.is_suspect(&self.config.cheats),
            conduct: seat.conduct.clone(),
        }
    }

    /// The robots that are in the match, in the order of slots.
    fn robots(&self) -> Vec<RobotThere> {
        let there = |seat: &Seat| {
            let entity = seat.robot?;
            let robot = self.server.world().state(self.kinds.robot, entity)?;
            Some(RobotThere { entity, robot })
        };
        self.seats.iter().filter_map(there).collect()
    }

    fn set_robot(&mut self, entity: EntityId, robot: &Robot) {
        // It was read from there, so it is there.
        let _ = self.server.world_mut().set(self.kinds.robot, entity, robot);
    }

    fn move_enemies(&mut self) {
        if self.round.phase != Phase::Playing {
            return;
        }
        let robots = self.robots();
        let level = Arc::clone(&self.level);
        let bodies = self.rules.surroundings.bodies(&level, self.tick).to_vec();
        let mut damage = Vec::new();
        let mut bolts = Vec::new();
        self.horde.tick(&mut HordeContext {
            tick: self.tick,
            level: &level,
            bodies: &bodies,
            robots: &robots,
            kinds: self.kinds,
            world: self.server.world_mut(),
            damage: &mut damage,
            bolts: &mut bolts,
            round: &mut self.round,
        });
        for bolt in bolts {
            self.spawn_bolt(bolt);
        }
        for hurt in damage {
            self.hurt(hurt.victim, hurt.amount, hurt.from, None, hurt.weapon);
        }
    }

    fn write_round(&mut self) {
        // It was spawned when the match began, and stays.
        let _ = self
            .server
            .world_mut()
            .set(self.kinds.round, self.round_entity, &self.round);
    }

    fn tell(&mut self, audience: Audience, message: ToPlayer) {
        if let (Some(recorder), Audience::Everyone) = (&mut self.recorder, audience) {
            recorder.note_message(&message);
        }
        if self.outbox.len() < OUTBOX_MAX {
            self.outbox.push_back((audience, message));
        }
    }

    fn log(&mut self, now: Option<Instant>, operation: impl FnOnce() -> Operation) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now.map(Instant::as_micros), operation());
        }
    }

    fn record_tick(&mut self) {
        let Some(mut recorder) = self.recorder.take() else {
            return;
        };
        let mut figures = Vec::new();
        if self.tick.0.is_multiple_of(TICKS_PER_SECOND) {
            for seat in &self.seats {
                let Some(client) = seat.client else {
                    continue;
                };
                let trip = self.server.round_trip(client).unwrap_or_default();
                let inputs = self.server.input_counters(client);
                let late = inputs.map_or(0, |inputs| inputs.repeated + inputs.missing);
                figures.push(Figures {
                    slot: seat.slot,
                    rtt_ms: (trip.as_micros() / 1_000) as u32,
                    late: late.min(u64::from(u32::MAX)) as u32,
                });
            }
        }
        recorder.handle_tick(self, &figures);
        self.recorder = Some(recorder);
    }

    fn slot_of(&self, client: ClientId) -> Option<usize> {
        self.seats
            .iter()
            .position(|seat| seat.client == Some(client))
    }

    fn note(&mut self, client: ClientId, offence: Offence) {
        if let Some(slot) = self.slot_of(client) {
            self.seats[slot].conduct.note(offence);
        }
    }
}

/// FNV-1a over numbers.
struct Sum {
    value: u64,
}

impl Sum {
    fn new(first: u32) -> Self {
        let mut sum = Self {
            value: 0xcbf2_9ce4_8422_2325,
        };
        sum.add(first);
        sum
    }

    fn add(&mut self, number: u32) {
        self.value = (self.value ^ u64::from(number)).wrapping_mul(0x0100_0000_01b3);
    }
}

/// Messages that wait to be polled.
const OUTBOX_MAX: usize = 1_024;
const _: () = assert!(SLOTS_MAX == 16, "holders of devices are 16 bits");
