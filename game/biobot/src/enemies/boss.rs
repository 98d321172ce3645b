//! The final boss: two weak points, to be hit within half a second of each other, strike after strike.
//!
//! It says what it will do before it does it: while it charges its stance is [`Stance::Fire`], and at least a second passes until the
//! first bolt. Its weak points are open while it watches ([`Stance::Chase`]), between two attacks. After each strike it reels
//! ([`Stance::Jump`]): for that time it neither attacks nor can be struck. With every strike its attacks come sooner and are more.

use glam::Vec3;

use super::{EnemyHit, HitOutcome, Horde, HordeContext, RobotThere};
use crate::level::{Area, BossSpec};
use crate::states::{Species, Stance};
use crate::weapons::{angles, direction};

/// The mind of the boss.
#[derive(Clone, Debug)]
pub(super) struct BossMind {
    arena: Area,
    strikes: u8,
    strikes_left: u8,
    awake: bool,
    reels_until: u32,
    weak: [Option<u32>; 2],
    attack: Option<Attack>,
    next_at: u32,
    turn: u32,
}

/// An attack under way.
#[derive(Clone, Copy, Debug)]
struct Attack {
    kind: AttackKind,
    /// The tick of its first bolt.
    at: u32,
    done: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttackKind {
    /// Bolts at one robot after the other.
    Volley,
    /// A fan of bolts over the floor, to be jumped over or hidden from.
    Fan,
    /// Wasps.
    Call,
}

impl BossMind {
    pub(super) const fn new(spec: &BossSpec) -> Self {
        Self {
            arena: spec.arena,
            strikes: spec.strikes,
            strikes_left: spec.strikes,
            awake: false,
            reels_until: 0,
            weak: [None; 2],
            attack: None,
            next_at: 0,
            turn: 0,
        }
    }

    /// Returns the number of strikes that it has taken.
    const fn phase(&self) -> u32 {
        (self.strikes - self.strikes_left) as u32
    }
}

impl Horde {
    pub(super) fn tick_boss(&mut self, context: &mut HordeContext<'_>) {
        let Some(mut mind) = self.boss.take() else {
            return;
        };
        let found = |foe: &super::Foe| foe.species == Species::Boss && foe.died.is_none();
        if let Some(index) = self.foes.iter().position(found) {
            self.rule(&mut mind, index, context);
        }
        context.round.weak_points = mind.weak.map(Option::unwrap_or_default);
        self.boss = Some(mind);
    }

    fn rule(&mut self, mind: &mut BossMind, index: usize, context: &mut HordeContext<'_>) {
        let tick = context.tick.0;
        let inside = |there: &&RobotThere| {
            there.robot.alive() && mind.arena.contains(there.robot.feet() + Vec3::Y * 0.1)
        };
        let prey: Vec<RobotThere> = context.robots.iter().filter(inside).cloned().collect();
        if !mind.awake {
            // Everybody has to be there; who is dead will be.
            mind.awake = !prey.is_empty() && prey.len() == context.robots.len();
            mind.next_at = tick + CALM_TICKS;
            return;
        }
        let foe = &mut self.foes[index];
        if prey.is_empty() {
            // Who comes back finds it watching, not firing.
            mind.attack = None;
            mind.next_at = tick + CALM_TICKS;
            foe.enemy.stance = Stance::Chase;
            return;
        }
        if tick < mind.reels_until {
            foe.enemy.stance = Stance::Jump;
            mind.attack = None;
            // It answers before it opens again.
            mind.next_at = mind.reels_until;
            return;
        }
        match mind.attack {
            Some(attack) if tick < attack.at => foe.enemy.stance = Stance::Fire,
            Some(attack) => {
                let over = self.attack_with(mind, attack, index, &prey, context);
                if over {
                    mind.attack = None;
                    let pause = OPEN_TICKS - (mind.phase() * 10).min(OPEN_TICKS / 2);
                    mind.next_at = tick + (pause as f32 * self.hardness.pause) as u32;
                }
            }
            None => {
                foe.enemy.stance = Stance::Chase;
                let sum: Vec3 = prey.iter().map(|there| there.robot.feet()).sum();
                foe.turn_to(sum / prey.len() as f32);
                if tick >= mind.next_at {
                    foe.enemy.stance = Stance::Fire;
                    mind.attack = Some(self.choose_attack(mind, tick));
                }
            }
        }
    }

