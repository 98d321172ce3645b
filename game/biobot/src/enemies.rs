//! Enemies: tanks, cats, wasps and the boss.
//!
//! The [`Horde`] decides what enemies do; the stage tells it what there is and carries out what it asks for.

mod boss;
mod foe;
mod walker;
mod wasp;

use glam::Vec3;
use muse::netcode::{EntityId, Tick, World};

use crate::collision::Body;
use crate::level::Level;
use crate::nav::Search;
use crate::states::{Bolt, KindIds, Robot, Round, Species, Stance};
use boss::BossMind;
use foe::{Foe, Hardness};
use wasp::Swarm;

/// All enemies of a match.
///
/// ```
/// use muse_biobot::Level;
/// use muse_biobot::enemies::Horde;
/// let horde = Horde::new(&Level::escape(), 7, 1);
/// assert!(!horde.is_cleared("cats"), "they wait for somebody to come");
/// assert!(horde.is_cleared("nobody"));
/// assert_eq!(horde.active(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Horde {
    rng: fastrand::Rng,
    hardness: Hardness,
    foes: Vec<Foe>,
    swarms: Vec<Swarm>,
    boss: Option<BossMind>,
    groups: Vec<Group>,
    search: Search,
    spawned: bool,
}

/// The enemies that a level calls by one name.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    left: u32,
}

/// The inputs of a horde in a tick, and its outputs.
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
    /// The damage that enemies do to robots at once, without a bolt.
    pub damage: &'a mut Vec<Damage>,
    /// The bolts that they fire: the stage spawns, flies and judges it. Weapons from
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
    /// Its state.
    pub robot: Robot,
}

/// Something that hurts a robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damage {
    /// The robot.
    pub victim: EntityId,
    /// The amount.
    pub amount: u8,
    /// The place it comes from.
    pub from: Vec3,
    /// With what: see [`Bolt::weapon`].
    pub weapon: u8,
}

/// A player's shot that hit an enemy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnemyHit {
    /// The enemy.
    pub enemy: EntityId,
    /// The slot of the shooter.
    pub slot: u8,
    /// The damage it would do.
    pub damage: u8,
    /// The part of the body: see [`rig`](Horde::volumes).
    pub part: u16,
    /// The place in the world.
    pub point: Vec3,
    /// The tick in which it counts.
    pub tick: Tick,
}

/// The outcome of a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitOutcome {
    /// The damage done; 0 when it bounced off.
    pub damage: u8,
    /// True if it was the last.
    pub killed: bool,
    /// True if it hit a weak point.
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
    /// The radius around it.
    pub radius: f32,
}

impl Horde {
    /// The enemies of a level, drawn by a seed; `difficulty` is 0 (easy) to 2 (hard).
    pub fn new(level: &Level, seed: u64, difficulty: u8) -> Self {
        let mut horde = Self {
            rng: fastrand::Rng::with_seed(seed ^ SALT),
            hardness: Hardness::of(difficulty),
            foes: Vec::new(),
            swarms: Vec::new(),
            boss: None,
            groups: Vec::new(),
            search: Search::default(),
            spawned: false,
        };
        for spawn in &level.enemies {
            if horde.rng.u8(0..100) < spawn.chance && horde.foes.len() < FOES_MAX {
                let group = horde.join_group(&spawn.group, 1);
                let mut foe = Foe::new(spawn.species, spawn.at.into(), spawn.yaw, &horde.hardness);
                foe.group = Some(group);
                foe.wake = spawn.wake;
                horde.foes.push(foe);
            }
        }
        for (index, spawn) in level.swarms.iter().enumerate() {
            let there = horde.rng.u8(0..100) < spawn.chance;
            let count = horde.rng.u8(spawn.count[0]..=spawn.count[1]);
            if there && count > 0 {
                let group = horde.join_group(&spawn.group, u32::from(count));
                horde.swarms.push(Swarm::new(index, count, group));
            }
        }
        if let Some(boss) = &level.boss {
            let group = horde.join_group(&boss.group, 1);
            let mut foe = Foe::new(Species::Boss, boss.at.into(), BOSS_YAW, &horde.hardness);
            foe.group = Some(group);
            horde.foes.push(foe);
            horde.boss = Some(BossMind::new(boss));
        }
        horde
    }

    /// One tick of all enemies; called while the match is played.
    pub fn tick(&mut self, context: &mut HordeContext<'_>) {
        if !self.spawned {
            self.spawned = true;
            for index in 0..self.foes.len() {
                self.appear(index, context);
            }
        }
        self.tick_swarms(context);
        self.tick_boss(context);
        let mut searches = SEARCHES_PER_TICK;
        for index in 0..self.foes.len() {
            if self.foes[index].died.is_some() {
                continue;
            }
            match self.foes[index].species {
                Species::Tank | Species::Cat => self.tick_walker(index, context, &mut searches),
                Species::Wasp => self.tick_wasp(index, context),
                Species::Boss => {}
            }
            self.foes[index].write(context);
        }
        self.bury(context);
    }

