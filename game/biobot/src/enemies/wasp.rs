//! Wasps: swarms that hover around their prey, and appear when and where chance wants.

use glam::Vec3;

use super::foe::Foe;
use super::{FOES_MAX, Horde, HordeContext, THINK_TICKS};
use crate::TICK_SECONDS;
use crate::states::{Species, Stance};

/// A swarm that will appear.
#[derive(Clone, Debug)]
pub(super) struct Swarm {
    /// Its place in the level's list.
    spawn: usize,
    count: u8,
    group: usize,
    /// The tick at which it comes; `None` while nobody has woken it.
    comes_at: Option<u32>,
}

impl Swarm {
    pub(super) const fn new(spawn: usize, count: u8, group: usize) -> Self {
        Self {
            spawn,
            count,
            group,
            comes_at: None,
        }
    }
}

impl Horde {
    /// Wakes swarms, and lets those appear whose time has come.
    pub(super) fn tick_swarms(&mut self, context: &mut HordeContext<'_>) {
        let tick = context.tick.0;
        let mut index = 0;
        while index < self.swarms.len() {
            let spawn = &context.level.swarms[self.swarms[index].spawn];
            let near = context.robots.iter().any(|there| {
                let feet = there.robot.feet() + Vec3::Y * 0.1;
                there.robot.alive() && spawn.wake.contains(feet)
            });
            match self.swarms[index].comes_at {
                None if near => {
                    let delay = self.rng.u32(DELAY_TICKS);
                    self.swarms[index].comes_at = Some(tick + delay);
                }
                Some(at) if tick >= at => {
                    let swarm = self.swarms.remove(index);
                    self.hatch(spawn.at.into(), swarm.count, Some(swarm.group), context);
                    continue;
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// Wasps appear around a place.
    pub(super) fn hatch(
        &mut self,
        around: Vec3,
        count: u8,
        group: Option<usize>,
        context: &mut HordeContext<'_>,
    ) {
        for _ in 0..count {
            let mut at = around;
            for _ in 0..8 {
                let mut offset = || self.rng.f32() * 2.0 - 1.0;
                let wanted = around + Vec3::new(offset() * 3.5, offset(), offset() * 3.5);
                let free = !context.level.collision().overlaps(wanted, HULL * 1.5);
                if free && context.level.collision().sees(around, wanted, &[]) {
                    at = wanted;
                    break;
                }
            }
            let mut foe = Foe::new(Species::Wasp, at, 0.0, &self.hardness);
            foe.group = group;
            foe.fires_at = context.tick.0 + 60 + self.rng.u32(0..80);
            foe.roam_at = self.rng.u32(0..628);
            self.foes.push(foe);
            let index = self.foes.len() - 1;
            if index >= FOES_MAX {
                self.foes[index].died = Some(0);
                self.leave_group(index);
            } else {
                self.appear(index, context);
            }
        }
    }

    pub(super) fn tick_wasp(&mut self, index: usize, context: &mut HordeContext<'_>) {
        let tick = context.tick.0;
        let foe = &mut self.foes[index];
        if tick >= foe.thinks_at {
            foe.thinks_at = tick + THINK_TICKS;
            foe.target = foe.choose(context);
            let there = foe.target_of(context);
            let near = there.filter(|there| there.robot.feet().distance(foe.at) < LOSES);
            foe.sees = near.is_some_and(|there| foe.sees(context, there));
            let goal = near.map_or(foe.at, |there| foe.haunt(there.robot.feet(), tick));
            foe.steer(goal);
            foe.enemy.stance = if near.is_some() {
                Stance::Chase
            } else {
                Stance::Idle
            };
        }
        foe.hover(context);
        let Some(there) = foe.target_of(context).filter(|_| foe.sees) else {
            foe.fires_at = foe.fires_at.max(tick + foe.traits().windup_ticks);
            return;
        };
        foe.turn_to(there.robot.middle());
        if there.robot.feet().distance(foe.at) > foe.traits().range {
            return;
        }
        if tick + foe.traits().windup_ticks >= foe.fires_at {
            foe.enemy.stance = Stance::Fire;
        }
        if tick >= foe.fires_at {
            let pause = (foe.traits().pause_ticks as f32 * self.hardness.pause) as u32;
            foe.fires_at = tick + pause + self.rng.u32(0..pause);
            foe.shoot(context, there, self.hardness.error, &mut self.rng);
            foe.enemy.stance = Stance::Chase;
        }
    }
}

impl Foe {
    /// Returns the place where it wants to hover: on a ring above its prey, each at its own angle.
    fn haunt(&self, prey: Vec3, tick: u32) -> Vec3 {
        let angle = self.roam_at as f32 * 0.01 + tick as f32 * 0.012;
        let (sin, cos) = (libm::sinf(angle), libm::cosf(angle));
        let height = 2.3 + libm::sinf(angle * 2.3) * 0.5;
        prey + Vec3::new(sin * RING, height, cos * RING)
    }

    /// Changes its course towards a place.
    fn steer(&mut self, goal: Vec3) {
        let wanted = (goal - self.at).clamp_length_max(self.traits().speed);
        let velocity = Vec3::from(self.enemy.velocity);
        let change =
            (wanted - velocity).clamp_length_max(AGILITY * THINK_TICKS as f32 * TICK_SECONDS);
        let velocity = velocity + change;
        // On the grid on which it travels, so that nothing is left to say until it turns.
        let round = |value: f32| libm::roundf(value * 8.0) / 8.0;
        self.enemy.velocity = [round(velocity.x), round(velocity.y), round(velocity.z)];
    }

    /// Flies on, along what is in its way.
    fn hover(&mut self, context: &HordeContext<'_>) {
        let way = Vec3::from(self.enemy.velocity) * TICK_SECONDS;
        if way == Vec3::ZERO {
            return;
        }
        let collision = context.level.collision();
        match collision.sweep(self.at, way, HULL, context.bodies) {
            None => self.at += way,
            Some(contact) => {
                self.at += way * contact.share;
                let velocity = Vec3::from(self.enemy.velocity);
                let out = velocity - contact.normal * velocity.dot(contact.normal).min(0.0);
                self.enemy.velocity = out.into();
            }
        }
    }
}

/// Ticks from the moment a swarm is woken to the moment it comes: 1 to 9 s.
const DELAY_TICKS: std::ops::Range<u32> = 50..450;
const HULL: Vec3 = Vec3::splat(0.3);
/// From how far it keeps to its prey.
const RING: f32 = 5.5;
/// The distance of prey at which it is lost.
const LOSES: f32 = 32.0;
/// Metres a second squared.
const AGILITY: f32 = 9.0;
