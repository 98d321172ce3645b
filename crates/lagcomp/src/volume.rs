//! Hit volumes: what can be hit of an entity, and where a shot meets it. The geometry is parry3d's (decision 0007).

use glam::Vec3;
use parry3d::query::{Ray, RayCast, intersection_test};
use parry3d::shape::{Ball, Capsule, Cuboid, RoundCuboid};

use super::pose::{Pose, is_near};
use super::{Part, RewindError};

/// The shape of a hit volume, about its own origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Volume {
    /// A sphere.
    Sphere {
        /// Its radius.
        radius: f32,
    },
    /// A capsule along y: a segment with a radius.
    Capsule {
        /// Half the length of the segment.
        half_length: f32,
        /// The radius around it.
        radius: f32,
    },
    /// A box, turned as its pose says.
    Box {
        /// Half its edges.
        half: Vec3,
    },
}

impl Volume {
    /// Distance of its farthest point from its origin.
    pub(super) fn reach(&self) -> f32 {
        match *self {
            Self::Sphere { radius } => radius,
            Self::Capsule {
                half_length,
                radius,
            } => half_length + radius,
            Self::Box { half } => half.length(),
        }
    }

    /// Finds where a sphere of `radius` (0 for a ray) that moves from `start` to `end` first touches it: the share of the way
    /// and the outward normal, zero when it began inside. Points are relative to the volume.
    pub(super) fn cast(&self, start: Vec3, end: Vec3, radius: f32) -> Option<(f32, Vec3)> {
        // Far from the volume, squares of the distance drown its radius in rounding (a head at 1 km is off by its own
        // size), so the way begins close by.
        let whole = end - start;
        let length = whole.length();
        let bound = self.reach() + radius + NEAR_MARGIN;
        let skipped = if length > 0.0 {
            (-start.dot(whole) / length - bound).clamp(0.0, length)
        } else {
            0.0
        };
        let share_skipped = if length > 0.0 { skipped / length } else { 0.0 };
        let start = start + whole * share_skipped;
        // A direction of some length, even for who does not move.
        let rest = (length - skipped).min(2.0 * bound).max(LENGTH_MIN);
        let direction = (whole / length.max(LENGTH_MIN)).normalize_or(Vec3::X);
        let ray = Ray::new(start, direction);
        let hit = match *self {
            Self::Sphere { radius: own } => {
                Ball::new(own + radius).cast_local_ray_and_get_normal(&ray, rest, true)
            }
            Self::Capsule {
                half_length,
                radius: own,
            } => Capsule::new_y(half_length, own + radius)
                .cast_local_ray_and_get_normal(&ray, rest, true),
            Self::Box { half } if radius <= 0.0 => {
                Cuboid::new(half).cast_local_ray_and_get_normal(&ray, rest, true)
            }
            Self::Box { half } => RoundCuboid {
                inner_shape: Cuboid::new(half),
                border_radius: radius,
            }
            .cast_local_ray_and_get_normal(&ray, rest, true),
        }?;
        let distance = hit.time_of_impact;
        if !distance.is_finite() || distance < 0.0 {
            return None;
        }
        let share = (skipped + distance) / length.max(LENGTH_MIN);
        let normal = if distance <= 0.0 {
            Vec3::ZERO
        } else {
            hit.normal
        };
        Some((share.min(1.0), normal))
    }

    /// True if it touches a capsule from `base` to `tip`, relative to the volume.
    pub(super) fn touches(&self, base: Vec3, tip: Vec3, radius: f32) -> bool {
        let blade = Capsule::new(base, tip, radius);
        let (here, there) = (Default::default(), Default::default());
        let result = match *self {
            Self::Sphere { radius } => intersection_test(&here, &blade, &there, &Ball::new(radius)),
            Self::Capsule {
                half_length,
                radius,
            } => intersection_test(&here, &blade, &there, &Capsule::new_y(half_length, radius)),
            Self::Box { half } => intersection_test(&here, &blade, &there, &Cuboid::new(half)),
        };
        // All pairs of these shapes are supported.
        result.is_ok_and(|found| found.intersecting)
    }

    fn is_sane(&self) -> bool {
        let size = |value: f32| (SIZE_MIN..=SIZE_MAX).contains(&value);
        match *self {
            Self::Sphere { radius } => size(radius),
            Self::Capsule {
                half_length,
                radius,
            } => size(half_length) && size(radius),
            Self::Box { half } => half.to_array().into_iter().all(size),
        }
    }
}

/// One volume of a [`Rig`]: its shape, the bone it hangs on, where on it, and what part of the body it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HitVolume {
    pub(super) volume: Volume,
    pub(super) bone: Option<u8>,
    pub(super) offset: Pose,
    pub(super) part: Part,
}

impl HitVolume {
    /// A volume at the origin of the entity, part 0.
    pub fn new(volume: Volume) -> Self {
        Self {
            volume,
            bone: None,
            offset: Pose::IDENTITY,
            part: Part(0),
        }
    }

