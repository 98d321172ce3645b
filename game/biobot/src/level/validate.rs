//! Finds the errors of a level, before anybody plays it.

use std::collections::BTreeSet;

use glam::Vec3;

use super::{
    Act, Area, DeviceKind, DeviceSpec, Level, LevelError, Needs, Objective, Solid, Stop, Until,
};
use crate::collision::{Collision, HULL};
use crate::states::{BALL_RADIUS, Mode};

/// Checks everything, and bakes what follows from it.
pub(super) fn check(level: &mut Level) -> Result<(), LevelError> {
    counts(level)?;
    for solid in &level.solids {
        boxed("solid", &solid.note, (&solid.min, &solid.max))?;
        steepness(solid)?;
    }
    names(level)?;
    devices(level)?;
    enemies(level)?;
    for objective in &level.objectives {
        objectives(level, objective)?;
    }
    for checkpoint in &level.checkpoints {
        for name in &checkpoint.opens {
            let found = level.device(name);
            let opens = found.is_some_and(|index| level.devices[index].ticks() > 0);
            known(opens, &checkpoint.name, name)?;
        }
    }
    level.baked.collision = Collision::new(&level.solids);
    level.baked.needs = level
        .devices
        .iter()
        .map(|device| needed(level, device))
        .collect();
    places(level)?;
    pitch(level)
}

/// A level with a ball has a place for it and a goal for each team, the ball fits everywhere where it begins or counts, and nothing moves or
/// fights.
fn pitch(level: &Level) -> Result<(), LevelError> {
    let Some(kick_off) = &level.kick_off else {
        let without = level.mode != Mode::Ball && level.goals.is_empty();
        return in_range(without, "kick_off", &level.name);
    };
    in_range(level.mode == Mode::Ball, "kick_off", &level.name)?;
    count("slots", usize::from(level.slots), 1, TEAM_SLOTS_MAX)?;
    count("devices", level.devices.len(), 0, 0)?;
    let enemies = level.enemies.len() + level.swarms.len() + usize::from(level.boss.is_some());
    count("enemies", enemies, 0, 0)?;
    count("goals", level.goals.len(), 2, 2)?;
    point("kick_off", &level.name, kick_off)?;
    free_ball(level, "the kick-off", *kick_off)?;
    for (team, goal) in level.goals.iter().enumerate() {
        area("goal", &level.name, &goal.area)?;
        in_range(usize::from(goal.team) == team, "team", &level.name)?;
        free_ball(level, "a goal", goal.area.middle().into())?;
        let starts_inside = goal.area.contains(Vec3::from(*kick_off));
        in_range(!starts_inside, "goal", &level.name)?;
    }
    Ok(())
}

fn free_ball(level: &Level, what: &'static str, at: [f32; 3]) -> Result<(), LevelError> {
    let half = Vec3::splat(BALL_RADIUS);
    match level.baked.collision.overlaps(at.into(), half) {
        true => Err(LevelError::Inside { what, at }),
        false => Ok(()),
    }
}

fn counts(level: &Level) -> Result<(), LevelError> {
    count("solids", level.solids.len(), 1, SOLIDS_MAX)?;
    count("spawns", level.spawns.len(), 1, SPAWNS_MAX)?;
    count("checkpoints", level.checkpoints.len(), 0, CHECKPOINTS_MAX)?;
    count("devices", level.devices.len(), 0, DEVICES_MAX)?;
    count("enemies", level.enemies.len(), 0, ENEMIES_MAX)?;
    count("swarms", level.swarms.len(), 0, SWARMS_MAX)?;
    count("jump links", level.jump_links.len(), 0, LINKS_MAX)?;
    count("objectives", level.objectives.len(), 0, OBJECTIVES_MAX)?;
    count("slots", usize::from(level.slots), 1, crate::SLOTS_MAX)?;
    count("bytes of the name", level.name.len(), 1, 32)?;
    for checkpoint in &level.checkpoints {
        count(
            "spawns of a checkpoint",
            checkpoint.spawns.len(),
            1,
            SPAWNS_MAX,
        )?;
        area("checkpoint", &checkpoint.name, &checkpoint.area)?;
    }
    for objective in &level.objectives {
        count("tasks", objective.tasks.len(), 1, TASKS_MAX)?;
    }
    let ground = (-WORLD..=WORLD).contains(&level.kill_below);
    in_range(ground, "kill_below", &level.name)
}

fn count(what: &'static str, count: usize, min: usize, max: usize) -> Result<(), LevelError> {
    if (min..=max).contains(&count) {
        return Ok(());
    }
    Err(LevelError::Count {
        what,
        count,
        min,
        max,
    })
}

/// Robots walk up to 46 degrees; a ramp may be steeper, to slide down, but not a wall in disguise.
fn steepness(solid: &Solid) -> Result<(), LevelError> {
    let size = Vec3::from(solid.max) - Vec3::from(solid.min);
    let steep = solid.rise.is_some() && size.y > 4.0 * size.x.min(size.z);
    in_range(!steep, "slope", &solid.note)
}

