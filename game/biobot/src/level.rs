//! A level as data: what stands where, what moves, who may use what.
//!
//! Levels are JSON files, read by [`Level::parse`], which refuses whatever would not work in play: names that lead nowhere, things
//! outside of the world, too many of anything. The levels of the game come along: [`Level::escape`], [`Level::arena`] and
//! [`Level::pitch`].

mod validate;

use std::sync::OnceLock;

use glam::Vec3;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::collision::{Body, Collision, grid};
use crate::nav::{Mesh, Size};
use crate::states::{Device, Mode, Species};
use muse::netcode::Tick;

/// A level.
///
/// ```
/// use muse_biobot::{Level, LevelError};
/// assert!(Level::escape().devices.len() > 10);
/// assert!(matches!(Level::parse("{"), Err(LevelError::Syntax { .. })));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Its name, up to 32 bytes.
    pub name: String,
    /// The mode that is played on it.
    pub mode: Mode,
    /// Most players.
    pub slots: u8,
    /// Robots that fall below this die.
    pub kill_below: f32,
    /// The parts that never move.
    pub solids: Vec<Solid>,
    /// The places where players begin. In order of slots; with more slots than spawns they come round.
    pub spawns: Vec<Spawn>,
    /// The places where players come back; the first is reached from the beginning. In order.
    #[serde(default)]
    pub checkpoints: Vec<Checkpoint>,
    /// Levers, doors, lifts: see [`DeviceSpec`].
    #[serde(default)]
    pub devices: Vec<DeviceSpec>,
    /// Enemies that stand somewhere.
    #[serde(default)]
    pub enemies: Vec<EnemySpawn>,
    /// Swarms of wasps that may appear.
    #[serde(default)]
    pub swarms: Vec<SwarmSpawn>,
    /// Ways that only those go who jump.
    #[serde(default)]
    pub jump_links: Vec<JumpLink>,
    /// The final boss.
    #[serde(default)]
    pub boss: Option<BossSpec>,
    /// The area in which all robots have to be to win.
    #[serde(default)]
    pub exit: Option<Area>,
    /// The place of the ball at a kick-off: its middle. In [`Mode::Ball`] only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kick_off: Option<[f32; 3]>,
    /// The goals of both teams. In [`Mode::Ball`] only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// The objectives of the players, in order: for bots, and for hints.
    #[serde(default)]
    pub objectives: Vec<Objective>,
    /// For the geometry of moments.
    #[serde(skip)]
    pub(crate) baked: Baked,
}

/// The data that follows from the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baked {
    pub collision: Collision,
    /// For each device, the places of those it needs.
    pub needs: Vec<Vec<usize>>,
    /// The navigation mesh of each size of agent; baked when first asked for.
    pub meshes: [OnceLock<Mesh>; 3],
}

/// Something that never moves.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solid {
    /// For people who read the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The lowest corner.
    pub min: [f32; 3],
    /// The highest corner.
    pub max: [f32; 3],
    /// The side to which a ramp rises, from the bottom of the box to its top; a whole box without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<Side>,
    /// Its material.
    #[serde(default)]
    pub material: Material,
}

/// A side of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// Towards larger x.
    #[serde(rename = "+x")]
    PlusX,
    /// Towards smaller x.
    #[serde(rename = "-x")]
    MinusX,
    /// Towards larger z.
    #[serde(rename = "+z")]
    PlusZ,
    /// Towards smaller z.
    #[serde(rename = "-z")]
    MinusZ,
}

/// The material of something: how it looks, and what a bullet leaves on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Material {
    /// Walls and floors.
    #[default]
    Concrete,
    /// Machines, platforms.
    Metal,
    /// Crates.
    Wood,
    /// Windows.
    Glass,
    /// It glows and hurts the eye, not the robot.
    Energy,
    /// Cables, plants, bodies.
    Organic,
}

/// A place where a player begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    /// Its feet.
    pub at: [f32; 3],
    /// The direction it looks.
    #[serde(default)]
    pub yaw: f32,
}

/// A box in which something counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// The lowest corner.
    pub min: [f32; 3],
    /// The highest corner.
    pub max: [f32; 3],
}

impl Area {
    /// True if a point is inside.
    pub fn contains(&self, point: Vec3) -> bool {
        let (min, max) = (Vec3::from(self.min), Vec3::from(self.max));
        point.cmpge(min).all() && point.cmple(max).all()
    }

    /// Its middle.
    pub fn middle(&self) -> Vec3 {
        (Vec3::from(self.min) + Vec3::from(self.max)) * 0.5
    }
}

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The team that defends it, 0 or 1: see [`team_of`](crate::team_of).
    pub team: u8,
    /// The area in which the ball's middle is a goal.
    pub area: Area,
}

