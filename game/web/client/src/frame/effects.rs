//! Effects to see and hear: shots with their ends, impacts, deaths, and what one's own robot did.

use std::collections::BTreeMap;

use glam::Vec3;
use muse::netcode::Tick;
use muse_biobot::collision::Body;
use muse_biobot::player::{Frame, Seen};
use muse_biobot::weapons::{self, Sort};
use muse_biobot::{Effect, Level, ROBOT_HEIGHT, Species};

use super::{effect, effect_kind};

/// Makes effects of frames, and remembers what it needs of those before.
#[derive(Debug, Default)]
pub struct Happenings {
    /// Robots by entity: alive or not, and the number of the life.
    robots: BTreeMap<u32, (bool, u8)>,
    enemies: BTreeMap<u32, bool>,
    checkpoint: Option<u8>,
    records: Vec<Record>,
}

/// One effect, as it stands in the frame.
pub(super) type Record = [f32; effect::STRIDE];

/// A shot, whoever fired it.
struct Shot {
    slot: f32,
    entity: u32,
    weapon: u8,
    origin: Vec3,
    look: (f32, f32),
    aiming: f32,
    roll: (Tick, u8),
}

impl Happenings {
    /// Returns the effects since the last frame.
    pub(super) fn of(&mut self, frame: &Frame, level: &Level) -> &[Record] {
        self.records.clear();
        for seen in &frame.seen {
            match seen {
                Seen::Own { tick, effect } => self.own(frame, level, *tick, effect),
                Seen::Fired {
                    entity,
                    weapon,
                    origin,
                    yaw,
                    pitch,
                } => {
                    let robot = frame.robots.iter().find(|shown| shown.entity == *entity);
                    let slot = robot.map_or(0, |shown| shown.robot.slot);
                    let shot = Shot {
                        slot: f32::from(slot),
                        entity: entity.bits(),
                        weapon: *weapon,
                        origin: (*origin).into(),
                        look: (*yaw, *pitch),
                        aiming: robot.map_or(0.0, |shown| shown.robot.aiming()),
                        roll: (frame.shown_time.tick, slot),
                    };
                    self.shot(frame, level, &shot);
                }
                Seen::EnemyFired { entity } => {
                    if let Some(shown) = frame.enemies.iter().find(|it| it.entity == *entity) {
                        let at = shown.enemy.position;
                        let record = record(effect_kind::SHOT, -1.0, entity.bits(), at, at);
                        self.push(record);
                    }
                }
                Seen::Burst { weapon, at } => {
                    let blast = weapons::TABLE
                        .get(usize::from(*weapon).wrapping_sub(1))
                        .is_some_and(|weapon| weapon.blast > 0.0);
                    let kind = if blast {
                        effect_kind::EXPLOSION
                    } else {
                        effect_kind::IMPACT
                    };
                    let mut record = record(kind, -1.0, 0, *at, [0.0, 1.0, 0.0]);
                    record[effect::WEAPON] = f32::from(*weapon);
                    self.push(record);
                }
                Seen::Cancelled { .. } | Seen::Message(_) => {}
            }
        }
        self.lives(frame);
        &self.records
    }

    /// Adds an effect of one's own robot.
    fn own(&mut self, frame: &Frame, level: &Level, tick: Tick, what: &Effect) {
        let Some(own) = &frame.own else { return };
        let (slot, entity) = (f32::from(own.robot.slot), own.entity.bits());
        let at = own.robot.position;
        let (kind, weapon, amount) = match *what {
            Effect::Fired {
                weapon,
                origin,
                yaw,
                pitch,
                aiming,
            } => {
                let shot = Shot {
                    slot,
                    entity,
                    weapon,
                    origin: origin.into(),
                    look: (yaw, pitch),
                    aiming,
                    roll: (tick, own.robot.slot),
                };
                return self.shot(frame, level, &shot);
            }
            Effect::Empty => (effect_kind::EMPTY, own.robot.weapon, 0.0),
            Effect::Reloading => (effect_kind::RELOAD, own.robot.weapon, 0.0),
            Effect::Drawn { weapon } => (effect_kind::WEAPON, weapon, 0.0),
            Effect::Jumped => (effect_kind::JUMP, 0, 0.0),
            Effect::Landed { speed } => (effect_kind::LAND, 0, speed),
            Effect::Used { device } => (effect_kind::DEVICE, 0, device as f32),
        };
        let mut record = record(kind, slot, entity, at, at);
        record[effect::WEAPON] = f32::from(weapon);
        record[effect::AMOUNT] = amount;
        self.push(record);
    }

