//! Shots, bolts, damage, death and coming back.

use std::sync::Arc;

use glam::Vec3;
use muse::lagcomp::{Admission, Hit, Shot};
use muse::netcode::{ClientId, EntityId, Server, Tick};

use super::past::{HEAD, Past, Targets};
use super::{Audience, Stage};
use crate::cheats::Offence;
use crate::enemies::{EnemyHit, RobotThere};
use crate::level::Level;
use crate::messages::ToPlayer;
use crate::rules::{Effect, Rules};
use crate::states::{Bolt, HEALTH_MAX, KindIds, Mode, Phase, Robot};
use crate::weapons::{self, ENEMY_BOLT, Sort};
use crate::{Command, TICK_SECONDS, TICKS_PER_SECOND};

/// The bolts that fly, and the past by which shots are judged.
#[derive(Debug)]
pub(super) struct Combat {
    past: Past,
    bolts: Vec<Flying>,
}

/// Something that flies.
#[derive(Clone, Debug)]
struct Flying {
    entity: EntityId,
    bolt: Bolt,
    /// The slot of the shooter; `None` for an enemy's.
    slot: Option<u8>,
}

impl Combat {
    pub(super) fn new() -> Self {
        Self {
            past: Past::new(),
            bolts: Vec::new(),
        }
    }

    pub(super) fn record(
        &mut self,
        server: &Server<Rules>,
        (level, kinds): (&Level, KindIds),
        tick: Tick,
        robots: &[RobotThere],
    ) {
        self.past.record(server, (level, kinds), tick, robots);
    }
}

impl Stage {
    /// Handles the events of the robots' steps of this tick.
    pub(super) fn handle_effects(&mut self) {
        self.launch_bolts();
        for (client, effect) in std::mem::take(&mut self.raised) {
            match effect {
                Effect::Fired {
                    weapon,
                    origin,
                    yaw,
                    pitch,
                    aiming,
                } => self.shoot(client, weapon, origin.into(), (yaw, pitch), aiming),
                Effect::Used { device } => self.use_device(device),
                _ => {}
            }
        }
    }

    fn shoot(&mut self, client: ClientId, weapon: u8, origin: Vec3, look: (f32, f32), aiming: f32) {
        let constants = weapons::weapon(weapon);
        let (Some(command), Some(slot), Sort::Hitscan) =
            (self.received(client), self.slot_of(client), constants.sort)
        else {
            return;
        };
        let towards: Vec<Vec3> =
            weapons::pellets(weapon, look, aiming, (self.tick, slot as u8)).collect();
        let admission = self.admit(client, slot, &command);
        let mut hits: Vec<(Hit, u8)> = Vec::new();
        let except = self.not_hit_by(Some(slot as u8));
        for way in towards {
            let shot = Shot::new(origin, way)
                .range(constants.range)
                .radius(constants.radius);
            if let Some(hit) = self.cast(&admission, &shot, &except) {
                match hits
                    .iter_mut()
                    .find(|(other, _)| other.entity == hit.entity)
                {
                    Some((_, damage)) => *damage = damage.saturating_add(constants.damage),
                    None => hits.push((hit, constants.damage)),
                }
            }
        }
        for (hit, damage) in hits {
            self.strike(slot, weapon, &hit, damage, origin);
        }
    }

    /// Returns the command of this tick. One that was only repeated moves a robot on, but does not shoot.
    fn received(&self, client: ClientId) -> Option<Command> {
        let taken = self.server.input(client)?;
        taken.is_received().then(|| taken.input())
    }

    /// Lets the bolts fly that the players' steps have spawned, as far as they may.
    fn launch_bolts(&mut self) {
        for spawned in self.server.spawned().to_vec() {
            let bolt = self.server.world().state(self.kinds.bolt, spawned.entity);
            let room = self.combat.bolts.len() < BOLTS_MAX;
            match bolt.filter(|_| room && self.received(spawned.client).is_some()) {
                Some(bolt) => self.combat.bolts.push(Flying {
                    entity: spawned.entity,
                    slot: bolt.slot(),
                    bolt,
                }),
                None => {
                    // It was spawned in this tick, and nobody has despawned it.
                    let _ = self.server.world_mut().despawn(spawned.entity);
                }
            }
        }
    }

