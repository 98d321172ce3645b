//! The replicated state: robots, enemies, devices, bolts, the ball and the round.
//!
//! A value that changes steadily is kept as the tick at which it began, so that a row changes when something happens and not in every tick:
//! that is what keeps a match within its bytes.

use glam::Vec3;
use muse::netcode::{Kind, KindOptions, Kinds, Tick};
use muse::schema::{Schema, State};
use serde::{Deserialize, Serialize};

use crate::weapons::{self, WEAPONS};

/// A player's robot; it is predicted, so everything that its rules go by is here, on its grid.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Robot {
    /// Its feet.
    #[field(range = -128.0..=128.0, step = 0.001_953_125, velocity = velocity)]
    pub position: [f32; 3],
    /// Metres a second, without what carries it.
    #[field(range = -64.0..=64.0, step = 0.05, predict = hold)]
    pub velocity: [f32; 3],
    /// The direction it looks: 0 along -z, growing to the left.
    #[field(angle = 12)]
    pub yaw: f32,
    /// Up is positive.
    #[field(range = -1.55..=1.55, step = 0.002)]
    pub pitch: f32,
    /// The thing that it stands on: 0 nothing, 1 the ground, 2 + n the device n.
    pub standing: u8,
    /// Its health; 0 is dead.
    #[field(range = 0..=100)]
    pub health: u8,
    /// The weapon in hand, 1 to 4.
    #[field(range = 1..=4)]
    pub weapon: u8,
    /// The weapons it has: bit n is weapon n + 1.
    #[field(bits = 4)]
    pub owned: u8,
    /// Rounds in each weapon.
    #[field(range = 0..=60)]
    pub magazines: [u8; WEAPONS],
    /// The tick from which on the weapon fires again.
    pub ready: u32,
    /// The tick at which reloading ends; 0 when it does not reload.
    pub reload: u32,
    /// The angle to which the recoil had thrown the weapon at `kicked`, in milliradians.
    #[field(range = 0..=250)]
    pub kick: u8,
    /// The tick of the last shot.
    pub kicked: u32,
    /// The degree to which it aims down the sights.
    #[field(range = 0..=8)]
    pub aim: u8,
    /// Shots fired; a change means one to be seen and heard.
    pub shots: u8,
    /// The slot of its player.
    #[field(range = 0..=15)]
    pub slot: u8,
    /// The number of times that it was brought to another place: between two of these nothing moves.
    pub lives: u8,
    /// The tick at which it comes back; 0 when it is alive.
    pub respawn: u32,
    /// The checkpoint where it comes back.
    #[field(range = 0..=31)]
    pub checkpoint: u8,
    /// True if jump was held in the last tick: it jumps once for each time it is pressed.
    pub jump_held: bool,
    /// True if use was held in the last tick.
    pub use_held: bool,
}

impl Robot {
    /// A robot that has just arrived somewhere.
    pub fn new(slot: u8, position: [f32; 3], yaw: f32) -> Self {
        Self {
            position,
            velocity: [0.0; 3],
            yaw,
            pitch: 0.0,
            standing: 0,
            health: HEALTH_MAX,
            weapon: 1,
            owned: 0b111,
            magazines: std::array::from_fn(|index| weapons::TABLE[index].magazine),
            ready: 0,
            reload: 0,
            kick: 0,
            kicked: 0,
            aim: 0,
            shots: 0,
            slot,
            lives: 0,
            respawn: 0,
            checkpoint: 0,
            jump_held: false,
            use_held: false,
        }
    }

    /// True if it is alive.
    pub const fn alive(&self) -> bool {
        self.health > 0
    }

    /// Its feet.
    pub fn feet(&self) -> Vec3 {
        self.position.into()
    }

    /// Returns the place it looks and fires from.
    pub fn eye(&self) -> Vec3 {
        self.feet() + Vec3::Y * EYE_HEIGHT
    }