fn names(level: &Level) -> Result<(), LevelError> {
    let mut seen = BTreeSet::new();
    let devices = level.devices.iter().map(|device| &device.id);
    let checkpoints = level.checkpoints.iter().map(|checkpoint| &checkpoint.name);
    for name in devices.chain(checkpoints) {
        if !seen.insert(name) {
            return Err(LevelError::Twice(name.clone()));
        }
    }
    Ok(())
}

fn devices(level: &Level) -> Result<(), LevelError> {
    for device in &level.devices {
        let somebodys = device.only.is_none_or(|only| only < level.slots);
        in_range(somebodys, "only", &device.id)?;
        match &device.what {
            DeviceKind::Lever { at } | DeviceKind::Button { at } | DeviceKind::Hold { at } => {
                point("device", &device.id, at)?;
            }
            DeviceKind::Pickup { at, weapon } => {
                point("device", &device.id, at)?;
                in_range((1..=4).contains(weapon), "weapon", &device.id)?;
            }
            DeviceKind::Plate { area: place } => area("device", &device.id, place)?,
            DeviceKind::Cleared { group } => known_group(level, &device.id, group)?,
            DeviceKind::Door {
                min,
                max,
                slide,
                ticks,
                needs,
            }
            | DeviceKind::Lift {
                min,
                max,
                travel: slide,
                ticks,
                needs,
            } => {
                boxed("device", &device.id, (min, max))?;
                moved(&device.id, (min, max), slide)?;
                in_range((1..=TICKS_MAX).contains(ticks), "ticks", &device.id)?;
                needs_exist(level, device, needs)?;
            }
            DeviceKind::Platform { min, max, path } => {
                boxed("device", &device.id, (min, max))?;
                stops(&device.id, (min, max), path)?;
            }
        }
    }
    Ok(())
}

fn stops(id: &str, corners: (&[f32; 3], &[f32; 3]), path: &[Stop]) -> Result<(), LevelError> {
    count("stops of a path", path.len(), 2, STOPS_MAX)?;
    for stop in path {
        moved(id, corners, &stop.offset)?;
        let brief = (1..=TICKS_MAX).contains(&stop.ticks) && stop.wait <= TICKS_MAX;
        in_range(brief, "ticks", id)?;
    }
    Ok(())
}

/// Checks that what a door or lift needs is something that can be active.
fn needs_exist(level: &Level, device: &DeviceSpec, needs: &Needs) -> Result<(), LevelError> {
    count("needs", needs.of.len(), 1, NEEDS_MAX)?;
    for name in &needs.of {
        let found = level.devices.iter().find(|other| other.id == *name);
        let switches = |other: &DeviceSpec| {
            !matches!(
                other.what,
                DeviceKind::Door { .. } | DeviceKind::Lift { .. } | DeviceKind::Platform { .. }
            )
        };
        known(found.is_some_and(switches), &device.id, name)?;
    }
    Ok(())
}

fn needed(level: &Level, device: &DeviceSpec) -> Vec<usize> {
    match &device.what {
        DeviceKind::Door { needs, .. } | DeviceKind::Lift { needs, .. } => needs
            .of
            .iter()
            .filter_map(|name| level.device(name))
            .collect(),
        _ => Vec::new(),
    }
}

fn enemies(level: &Level) -> Result<(), LevelError> {
    for enemy in &level.enemies {
        point("enemy", &enemy.group, &enemy.at)?;
        if let Some(wake) = &enemy.wake {
            area("wake of enemy", &enemy.group, wake)?;
        }
        in_range(enemy.chance <= 100, "chance", &enemy.group)?;
    }
    for swarm in &level.swarms {
        point("swarm", &swarm.group, &swarm.at)?;
        area("wake of swarm", &swarm.group, &swarm.wake)?;
        let [fewest, most] = swarm.count;
        let few = fewest <= most && most <= SWARM_MAX && swarm.chance <= 100;
        in_range(few, "count", &swarm.group)?;
    }
    for link in &level.jump_links {
        point("jump link", "from", &link.from)?;
        point("jump link", "to", &link.to)?;
    }
    if let Some(boss) = &level.boss {
        point("boss", &boss.group, &boss.at)?;
        area("boss", &boss.group, &boss.arena)?;
        in_range(boss.strikes > 0, "strikes", &boss.group)?;
    }
    match &level.exit {
        Some(exit) => area("exit", &level.name, exit),
        None => Ok(()),
    }
}

fn known_group(level: &Level, who: &str, group: &str) -> Result<(), LevelError> {
    let enemies = level.enemies.iter().map(|enemy| enemy.group.as_str());
    let swarms = level.swarms.iter().map(|swarm| swarm.group.as_str());
    let boss = level.boss.iter().map(|boss| boss.group.as_str());
    let mut groups = enemies.chain(swarms).chain(boss);
    known(groups.any(|known| known == group), who, group)
}