    fn admit(&mut self, client: ClientId, slot: usize, command: &Command) -> Admission {
        let (admission, forged) = self.combat.past.admit(&self.server, client, command);
        if forged {
            self.seats[slot].conduct.note(Offence::ClaimForged);
        }
        admission
    }

    fn cast(&mut self, admission: &Admission, shot: &Shot, except: &[EntityId]) -> Option<Hit> {
        let level = Arc::clone(&self.level);
        let mut targets = Targets {
            collision: level.collision(),
            bodies: self.rules.surroundings.bodies(&level, self.tick),
            except,
        };
        self.combat.past.hitscan(admission, shot, &mut targets)
    }

    /// Returns those who are not hit by a player's or an enemy's shot: oneself, and those on the same side.
    fn not_hit_by(&self, slot: Option<u8>) -> Vec<EntityId> {
        let robots = self.seats.iter();
        let friends = robots.filter(|seat| match (slot, self.round.mode) {
            (Some(slot), Mode::Versus) => seat.slot == slot,
            // Beside the ball nobody is hurt.
            (Some(_), Mode::Cooperative | Mode::Ball) => true,
            (None, _) => false,
        });
        let mut except: Vec<EntityId> = friends.filter_map(|seat| seat.robot).collect();
        if slot.is_none() {
            let world = self.server.world();
            let enemies = world.entities();
            except.extend(
                enemies.filter(|entity| world.row(self.kinds.enemy.id(), *entity).is_some()),
            );
        }
        except
    }

    /// A player's shot hit someone.
    fn strike(&mut self, slot: usize, weapon: u8, hit: &Hit, damage: u8, from: Vec3) {
        if self.round.phase != Phase::Playing {
            return;
        }
        if self
            .server
            .world()
            .row(self.kinds.robot.id(), hit.entity)
            .is_some()
        {
            let critical = hit.part == HEAD;
            let damage = match critical {
                true => damage.saturating_add(damage / 2),
                false => damage,
            };
            let killed = self.hurt(hit.entity, damage, from, Some(slot), weapon);
            self.tell_hit(slot, damage, killed, critical);
            return;
        }
        let told = EnemyHit {
            enemy: hit.entity,
            slot: slot as u8,
            damage,
            part: hit.part.0,
            point: hit.point,
            tick: self.tick,
        };
        let outcome = self
            .horde
            .handle_hit(self.server.world_mut(), self.kinds, &told);
        self.round.points[slot] = self.round.points[slot].saturating_add(outcome.points);
        if outcome.killed {
            self.round.kills[slot] = self.round.kills[slot].saturating_add(1);
        }
        self.tell_hit(slot, outcome.damage, outcome.killed, outcome.critical);
    }

    fn tell_hit(&mut self, slot: usize, damage: u8, killed: bool, critical: bool) {
        if let Some(client) = self.seats[slot].client {
            let hit = ToPlayer::Hit {
                damage,
                killed,
                critical,
            };
            self.tell(Audience::One(client), hit);
        }
    }

    /// Takes health from a robot. Says whether that was the last of it.
    pub(super) fn hurt(
        &mut self,
        victim: EntityId,
        damage: u8,
        from: Vec3,
        by: Option<usize>,
        weapon: u8,
    ) -> bool {
        let Some(mut robot) = self.server.world().state(self.kinds.robot, victim) else {
            return false;
        };
        let slot = usize::from(robot.slot);
        // Who has lost its connection or has just come back is spared.
        let spared = self.seats[slot].client.is_none() || self.tick.0 < robot.respawn;
        if !robot.alive() || spared || self.round.phase != Phase::Playing || damage == 0 {
            return false;
        }
        robot.health = robot.health.saturating_sub(damage);
        if let Some(client) = self.seats[slot].client {
            let way = from - robot.middle();
            let direction = weapons::angles(way).0;
            self.tell(Audience::One(client), ToPlayer::Hurt { damage, direction });
        }
        let killed = !robot.alive();
        if killed {
            self.die(&mut robot, by, weapon);
        }
        self.set_robot(victim, &robot);
        killed
    }