    /// The middle of its body.
    pub fn middle(&self) -> Vec3 {
        self.feet() + Vec3::Y * (ROBOT_HEIGHT / 2.0)
    }

    /// True if it has a weapon.
    pub const fn owns(&self, weapon: u8) -> bool {
        weapon >= 1 && weapon <= WEAPONS as u8 && self.owned & (1 << (weapon - 1)) != 0
    }

    /// Rounds in the weapon in hand.
    pub fn rounds(&self) -> u8 {
        let index = usize::from(self.weapon.clamp(1, WEAPONS as u8) - 1);
        self.magazines[index]
    }

    /// Returns the angle to which the recoil throws the weapon up at a tick, in radians.
    pub fn recoil(&self, tick: Tick) -> f32 {
        let since = tick.0.saturating_sub(self.kicked).min(255);
        let left = u32::from(self.kick).saturating_sub(since * weapons::KICK_DECAY);
        left as f32 * 0.001
    }

    /// Ticks until the weapon fires again.
    pub const fn cooldown(&self, tick: Tick) -> u32 {
        self.ready.saturating_sub(tick.0)
    }

    /// Returns the degree to which it aims down the sights, 0 to 1.
    pub fn aiming(&self) -> f32 {
        f32::from(self.aim) / f32::from(AIM_TICKS)
    }

    /// The device that carries it.
    pub fn carrier(&self) -> Option<usize> {
        (self.standing >= 2).then(|| usize::from(self.standing - 2))
    }
}

/// The kind of an enemy.
#[derive(State, Schema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Species {
    /// Large and slow, neither jumps nor passes narrow ways; large bullets of double damage.
    Tank,
    /// Small and fast, jumps between platforms; small weak bullets, quickly.
    Cat,
    /// One of a hovering swarm that appears at random.
    Wasp,
    /// The final boss, hit in two places at the same time.
    Boss,
}

/// The activity of an enemy.
#[derive(State, Schema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// Nobody is near.
    Idle,
    /// On its way to its range.
    Chase,
    /// In range and in sight.
    Fire,
    /// In the air.
    Jump,
    /// Falling apart.
    Dead,
}

/// An enemy.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Enemy {
    /// Its kind.
    pub species: Species,
    /// Its feet, or the middle of what hovers.
    #[field(range = -128.0..=128.0, step = 0.015_625, velocity = velocity)]
    pub position: [f32; 3],
    /// Metres a second.
    #[field(range = -32.0..=32.0, step = 0.125, predict = hold)]
    pub velocity: [f32; 3],
    /// The direction it looks.
    #[field(angle = 8)]
    pub yaw: f32,
    /// Up is positive.
    #[field(range = -1.6..=1.6, step = 0.05, predict = hold)]
    pub pitch: f32,
    /// Its health, in parts of what it had.
    #[field(range = 0..=100)]
    pub health: u8,
    /// Its activity.
    pub stance: Stance,
    /// Shots fired.
    pub shots: u8,
}

/// A device of the level: what it is stands in the level, what it does stands here.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Device {
    /// Its place in the level's list.
    pub index: u8,
    /// Pressed; open or on its way there; taken.
    pub active: bool,
    /// The tick from which on it moves to where `active` says; before, it rests where it was.
    pub start: u32,
    /// The players who hold it, stand on it or have taken it: a bit for each slot.
    #[field(bits = 16)]
    pub holders: u16,
}

impl Device {
    /// The device of a place in the level's list, as it is at first.
    pub const fn new(index: usize) -> Self {
        Self {
            index: index as u8,
            active: false,
            start: 0,
            holders: 0,
        }
    }

    /// Returns how far it is open at a tick, 0 to 1, for what takes so many ticks to open.
    pub fn progress(&self, tick: Tick, ticks: u16) -> f32 {
        let whole = f32::from(ticks.max(1));
        let moved = (tick
            .0
            .saturating_sub(self.start)
            .min(u32::from(ticks.max(1)))) as f32
            / whole;
        if self.active { moved } else { 1.0 - moved }
    }