/// A place where players come back who have been here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Its name.
    pub name: String,
    /// It is reached by being here.
    pub area: Area,
    /// The places where players come back, in order of slots.
    pub spawns: Vec<Spawn>,
    /// The doors that are open for who begins here.
    #[serde(default)]
    pub opens: Vec<String>,
}

/// Something of the level that is used, or that moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// Its name, by which others need it.
    pub id: String,
    /// The only player who may use it, pass it or take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<u8>,
    /// Its kind.
    pub what: DeviceKind,
}

/// The kind of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DeviceKind {
    /// Used once, it stays.
    Lever {
        /// The position.
        at: [f32; 3],
    },
    /// Pressed for a moment, whenever it is used.
    Button {
        /// The position.
        at: [f32; 3],
    },
    /// Pressed as long as somebody holds it.
    Hold {
        /// The position.
        at: [f32; 3],
    },
    /// Pressed as long as somebody stands on it.
    Plate {
        /// The area in which feet count.
        area: Area,
    },
    /// Active when all enemies of a group are dead.
    Cleared {
        /// The group.
        group: String,
    },
    /// Blocks the way until it opens.
    Door {
        /// The lowest corner when closed.
        min: [f32; 3],
        /// The highest corner when closed.
        max: [f32; 3],
        /// The way that it slides when it opens.
        slide: [f32; 3],
        /// The time that takes.
        ticks: u16,
        /// The conditions that open it.
        needs: Needs,
    },
    /// Carries robots from one place to another and back.
    Lift {
        /// The lowest corner at rest.
        min: [f32; 3],
        /// The highest corner at rest.
        max: [f32; 3],
        /// The way that it goes.
        travel: [f32; 3],
        /// The time that takes.
        ticks: u16,
        /// The conditions that send it there.
        needs: Needs,
    },
    /// Carries robots along a path, round and round.
    Platform {
        /// The lowest corner at the beginning.
        min: [f32; 3],
        /// The highest corner at the beginning.
        max: [f32; 3],
        /// The stops of its way.
        path: Vec<Stop>,
    },
    /// A weapon to find.
    Pickup {
        /// The position.
        at: [f32; 3],
        /// Its number, 1 to 4.
        weapon: u8,
    },
}

/// A stop of a platform's path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The place, from the beginning.
    pub offset: [f32; 3],
    /// The time that it stays.
    #[serde(default)]
    pub wait: u16,
    /// The time to the next stop.
    pub ticks: u16,
}

/// The conditions of a door or a lift.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// The devices' names.
    pub of: Vec<String>,
    /// All of them, or any.
    #[serde(default)]
    pub any: bool,
    /// Ticks within which all have to have been active: 25 makes two buttons *at the same time*.
    #[serde(default)]
    pub within: u16,
    /// Once is enough for good.
    #[serde(default)]
    pub latch: bool,
}

/// An enemy that stands somewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnemySpawn {
    /// The species.
    pub species: Species,
    /// Its feet.
    pub at: [f32; 3],
    /// The direction it looks.
    #[serde(default)]
    pub yaw: f32,
    /// The group it belongs to.
    pub group: String,
    /// It wakes when a robot is here; at once without.
    #[serde(default)]
    pub wake: Option<Area>,
    /// The probability that it is there, in percent.
    #[serde(default = "always")]
    pub chance: u8,
}

/// A swarm that may appear.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwarmSpawn {
    /// Around where.
    pub at: [f32; 3],
    /// The group it belongs to.
    pub group: String,
    /// It appears when a robot is here.
    pub wake: Area,
    /// Fewest and most of them.
    pub count: [u8; 2],
    /// The probability that it appears, in percent.
    #[serde(default = "always")]
    pub chance: u8,
}

/// A way that only those go who jump.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JumpLink {
    /// Feet before.
    pub from: [f32; 3],
    /// Feet after.
    pub to: [f32; 3],
    /// True if the way back is a jump, too.
    #[serde(default)]
    pub both: bool,
}

/// The final boss: two weak points, hit within half a second of each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BossSpec {
    /// The middle of its base.
    pub at: [f32; 3],
    /// The group it belongs to.
    pub group: String,
    /// It wakes when all robots are here, and stays here.
    pub arena: Area,
    /// The places of its weak points, from its base.
    pub weak_points: [[f32; 3]; 2],
    /// The number of times that both have to be hit together.
    pub strikes: u8,
}

/// Something that the players have to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// For people.
    pub name: String,
    /// The task of each player meanwhile; a player without a task follows.
    pub tasks: Vec<Task>,
    /// The condition under which it is done.
    pub until: Until,
}