    fn die(&mut self, robot: &mut Robot, by: Option<usize>, weapon: u8) {
        let slot = usize::from(robot.slot);
        robot.health = 0;
        robot.velocity = [0.0; 3];
        robot.reload = 0;
        robot.aim = 0;
        robot.respawn = self.tick.0 + RESPAWN_TICKS;
        self.round.deaths[slot] = self.round.deaths[slot].saturating_add(1);
        let round = &mut self.round;
        match (round.mode, by) {
            (Mode::Versus, Some(killer)) if killer != slot => {
                round.kills[killer] = round.kills[killer].saturating_add(1);
                round.points[killer] = round.points[killer].saturating_add(KILL_POINTS);
            }
            _ => round.points[slot] = round.points[slot].saturating_sub(DEATH_POINTS),
        }
        let feed = ToPlayer::KillFeed {
            killer: by.map(|slot| slot as u8),
            victim: robot.slot,
            weapon,
        };
        self.tell(Audience::Everyone, feed);
    }

    /// Kills robots that have fallen out of the world.
    pub(super) fn check_falls(&mut self, robots: &mut [RobotThere]) {
        for there in robots {
            let fallen = there.robot.position[1] < self.level.kill_below;
            if fallen && there.robot.alive() {
                match self.round.phase {
                    Phase::Playing => self.die(&mut there.robot, None, 0),
                    _ => self.place(&mut there.robot),
                }
                self.set_robot(there.entity, &there.robot);
            }
        }
    }

    /// Brings back who has been dead for long enough.
    pub(super) fn respawn(&mut self) {
        for there in self.robots() {
            let mut robot = there.robot;
            if !robot.alive() && self.tick.0 >= robot.respawn {
                self.place(&mut robot);
                self.set_robot(there.entity, &robot);
            }
        }
    }

    /// Puts a robot where it begins, whole.
    pub(super) fn place(&mut self, robot: &mut Robot) {
        let spawn = match self.round.mode {
            Mode::Cooperative => self.level.spawn(robot.slot, self.round.checkpoint),
            Mode::Versus => self.free_spawn(robot.slot),
            Mode::Ball => self.level.spawn(robot.slot, 0),
        };
        let mut fresh = Robot::new(robot.slot, spawn.at, spawn.yaw);
        fresh.owned = robot.owned;
        fresh.weapon = robot.weapon;
        fresh.shots = robot.shots;
        fresh.lives = robot.lives.wrapping_add(1);
        fresh.checkpoint = self.round.checkpoint;
        fresh.health = HEALTH_MAX;
        fresh.jump_held = robot.jump_held;
        fresh.use_held = robot.use_held;
        *robot = fresh;
    }

    /// The spawn that is farthest from everybody else.
    fn free_spawn(&self, slot: u8) -> crate::level::Spawn {
        let robots = self.robots();
        let others: Vec<Vec3> = robots
            .iter()
            .filter(|there| there.robot.alive() && there.robot.slot != slot)
            .map(|there| there.robot.feet())
            .collect();
        let room = |spawn: &crate::level::Spawn| {
            let near = |other: &Vec3| other.distance(spawn.at.into());
            others.iter().map(near).fold(f32::MAX, f32::min)
        };
        let spawns = &self.level.spawns;
        let turn = usize::from(slot) + self.tick.0 as usize;
        let mut best = spawns[turn % spawns.len()];
        for spawn in spawns {
            if room(spawn) > room(&best) {
                best = *spawn;
            }
        }
        best
    }

    pub(super) fn spawn_bolt(&mut self, bolt: Bolt) {
        if self.combat.bolts.len() >= BOLTS_MAX {
            return;
        }
        if let Ok(entity) = self.server.world_mut().spawn(self.kinds.bolt, &bolt) {
            // On its grid, as everybody knows it.
            let bolt = self
                .server
                .world()
                .state(self.kinds.bolt, entity)
                .unwrap_or(bolt);
            let slot = bolt.slot();
            self.combat.bolts.push(Flying { entity, bolt, slot });
        }
    }

    /// Everything that flies flies on, and hits what is in its way now.
    pub(super) fn fly_bolts(&mut self) {
        let mut flying = std::mem::take(&mut self.combat.bolts);
        flying.retain(|flying| {
            let over = self.fly(flying);
            if over {
                // It was spawned with the bolt, and nobody else despawns it.
                let _ = self.server.world_mut().despawn(flying.entity);
            }
            !over
        });
        flying.append(&mut self.combat.bolts);
        self.combat.bolts = flying;
    }

