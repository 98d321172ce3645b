//! The broad phase: boxes around everything an entity was in the time that can be rewound, and a quick test whether a
//! shot comes near.

use glam::Vec3;

/// A box along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) low: Vec3,
    pub(super) high: Vec3,
}

impl Bound {
    /// Nothing touches it.
    pub(super) const EMPTY: Self = Self {
        low: Vec3::INFINITY,
        high: Vec3::NEG_INFINITY,
    };
    /// Everything touches it.
    pub(super) const ANYWHERE: Self = Self {
        low: Vec3::splat(-1e9),
        high: Vec3::splat(1e9),
    };

    pub(super) fn is_empty(&self) -> bool {
        self.low.x > self.high.x
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Returns the bound enlarged on every side; an empty one stays empty.
    pub(super) fn grown(self, by: f32) -> Self {
        if self.is_empty() {
            return self;
        }
        Self {
            low: self.low - Vec3::splat(by),
            high: self.high + Vec3::splat(by),
        }
    }
}

/// A segment with a radius, made ready to be compared with many boxes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    middle: Vec3,
    half: Vec3,
    half_abs: Vec3,
    /// Added to boxes: the radius and what rounding may take away.
    grown: f32,
}

impl Probe {
    pub(super) fn new(start: Vec3, end: Vec3, radius: f32) -> Self {
        let (middle, half) = ((start + end) * 0.5, (end - start) * 0.5);
        let size = middle.abs().max_element() + half.abs().max_element();
        Self {
            middle,
            half,
            half_abs: half.abs(),
            grown: radius + 1e-3 + size * 4e-6,
        }
    }

    /// True if it touches a box: no axis separates them. An empty box compares as not a number, and is missed.
    pub(super) fn touches(&self, bound: &Bound) -> bool {
        let middle = self.middle - (bound.low + bound.high) * 0.5;
        let extent = (bound.high - bound.low) * 0.5 + Vec3::splat(self.grown);
        let reach = extent + self.half_abs;
        if !(middle.abs().cmple(reach).all()) {
            return false;
        }
        let cross = middle.cross(self.half).abs();
        let limit = Vec3::new(
            extent.y * self.half_abs.z + extent.z * self.half_abs.y,
            extent.x * self.half_abs.z + extent.z * self.half_abs.x,
            extent.x * self.half_abs.y + extent.y * self.half_abs.x,
        );
        cross.cmple(limit).all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_misses_what_passes_through() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut point =
            |size: f32| Vec3::from_array(std::array::from_fn(|_| (rng.f32() - 0.5) * size));
        let (mut touched, mut missed) = (0, 0);
        for _ in 0..5_000 {
            let (a, b) = (point(40.0), point(40.0));
            let bound = Bound {
                low: a.min(b),
                high: a.max(b),
            };
            let (start, end) = (point(40.0), point(40.0));
            let probe = Probe::new(start, end, 0.0);
            let inside = (0..=400).any(|step| {
                let at = start.lerp(end, step as f32 / 400.0);
                at.cmpge(bound.low).all() && at.cmple(bound.high).all()
            });
            let touches = probe.touches(&bound);
            assert!(touches || !inside, "{bound:?} {start} {end}");
            touched += u32::from(inside);
            missed += u32::from(!touches);
            assert!(!probe.touches(&Bound::EMPTY) && probe.touches(&Bound::ANYWHERE));
        }
        assert!(touched > 300 && missed > 2_000, "{touched} {missed}");
    }
}