/// The task of a player for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The player; both without.
    #[serde(default)]
    pub slot: Option<u8>,
    /// Points on the way there, each to be come near to before the next.
    #[serde(default)]
    pub by: Vec<[f32; 3]>,
    /// The action there.
    pub act: Act,
}

/// An action at a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// Be there.
    Go {
        /// The position.
        at: [f32; 3],
    },
    /// Use a device, again if it had no effect.
    Use {
        /// Its name.
        device: String,
    },
    /// Hold a device.
    Hold {
        /// Its name.
        device: String,
    },
    /// Stand on a plate, lift or platform.
    Stand {
        /// Its name.
        device: String,
    },
    /// Take what lies there.
    Take {
        /// Its name.
        device: String,
    },
    /// Kill a group of enemies, from a place.
    Fight {
        /// The group.
        group: String,
        /// The position to stay near.
        at: [f32; 3],
    },
}

/// The condition under which an objective is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Until {
    /// A device is active.
    Active {
        /// Its name.
        device: String,
    },
    /// Every robot is here.
    AllIn {
        /// The area.
        area: Area,
    },
    /// One robot is here.
    AnyIn {
        /// The area.
        area: Area,
    },
    /// A checkpoint has been reached.
    Checkpoint {
        /// The number of it.
        number: u8,
    },
    /// The match is over.
    Over,
}

/// The reason for which a level cannot be played.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LevelError {
    /// It is not the JSON of a level.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// The error.
        what: String,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// There are too many of something, or none.
    #[error("{what}: {count}, allowed are {min} to {max}")]
    Count {
        /// Of what.
        what: &'static str,
        /// The number given.
        count: usize,
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// Something is outside of the world, has no size, or is no number.
    #[error("{what} {name:?} is outside of the world, too small, too large or inside out")]
    Place {
        /// The kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name leads nowhere.
    #[error("{what} names {name:?}, which does not exist or is nothing that can be named here")]
    Unknown {
        /// The thing that names it.
        what: String,
        /// The name.
        name: String,
    },
    /// Two things have the same name.
    #[error("the name {0:?} is used twice")]
    Twice(String),
    /// A number is out of its range.
    #[error("{what} of {name:?} is out of range")]
    Range {
        /// The number.
        what: &'static str,
        /// The name of the thing.
        name: String,
    },
    /// Somebody would begin inside of a wall.
    #[error("{what} at {at:?} is inside of something solid")]
    Inside {
        /// The thing.
        what: &'static str,
        /// The position.
        at: [f32; 3],
    },
}

impl Level {
    /// Reads a level and checks everything in it.
    pub fn parse(text: &str) -> Result<Self, LevelError> {
        let mut level: Self = serde_json::from_str(text).map_err(|error| LevelError::Syntax {
            what: error.to_string(),
            line: error.line(),
            column: error.column(),
        })?;
        validate::check(&mut level)?;
        Ok(level)
    }

    /// The co-operative level.
    pub fn escape() -> Self {
        Self::parse(ESCAPE).expect("a test has parsed it")
    }

    /// The versus level.
    pub fn arena() -> Self {
        Self::parse(ARENA).expect("a test has parsed it")
    }

    /// The level of the mode with a ball.
    pub fn pitch() -> Self {
        Self::parse(PITCH).expect("a test has parsed it")
    }

    /// The level of a mode.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Cooperative => Self::escape(),
            Mode::Versus => Self::arena(),
            Mode::Ball => Self::pitch(),
        }
    }

    /// Returns the parts that never move, for casts.
    pub fn collision(&self) -> &Collision {
        &self.baked.collision
    }

    /// Returns the navigation mesh of a size of enemies and bots.
    pub fn mesh(&self, size: Size) -> &Mesh {
        self.baked.meshes[size as usize].get_or_init(|| Mesh::bake(self, size))
    }

    /// The place of a device in the list.
    pub fn device(&self, id: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.id == id)
    }

    /// The devices that a door or lift needs.
    pub fn needs(&self, device: usize) -> &[usize] {
        self.baked.needs.get(device).map_or(&[], Vec::as_slice)
    }

    /// The goal that a team defends.
    pub fn goal(&self, team: u8) -> Option<&Goal> {
        self.goals.iter().find(|goal| goal.team == team)
    }

    /// Returns the place where a player of a slot begins, or comes back after a checkpoint.
    pub fn spawn(&self, slot: u8, checkpoint: u8) -> Spawn {
        let reached = self.checkpoints.get(usize::from(checkpoint));
        let spawns = reached.map_or(&self.spawns, |checkpoint| &checkpoint.spawns);
        spawns[usize::from(slot) % spawns.len()]
    }
}

