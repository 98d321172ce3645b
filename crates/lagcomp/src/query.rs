//! Shots, projectiles and blows, and what they can hit.

use glam::Vec3;

use super::pose::is_near;
use muse_netcode::{EntityId, TickTime};

/// A part of a body, as the game numbers them: head, chest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub u16);

/// Something that hits at once along a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shot {
    pub(super) origin: Vec3,
    pub(super) direction: Vec3,
    pub(super) range: f32,
    pub(super) radius: f32,
    pub(super) platform: Option<EntityId>,
}

impl Shot {
    /// The longest shot.
    pub const RANGE_MAX: f32 = 2_000.0;

    /// From a point in a direction, as far as [`RANGE_MAX`](Self::RANGE_MAX), as thin as a ray.
    pub fn new(origin: Vec3, direction: Vec3) -> Self {
        Self {
            origin,
            direction,
            range: f32::INFINITY,
            radius: 0.0,
            platform: None,
        }
    }

    /// Origin and direction are relative to a platform, on which the shooter stands; the platform is rewound, too.
    pub fn on(mut self, platform: EntityId) -> Self {
        self.platform = Some(platform);
        self
    }

    /// Itself with a direction of length one and sane limits, or `None`.
    pub(super) fn checked(mut self) -> Option<Self> {
        if !is_near(self.origin) || !self.direction.is_finite() {
            return None;
        }
        self.direction = self.direction.try_normalize()?;
        self.range = self.range.min(Self::RANGE_MAX);
        if self.radius.is_nan() {
            return None;
        }
        self.radius = self.radius.clamp(0.0, RADIUS_MAX);
        (self.range > 0.0).then_some(self)
    }
}

muse_wire::setters! { Shot:
    /// Sets the range of the shot.
    range: f32,
    /// Sets the radius of the shot, up to 10. Default: 0.
    radius: f32,
}

/// Something that flies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projectile {
    /// The position.
    pub position: Vec3,
    /// The velocity, in metres a second.
    pub velocity: Vec3,
    /// The acceleration, in metres a second squared.
    pub acceleration: Vec3,
    /// The radius, up to 10.
    pub radius: f32,
}

impl Projectile {
    /// Returns the projectile after so many seconds.
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

/// The outcome of a projectile's flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flight {
    /// It hit something that can be hit.
    Hit(Hit),
    /// The world stopped it.
    Blocked {
        /// The place where it was stopped.
        point: Vec3,
        /// The time at which it was stopped.
        at: TickTime,
    },
    /// It has come to the present; [`Rewind::fly`](crate::Rewind::fly) moves it on.
    Flying(Projectile),
}

/// A blow: a blade or a fist, from where it was a tick before to where it is, in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blow {
    /// Hilt and tip at the beginning.
    pub from: (Vec3, Vec3),
    /// Hilt and tip at the end.
    pub to: (Vec3, Vec3),
    /// The radius, 0.01 to 10.
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The entity that was hit.
    pub entity: EntityId,
    /// The part of the body.
    pub part: Part,
    /// The share of the way of the shot or blow, 0 to 1.
    pub share: f32,
    /// The place in the world, at the instant that was judged.
    pub point: Vec3,
    /// The direction out of the body; zero when the shot began inside.
    pub normal: Vec3,
    /// The origin of the shot, in the world.
    pub origin: Vec3,
    /// The instant that was judged.
    pub at: TickTime,
    /// True if the target was looked at in the past. False without rewind, nor when it has moved too far.
    pub rewound: bool,
}

/// Decides which entities a query may hit and what stops it. `()` lets everything through.
pub trait Scope {
    /// True if an entity can be hit: not the shooter, not its team.
    fn includes(&mut self, entity: EntityId) -> bool {
        let _ = entity;
        true
    }

    /// Returns the share of the way between two points at which the static world stops a shot, 0 to 1.
    fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
        let _ = (from, to);
        None
    }
}

impl Scope for () {}

/// Everyone but the shooter, in a world without walls.
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
