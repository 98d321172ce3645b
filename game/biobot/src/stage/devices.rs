//! Levers, buttons, plates, doors and lifts: who may use them, and what they do.

use glam::Vec3;
use muse::netcode::{EntityId, World};

use super::Stage;
use crate::enemies::RobotThere;
use crate::level::{BUTTON_TICKS, DeviceKind, Level, Needs, SWITCH_TICKS};
use crate::states::{Device, KindIds};

/// The devices of a match.
#[derive(Debug)]
pub(super) struct Devices {
    entities: Vec<EntityId>,
    /// The tick at which each was last active; `None` for never.
    active_at: Vec<Option<u32>>,
}

impl Devices {
    pub(super) fn new(level: &Level, kinds: KindIds, world: &mut World) -> Self {
        let entities = (0..level.devices.len()).map(|index| {
            let spawned = world.spawn(kinds.device, &Device::new(index));
            spawned.expect("a level has fewer devices than a world has room for")
        });
        Self {
            entities: entities.collect(),
            active_at: vec![None; level.devices.len()],
        }
    }
}

impl Stage {
    /// A robot used a device; the rules have found that it may, and that it is near enough.
    pub(super) fn use_device(&mut self, index: usize) {
        let Some(mut device) = self.rules.surroundings.devices().get(index).cloned() else {
            return;
        };
        match self.level.devices[index].what {
            DeviceKind::Lever { .. } if !device.active => {
                device.active = true;
                device.start = self.tick.0;
            }
            DeviceKind::Button { .. } => {
                device.active = true;
                device.start = self.tick.0;
            }
            _ => return,
        }
        self.set_device(device);
    }

    pub(super) fn tick_devices(&mut self) {
        let robots = self.robots();
        for index in 0..self.level.devices.len() {
            self.tick_switch(index, &robots);
        }
        for index in 0..self.level.devices.len() {
            self.tick_mechanism(index, &robots);
        }
    }

    /// Everything that a match which begins at a later checkpoint has behind it.
    pub(super) fn open_until(&mut self, checkpoint: u8) {
        let level = std::sync::Arc::clone(&self.level);
        let Some(reached) = level.checkpoints.get(usize::from(checkpoint)) else {
            return;
        };
        for index in reached.opens.iter().filter_map(|id| level.device(id)) {
            let mut device = self.rules.surroundings.devices()[index].clone();
            device.active = true;
            device.start = self.tick.0;
            self.set_device(device);
        }
    }

    /// Updates what is pressed, held or stood on.
    fn tick_switch(&mut self, index: usize, robots: &[RobotThere]) {
        let mut device = self.rules.surroundings.devices()[index].clone();
        let spec = self.level.devices[index].clone();
        let bits = |there: &RobotThere| 1_u16 << there.robot.slot;
        match &spec.what {
            DeviceKind::Lever { .. } => {}
            DeviceKind::Button { .. } => {
                device.active &= self.tick.0 < device.start + BUTTON_TICKS;
            }
            DeviceKind::Hold { .. } => {
                let mut holders = 0;
                for there in robots {
                    let holds = there.robot.alive() && there.robot.use_held;
                    if holds && self.rules.usable(&there.robot, self.tick) == Some(index) {
                        holders |= bits(there);
                    }
                }
                device.holders = holders;
                device.active = holders != 0;
            }
            DeviceKind::Plate { area } => {
                let stands = |there: &&RobotThere| {
                    there.robot.alive()
                        && spec.allows(there.robot.slot)
                        && area.contains(there.robot.feet() + Vec3::Y * 0.05)
                };
                device.holders = robots
                    .iter()
                    .filter(stands)
                    .fold(0, |all, there| all | bits(there));
                device.active = device.holders != 0;
            }
            DeviceKind::Cleared { group } => device.active = self.horde.is_cleared(group),
            DeviceKind::Pickup { at, weapon } => {
                let at = Vec3::from(*at);
                for there in robots {
                    let near = there.robot.middle().distance(at) < PICKUP_REACH;
                    let new = device.holders & bits(there) == 0;
                    if near && new && there.robot.alive() && spec.allows(there.robot.slot) {
                        device.holders |= bits(there);
                        device.active = true;
                        self.give(there, *weapon);
                    }
                }
            }
            _ => return,
        }
        if device.active {
            self.devices.active_at[index] = Some(self.tick.0);
        }
        self.set_device(device);
    }

    fn give(&mut self, there: &RobotThere, weapon: u8) {
        let mut robot = there.robot.clone();
        robot.owned |= 1 << (weapon - 1);
        let index = usize::from(weapon - 1);
        robot.magazines[index] = crate::weapons::weapon(weapon).magazine;
        self.set_robot(there.entity, &robot);
        let slot = usize::from(robot.slot);
        self.seats[slot].owned = robot.owned;
        self.tell_progress(slot);
    }

    /// Updates what opens and closes. It finishes what it does, and says beforehand what it will do: clients predict it.
    fn tick_mechanism(&mut self, index: usize, robots: &[RobotThere]) {
        let spec = &self.level.devices[index];
        let (needs, closes) = match &spec.what {
            DeviceKind::Door {
                needs, min, max, ..
            } => (needs, Some((*min, *max))),
            DeviceKind::Lift { needs, .. } => (needs, None),
            _ => return,
        };
        let mut device = self.rules.surroundings.devices()[index].clone();
        if device.is_moving(self.tick, spec.ticks()) || (device.active && needs.latch) {
            return;
        }
        let wanted = self.has(index, needs);
        if wanted == device.active {
            return;
        }
        let in_the_way = |(min, max): ([f32; 3], [f32; 3])| {
            let half = crate::collision::HULL;
            let (low, high) = (Vec3::from(min) - half, Vec3::from(max) + half);
            robots.iter().any(|there| {
                let middle = there.robot.middle();
                middle.cmpgt(low).all() && middle.cmplt(high).all()
            })
        };
        if !wanted && closes.is_some_and(in_the_way) {
            return;
        }
        device.active = wanted;
        device.start = self.tick.0 + SWITCH_TICKS;
        self.set_device(device);
    }

    /// True if a mechanism has what it needs.
    fn has(&self, index: usize, needs: &Needs) -> bool {
        let since = self.tick.0.saturating_sub(u32::from(needs.within));
        let recent = |place: &usize| self.devices.active_at[*place].is_some_and(|at| at >= since);
        let mut places = self.level.needs(index).iter();
        match needs.any {
            true => places.any(recent),
            false => places.all(recent),
        }
    }

    fn set_device(&mut self, device: Device) {
        let entity = self.devices.entities[usize::from(device.index)];
        if self.rules.surroundings.devices()[usize::from(device.index)] == device {
            return;
        }
        // Devices are spawned with the match and stay.
        let _ = self
            .server
            .world_mut()
            .set(self.kinds.device, entity, &device);
        self.rules.surroundings.set(device);
    }
}

/// The distance from which a robot takes something.
const PICKUP_REACH: f32 = 1.5;