    fn choose_attack(&mut self, mind: &mut BossMind, tick: u32) -> Attack {
        mind.turn += 1;
        let wasps = self
            .foes
            .iter()
            .filter(|foe| foe.species == Species::Wasp && foe.died.is_none());
        let calls = mind.phase() >= 2 && mind.turn.is_multiple_of(4) && wasps.count() < 3;
        let kind = match self.rng.bool() {
            _ if calls => AttackKind::Call,
            true => AttackKind::Volley,
            false => AttackKind::Fan,
        };
        Attack {
            kind,
            at: tick + CHARGE_TICKS,
            done: 0,
        }
    }

    /// One tick of an attack. Says whether it is over.
    fn attack_with(
        &mut self,
        mind: &mut BossMind,
        mut attack: Attack,
        index: usize,
        prey: &[RobotThere],
        context: &mut HordeContext<'_>,
    ) -> bool {
        let since = context.tick.0 - attack.at;
        let at = self.foes[index].at;
        match attack.kind {
            AttackKind::Call => {
                self.hatch(at + Vec3::Y * 6.5, 2, None, context);
                return true;
            }
            AttackKind::Volley => {
                if since.is_multiple_of(VOLLEY_TICKS) {
                    let there = &prey[attack.done as usize % prey.len()];
                    let error = self.hardness.error;
                    self.foes[index].shoot(context, there, error, &mut self.rng);
                    attack.done += 1;
                }
            }
            AttackKind::Fan => {
                if since.is_multiple_of(FAN_TICKS) {
                    let nearest = &prey[0];
                    let (middle, _) = angles(nearest.robot.feet() - at);
                    let share = attack.done as f32 / (FAN_BOLTS - 1) as f32 - 0.5;
                    let yaw = middle + share * FAN_WIDTH;
                    let way = direction(yaw, 0.0);
                    let speed = self.foes[index].traits().bolt_speed * 0.7;
                    let from = at + Vec3::Y * FAN_HEIGHT + way * 2.2;
                    self.foes[index].fire(context, from, way * speed);
                    attack.done += 1;
                }
            }
        }
        mind.attack = Some(attack);
        let bolts = match attack.kind {
            AttackKind::Volley => 4 + mind.phase() * 2,
            _ => FAN_BOLTS,
        };
        attack.done >= bolts
    }

    /// A shot at the boss counts when the other weak point was hit less than half a second before.
    pub(super) fn hit_boss(&mut self, index: usize, hit: &EnemyHit) -> HitOutcome {
        let Some(mind) = self.boss.as_mut().filter(|mind| mind.awake) else {
            return HitOutcome::default();
        };
        let tick = hit.tick.0;
        let Some(weak) = usize::from(hit.part)
            .checked_sub(1)
            .filter(|weak| *weak < 2)
        else {
            return HitOutcome::default();
        };
        if tick < mind.reels_until || mind.attack.is_some() {
            return HitOutcome::default();
        }
        mind.weak[weak] = Some(tick);
        let together = mind.weak[1 - weak].is_some_and(|other| tick - other <= TOGETHER_TICKS);
        if !together {
            return HitOutcome {
                damage: hit.damage,
                killed: false,
                critical: true,
                points: 0,
            };
        }
        mind.weak = [None; 2];
        mind.strikes_left -= 1;
        mind.reels_until = tick + REEL_TICKS;
        let share = u32::from(mind.strikes_left) * 100 / u32::from(mind.strikes.max(1));
        let killed = mind.strikes_left == 0;
        let foe = &mut self.foes[index];
        foe.enemy.health = share as u8;
        foe.enemy.stance = Stance::Jump;
        HitOutcome {
            damage: 100 / mind.strikes.max(1),
            killed,
            critical: true,
            points: if killed {
                foe.traits().points
            } else {
                STRIKE_POINTS
            },
        }
    }
}

/// Both weak points within this: half a second.
const TOGETHER_TICKS: u32 = 25;
/// Ticks for which it reels after a strike: 5 s.
const REEL_TICKS: u32 = 250;
/// Ticks for which its weak points are open, at first.
const OPEN_TICKS: u32 = 120;
/// Ticks from its waking to its first attack.
const CALM_TICKS: u32 = 100;
/// Ticks for which it charges before the first bolt: 1.1 s.
const CHARGE_TICKS: u32 = 55;
const VOLLEY_TICKS: u32 = 10;
const FAN_TICKS: u32 = 3;
const FAN_BOLTS: u32 = 15;
/// Radians from the first bolt of a fan to the last.
const FAN_WIDTH: f32 = 1.6;
/// Low enough to jump over.
const FAN_HEIGHT: f32 = 0.7;
const STRIKE_POINTS: i16 = 200;
