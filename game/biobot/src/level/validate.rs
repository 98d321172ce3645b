//! Finds the errors of a level, before anybody plays it.

use std::collections::BTreeSet;

use glam::Vec3;

use super::{
    Act, Area, DeviceKind, DeviceSpec, Level, LevelError, Needs, Objective, Solid, Spawn, Stop,
    Until,
};
use crate::collision::{Collision, HULL};

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
            opens
                .then_some(())
                .ok_or_else(|| unknown(&checkpoint.name, name))?;
        }
    }
    level.baked.collision = Collision::new(&level.solids);
    level.baked.needs = level
        .devices
        .iter()
        .map(|device| needed(level, device))
        .collect();
    places(level)
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
    ground.then_some(()).ok_or(LevelError::Range {
        what: "kill_below",
        name: level.name.clone(),
    })
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
    if steep {
        return Err(LevelError::Range {
            what: "slope",
            name: solid.note.clone(),
        });
    }
    Ok(())
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
        if device.only.is_some_and(|only| only >= level.slots) {
            return Err(range("only", &device.id));
        }
        match &device.what {
            DeviceKind::Lever { at } | DeviceKind::Button { at } | DeviceKind::Hold { at } => {
                point("device", &device.id, at)?;
            }
            DeviceKind::Pickup { at, weapon } => {
                point("device", &device.id, at)?;
                if !(1..=4).contains(weapon) {
                    return Err(range("weapon", &device.id));
                }
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
                if !(1..=TICKS_MAX).contains(ticks) {
                    return Err(range("ticks", &device.id));
                }
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
        if !(1..=TICKS_MAX).contains(&stop.ticks) || stop.wait > TICKS_MAX {
            return Err(range("ticks", id));
        }
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
        if !found.is_some_and(switches) {
            return Err(unknown(&device.id, name));
        }
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
        if enemy.chance > 100 {
            return Err(range("chance", &enemy.group));
        }
    }
    for swarm in &level.swarms {
        point("swarm", &swarm.group, &swarm.at)?;
        area("wake of swarm", &swarm.group, &swarm.wake)?;
        let [fewest, most] = swarm.count;
        if fewest > most || most > SWARM_MAX || swarm.chance > 100 {
            return Err(range("count", &swarm.group));
        }
    }
    for link in &level.jump_links {
        point("jump link", "from", &link.from)?;
        point("jump link", "to", &link.to)?;
    }
    if let Some(boss) = &level.boss {
        point("boss", &boss.group, &boss.at)?;
        area("boss", &boss.group, &boss.arena)?;
        if boss.strikes == 0 {
            return Err(range("strikes", &boss.group));
        }
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
    match groups.any(|known| known == group) {
        true => Ok(()),
        false => Err(unknown(who, group)),
    }
}

fn objectives(level: &Level, objective: &Objective) -> Result<(), LevelError> {
    let device = |name: &String| match level.device(name) {
        Some(_) => Ok(()),
        None => Err(unknown(&objective.name, name)),
    };
    for task in &objective.tasks {
        if task.slot.is_some_and(|slot| slot >= level.slots) {
            return Err(range("slot", &objective.name));
        }
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
        Until::Checkpoint { number } if usize::from(*number) >= level.checkpoints.len() => {
            Err(range("checkpoint", &objective.name))
        }
        Until::Checkpoint { .. } | Until::Over => Ok(()),
    }
}

/// Nobody begins inside of a wall, and nothing to be used is in one.
fn places(level: &Level) -> Result<(), LevelError> {
    let collision = &level.baked.collision;
    let inside = |what, at: [f32; 3]| {
        let middle = Vec3::from(at) + Vec3::Y * HULL.y;
        match collision.overlaps(middle, HULL) {
            true => Err(LevelError::Inside { what, at }),
            false => Ok(()),
        }
    };
    let spawns: Vec<Spawn> = level.spawns.clone();
    let more = level
        .checkpoints
        .iter()
        .flat_map(|point| point.spawns.iter());
    for spawn in spawns.iter().chain(more) {
        point("spawn", &level.name, &spawn.at)?;
        inside("a spawn", spawn.at)?;
    }
    for enemy in &level.enemies {
        let middle = Vec3::from(enemy.at) + Vec3::Y * 0.3;
        if collision.overlaps(middle, Vec3::splat(0.1)) {
            return Err(LevelError::Inside {
                what: "an enemy",
                at: enemy.at,
            });
        }
    }
    Ok(())
}

fn point(what: &'static str, name: &str, at: &[f32; 3]) -> Result<(), LevelError> {
    match at.iter().all(|value| (-WORLD..=WORLD).contains(value)) {
        true => Ok(()),
        false => Err(place(what, name)),
    }
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
    thick.then_some(()).ok_or_else(|| place(what, name))
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

fn place(what: &'static str, name: &str) -> LevelError {
    LevelError::Place {
        what,
        name: name.to_owned(),
    }
}

fn range(what: &'static str, name: &str) -> LevelError {
    LevelError::Range {
        what,
        name: name.to_owned(),
    }
}

fn unknown(what: &str, name: &str) -> LevelError {
    LevelError::Unknown {
        what: what.to_owned(),
        name: name.to_owned(),
    }
}

/// The world ends here, as positions travel.
const WORLD: f32 = 128.0;
/// Thinner than this nothing stops anybody.
const THICKNESS_MIN: f32 = 0.05;
const SOLIDS_MAX: usize = 1_024;
const SPAWNS_MAX: usize = 64;
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
