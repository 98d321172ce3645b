//! Whom a bot shoots at, and how well: it has to see them, react, turn and aim.

use glam::{Quat, Vec3};
use muse::netcode::{EntityId, Tick};

use super::Skill;
use crate::collision::Body;
use crate::level::Level;
use crate::player::Frame;
use crate::states::{Mode, Robot, Species, Stance};
use crate::weapons::{self, Sort};

/// The things that a bot sees.
#[derive(Clone, Copy)]
pub(super) struct Sight<'a> {
    pub level: &'a Level,
    pub frame: &'a Frame,
    pub robot: &'a Robot,
    pub bodies: &'a [Body],
    /// True if it looks for a fight, or false if it only defends itself.
    pub fights: bool,
}

/// Whom it aims at, and where it looks.
#[derive(Clone, Debug, Default)]
pub(super) struct Aim {
    target: Option<Target>,
    yaw: f32,
    pitch: f32,
    looked: bool,
    error: [f32; 2],
    error_until: u32,
    seen_at: u32,
    look_at: u32,
    /// Whom it gave up on, and until when.
    spared: Option<(EntityId, u32)>,
    /// The target's health when it last fell, and when.
    progress: (u8, u32),
}

/// Someone to shoot at.
#[derive(Clone, Copy, Debug)]
struct Target {
    entity: EntityId,
    at: Vec3,
    far: f32,
    radius: f32,
    since: u32,
    species: Option<Species>,
    health: u8,
    wanted: (f32, f32),
}

impl Aim {
    pub(super) fn forget(&mut self) {
        self.target = None;
        self.looked = false;
    }

    /// Looks for somebody to shoot at; says whether there is.
    pub(super) fn update(
        &mut self,
        sight: &Sight<'_>,
        skill: &Skill,
        rng: &mut fastrand::Rng,
    ) -> bool {
        let tick = sight.frame.time.tick.0;
        self.begin(sight.robot);
        if tick >= self.error_until {
            self.error_until = tick + rng.u32(8..20);
            let mut stray = || (rng.f32() + rng.f32() - 1.0) * skill.error * 1.6;
            self.error = [stray(), stray()];
        }
        // Eyes are not as quick as ticks.
        if tick >= self.look_at || self.target.is_none() {
            self.look_at = tick + LOOK_TICKS;
            self.target = self.choose(sight);
        }
        self.follow(sight);
        self.lose_patience(tick);
        if self.target.is_some() {
            self.seen_at = tick;
        }
        self.target.is_some()
    }

    /// Looks where the robot looks, at first.
    pub(super) fn begin(&mut self, robot: &Robot) {
        if !self.looked {
            (self.yaw, self.pitch, self.looked) = (robot.yaw, robot.pitch, true);
        }
    }

    /// Returns the direction to look to hit.
    pub(super) fn wanted(&self) -> (f32, f32) {
        self.target
            .map_or((self.yaw, self.pitch), |target| target.wanted)
    }

    pub(super) const fn look(&self) -> (f32, f32) {
        (self.yaw, self.pitch)
    }

    pub(super) fn distance(&self) -> Option<f32> {
        self.target.map(|target| target.far)
    }

    pub(super) fn is_far(&self) -> bool {
        self.target.is_some_and(|target| target.far > 14.0)
    }

    pub(super) fn is_at_boss(&self) -> bool {
        self.target
            .is_some_and(|target| target.species == Some(Species::Boss))
    }

    /// Returns the place of the target, when shooting from here has had no effect for a while.
    pub(super) fn in_vain(&self, tick: Tick) -> Option<Vec3> {
        let target = self.target?;
        (tick.0 > self.progress.1 + VAIN_TICKS).then_some(target.at)
    }

    /// True if nobody was to be seen for a while.
    pub(super) const fn calm(&self, tick: Tick) -> bool {
        tick.0 > self.seen_at + 50
    }

