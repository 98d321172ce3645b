//! One enemy: what its species is like, whom it is after, and how it shoots.

use glam::Vec3;
use muse::netcode::EntityId;

use super::{HordeContext, RobotThere};
use crate::TICK_SECONDS;
use crate::level::Area;
use crate::nav::{Size, Waypoint};
use crate::states::{Bolt, Enemy, Species, Stance};
use crate::weapons::{ENEMY_BOLT, angles, direction};

/// The traits that all of a species have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    pub size: Size,
    pub health: f32,
    pub points: i16,
    /// Metres a second.
    pub speed: f32,
    /// Radians a second.
    pub turn: f32,
    pub radius: f32,
    /// The height from which it sees and fires.
    pub eye: f32,
    /// From how near it fires.
    pub range: f32,
    /// Metres a second of what it fires.
    pub bolt_speed: f32,
    /// Shots of a burst, ticks between them, ticks from one burst to the next.
    pub burst: u8,
    pub burst_ticks: u32,
    pub pause_ticks: u32,
    /// Ticks for which one sees it coming.
    pub windup_ticks: u32,
    /// The angle by which its shots stray, in radians.
    pub error: f32,
    /// The degree to which it aims ahead of robots that run.
    pub lead: f32,
}

/// The difficulty of a match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hardness {
    pub health: f32,
    pub pause: f32,
    pub error: f32,
}

impl Hardness {
    pub(super) const fn of(difficulty: u8) -> Self {
        match difficulty {
            0 => Self {
                health: 0.7,
                pause: 1.4,
                error: 1.6,
            },
            1 => Self {
                health: 1.0,
                pause: 1.0,
                error: 1.0,
            },
            _ => Self {
                health: 1.4,
                pause: 0.75,
                error: 0.6,
            },
        }
    }
}

/// An enemy of a match.
#[derive(Clone, Debug)]
pub(super) struct Foe {
    pub entity: Option<EntityId>,
    pub species: Species,
    pub group: Option<usize>,
    pub wake: Option<Area>,
    /// As it is; not yet on the grid.
    pub at: Vec3,
    pub yaw: f32,
    /// As everybody knows it.
    pub enemy: Enemy,
    told: Option<Enemy>,
    pub health: i32,
    full: i32,
    pub thinks_at: u32,
    /// The slot that it is after, and where it was last seen.
    pub target: Option<u8>,
    pub sees: bool,
    pub angry_at: Option<u8>,
    pub angry_until: u32,
    pub path: Vec<Waypoint>,
    pub path_to: Vec3,
    pub search_at: u32,
    pub leap: Option<Leap>,
    pub roam_at: u32,
    pub fires_at: u32,
    pub shots_left: u8,
    pub died: Option<u32>,
}

/// A jump under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leap {
    pub from: Vec3,
    pub to: Vec3,
    pub began: u32,
    pub ticks: u32,
}

impl Leap {
    /// Returns its place at a tick.
    pub(super) fn at(&self, tick: u32) -> Vec3 {
        let share = (tick.saturating_sub(self.began) as f32 / self.ticks as f32).min(1.0);
        let seconds = self.ticks as f32 * TICK_SECONDS;
        // A throw that ends where it should.
        let arc = 0.5 * LEAP_GRAVITY * seconds * seconds * share * (1.0 - share);
        self.from.lerp(self.to, share) + Vec3::Y * arc
    }
}

impl Foe {
    pub(super) fn new(species: Species, at: Vec3, yaw: f32, hardness: &Hardness) -> Self {
        let full = (traits(species).health * hardness.health) as i32;
        Self {
            entity: None,
            species,
            group: None,
            wake: None,
            at,
            yaw,
            enemy: Enemy {
                species,
                position: at.into(),
                velocity: [0.0; 3],
                yaw,
                pitch: 0.0,
                health: 100,
                stance: Stance::Idle,
                shots: 0,
            },
            told: None,
            health: full,
            full,
            thinks_at: 0,
            target: None,
            sees: false,
            angry_at: None,
            angry_until: 0,
            path: Vec::new(),
            path_to: at,
            search_at: 0,
            leap: None,
            roam_at: 0,
            fires_at: 0,
            shots_left: 0,
            died: None,
        }
    }