    /// A shot, and an impact where each pellet ended.
    fn shot(&mut self, frame: &Frame, level: &Level, shot: &Shot) {
        let weapon = weapons::weapon(shot.weapon);
        if weapon.sort == Sort::Projectile {
            let at = shot.origin.into();
            let mut record = record(effect_kind::SHOT, shot.slot, shot.entity, at, at);
            record[effect::WEAPON] = f32::from(shot.weapon);
            self.push(record);
            return;
        }
        let bodies = bodies(frame, level);
        for way in weapons::pellets(shot.weapon, shot.look, shot.aiming, shot.roll) {
            let end = shot.origin + way * weapon.range;
            let wall = level.collision().ray(shot.origin, end, &bodies);
            let wall_share = wall.map_or(1.0, |contact| contact.share);
            let flesh =
                nearest_body(frame, shot, way * weapon.range).filter(|&share| share < wall_share);
            let at = shot.origin.lerp(end, flesh.unwrap_or(wall_share));
            let mut record = record(
                effect_kind::SHOT,
                shot.slot,
                shot.entity,
                shot.origin.into(),
                at.into(),
            );
            record[effect::WEAPON] = f32::from(shot.weapon);
            self.push(record);
            let surface = match (flesh, wall) {
                (Some(_), _) => Some((-way, METAL)),
                (None, Some(contact)) => Some((contact.normal, f32::from(contact.material as u8))),
                (None, None) => None,
            };
            if let Some((normal, material)) = surface {
                let mut record = self::record(
                    effect_kind::IMPACT,
                    shot.slot,
                    shot.entity,
                    at.into(),
                    normal.into(),
                );
                record[effect::WEAPON] = f32::from(shot.weapon);
                record[effect::MATERIAL] = material;
                self.push(record);
            }
        }
    }

    /// Adds deaths, respawns and checkpoints.
    fn lives(&mut self, frame: &Frame) {
        let own = frame.own.iter().map(|own| (own.entity, &own.robot));
        let others = frame
            .robots
            .iter()
            .map(|shown| (shown.entity, &shown.robot));
        let mut robots = BTreeMap::new();
        for (entity, robot) in own.chain(others) {
            let (id, now) = (entity.bits(), (robot.alive(), robot.lives));
            robots.insert(id, now);
            let kind = match self.robots.get(&id) {
                Some((true, _)) if !now.0 => effect_kind::DEATH,
                Some((_, life)) if *life != now.1 => effect_kind::RESPAWN,
                _ => continue,
            };
            let at = robot.position;
            self.push(record(kind, f32::from(robot.slot), id, at, at));
        }
        self.robots = robots;
        let mut enemies = BTreeMap::new();
        for shown in &frame.enemies {
            let (id, alive) = (shown.entity.bits(), shown.enemy.health > 0);
            enemies.insert(id, alive);
            if self.enemies.get(&id) == Some(&true) && !alive {
                let at = shown.enemy.position;
                self.push(record(effect_kind::DEATH, -1.0, id, at, at));
            }
        }
        self.enemies = enemies;
        let checkpoint = frame.round.as_ref().map(|round| round.checkpoint);
        if let (Some(before), Some(now), Some(own)) = (self.checkpoint, checkpoint, &frame.own)
            && now > before
        {
            let at = own.robot.position;
            let mut record = record(effect_kind::CHECKPOINT, -1.0, own.entity.bits(), at, at);
            record[effect::AMOUNT] = f32::from(now);
            self.push(record);
        }
        self.checkpoint = checkpoint.or(self.checkpoint);
    }