    /// True if it moves, or is about to.
    pub fn is_moving(&self, tick: Tick, ticks: u16) -> bool {
        tick.0 < self.start.saturating_add(u32::from(ticks))
    }
}

/// Something that flies, as it was when it was fired: where it is follows from that.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Bolt {
    /// The shooter: the slot of a player, or the entity of an enemy.
    pub owner: u32,
    /// With what: weapons 1 to 4, and from [`ENEMY_BOLT`](crate::weapons::ENEMY_BOLT) on what enemies fire.
    #[field(range = 0..=15)]
    pub weapon: u8,
    /// The place where it was fired.
    #[field(range = -128.0..=128.0, step = 0.015_625, predict = hold)]
    pub position: [f32; 3],
    /// Metres a second.
    #[field(range = -64.0..=64.0, step = 0.031_25, predict = hold)]
    pub velocity: [f32; 3],
    /// The tick in which it was fired.
    pub born: u32,
}

impl Bolt {
    /// Returns the slot of the player who fired it; `None` for an enemy's.
    pub fn slot(&self) -> Option<u8> {
        let fired = self.weapon < weapons::ENEMY_BOLT;
        fired.then(|| u8::try_from(self.owner).ok()).flatten()
    }

    /// Returns its place so many seconds after it was fired.
    pub fn after(&self, seconds: f32) -> Vec3 {
        let fall = weapons::bolt_gravity(self.weapon) * 0.5 * seconds * seconds;
        Vec3::from(self.position) + Vec3::from(self.velocity) * seconds - Vec3::Y * fall
    }

    /// Returns its place at an instant, in ticks.
    pub fn at(&self, ticks: f64) -> Vec3 {
        let since = (ticks - f64::from(self.born)).max(0.0);
        self.after(since as f32 * crate::TICK_SECONDS)
    }
}

/// The mode of a match.
#[derive(State, Schema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Two robots escape together.
    Cooperative,
    /// Everyone against everyone.
    Versus,
    /// Two teams, a heavy ball and two goals.
    Ball,
}

/// The team of a slot: even slots are team 0, odd ones team 1.
pub const fn team_of(slot: u8) -> u8 {
    slot % 2
}

/// The ball of a match of [`Mode::Ball`]; it is predicted, so everything that its physics goes by is here, on its grid.
///
/// It has no spin: its rotation is drawn from the way that it rolls.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Ball {
    /// Its middle.
    #[field(range = -128.0..=128.0, step = 0.001_953_125, velocity = velocity)]
    pub position: [f32; 3],
    /// Metres a second. The step is small enough for the ball to slow down by less than one of it in a tick.
    #[field(range = -32.0..=32.0, step = 0.007_812_5, predict = hold)]
    pub velocity: [f32; 3],
    /// The slot of the robot that touched it last, plus one; 0 for nobody since the kick-off.
    #[field(range = 0..=16)]
    pub touched: u8,
    /// The number of times that it was put back: between two of these it does not move.
    pub serves: u8,
    /// The tick at which it is put back for the next kick-off; 0 while it is in play.
    pub restart: u32,
}

impl Ball {
    /// A ball that rests at a place.
    pub const fn at(position: [f32; 3]) -> Self {
        Self {
            position,
            velocity: [0.0; 3],
            touched: 0,
            serves: 0,
            restart: 0,
        }
    }

    /// Its middle.
    pub fn middle(&self) -> Vec3 {
        self.position.into()
    }

    /// The slot of the robot that touched it last.
    pub fn last_touch(&self) -> Option<u8> {
        self.touched.checked_sub(1)
    }
}

/// The phase of a match.
#[derive(State, Schema, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For players to connect.
    Waiting,
    /// For players to load.
    Loading,
    /// It is played.
    Playing,
    /// The players escaped.
    Won,
    /// The players gave up.
    Lost,
    /// Time is up, somebody has enough points, or it was cancelled.
    Over,
}

