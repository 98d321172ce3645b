//! Tanks and cats: they approach to their range, keep approaching while something is between, then fire.

use glam::Vec3;

use super::foe::{Foe, Leap};
use super::{Horde, HordeContext, RobotThere, THINK_TICKS};
use crate::TICK_SECONDS;
use crate::states::{Species, Stance};

impl Horde {
    pub(super) fn tick_walker(
        &mut self,
        index: usize,
        context: &mut HordeContext<'_>,
        searches: &mut u32,
    ) {
        let tick = context.tick.0;
        if self.foes[index].leap.is_some() {
            self.foes[index].fly(tick);
            return;
        }
        if tick >= self.foes[index].thinks_at {
            self.foes[index].thinks_at = tick + THINK_TICKS;
            self.think(index, context);
        }
        let foe = &mut self.foes[index];
        let Some(there) = foe.target_of(context) else {
            foe.rest();
            return;
        };
        let far = there.robot.feet().distance(foe.at);
        let engaged = foe.sees && far <= foe.traits().range;
        if !engaged {
            foe.shots_left = 0;
            foe.fires_at = foe.fires_at.max(tick + foe.traits().windup_ticks);
            self.approach(index, there.robot.feet(), tick, searches, context);
        } else if self.foes[index].species == Species::Cat {
            self.prowl(index, tick, searches, context);
        } else {
            self.foes[index].path.clear();
        }
        let moved = self.step(index, context);
        let foe = &mut self.foes[index];
        foe.enemy.velocity = (moved / TICK_SECONDS).into();
        match engaged {
            true => self.attack(index, there, context),
            false if foe.leap.is_none() => {
                foe.enemy.stance = Stance::Chase;
                let ahead = foe.path.first().map_or(there.robot.feet(), |next| next.at);
                foe.turn_to(ahead);
            }
            false => {}
        }
    }

    /// Whom it is after, and whether it sees it.
    fn think(&mut self, index: usize, context: &HordeContext<'_>) {
        let foe = &mut self.foes[index];
        let was_after = foe.target;
        foe.target = foe.choose(context);
        let there = foe.target_of(context);
        foe.sees = there.is_some_and(|there| foe.sees(context, there));
        if was_after.is_none() && foe.target.is_some() {
            let pause = foe.traits().pause_ticks;
            foe.fires_at = context.tick.0 + pause / 2 + self.rng.u32(0..pause.max(1));
        }
    }

    /// Finds a way to where the robot is, now and then.
    fn approach(
        &mut self,
        index: usize,
        goal: Vec3,
        tick: u32,
        searches: &mut u32,
        context: &HordeContext<'_>,
    ) {
        let foe = &mut self.foes[index];
        let stale = foe.path.is_empty() || foe.path_to.distance(goal) > STALE;
        if !stale || tick < foe.search_at || *searches == 0 {
            return;
        }
        *searches -= 1;
        foe.search_at = tick + SEARCH_TICKS;
        foe.path_to = goal;
        let mesh = context.level.mesh(foe.traits().size);
        foe.path = mesh
            .path(foe.at, goal, &mut self.search)
            .unwrap_or_default();
    }

    /// A cat that sees its prey does not stand still.
    fn prowl(&mut self, index: usize, tick: u32, searches: &mut u32, context: &HordeContext<'_>) {
        if tick < self.foes[index].roam_at || *searches == 0 {
            return;
        }
        *searches -= 1;
        self.foes[index].roam_at = tick + self.rng.u32(40..110);
        let foe = &mut self.foes[index];
        let mesh = context.level.mesh(foe.traits().size);
        if let Some(goal) = mesh.somewhere_near(foe.at, PROWL, &mut self.rng) {
            let inside = |area: crate::level::Area| area.contains(goal + Vec3::Y * 0.1);
            if foe.wake.is_none_or(inside) {
                foe.path_to = goal;
                foe.path = mesh
                    .path(foe.at, goal, &mut self.search)
                    .unwrap_or_default();
            }
        }
    }

    /// One tick along its path. Says how far it got.
    fn step(&mut self, index: usize, context: &HordeContext<'_>) -> Vec3 {
        let before = self.foes[index].at;
        let mesh = context.level.mesh(self.foes[index].traits().size);
        let push = self.pushed(index);
        let foe = &mut self.foes[index];
        let mut left = foe.traits().speed * TICK_SECONDS;
        let mut at = foe.at;
        while left > 0.0
            && let Some(next) = foe.path.first().copied()
        {
            if next.jump {
                foe.begin_leap(next.at, context.tick.0);
                return Vec3::ZERO;
            }
            let way = (next.at - at).with_y(0.0);
            let far = way.length();
            if far <= left {
                at = next.at.with_y(at.y);
                left -= far;
                foe.path.remove(0);
            } else {
                at += way * (left / far);
                left = 0.0;
            }
        }
        let aside = at + push;
        if push != Vec3::ZERO && mesh.ground(aside).is_some() {
            at = aside;
        }
        if foe.is_blocked(at, context) {
            foe.path.clear();
            return Vec3::ZERO;
        }
        if let Some(ground) = mesh.ground(at) {
            at.y = ground;
        }
        foe.at = at;
        at - before
    }