impl DeviceSpec {
    /// Returns the place where it is used, stood on or taken: its middle.
    pub fn place(&self) -> Vec3 {
        match &self.what {
            DeviceKind::Lever { at }
            | DeviceKind::Button { at }
            | DeviceKind::Hold { at }
            | DeviceKind::Pickup { at, .. } => (*at).into(),
            DeviceKind::Plate { area } => area.middle(),
            DeviceKind::Cleared { .. } => Vec3::ZERO,
            DeviceKind::Door { min, max, .. }
            | DeviceKind::Lift { min, max, .. }
            | DeviceKind::Platform { min, max, .. } => (Vec3::from(*min) + Vec3::from(*max)) * 0.5,
        }
    }

    /// True if it is used by hand.
    pub const fn is_used(&self) -> bool {
        matches!(
            self.what,
            DeviceKind::Lever { .. } | DeviceKind::Button { .. } | DeviceKind::Hold { .. }
        )
    }

    /// True if this player may use it.
    pub fn allows(&self, slot: u8) -> bool {
        self.only.is_none_or(|only| only == slot)
    }

    /// Returns how long it takes to open, for doors and lifts.
    pub const fn ticks(&self) -> u16 {
        match self.what {
            DeviceKind::Door { ticks, .. } | DeviceKind::Lift { ticks, .. } => ticks,
            _ => 0,
        }
    }

    /// True if robots ride on it.
    pub const fn carries(&self) -> bool {
        matches!(
            self.what,
            DeviceKind::Lift { .. } | DeviceKind::Platform { .. }
        )
    }

    /// Returns how far it has moved at a tick from where it rests; on the grid of robots, so that what it carries does not slide.
    pub fn offset(&self, state: &Device, tick: Tick) -> Vec3 {
        match &self.what {
            DeviceKind::Door { slide, ticks, .. }
            | DeviceKind::Lift {
                travel: slide,
                ticks,
                ..
            } => grid(Vec3::from(*slide) * smooth(state.progress(tick, *ticks))),
            DeviceKind::Platform { path, .. } => grid(along(path, tick)),
            _ => Vec3::ZERO,
        }
    }

    /// Returns its body at a tick, for collisions; `None` for what cannot be run into.
    pub fn body(&self, index: usize, state: &Device, tick: Tick) -> Option<Body> {
        let (min, max, carries) = match &self.what {
            DeviceKind::Door { min, max, .. } => (min, max, false),
            DeviceKind::Lift { min, max, .. } | DeviceKind::Platform { min, max, .. } => {
                (min, max, true)
            }
            _ => return None,
        };
        let offset = self.offset(state, tick);
        Some(Body {
            device: index,
            min: Vec3::from(*min) + offset,
            max: Vec3::from(*max) + offset,
            carries,
            only: self.only,
        })
    }
}

/// Returns the place of a platform on its path.
fn along(path: &[Stop], tick: Tick) -> Vec3 {
    let whole: u32 = path
        .iter()
        .map(|stop| u32::from(stop.wait) + u32::from(stop.ticks))
        .sum();
    let mut left = tick.0 % whole.max(1);
    for (index, stop) in path.iter().enumerate() {
        let (wait, ticks) = (u32::from(stop.wait), u32::from(stop.ticks));
        if left < wait {
            return stop.offset.into();
        }
        left -= wait;
        if left < ticks {
            let next = Vec3::from(path[(index + 1) % path.len()].offset);
            let share = smooth(left as f32 / ticks as f32);
            return Vec3::from(stop.offset) + (next - Vec3::from(stop.offset)) * share;
        }
        left -= ticks;
    }
    path.first().map_or(Vec3::ZERO, |stop| stop.offset.into())
}

/// From 0 to 1, slower at both ends.
fn smooth(share: f32) -> f32 {
    share * share * (3.0 - 2.0 * share)
}

const fn always() -> u8 {
    100
}

/// The distance within which a player can use something.
pub const REACH: f32 = 2.2;
/// Ticks from the moment something is switched to the moment it moves: by then everybody has heard of it, and predicts it.
pub const SWITCH_TICKS: u32 = 20;
/// Ticks that a button stays pressed.
pub const BUTTON_TICKS: u32 = 25;
/// The levels that come with the game.
pub(crate) const BUILT_IN: [&str; 3] = [ESCAPE, ARENA, PITCH];
const ESCAPE: &str = include_str!("../levels/escape.json");
const ARENA: &str = include_str!("../levels/arena.json");
const PITCH: &str = include_str!("../levels/pitch.json");