    fn push(&mut self, record: Record) {
        if self.records.len() < EFFECTS_MAX {
            self.records.push(record);
        }
    }
}

fn record(kind: u32, slot: f32, entity: u32, at: [f32; 3], to: [f32; 3]) -> Record {
    let mut record = [0.0; effect::STRIDE];
    record[effect::KIND] = kind as f32;
    record[effect::SLOT] = slot;
    record[effect::ENTITY] = entity as f32;
    record[effect::X..=effect::Z].copy_from_slice(&at);
    record[effect::TO_X..=effect::TO_Z].copy_from_slice(&to);
    record
}

/// Moving bodies that stop shots, as they are shown.
fn bodies(frame: &Frame, level: &Level) -> Vec<Body> {
    let devices = level.devices.iter().zip(&frame.devices).enumerate();
    devices
        .filter_map(|(index, (spec, shown))| spec.body(index, &shown.state, frame.time.tick))
        .collect()
}

/// Share of its way after which a shot meets a robot or an enemy as shown; what counts is decided by the server.
fn nearest_body(frame: &Frame, shot: &Shot, way: Vec3) -> Option<f32> {
    let own = frame.own.iter().map(|own| (own.entity, own.robot.middle()));
    let others = frame.robots.iter().map(|it| (it.entity, it.robot.middle()));
    let robots = own
        .chain(others)
        .map(|(entity, middle)| (entity, middle, ROBOT_HEIGHT / 3.0));
    let enemies = frame.enemies.iter().map(|shown| {
        let (up, radius) = match shown.enemy.species {
            Species::Tank => (1.0, 1.4),
            Species::Cat => (0.5, 0.6),
            Species::Wasp => (0.0, 0.4),
            Species::Boss => (2.0, 2.2),
        };
        let middle = Vec3::from(shown.enemy.position) + Vec3::Y * up;
        (shown.entity, middle, radius)
    });
    robots
        .chain(enemies)
        .filter(|(entity, ..)| entity.bits() != shot.entity)
        .filter_map(|(_, middle, radius)| meets(shot.origin, way, middle, radius))
        .min_by(f32::total_cmp)
}

/// Share of its way, 0 to 1, at which a line enters a ball.
fn meets(from: Vec3, way: Vec3, middle: Vec3, radius: f32) -> Option<f32> {
    let length = way.length();
    let direction = way / length.max(f32::MIN_POSITIVE);
    let along = (middle - from).dot(direction);
    let beside = (middle - from).length_squared() - along * along;
    let inside = radius * radius - beside;
    let enters = along - inside.max(0.0).sqrt();
    (inside > 0.0 && (0.0..length).contains(&enters)).then_some(enters / length)
}

/// The material of robots and enemies: `Material::Metal`.
const METAL: f32 = 1.0;
/// Effects of one frame.
const EFFECTS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_meets_a_ball_where_it_enters() {
        let ball = Vec3::new(0.0, 0.0, -10.0);
        let share = meets(Vec3::ZERO, Vec3::NEG_Z * 20.0, ball, 1.0);
        assert!(
            share.is_some_and(|share| (share - 0.45).abs() < 1e-6),
            "{share:?}"
        );
        assert_eq!(meets(Vec3::ZERO, Vec3::Z * 20.0, ball, 1.0), None, "behind");
        assert_eq!(
            meets(Vec3::ZERO, Vec3::NEG_Z * 8.0, ball, 1.0),
            None,
            "short"
        );
        let turned = Vec3::X * 20.0;
        assert_eq!(meets(Vec3::ZERO, turned, ball, 1.0), None, "beside");
    }
}
