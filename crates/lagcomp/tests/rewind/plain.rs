//! Geometry and blending in double precision, written without the crate's code: what the shooter saw.

use glam::{Quat, Vec3};
use muse_lagcomp::{Pose, Volume};

pub(crate) type Point = [f64; 3];

pub(crate) fn wide(point: Vec3) -> Point {
    point.to_array().map(f64::from)
}

pub(crate) fn mix(a: Point, b: Point, share: f64) -> Point {
    std::array::from_fn(|axis| a[axis] + (b[axis] - a[axis]) * share)
}

pub(crate) fn sub(a: Point, b: Point) -> Point {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

pub(crate) fn length(a: Point) -> f64 {
    a.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// A position and a rotation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) position: Point,
    pub(crate) rotation: [f64; 4],
}

impl Frame {
    pub(crate) fn new(pose: &Pose) -> Self {
        let rotation: Quat = pose.rotation;
        Self {
            position: wide(pose.position),
            rotation: rotation.to_array().map(f64::from),
        }
    }

    pub(crate) fn blend(&self, to: &Self, share: f64) -> Self {
        let dot: f64 = (0..4).map(|i| self.rotation[i] * to.rotation[i]).sum();
        let sign = if dot < 0.0 { -1.0 } else { 1.0 };
        let mixed: [f64; 4] = std::array::from_fn(|i| {
            self.rotation[i] + (to.rotation[i] * sign - self.rotation[i]) * share
        });
        let size = mixed.iter().map(|value| value * value).sum::<f64>().sqrt();
        Self {
            position: mix(self.position, to.position, share),
            rotation: mixed.map(|value| value / size),
        }
    }

    pub(crate) fn then(&self, inner: &Self) -> Self {
        let ([ax, ay, az, aw], [bx, by, bz, bw]) = (self.rotation, inner.rotation);
        let rotation = [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ];
        let moved = rotate(self.rotation, inner.position);
        Self {
            position: std::array::from_fn(|axis| self.position[axis] + moved[axis]),
            rotation,
        }
    }

    pub(crate) fn inverse_point(&self, outer: Point) -> Point {
        let [x, y, z, w] = self.rotation;
        rotate([-x, -y, -z, w], sub(outer, self.position))
    }
}

fn rotate([x, y, z, w]: [f64; 4], v: Point) -> Point {
    let cross = |a: Point, b: Point| {
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    };
    let axis = [x, y, z];
    let first = cross(axis, v);
    let second = cross(axis, first);
    std::array::from_fn(|i| v[i] + 2.0 * (w * first[i] + second[i]))
}

/// The distance of a point from a volume about the origin, negative inside.
pub(crate) fn distance(volume: &Volume, at: Point) -> f64 {
    match *volume {
        Volume::Sphere { radius } => length(at) - f64::from(radius),
        Volume::Capsule {
            half_length,
            radius,
        } => {
            let half = f64::from(half_length);
            let nearest = [0.0, at[1].clamp(-half, half), 0.0];
            length(sub(at, nearest)) - f64::from(radius)
        }
        Volume::Box { half } => {
            let over: Point = std::array::from_fn(|i| at[i].abs() - f64::from(half[i]));
            let inside = over[0].max(over[1]).max(over[2]).min(0.0);
            length(over.map(|value| value.max(0.0))) + inside
        }
    }
}

/// Finds the closest point of a path, given as a function of 0 to 1 whose distance is convex; returns where it is and how close.
pub(crate) fn closest(distance_at: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..90 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if distance_at(a) < distance_at(b) {
            high = b;
        } else {
            low = a;
        }
    }
    let candidates = [0.0, low, 1.0].map(|share| (share, distance_at(share)));
    let best = candidates.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    best.expect("three candidates")
}

/// Finds the first point where a path that comes within `radius` at `nearest` does so.
pub(crate) fn first(distance_at: impl Fn(f64) -> f64, nearest: f64, radius: f64) -> f64 {
    if distance_at(0.0) <= radius {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, nearest);
    for _ in 0..90 {
        let middle = (low + high) * 0.5;
        if distance_at(middle) <= radius {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