    /// Turns, at a human's speed.
    pub(super) fn turn(
        &mut self,
        robot: &Robot,
        (yaw, pitch): (f32, f32),
        aims: bool,
        tick: Tick,
        skill: &Skill,
    ) {
        let (mut yaw, mut pitch) = (yaw, pitch);
        if aims {
            // Most of the recoil is pulled down again.
            pitch -= robot.recoil(tick) * 0.85;
            yaw += self.error[0];
            pitch += self.error[1];
        }
        let most = if aims { skill.turn } else { skill.turn * 2.0 };
        let step = |from: f32, to: f32| {
            let change = wrapped(to - from);
            from + (change * 0.35).clamp(-most, most)
        };
        self.yaw = wrapped(step(self.yaw, yaw));
        self.pitch = step(self.pitch, pitch.clamp(-1.5, 1.5));
    }

    /// True if the trigger is pulled.
    pub(super) fn fires(&self, robot: &Robot, tick: Tick, skill: &Skill) -> bool {
        let Some(target) = self.target else {
            return false;
        };
        if tick.0 < target.since + skill.reaction_ticks || robot.reload != 0 {
            return false;
        }
        let (yaw, pitch) = target.wanted;
        let near = target.radius / target.far.max(1.0);
        let off = wrapped(self.yaw - yaw)
            .abs()
            .max((self.pitch + robot.recoil(tick) - pitch).abs());
        off < near * 1.2 + skill.error
    }

    /// The weapon for the target: what hits hard against what is slow or near.
    pub(super) fn weapon(&self, robot: &Robot, aims: bool) -> u8 {
        let Some(target) = self.target.filter(|_| aims && robot.reload == 0) else {
            return 0;
        };
        let loaded =
            |weapon: u8| robot.owns(weapon) && robot.magazines[usize::from(weapon) - 1] > 0;
        let best = match target.species {
            Some(Species::Tank) if target.far > 7.0 => LAUNCHER,
            Some(Species::Tank) => SCATTER,
            Some(Species::Boss | Species::Wasp) => BLASTER,
            _ if target.far < 6.0 => SCATTER,
            _ => BLASTER,
        };
        let choice = if loaded(best) { best } else { BLASTER };
        match choice != robot.weapon && loaded(choice) {
            true => choice,
            false => 0,
        }
    }

    /// The weapon to load while nobody is to be seen: the one that needs it most, and then the first.
    pub(super) fn spare_weapon(robot: &Robot) -> u8 {
        let low = |weapon: &u8| {
            let rounds = robot.magazines[usize::from(*weapon) - 1];
            robot.owns(*weapon) && rounds * 2 <= weapons::weapon(*weapon).magazine
        };
        let wanted = [LAUNCHER, SCATTER, BLASTER].into_iter().find(low);
        let wanted = wanted.unwrap_or(BLASTER);
        match robot.reload == 0 && wanted != robot.weapon {
            true => wanted,
            false => 0,
        }
    }

    /// The nearest that can be seen; who is aimed at already counts as nearer.
    fn choose(&self, sight: &Sight<'_>) -> Option<Target> {
        let tick = sight.frame.time.tick.0;
        let eye = sight.robot.eye();
        let mut best: Option<(f32, Target)> = None;
        for found in candidates(sight) {
            let spared = |(entity, until): (EntityId, u32)| entity == found.entity && tick < until;
            if self.spared.is_some_and(spared) || found.far > SIGHT {
                continue;
            }
            let known = self.target.filter(|known| known.entity == found.entity);
            let score = found.far * if known.is_some() { 0.6 } else { 1.0 };
            if best.as_ref().is_some_and(|(least, _)| *least <= score) {
                continue;
            }
            let before = found.at - (found.at - eye).normalize_or_zero() * found.radius;
            if sight.level.collision().sees(eye, before, sight.bodies) {
                let since = known.map_or(tick, |known| known.since);
                best = Some((score, Target { since, ..found }));
            }
        }
        best.map(|(_, target)| target)
    }