    /// A player's shot hit an enemy.
    pub fn handle_hit(&mut self, world: &mut World, kinds: KindIds, hit: &EnemyHit) -> HitOutcome {
        let found = |foe: &Foe| foe.entity == Some(hit.enemy) && foe.died.is_none();
        let Some(index) = self.foes.iter().position(found) else {
            return HitOutcome::default();
        };
        let outcome = match self.foes[index].species {
            Species::Boss => self.hit_boss(index, hit),
            _ => self.hit_foe(index, hit),
        };
        if outcome.killed {
            let foe = &mut self.foes[index];
            foe.died = Some(hit.tick.0);
            foe.enemy.stance = Stance::Dead;
            foe.enemy.velocity = [0.0; 3];
            foe.enemy.health = 0;
            self.leave_group(index);
        }
        let foe = &self.foes[index];
        // It was found by its entity.
        let _ = world.set(kinds.enemy, hit.enemy, &foe.enemy);
        outcome
    }

    /// Returns the volumes in which enemies of a species can be hit.
    pub fn volumes(species: crate::Species) -> &'static [HitPart] {
        match species {
            crate::Species::Tank => &TANK,
            crate::Species::Cat => &CAT,
            crate::Species::Wasp => &WASP,
            crate::Species::Boss => &BOSS,
        }
    }

    /// True if all enemies of a group are dead; a group that nobody belongs to is.
    pub fn is_cleared(&self, group: &str) -> bool {
        let left = |known: &&Group| known.name == group && known.left > 0;
        !self.groups.iter().any(|known| left(&known))
    }

    /// Returns the number of enemies that are awake.
    pub fn active(&self) -> usize {
        let awake = |foe: &&Foe| foe.died.is_none() && foe.enemy.stance != Stance::Idle;
        self.foes.iter().filter(awake).count()
    }

    fn hit_foe(&mut self, index: usize, hit: &EnemyHit) -> HitOutcome {
        let foe = &mut self.foes[index];
        foe.health -= i32::from(hit.damage);
        foe.angry_until = hit.tick.0 + ANGRY_TICKS;
        foe.angry_at = Some(hit.slot);
        foe.enemy.health = foe.share();
        let killed = foe.health <= 0;
        HitOutcome {
            damage: hit.damage,
            killed,
            critical: false,
            points: if killed { foe.traits().points } else { 0 },
        }
    }

    fn join_group(&mut self, name: &str, count: u32) -> usize {
        let known = self.groups.iter().position(|group| group.name == name);
        let place = known.unwrap_or_else(|| {
            self.groups.push(Group {
                name: name.to_owned(),
                left: 0,
            });
            self.groups.len() - 1
        });
        self.groups[place].left += count;
        place
    }

    fn leave_group(&mut self, index: usize) {
        if let Some(group) = self.foes[index].group {
            self.groups[group].left = self.groups[group].left.saturating_sub(1);
        }
    }

    /// Puts a foe into the world.
    fn appear(&mut self, index: usize, context: &mut HordeContext<'_>) {
        let foe = &mut self.foes[index];
        foe.thinks_at = context.tick.0 + index as u32 % THINK_TICKS;
        match context.world.spawn(context.kinds.enemy, &foe.enemy) {
            Ok(entity) => foe.entity = Some(entity),
            Err(_) => {
                // The world is full: it never was.
                foe.died = Some(0);
                self.leave_group(index);
            }
        }
    }

    /// Removes enemies that fell apart long enough ago.
    fn bury(&mut self, context: &mut HordeContext<'_>) {
        let tick = context.tick.0;
        self.foes.retain(|foe| {
            let over = foe.died.is_some_and(|died| tick >= died + CORPSE_TICKS);
            if let Some(entity) = foe.entity.filter(|_| over) {
                // It was spawned here, and nobody else despawns it.
                let _ = context.world.despawn(entity);
            }
            !over
        });
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

/// The salt that makes the horde's random numbers differ from others of the same seed.
const SALT: u64 = 0x6869_7665_6d69_6e64;
/// Most enemies at a time.
const FOES_MAX: usize = 160;
/// Paths that are searched in a tick; who does not get one waits for the next.
const SEARCHES_PER_TICK: u32 = 2;
/// Ticks from one thought of an enemy to the next.
const THINK_TICKS: u32 = 8;
/// Ticks for which who was hit knows by whom: 5 s.
const ANGRY_TICKS: u32 = 250;
/// Ticks for which what is left of an enemy lies there.
const CORPSE_TICKS: u32 = 75;
/// The boss looks at the door that players come through.
const BOSS_YAW: f32 = std::f32::consts::FRAC_PI_2;
