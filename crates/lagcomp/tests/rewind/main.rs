//! Rewind: hits equal those of plain geometry in double precision over states blended by hand, nobody
//! rewinds further than allowed, and nonsense does no harm. `MUSE_SEEDS` runs more seeds.

mod admission;
mod contest;
mod geometry;
mod plain;
mod rules;

use fastrand::Rng;
use glam::{Quat, Vec3};
use muse_lagcomp::{Placement, Pose, Rewind};
use muse_netcode::EntityId;

pub(crate) fn id(index: u32) -> EntityId {
    EntityId::new(index, 0).expect("small")
}

pub(crate) fn point(rng: &mut Rng, size: f32) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| (rng.f32() - 0.5) * size))
}

pub(crate) fn turn(rng: &mut Rng, angle: f32) -> Quat {
    Quat::from_scaled_axis(point(rng, 2.0).normalize_or_zero() * angle)
}

pub(crate) fn seeds(default: u64) -> u64 {
    let number = std::env::var("MUSE_SEEDS").ok();
    number.and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub(crate) fn record(rewind: &mut Rewind, entity: EntityId, position: Vec3) {
    let placement = Placement::new(Pose::at(position));
    rewind.record(entity, placement).expect("sane");
}