    /// One tick of a bolt. Says whether its flight is over.
    fn fly(&mut self, flying: &Flying) -> bool {
        let age = self.tick.0.saturating_sub(flying.bolt.born);
        if age == 0 {
            return false;
        }
        let from = flying.bolt.after((age - 1) as f32 * TICK_SECONDS);
        let to = flying.bolt.after(age as f32 * TICK_SECONDS);
        let except = self.not_hit_by(flying.slot);
        let admission = self.combat.past.present();
        let way = to - from;
        let shot = Shot::new(from, way)
            .range(way.length())
            .radius(bolt_radius(flying.bolt.weapon));
        if let Some(hit) = self.cast(&admission, &shot, &except) {
            self.burst(flying, hit.point, Some(&hit));
            return true;
        }
        let level = Arc::clone(&self.level);
        let bodies = self.rules.surroundings.bodies(&level, self.tick);
        if let Some(wall) = level.collision().ray(from, to, bodies) {
            self.burst(flying, from + way * wall.share + wall.normal * 0.05, None);
            return true;
        }
        age > BOLT_TICKS_MAX || to.y < level.kill_below
    }

    /// A bolt ends: on someone, with a blast if it has one.
    fn burst(&mut self, flying: &Flying, at: Vec3, hit: Option<&Hit>) {
        let weapon = flying.bolt.weapon;
        let Some(slot) = flying.slot.map(usize::from) else {
            if let Some(hit) = hit {
                self.hurt(
                    hit.entity,
                    enemy_bolt_damage(weapon),
                    flying.bolt.position.into(),
                    None,
                    weapon,
                );
            }
            return;
        };
        let constants = weapons::weapon(weapon);
        if let Some(hit) = hit {
            self.strike(
                slot,
                weapon,
                hit,
                constants.damage,
                flying.bolt.position.into(),
            );
        }
        let direct = hit.map(|hit| hit.entity);
        for (entity, middle) in self.near(at, constants.blast, slot, direct) {
            let far = (middle.distance(at) / constants.blast).min(1.0);
            let damage = (f32::from(constants.damage) * (1.0 - far) * 0.7) as u8;
            let blown = Hit {
                entity,
                part: muse::lagcomp::Part(0),
                share: 1.0,
                point: at,
                normal: Vec3::Y,
                origin: at,
                at: self.tick.into(),
                rewound: false,
            };
            self.strike(slot, weapon, &blown, damage.max(1), at);
        }
    }

    /// Returns everybody whom a blast reaches: nobody behind a wall. In versus its owner, too.
    fn near(
        &mut self,
        at: Vec3,
        radius: f32,
        slot: usize,
        direct: Option<EntityId>,
    ) -> Vec<(EntityId, Vec3)> {
        let mut found = Vec::new();
        if radius <= 0.0 {
            return found;
        }
        if self.round.mode == Mode::Versus {
            let robots = self.robots();
            found.extend(
                robots
                    .iter()
                    .map(|there| (there.entity, there.robot.middle())),
            );
        }
        let world = self.server.world();
        for entity in world.entities() {
            if let Some(enemy) = world.state(self.kinds.enemy, entity) {
                found.push((entity, Vec3::from(enemy.position) + Vec3::Y * 0.5));
            }
        }
        let level = Arc::clone(&self.level);
        let bodies = self.rules.surroundings.bodies(&level, self.tick);
        let own = self.seats[slot].robot;
        found.retain(|(entity, middle)| {
            let spared = Some(*entity) == direct || (Some(*entity) == own && radius < 0.5);
            !spared && middle.distance(at) < radius && level.collision().sees(at, *middle, bodies)
        });
        found
    }
}

/// Returns the damage of enemies' bolts: a tank's twice what a robot's blaster does.
fn enemy_bolt_damage(weapon: u8) -> u8 {
    match weapon.saturating_sub(ENEMY_BOLT) {
        0 => 28,
        1 => 5,
        2 => 4,
        _ => 14,
    }
}

fn bolt_radius(weapon: u8) -> f32 {
    match weapon {
        ENEMY_BOLT => 0.3,
        weapon if weapon > ENEMY_BOLT => 0.1,
        weapon => weapons::weapon(weapon).radius,
    }
}

/// Ticks until a robot comes back: 4 s.
const RESPAWN_TICKS: u32 = 4 * TICKS_PER_SECOND;
const KILL_POINTS: i16 = 100;
const DEATH_POINTS: i16 = 10;
/// Bolts in the air at a time.
const BOLTS_MAX: usize = 128;
/// Longest flight: 6 s.
const BOLT_TICKS_MAX: u32 = 6 * TICKS_PER_SECOND;