/// The match: one entity of it.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Round {
    /// The mode.
    pub mode: Mode,
    /// The phase.
    pub phase: Phase,
    /// The tick at which the phase began.
    pub since: u32,
    /// The tick at which the phase ends by itself; 0 for never.
    pub ends: u32,
    /// The farthest checkpoint that was reached.
    #[field(range = 0..=31)]
    pub checkpoint: u8,
    /// Points of each slot.
    pub points: [i16; SLOTS_MAX],
    /// Kills of each slot.
    pub kills: [u16; SLOTS_MAX],
    /// Deaths of each slot.
    pub deaths: [u16; SLOTS_MAX],
    /// The ticks at which the boss's weak points were last hit; 0 for never.
    pub weak_points: [u32; 2],
    /// Goals of each team, in [`Mode::Ball`].
    pub goals: [u8; 2],
}

impl Round {
    /// A match that waits for its players.
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode,
            phase: Phase::Waiting,
            since: 0,
            ends: 0,
            checkpoint: 0,
            points: [0; SLOTS_MAX],
            kills: [0; SLOTS_MAX],
            deaths: [0; SLOTS_MAX],
            weak_points: [0; 2],
            goals: [0; 2],
        }
    }

    /// True if it is over, one way or another.
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Won | Phase::Lost | Phase::Over)
    }
}

/// The kinds as [`kinds`] registered them.
#[derive(Clone, Copy, Debug)]
pub struct KindIds {
    /// [`Robot`], number 1.
    pub robot: Kind<Robot>,
    /// [`Enemy`], number 2.
    pub enemy: Kind<Enemy>,
    /// [`Device`], number 3.
    pub device: Kind<Device>,
    /// [`Bolt`], number 4.
    pub bolt: Kind<Bolt>,
    /// [`Round`], number 5.
    pub round: Kind<Round>,
    /// [`Ball`], number 6.
    pub ball: Kind<Ball>,
}

/// The kinds of the game, the same on both sides.
///
/// ```
/// let (kinds, ids) = muse_biobot::kinds();
/// assert_eq!(kinds.len(), 6);
/// assert_eq!(kinds.find(1), Some(ids.robot.id()));
/// ```
pub fn kinds() -> (Kinds, KindIds) {
    kinds_of(Mode::Versus)
}

/// The kinds of the game in a mode, the same on both sides. Beside the ball everybody is told what others press: they predict them by it.
pub fn kinds_of(mode: Mode) -> (Kinds, KindIds) {
    let robot = KindOptions::new(1);
    let robot = match mode {
        Mode::Ball => robot.inputs(),
        Mode::Cooperative | Mode::Versus => robot,
    };
    let mut kinds = Kinds::new();
    let fresh = "every kind has a number of its own";
    let ids = KindIds {
        robot: kinds.register(robot).expect(fresh),
        enemy: kinds.register(KindOptions::new(2)).expect(fresh),
        device: kinds.register(KindOptions::new(3)).expect(fresh),
        bolt: kinds.register(KindOptions::new(4)).expect(fresh),
        round: kinds.register(KindOptions::new(5)).expect(fresh),
        ball: kinds
            .register(KindOptions::new(6).predicted())
            .expect(fresh),
    };
    (kinds, ids)
}

/// Most players of a match.
pub const SLOTS_MAX: usize = 16;
/// Health of a robot.
pub const HEALTH_MAX: u8 = 100;
/// Height of a robot.
pub const ROBOT_HEIGHT: f32 = 1.8;
/// Radius of a robot.
pub const ROBOT_RADIUS: f32 = 0.4;
/// Height of its eyes above its feet.
pub const EYE_HEIGHT: f32 = 1.6;
/// Radius of the ball.
pub const BALL_RADIUS: f32 = 0.7;
/// Ticks it takes to aim down the sights.
pub const AIM_TICKS: u8 = 8;