    /// Enemies keep apart.
    fn pushed(&self, index: usize) -> Vec3 {
        let foe = &self.foes[index];
        let mut push = Vec3::ZERO;
        for (other_index, other) in self.foes.iter().enumerate() {
            let walks = matches!(other.species, Species::Tank | Species::Cat);
            if other_index == index || !walks || other.died.is_some() || other.leap.is_some() {
                continue;
            }
            let way = foe.at - other.at;
            let room = foe.traits().radius + other.traits().radius;
            let far = way.with_y(0.0).length();
            if far < room && way.y.abs() < 1.5 {
                // Enemies in the same place part by their numbers.
                let side = if other_index < index {
                    Vec3::X
                } else {
                    Vec3::NEG_X
                };
                let out = if far > 0.01 {
                    way.with_y(0.0) / far
                } else {
                    side
                };
                push += out * (room - far).min(PUSH);
            }
        }
        push
    }

    /// In range and in sight: it fires, and shows that it will.
    fn attack(&mut self, index: usize, there: &RobotThere, context: &mut HordeContext<'_>) {
        let tick = context.tick.0;
        let foe = &mut self.foes[index];
        if foe.leap.is_some() {
            return;
        }
        foe.turn_to(there.robot.middle());
        let traits = foe.traits();
        let soon = tick + traits.windup_ticks >= foe.fires_at || foe.shots_left > 0;
        foe.enemy.stance = if soon { Stance::Fire } else { Stance::Chase };
        if tick < foe.fires_at {
            return;
        }
        if foe.shots_left == 0 {
            foe.shots_left = traits.burst;
        }
        let error = self.hardness.error;
        foe.shoot(context, there, error, &mut self.rng);
        foe.shots_left -= 1;
        let pause = (traits.pause_ticks as f32 * self.hardness.pause) as u32;
        foe.fires_at = tick
            + match foe.shots_left {
                0 => pause + self.rng.u32(0..pause / 3 + 1),
                _ => traits.burst_ticks,
            };
    }
}

impl Foe {
    /// Nobody is there.
    fn rest(&mut self) {
        self.path.clear();
        self.enemy.velocity = [0.0; 3];
        self.enemy.stance = Stance::Idle;
    }

    fn begin_leap(&mut self, to: Vec3, tick: u32) {
        let across = (to - self.at).with_y(0.0).length();
        let rise = (to.y - self.at.y).max(0.0);
        let seconds = (across / LEAP_SPEED).max(0.35 + libm::sqrtf(rise * 0.1) * 1.3);
        self.leap = Some(Leap {
            from: self.at,
            to,
            began: tick,
            ticks: (seconds / TICK_SECONDS) as u32 + 1,
        });
        self.enemy.stance = Stance::Jump;
        self.path.remove(0);
    }

    /// One tick of a leap.
    fn fly(&mut self, tick: u32) {
        let Some(leap) = self.leap else {
            return;
        };
        let before = self.at;
        self.at = leap.at(tick);
        self.enemy.velocity = ((self.at - before) / TICK_SECONDS).into();
        self.turn_to(leap.to);
        if tick >= leap.began + leap.ticks {
            self.leap = None;
            self.enemy.velocity = [0.0; 3];
            self.enemy.stance = Stance::Chase;
        }
    }

    /// True if a door or something else that moves is where it wants to go.
    fn is_blocked(&self, at: Vec3, context: &HordeContext<'_>) -> bool {
        let radius = self.traits().radius;
        let half = Vec3::new(radius, 0.4, radius);
        let middle = at + Vec3::Y * 0.6;
        let mut bodies = context.bodies.iter();
        bodies.any(|body| {
            let towards = (body.min + body.max) * 0.5 - self.at;
            body.overlaps(middle, half) && towards.with_y(0.0).dot((at - self.at).with_y(0.0)) > 0.0
        })
    }
}

/// The distance that a robot runs before the way to it is searched again.
const STALE: f32 = 2.0;
/// Ticks between two searches of one enemy.
const SEARCH_TICKS: u32 = 25;
/// The distance that a cat prowls.
const PROWL: f32 = 6.0;
/// Metres that enemies make room in a tick.
const PUSH: f32 = 0.03;
/// Metres a second across of a leap.
const LEAP_SPEED: f32 = 8.0;
