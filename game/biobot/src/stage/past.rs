//! The past of everybody: shots are judged by what their shooter saw.

use glam::{Quat, Vec3};
use muse::lagcomp::{
    Admission, Hit, HitVolume, Part, Placement, Pose, Rewind, RewindConfig, Rig, RigId, Scope,
    Shot, Verdict, Volume,
};
use muse::netcode::{ClientId, EntityId, Server, Tick};
use muse::wire::Duration;

use crate::Command;
use crate::collision::{Body, Collision};
use crate::enemies::{Horde, RobotThere};
use crate::level::Level;
use crate::rules::Rules;
use crate::states::{KindIds, Species, Stance};

/// The recent past of everything that can be hit.
#[derive(Debug)]
pub(super) struct Past {
    rewind: Rewind,
    robot: RigId,
    /// Of what carries robots: it is not hit, but known.
    carrier: RigId,
    species: [RigId; 4],
    known: Vec<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    entity: EntityId,
    lives: u8,
    seen: Tick,
}

/// The robots that can be hit by a shot, and what stops it.
pub(super) struct Targets<'a> {
    pub collision: &'a Collision,
    pub bodies: &'a [Body],
    /// The entities that are not hit: the shooter, its friends, the dead.
    pub except: &'a [EntityId],
}

impl Scope for Targets<'_> {
    fn includes(&mut self, entity: EntityId) -> bool {
        !self.except.contains(&entity)
    }

    fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
        self.collision
            .ray(from, to, self.bodies)
            .map(|contact| contact.share)
    }
}

impl Past {
    pub(super) fn new() -> Self {
        // A player 200 ms away sees others half a second late, and still hits what it aims at.
        let config = RewindConfig::new(crate::TICKS_PER_SECOND)
            .limit(Duration::from_millis(700))
            .margin(Duration::from_millis(60))
            .interpolation_max(Duration::from_millis(250))
            .displacement_max(6.0)
            .platforms_now(true);
        let mut rewind = Rewind::new(config);
        let sane = "the volumes are constants";
        let mut add = |volumes: Vec<HitVolume>| {
            let rig = Rig::new(volumes).expect(sane);
            rewind.add_rig(rig).expect(sane)
        };
        let robot = add(vec![
            HitVolume::new(Volume::Capsule {
                half_length: 0.35,
                radius: 0.4,
            })
            .offset(Vec3::Y * -0.15),
            HitVolume::new(Volume::Sphere { radius: 0.24 })
                .offset(Vec3::Y * 0.7)
                .part(HEAD),
        ]);
        let carrier = add(Vec::new());
        let all = [Species::Tank, Species::Cat, Species::Wasp, Species::Boss];
        let species = all.map(|species| {
            let volume = |part: &crate::enemies::HitPart| {
                HitVolume::new(Volume::Capsule {
                    half_length: part.half_length,
                    radius: part.radius,
                })
                .offset(part.middle)
                .part(Part(part.part))
            };
            add(Horde::volumes(species).iter().map(volume).collect())
        });
        Self {
            rewind,
            robot,
            carrier,
            species,
            known: Vec::new(),
        }
    }

    /// Remembers where everybody is at the end of a tick.
    pub(super) fn record(
        &mut self,
        server: &Server<Rules>,
        (level, kinds): (&Level, KindIds),
        tick: Tick,
        robots: &[RobotThere],
    ) {
        if self.rewind.advance(tick).is_err() {
            return;
        }
        let world = server.world();
        let mut carriers = Vec::new();
        for entity in world.entities() {
            let device = world.state(kinds.device, entity);
            if let Some(device) = device
                && let Some(spec) = level.devices.get(usize::from(device.index))
                && spec.carries()
            {
                let offset = spec.offset(&device, tick);
                let placement = Placement::new(Pose::at(offset));
                self.place(entity, self.carrier, placement, 0);
                carriers.push((usize::from(device.index), entity, offset));
            }
        }
        for there in robots.iter().filter(|there| there.robot.alive()) {
            let middle = there.robot.middle();
            let mut of = carriers.iter();
            let carrier = of.find(|(index, ..)| Some(*index) == there.robot.carrier());
            let placement = match carrier {
                Some((_, platform, offset)) => {
                    Placement::new(Pose::at(middle - *offset)).on(*platform)
                }
                None => Placement::new(Pose::at(middle)),
            };
            self.place(there.entity, self.robot, placement, there.robot.lives);
        }
        for entity in world.entities() {
            let Some(enemy) = world.state(kinds.enemy, entity) else {
                continue;
            };
            if enemy.stance != Stance::Dead {
                let turned = Quat::from_rotation_y(enemy.yaw);
                let pose = Pose::new(enemy.position.into(), turned);
                let rig = self.species[enemy.species as usize];
                self.place(entity, rig, Placement::new(pose), 0);
            }
        }
        let rewind = &mut self.rewind;
        self.known.retain(|known| {
            let there = known.seen == tick;
            if !there {
                rewind.retire(known.entity);
            }
            there
        });
    }

    fn place(&mut self, entity: EntityId, rig: RigId, mut placement: Placement<'_>, lives: u8) {
        let tick = self.rewind.now();
        let found = self.known.iter_mut().find(|known| known.entity == entity);
        match found {
            Some(known) => {
                if known.lives != lives {
                    placement = placement.jumped();
                }
                known.lives = lives;
                known.seen = tick;
            }
            None => {
                if self.rewind.add(entity, rig).is_err() {
                    return;
                }
                self.known.push(Known {
                    entity,
                    lives,
                    seen: tick,
                });
            }
        }
        // Positions are on their grids, and it was added.
        let _ = self.rewind.record(entity, placement);
    }

    /// The instant at which a client's shot is judged, and whether it claimed another than it can have seen.
    pub(super) fn admit(
        &mut self,
        server: &Server<Rules>,
        client: ClientId,
        command: &Command,
    ) -> (Admission, bool) {
        let present = self.rewind.present();
        let Some(claim) = command.claim else {
            return (present, false);
        };
        let admitted = server
            .shooter(client)
            .map(|shooter| self.rewind.admit(claim, &shooter));
        let admission = admitted.unwrap_or(present);
        (admission, admission.verdict() == Verdict::Clamped)
    }

    pub(super) fn present(&self) -> Admission {
        self.rewind.present()
    }

    pub(super) fn hitscan(
        &self,
        admission: &Admission,
        shot: &Shot,
        targets: &mut Targets<'_>,
    ) -> Option<Hit> {
        self.rewind.hitscan(admission, shot, targets)
    }
}

/// The part of a robot that counts more.
pub(super) const HEAD: Part = Part(1);
