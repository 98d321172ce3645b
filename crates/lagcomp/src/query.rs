//! Shots, projectiles and blows, and what they can hit.

use glam::Vec3;

use super::pose::is_near;
use muse_netcode::{EntityId, TickTime};

/// A part of a body, as the game numbers them: head, chest.
///
/// ```
/// # use glam::Vec3;
/// # use muse_netcode::{EntityId, Tick};
/// # use muse_lagcomp::{Placement, Pose, Rewind, RewindConfig};
/// use muse_lagcomp::{HitVolume, Part, Rig, Shot, Volume};
/// const HEAD: Part = Part(1);
/// let body = HitVolume::new(Volume::Capsule { half_length: 0.5, radius: 0.3 });
/// let head = HitVolume::new(Volume::Sphere { radius: 0.12 }).offset(Vec3::Y).part(HEAD);
/// # let mut rewind = Rewind::new(RewindConfig::new(50));
/// # let target = EntityId::from_bits(1);
/// let rig = rewind.add_rig(Rig::new([body, head])?)?;
/// # rewind.add(target, rig)?;
/// # rewind.advance(Tick(1))?;
/// # rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// let part = |height: f32| {
///     let shot = Shot::new(Vec3::Y * height, Vec3::Z);
///     rewind.hitscan(&rewind.present(), &shot, &mut ()).map(|hit| hit.part)
/// };
/// assert_eq!((part(0.0), part(1.0), part(2.0)), (Some(Part(0)), Some(HEAD), None));
/// # Ok::<(), muse_lagcomp::RewindError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub u16);

/// Something that hits at once along a line.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::Shot;
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, _) = world()?;
/// // The target is 20 away.
/// let rifle = Shot::new(Vec3::ZERO, Vec3::Z).range(300.0);
/// assert!(rewind.hitscan(&rewind.present(), &rifle, &mut ()).is_some());
/// assert!(rewind.hitscan(&rewind.present(), &rifle.range(15.0), &mut ()).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shot {
    pub(super) origin: Vec3,
    pub(super) direction: Vec3,
    pub(super) range: f32,
    pub(super) radius: f32,
    pub(super) platform: Option<EntityId>,
}

impl Shot {
    /// From a point in a direction, as far as
    /// [`RewindConfig::range_max`](crate::RewindConfig::range_max), as thin as a ray.
    pub fn new(origin: Vec3, direction: Vec3) -> Self {
        Self {
            origin,
            direction,
            range: f32::INFINITY,
            radius: 0.0,
            platform: None,
        }
    }

    /// How far it goes.
    pub fn range(mut self, range: f32) -> Self {
        self.range = range;
        self
    }

    /// How thick it is, up to 10. Default: 0.
    pub fn radius(mut self, radius: f32) -> Self {
        self.radius = radius;
        self
    }

    /// Origin and direction are relative to a platform, on which the shooter stands; the platform is rewound, too.
    pub fn on(mut self, platform: EntityId) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Itself with a direction of length one and sane limits, or `None`.
    pub(super) fn checked(mut self, range_max: f32) -> Option<Self> {
        if !is_near(self.origin) || !self.direction.is_finite() {
            return None;
        }
        self.direction = self.direction.try_normalize()?;
        self.range = self.range.min(range_max);
        if self.radius.is_nan() {
            return None;
        }
        self.radius = self.radius.clamp(0.0, RADIUS_MAX);
        (self.range > 0.0).then_some(self)
    }
}

/// Something that flies.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::{Flight, Projectile};
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, _) = world()?;
/// // An arrow that is a tick old: 20 ms at 50 metres a second, and gravity.
/// let arrow = Projectile {
///     position: Vec3::ZERO,
///     velocity: Vec3::Z * 50.0,
///     acceleration: Vec3::Y * -10.0,
///     radius: 0.05,
/// };
/// let Flight::Flying(arrow) = rewind.fly(&arrow, &mut ()) else {
///     unreachable!("the target is 20 away")
/// };
/// assert!((arrow.position.z - 1.0).abs() < 1e-4);
/// assert!((arrow.velocity.y - -0.2).abs() < 1e-4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projectile {
    /// Where it is.
    pub position: Vec3,
    /// How fast, in metres a second.
    pub velocity: Vec3,
    /// What pulls at it, in metres a second squared.
    pub acceleration: Vec3,
    /// How thick it is, up to 10.
    pub radius: f32,
}

impl Projectile {
    /// Where it is after so many seconds.
    pub(super) fn after(&self, seconds: f32) -> Self {
        let gained = self.acceleration * seconds;
        Self {
            position: self.position + (self.velocity + gained * 0.5) * seconds,
            velocity: self.velocity + gained,
            ..*self
        }
    }

    pub(super) fn is_sane(&self) -> bool {
        is_near(self.position)
            && is_near(self.velocity * 100.0)
            && is_near(self.acceleration * 100.0)
            && (0.0..=RADIUS_MAX).contains(&self.radius)
    }
}

/// What became of a projectile.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::{Flight, Projectile};
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, target) = world()?;
/// # let bolt = Projectile { position: Vec3::Z * 19.0, velocity: Vec3::Z * 50.0, acceleration: Vec3::ZERO, radius: 0.05 };
/// match rewind.fly(&bolt, &mut ()) {
///     Flight::Hit(hit) => assert_eq!(hit.entity, target),
///     Flight::Blocked { point, .. } => unreachable!("there is no wall at {point}"),
///     Flight::Flying(bolt) => unreachable!("it went by, to {}", bolt.position),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flight {
    /// It hit something that can be hit.
    Hit(Hit),
    /// The world stopped it.
    Blocked {
        /// Where.
        point: Vec3,
        /// When.
        at: TickTime,
    },
    /// It has come to the present; [`Rewind::fly`](crate::Rewind::fly) moves it on.
    Flying(Projectile),
}