    pub(super) fn traits(&self) -> &'static Traits {
        traits(self.species)
    }

    /// Returns its health, in percent; the last bit counts.
    pub(super) fn share(&self) -> u8 {
        let share = (self.health.max(0) * 100 + self.full - 1) / self.full.max(1);
        share.clamp(0, 100) as u8
    }

    pub(super) fn eye(&self) -> Vec3 {
        self.at + Vec3::Y * self.traits().eye
    }

    /// The robot it is after: the nearest in its place, or who has hit it.
    pub(super) fn choose(&self, context: &HordeContext<'_>) -> Option<u8> {
        let tick = context.tick.0;
        let mut best: Option<(f32, u8)> = None;
        for there in context.robots.iter().filter(|there| there.robot.alive()) {
            let feet = there.robot.feet();
            let angry = tick < self.angry_until && self.angry_at == Some(there.robot.slot);
            let inside = |area: Area| area.contains(feet + Vec3::Y * 0.1);
            if !angry && !self.wake.is_none_or(inside) {
                continue;
            }
            let far = feet.distance(self.at);
            if best.is_none_or(|(least, _)| far < least) {
                best = Some((far, there.robot.slot));
            }
        }
        best.map(|(_, slot)| slot)
    }

    pub(super) fn target_of<'a>(&self, context: &HordeContext<'a>) -> Option<&'a RobotThere> {
        let slot = self.target?;
        let robots = context.robots.iter();
        let mut alive = robots.filter(|there| there.robot.alive());
        alive.find(|there| there.robot.slot == slot)
    }

    /// True if nothing is between it and a robot.
    pub(super) fn sees(&self, context: &HordeContext<'_>, there: &RobotThere) -> bool {
        let collision = context.level.collision();
        collision.sees(self.eye(), there.robot.middle(), context.bodies)
    }

    /// Turns towards a point, as fast as it can.
    pub(super) fn turn_to(&mut self, point: Vec3) {
        let way = point - self.at;
        if way.x.abs() + way.z.abs() < 0.01 {
            return;
        }
        let (wanted, _) = angles(way);
        let most = self.traits().turn * TICK_SECONDS;
        let change = wrapped(wanted - self.yaw).clamp(-most, most);
        self.yaw = wrapped(self.yaw + change);
    }

    /// Fires at a robot: ahead of where it runs, and not quite.
    pub(super) fn shoot(
        &mut self,
        context: &mut HordeContext<'_>,
        there: &RobotThere,
        error: f32,
        rng: &mut fastrand::Rng,
    ) {
        let traits = self.traits();
        let eye = self.eye();
        let middle = there.robot.middle();
        let seconds = middle.distance(eye) / traits.bolt_speed;
        let velocity = Vec3::from(there.robot.velocity) * Vec3::new(1.0, 0.0, 1.0);
        let aimed = middle + velocity * (seconds * traits.lead);
        let (yaw, pitch) = angles(aimed - eye);
        let mut stray = || (rng.f32() * 2.0 - 1.0) * traits.error * error;
        let way = direction(yaw + stray(), pitch + stray());
        self.fire(
            context,
            eye + way * (traits.radius * 0.5),
            way * traits.bolt_speed,
        );
    }

    /// Lets a bolt fly.
    pub(super) fn fire(&mut self, context: &mut HordeContext<'_>, from: Vec3, velocity: Vec3) {
        let Some(entity) = self.entity else {
            return;
        };
        self.enemy.shots = self.enemy.shots.wrapping_add(1);
        context.bolts.push(Bolt {
            owner: entity.bits(),
            weapon: ENEMY_BOLT + self.species as u8,
            position: from.into(),
            velocity: velocity.into(),
            born: context.tick.0,
        });
    }

    /// Tells the world what it is like, if that has changed.
    pub(super) fn write(&mut self, context: &mut HordeContext<'_>) {
        self.enemy.position = self.at.into();
        self.enemy.yaw = self.yaw;
        if self.told.as_ref() == Some(&self.enemy) {
            return;
        }
        if let Some(entity) = self.entity {
            // It was spawned when it appeared, and is despawned when it is forgotten.
            let _ = context.world.set(context.kinds.enemy, entity, &self.enemy);
        }
        self.told = Some(self.enemy.clone());
    }
}

/// An angle between minus and plus half a turn.
pub(super) fn wrapped(angle: f32) -> f32 {
    let turn = std::f32::consts::TAU;
    angle - turn * libm::roundf(angle / turn)
}

pub(super) const fn traits(species: Species) -> &'static Traits {
    match species {
        Species::Tank => &TANK,
        Species::Cat => &CAT,
        Species::Wasp => &WASP,
        Species::Boss => &BOSS,
    }
}

const TANK: Traits = Traits {
    size: Size::Tank,
    health: 640.0,
    points: 150,
    speed: 2.0,
    turn: 1.6,
    radius: 1.2,
    eye: 1.7,
    range: 22.0,
    bolt_speed: 15.0,
    burst: 1,
    burst_ticks: 1,
    pause_ticks: 110,
    windup_ticks: 35,
    error: 0.03,
    lead: 0.6,
};

const CAT: Traits = Traits {
    size: Size::Cat,
    health: 96.0,
    points: 50,
    speed: 5.5,
    turn: 9.0,
    radius: 0.4,
    eye: 0.6,
    range: 14.0,
    bolt_speed: 24.0,
    burst: 3,
    burst_ticks: 7,
    pause_ticks: 55,
    windup_ticks: 14,
    error: 0.06,
    lead: 0.4,
};

const WASP: Traits = Traits {
    size: Size::Cat,
    health: 24.0,
    points: 20,
    speed: 5.0,
    turn: 7.0,
    radius: 0.3,
    eye: 0.0,
    range: 15.0,
    bolt_speed: 18.0,
    burst: 1,
    burst_ticks: 1,
    pause_ticks: 80,
    windup_ticks: 12,
    error: 0.07,
    lead: 0.3,
};

const BOSS: Traits = Traits {
    size: Size::Tank,
    health: 100.0,
    points: 1_000,
    speed: 0.0,
    turn: 0.5,
    radius: 2.0,
    eye: 3.0,
    range: 60.0,
    bolt_speed: 14.0,
    burst: 4,
    burst_ticks: 10,
    pause_ticks: 110,
    windup_ticks: 50,
    error: 0.05,
    lead: 0.3,
};

/// The gravity of enemies that leap.
const LEAP_GRAVITY: f32 = 20.0;