    /// Moved away from the origin of the bone or entity.
    pub fn offset(mut self, offset: Vec3) -> Self {
        self.offset.position = offset;
        self
    }

    /// Moved and turned away from the origin of the bone or entity.
    pub fn pose(mut self, pose: Pose) -> Self {
        self.offset = pose;
        self
    }
}

muse_wire::setters! { HitVolume:
    /// Hangs on a bone, instead of on the entity itself.
    bone: u8 = Some(bone),
    /// Sets the part of the body that it is, for the damage.
    part: Part,
}

/// The volumes of a sort of entity. Platforms that carry others and cannot be hit have none.
///
/// ```
/// use glam::Vec3;
/// use muse_lagcomp::{HitVolume, Part, Rig, Volume};
/// const HEAD: Part = Part(1);
/// let body = HitVolume::new(Volume::Capsule { half_length: 0.5, radius: 0.3 });
/// let head = HitVolume::new(Volume::Sphere { radius: 0.12 }).offset(Vec3::new(0.0, 0.9, 0.0)).part(HEAD);
/// let rig = Rig::new([body, head])?;
/// assert_eq!(rig.bones(), 0);
/// # Ok::<(), muse_lagcomp::RewindError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rig {
    pub(super) volumes: Vec<HitVolume>,
    pub(super) bones: usize,
}

impl Rig {
    /// Volumes of a rig.
    pub const VOLUMES_MAX: usize = 64;

    /// Checks and takes volumes. The number of bones is one more than the highest that a volume hangs on.
    pub fn new(volumes: impl Into<Vec<HitVolume>>) -> Result<Self, RewindError> {
        let mut volumes = volumes.into();
        if volumes.len() > Self::VOLUMES_MAX {
            return Err(RewindError::Volume);
        }
        for volume in &mut volumes {
            volume.offset = volume.offset.checked().ok_or(RewindError::Volume)?;
            let near = is_near(volume.offset.position * (1e6 / SIZE_MAX));
            if !near || !volume.volume.is_sane() {
                return Err(RewindError::Volume);
            }
        }
        let bones = volumes.iter().filter_map(|volume| volume.bone).max();
        Ok(Self {
            volumes,
            bones: bones.map_or(0, |bone| usize::from(bone) + 1),
        })
    }

    /// Returns the number of poses of bones that have to be recorded.
    pub fn bones(&self) -> usize {
        self.bones
    }

    /// Distance from the entity's origin within which all volumes are, however they turn.
    pub(super) fn reach(&self, bones: &[Pose]) -> f32 {
        let reach = |volume: &HitVolume| {
            let bone = volume.bone.and_then(|bone| bones.get(usize::from(bone)));
            let bone = bone.map_or(0.0, |bone| bone.position.length());
            bone + volume.offset.position.length() + volume.volume.reach()
        };
        self.volumes.iter().map(reach).fold(0.0, f32::max)
    }
}

/// Added to a bound before a way is shortened to it.
const NEAR_MARGIN: f32 = 0.5;
/// Nothing moves less.
const LENGTH_MIN: f32 = 1e-6;
/// Sizes of volumes, in metres.
const SIZE_MIN: f32 = 1e-3;
const SIZE_MAX: f32 = 1e3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_exact_at_a_kilometre() {
        let head = Volume::Sphere { radius: 0.12 };
        for (offset, hits) in [(0.115, true), (0.125, false)] {
            let start = Vec3::new(-1_000.0, offset, 0.0);
            let end = Vec3::new(1_000.0, offset, 0.0);
            assert_eq!(head.cast(start, end, 0.0).is_some(), hits, "{offset}");
        }
    }

    #[test]
    fn no_way_at_all_is_a_point() {
        let half = Vec3::splat(0.5);
        for volume in [
            Volume::Sphere { radius: 0.5 },
            Volume::Capsule {
                half_length: 0.5,
                radius: 0.5,
            },
            Volume::Box { half },
        ] {
            for radius in [0.0, 0.1] {
                let (share, normal) = volume.cast(Vec3::ZERO, Vec3::ZERO, radius).expect("inside");
                assert_eq!((share, normal), (0.0, Vec3::ZERO));
                let outside = Vec3::new(0.0, 0.0, 0.7);
                assert_eq!(volume.cast(outside, outside, radius), None);
            }
        }
    }

    #[test]
    fn bad_volumes_are_refused() {
        for radius in [f32::NAN, f32::INFINITY, -1.0, 0.0, 1e9] {
            let volume = HitVolume::new(Volume::Sphere { radius });
            assert_eq!(Rig::new([volume]), Err(RewindError::Volume));
        }
        let sphere = HitVolume::new(Volume::Sphere { radius: 1.0 });
        let far = sphere.offset(Vec3::splat(f32::NAN));
        assert_eq!(Rig::new([far]), Err(RewindError::Volume));
        assert_eq!(Rig::new(vec![sphere; 65]), Err(RewindError::Volume));
        assert_eq!(Rig::new([sphere.bone(7)]).expect("sane").bones(), 8);
    }
}
