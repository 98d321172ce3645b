//! Enemies: tanks, cats, wasps and the boss (OA-22, OA-23).
//!
//! The [`Horde`] decides what enemies do; the stage tells it what there is and carries out what it asks for.

use glam::Vec3;
use muse_netcode::{EntityId, Tick, World};

use crate::collision::Body;
use crate::level::Level;
use crate::states::{Bolt, KindIds, Robot, Round};

/// All enemies of a match.
#[derive(Clone, Debug, Default)]
pub struct Horde {}

/// What a horde is told in a tick, and what it can do.
#[derive(Debug)]
pub struct HordeContext<'a> {
    /// The tick.
    pub tick: Tick,
    /// The level.
    pub level: &'a Level,
    /// Doors, lifts and platforms as they are in this tick.
    pub bodies: &'a [Body],
    /// The robots that are in the match, in the order of slots; the dead ones, too.
    pub robots: &'a [RobotThere],
    /// The kinds of the world.
    pub kinds: KindIds,
    /// To spawn, set and despawn enemies ([`KindIds::enemy`]).
    pub world: &'a mut World,
    /// What enemies do to robots at once, without a bolt.
    pub damage: &'a mut Vec<Damage>,
    /// What they fire: the stage spawns, flies and judges it. Weapons from
    /// [`ENEMY_BOLT`](crate::weapons::ENEMY_BOLT) on.
    pub bolts: &'a mut Vec<Bolt>,
    /// The match, for the boss's weak points.
    pub round: &'a mut Round,
}

/// A robot in the match.
#[derive(Clone, Debug)]
pub struct RobotThere {
    /// Its entity.
    pub entity: EntityId,
    /// What it is like.
    pub robot: Robot,
}

/// Something that hurts a robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damage {
    /// Which robot.
    pub victim: EntityId,
    /// By how much.
    pub amount: u8,
    /// Where it comes from.
    pub from: Vec3,
    /// With what: see [`Bolt::weapon`].
    pub weapon: u8,
}

/// A player's shot that hit an enemy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnemyHit {
    /// The enemy.
    pub enemy: EntityId,
    /// Whose shot.
    pub slot: u8,
    /// How much it would do.
    pub damage: u8,
    /// Where on the body: see [`rig`](Horde::volumes).
    pub part: u16,
    /// Where in the world.
    pub point: Vec3,
    /// The tick in which it counts.
    pub tick: Tick,
}

/// What became of a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitOutcome {
    /// How much it did; 0 when it bounced off.
    pub damage: u8,
    /// Whether it was the last.
    pub killed: bool,
    /// Whether it hit where it counts.
    pub critical: bool,
    /// Points for it.
    pub points: i16,
}

/// A part of an enemy that can be hit: a capsule that stands upright.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitPart {
    /// Number of the part: 0 the body, 1 and 2 the boss's weak points.
    pub part: u16,
    /// The middle, from the enemy's position, turned with its yaw.
    pub middle: Vec3,
    /// Half the height of the line within.
    pub half_length: f32,
    /// How far around it.
    pub radius: f32,
}

impl Horde {
    /// The enemies of a level, drawn by a seed; `difficulty` is 0 (easy) to 2 (hard).
    pub fn new(level: &Level, seed: u64, difficulty: u8) -> Self {
        let _ = (level, seed, difficulty);
        Self {}
    }

    /// One tick of all enemies; called while the match is played.
    pub fn tick(&mut self, context: &mut HordeContext<'_>) {
        let _ = context;
    }

    /// A player's shot hit an enemy.
    pub fn handle_hit(&mut self, world: &mut World, kinds: KindIds, hit: &EnemyHit) -> HitOutcome {
        let _ = (world, kinds, hit);
        HitOutcome::default()
    }

    /// Where enemies of a species can be hit.
    pub fn volumes(species: crate::Species) -> &'static [HitPart] {
        match species {
            crate::Species::Tank => &TANK,
            crate::Species::Cat => &CAT,
            crate::Species::Wasp => &WASP,
            crate::Species::Boss => &BOSS,
        }
    }

    /// Whether all enemies of a group are dead; a group that nobody belongs to is.
    pub fn is_cleared(&self, group: &str) -> bool {
        let _ = group;
        true
    }

    /// How many enemies are awake.
    pub fn active(&self) -> usize {
        0
    }
}

const fn part(part: u16, middle: Vec3, half_length: f32, radius: f32) -> HitPart {
    HitPart {
        part,
        middle,
        half_length,
        radius,
    }
}

const TANK: [HitPart; 1] = [part(0, Vec3::new(0.0, 1.1, 0.0), 0.2, 1.1)];
const CAT: [HitPart; 1] = [part(0, Vec3::new(0.0, 0.45, 0.0), 0.05, 0.45)];
const WASP: [HitPart; 1] = [part(0, Vec3::ZERO, 0.05, 0.4)];
const BOSS: [HitPart; 3] = [
    part(0, Vec3::new(0.0, 3.0, 0.0), 1.5, 2.0),
    part(1, Vec3::new(-3.2, 3.0, 0.0), 0.1, 0.8),
    part(2, Vec3::new(3.2, 3.0, 0.0), 0.1, 0.8),
];