fn objectives(level: &Level, objective: &Objective) -> Result<(), LevelError> {
    let device = |name: &String| known(level.device(name).is_some(), &objective.name, name);
    for task in &objective.tasks {
        let somebodys = task.slot.is_none_or(|slot| slot < level.slots);
        in_range(somebodys, "slot", &objective.name)?;
        for at in &task.by {
            point("task", &objective.name, at)?;
        }
        match &task.act {
            Act::Go { at } => point("task", &objective.name, at)?,
            Act::Use { device: name }
            | Act::Hold { device: name }
            | Act::Stand { device: name }
            | Act::Take { device: name } => device(name)?,
            Act::Fight { group, at } => {
                known_group(level, &objective.name, group)?;
                point("task", &objective.name, at)?;
            }
        }
    }
    match &objective.until {
        Until::Active { device: name } => device(name),
        Until::AllIn { area: place } | Until::AnyIn { area: place } => {
            area("objective", &objective.name, place)
        }
        Until::Checkpoint { number } => {
            let exists = usize::from(*number) < level.checkpoints.len();
            in_range(exists, "checkpoint", &objective.name)
        }
        Until::Over => Ok(()),
    }
}

/// Nobody begins inside of a wall, and nothing to be used is in one.
fn places(level: &Level) -> Result<(), LevelError> {
    let collision = &level.baked.collision;
    let free = |what, at: [f32; 3], height: f32, half: Vec3| {
        let middle = Vec3::from(at) + Vec3::Y * height;
        match collision.overlaps(middle, half) {
            true => Err(LevelError::Inside { what, at }),
            false => Ok(()),
        }
    };
    let more = level.checkpoints.iter().flat_map(|point| &point.spawns);
    for spawn in level.spawns.iter().chain(more) {
        point("spawn", &level.name, &spawn.at)?;
        free("a spawn", spawn.at, HULL.y, HULL)?;
    }
    for enemy in &level.enemies {
        free("an enemy", enemy.at, 0.3, Vec3::splat(0.1))?;
    }
    Ok(())
}

fn point(what: &'static str, name: &str, at: &[f32; 3]) -> Result<(), LevelError> {
    let within = at.iter().all(|value| (-WORLD..=WORLD).contains(value));
    placed(within, what, name)
}

fn boxed(
    what: &'static str,
    name: &str,
    (min, max): (&[f32; 3], &[f32; 3]),
) -> Result<(), LevelError> {
    point(what, name, min)?;
    point(what, name, max)?;
    let thick = min
        .iter()
        .zip(max)
        .all(|(min, max)| max - min >= THICKNESS_MIN);
    placed(thick, what, name)
}

fn area(what: &'static str, name: &str, area: &Area) -> Result<(), LevelError> {
    boxed(what, name, (&area.min, &area.max))
}

/// Something that moves stays in the world.
fn moved(id: &str, (min, max): (&[f32; 3], &[f32; 3]), by: &[f32; 3]) -> Result<(), LevelError> {
    let shifted =
        |corner: &[f32; 3]| -> [f32; 3] { std::array::from_fn(|axis| corner[axis] + by[axis]) };
    boxed("way of", id, (&shifted(min), &shifted(max)))
}

fn placed(holds: bool, what: &'static str, name: &str) -> Result<(), LevelError> {
    let name = name.to_owned();
    holds.then_some(()).ok_or(LevelError::Place { what, name })
}

fn in_range(holds: bool, what: &'static str, name: &str) -> Result<(), LevelError> {
    let name = name.to_owned();
    holds.then_some(()).ok_or(LevelError::Range { what, name })
}

fn known(holds: bool, what: &str, name: &str) -> Result<(), LevelError> {
    let (what, name) = (what.to_owned(), name.to_owned());
    holds
        .then_some(())
        .ok_or(LevelError::Unknown { what, name })
}

/// The world ends here, as positions travel.
const WORLD: f32 = 128.0;
/// Thinner than this nothing stops anybody.
const THICKNESS_MIN: f32 = 0.05;
const SOLIDS_MAX: usize = 1_024;
const SPAWNS_MAX: usize = 64;
/// Two teams of four.
const TEAM_SLOTS_MAX: usize = 8;
const CHECKPOINTS_MAX: usize = 32;
/// The most devices that `standing` of a robot can name.
const DEVICES_MAX: usize = 200;
const ENEMIES_MAX: usize = 128;
const SWARMS_MAX: usize = 32;
const SWARM_MAX: u8 = 16;
const LINKS_MAX: usize = 256;
const OBJECTIVES_MAX: usize = 64;
const TASKS_MAX: usize = 8;
const NEEDS_MAX: usize = 8;
const STOPS_MAX: usize = 16;
const TICKS_MAX: u16 = 3_000;