    /// Updates the place of the target, and the direction to look to hit it.
    fn follow(&mut self, sight: &Sight<'_>) {
        let Some(target) = self.target else {
            return;
        };
        let fresh = candidates(sight).find(|found| found.entity == target.entity);
        let Some(fresh) = fresh else {
            self.target = None;
            return;
        };
        let eye = sight.robot.eye();
        let weapon = weapons::weapon(sight.robot.weapon);
        let mut at = fresh.at;
        if weapon.sort == Sort::Projectile {
            let seconds = fresh.far / weapon.speed;
            let fall = weapons::bolt_gravity(sight.robot.weapon) * 0.5 * seconds * seconds;
            at.y += fall;
        }
        self.target = Some(Target {
            since: target.since,
            wanted: weapons::angles(at - eye),
            ..fresh
        });
    }

    /// Leaves a target that it has shot at for long to no avail.
    fn lose_patience(&mut self, tick: u32) {
        let Some(target) = self.target else {
            return;
        };
        let fresh = tick <= target.since + 1;
        if fresh || target.health != self.progress.0 || target.species == Some(Species::Boss) {
            self.progress = (target.health, tick);
        }
        if tick > self.progress.1 + PATIENCE_TICKS {
            self.spared = Some((target.entity, tick + SPARE_TICKS));
            self.target = None;
        }
    }
}

/// Everyone who might be shot at.
fn candidates<'a>(sight: &Sight<'a>) -> impl Iterator<Item = Target> + 'a {
    let (frame, robot) = (sight.frame, sight.robot);
    let fights = sight.fights;
    let versus = sight.level.mode == Mode::Versus;
    let weak_points = sight.level.boss.as_ref().map(|boss| boss.weak_points);
    let eye = robot.eye();
    let target = move |entity, at: Vec3, radius, species, health| Target {
        entity,
        at,
        far: at.distance(eye),
        radius,
        since: 0,
        species,
        health,
        wanted: (0.0, 0.0),
    };
    let enemies = frame.enemies.iter().filter_map(move |shown| {
        let enemy = &shown.enemy;
        let awake = match enemy.stance {
            Stance::Dead => false,
            // Who sleeps is left alone by who is on its way.
            Stance::Idle => {
                let far = Vec3::from(enemy.position).distance(eye);
                fights && enemy.species != Species::Boss && far < SURPRISE
            }
            // The boss is closed while it attacks or reels.
            Stance::Fire | Stance::Jump => enemy.species != Species::Boss,
            Stance::Chase => true,
        };
        if !awake || enemy.health == 0 {
            return None;
        }
        let feet = Vec3::from(enemy.position);
        let (off, radius) = match enemy.species {
            Species::Tank => (Vec3::Y * 1.1, 0.9),
            Species::Cat => (Vec3::Y * 0.45, 0.4),
            Species::Wasp => (Vec3::ZERO, 0.35),
            Species::Boss => {
                // One for each.
                let weak = weak_points?[usize::from(robot.slot) % 2];
                (Quat::from_rotation_y(enemy.yaw) * Vec3::from(weak), 0.7)
            }
        };
        let species = Some(enemy.species);
        Some(target(
            shown.entity,
            feet + off,
            radius,
            species,
            enemy.health,
        ))
    });
    let robots = frame.robots.iter().filter_map(move |shown| {
        let other = &shown.robot;
        let meant = versus && other.alive();
        let at = other.middle() + Vec3::Y * 0.2;
        meant.then(|| target(shown.entity, at, 0.35, None, other.health))
    });
    enemies.chain(robots)
}

fn wrapped(angle: f32) -> f32 {
    let turn = std::f32::consts::TAU;
    angle - turn * libm::roundf(angle / turn)
}

const BLASTER: u8 = 1;
const LAUNCHER: u8 = 2;
const SCATTER: u8 = 3;
/// The distance that a bot sees.
const SIGHT: f32 = 40.0;
/// Ticks from one look around to the next.
const LOOK_TICKS: u32 = 6;
/// From how near it shoots at who sleeps.
const SURPRISE: f32 = 18.0;
/// Ticks of shooting without an effect until it goes nearer: 3 s.
const VAIN_TICKS: u32 = 150;
/// Ticks of shooting without an effect: 10 s.
const PATIENCE_TICKS: u32 = 500;
/// Ticks for which somebody is left alone after that.
const SPARE_TICKS: u32 = 400;
