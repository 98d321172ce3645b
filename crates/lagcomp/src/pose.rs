//! The position and rotation of a body, a bone or a volume.

use glam::{Quat, Vec3};

/// A position and a rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// The position.
    pub position: Vec3,
    /// Turned how; a unit quaternion.
    pub rotation: Quat,
}

impl Pose {
    /// At the origin, not turned.
    pub const IDENTITY: Self = Self::at(Vec3::ZERO);

    /// A position and a rotation.
    pub const fn new(position: Vec3, rotation: Quat) -> Self {
        Self { position, rotation }
    }

    /// A position, not turned.
    pub const fn at(position: Vec3) -> Self {
        Self::new(position, Quat::IDENTITY)
    }

    /// Returns `inner`, given relative to this pose, in the frame of this pose.
    pub fn then(&self, inner: Self) -> Self {
        Self {
            position: self.point(inner.position),
            rotation: self.rotation * inner.rotation,
        }
    }

    /// A point given relative to this pose.
    pub fn point(&self, inner: Vec3) -> Vec3 {
        self.position + self.rotation * inner
    }

    /// Returns a point as seen from this pose.
    pub fn inverse_point(&self, outer: Vec3) -> Vec3 {
        self.rotation.inverse() * (outer - self.position)
    }

    /// Between this pose (0) and another (1): straight, turning the shorter way.
    pub fn blend(&self, to: &Self, share: f32) -> Self {
        Self {
            position: self.position.lerp(to.position, share),
            rotation: self.rotation.lerp(to.rotation, share),
        }
    }

    /// Itself with a rotation of length one, or `None` when it makes no sense.
    pub(super) fn checked(self) -> Option<Self> {
        let length = self.rotation.length_squared();
        let sane = is_near(self.position) && (0.25..4.0).contains(&length);
        sane.then(|| Self::new(self.position, self.rotation.normalize()))
    }
}

/// True if a point is finite, and close enough to the origin for single precision to mean something. A kilometre away a
/// coordinate is exact to 0.06 mm, a thousand kilometres away to 6 cm.
pub(super) fn is_near(point: Vec3) -> bool {
    let fits = |value: f32| value.abs() <= COORDINATE_MAX;
    point.to_array().into_iter().all(fits)
}

/// The largest coordinate.
const COORDINATE_MAX: f32 = 1e6;