/// A blow: a blade or a fist, from where it was a tick before to where it is, in the world.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::Blow;
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, target) = world()?;
/// // A blade that is swung from left to right before the target's middle.
/// let blade = |x: f32| (Vec3::new(x, 0.0, 19.0), Vec3::new(x, 0.0, 20.0));
/// let blow = Blow { from: blade(-1.0), to: blade(1.0), radius: 0.05 };
/// let mut hits = Vec::new();
/// rewind.strike(&rewind.present(), &blow, &mut (), &mut hits);
/// assert_eq!(hits.len(), 1);
/// assert!(hits[0].entity == target && hits[0].share < 0.5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blow {
    /// Hilt and tip at the beginning.
    pub from: (Vec3, Vec3),
    /// Hilt and tip at the end.
    pub to: (Vec3, Vec3),
    /// How thick it is, 0.01 to 10.
    pub radius: f32,
}

impl Blow {
    pub(super) fn is_sane(&self) -> bool {
        let points = [self.from.0, self.from.1, self.to.0, self.to.1];
        let long = |a: Vec3, b: Vec3| a.distance(b) > BLOW_MAX;
        points.into_iter().all(is_near)
            && !points.iter().any(|point| long(*point, points[0]))
            && (0.01..=RADIUS_MAX).contains(&self.radius)
    }

    /// Hilt and tip on the way.
    pub(super) fn at(&self, share: f32) -> (Vec3, Vec3) {
        let hilt = self.from.0.lerp(self.to.0, share);
        (hilt, self.from.1.lerp(self.to.1, share))
    }

    /// In how many steps it is tested, so that it moves by no more than its radius in one.
    pub(super) fn steps(&self) -> u32 {
        let hilt = self.from.0.distance(self.to.0);
        let way = hilt.max(self.from.1.distance(self.to.1));
        ((way / self.radius) as u32 + 1).min(BLOW_STEPS_MAX)
    }
}

/// Something that was hit.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::Shot;
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, target) = world()?;
/// // A sphere of radius 0.5 in the way, 20 ahead.
/// let shot = Shot::new(Vec3::ZERO, Vec3::Z).range(39.0);
/// let hit = rewind.hitscan(&rewind.present(), &shot, &mut ()).expect("it is there");
/// assert_eq!((hit.entity, hit.rewound), (target, false));
/// assert!(hit.point.distance(Vec3::Z * 19.5) < 1e-4 && (hit.share - 0.5).abs() < 1e-4);
/// assert!(hit.normal.distance(-Vec3::Z) < 1e-4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Who.
    pub entity: EntityId,
    /// Where on the body.
    pub part: Part,
    /// How far on the way of the shot or blow, 0 to 1.
    pub share: f32,
    /// Where in the world, at the instant that was judged.
    pub point: Vec3,
    /// The direction out of the body; zero when the shot began inside.
    pub normal: Vec3,
    /// Where the shot came from, in the world.
    pub origin: Vec3,
    /// The instant that was judged.
    pub at: TickTime,
    /// Whether the target was looked at in the past. Not so without rewind, nor when it has moved too far.
    pub rewound: bool,
}

/// What a query may hit and what stops it. `()` lets everything through.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::{Scope, Shot};
/// /// A wall at z = 10, as wide as the world.
/// struct Wall;
/// impl Scope for Wall {
///     fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
///         let share = (10.0 - from.z) / (to.z - from.z);
///         (0.0..=1.0).contains(&share).then_some(share)
///     }
/// }
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, _) = world()?;
/// let from = |z: f32| Shot::new(Vec3::Z * z, Vec3::Z);
/// assert!(rewind.hitscan(&rewind.present(), &from(0.0), &mut Wall).is_none());
/// assert!(rewind.hitscan(&rewind.present(), &from(12.0), &mut Wall).is_some());
/// # Ok(())
/// # }
/// ```
pub trait Scope {
    /// Whether an entity can be hit: not the shooter, not its team.
    fn includes(&mut self, entity: EntityId) -> bool {
        let _ = entity;
        true
    }

    /// Where on the way between two points the static world stops a shot, 0 to 1.
    fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
        let _ = (from, to);
        None
    }
}

impl Scope for () {}

/// Everyone but the shooter, in a world without walls.
///
/// ```
/// use glam::Vec3;
/// # use muse_lagcomp::{HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Volume};
/// # use muse_netcode::{EntityId, Tick};
/// # /// A sphere of radius 0.5 at 20 on the z axis.
/// # fn world() -> Result<(Rewind, EntityId), RewindError> {
/// #     let (mut rewind, target) = (Rewind::new(RewindConfig::new(50)), EntityId::from_bits(2));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(target, rig)?;
/// #     for tick in 1..=3 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(target, Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     Ok((rewind, target))
/// # }
/// use muse_lagcomp::{Except, Shot};
/// # fn main() -> Result<(), RewindError> {
/// # let (rewind, target) = world()?;
/// // Whoever shoots from within its own body does not hit itself.
/// let shot = Shot::new(Vec3::Z * 20.0, Vec3::Z);
/// assert!(rewind.hitscan(&rewind.present(), &shot, &mut ()).is_some());
/// assert!(rewind.hitscan(&rewind.present(), &shot, &mut Except(target)).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Except(pub EntityId);

impl Scope for Except {
    fn includes(&mut self, entity: EntityId) -> bool {
        entity != self.0
    }
}

/// The thickest projectile.
const RADIUS_MAX: f32 = 10.0;
/// The longest blade, and the farthest that it moves.
const BLOW_MAX: f32 = 100.0;
const BLOW_STEPS_MAX: u32 = 64;
