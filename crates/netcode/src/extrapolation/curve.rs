//! The continuing change of a velocity, found from three updates in a row.
//!
//! Bodies that are steered seldom keep their acceleration: on a bend it turns with the body, and after a change of mind it fades as the
//! body takes up its new way. Both show in how the acceleration differs from the one before, and they go on for as long as one has to look ahead.

use glam::{Vec2, Vec3};

use super::{Motion, turn_between};

/// A continuing change of velocity: an acceleration that turns and fades. Unknown by default;
/// [`derive_motion`](super::derive_motion) finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Curve {
    /// The velocity at that instant minus the velocity that its update says.
    lead: Vec3,
    /// At this instant; the [`Motion`]'s own is the mean since the update before.
    acceleration: Vec3,
    /// The turn of the acceleration: axis times angle a second. The axis is square to it.
    turn: Vec3,
    /// The share of itself by which it fades a second.
    fade: f32,
    /// From the update before to this one; zero while nothing is known.
    seconds: f32,
}

impl Curve {
    /// Finds the curve from two updates, the earlier of which knows of the one before it.
    pub(super) fn between(earlier: &Motion, later: &Motion, seconds: f32) -> Self {
        let change = later.velocity - earlier.velocity;
        let mean = change / seconds;
        let before = earlier.acceleration;
        let least = before.length().min(mean.length());
        let (turn, fade) = if earlier.curve.is_known() && least > STILL {
            // Each mean stands for the middle of its span.
            let apart = 0.5 * (seconds + earlier.curve.seconds);
            let fade = (before.length() / mean.length()).ln() / apart;
            (turn_between(before, mean) / apart, fade)
        } else {
            // The acceleration of a body on a circle turns as its velocity does.
            (
                turn_between(earlier.velocity, later.velocity) / seconds,
                0.0,
            )
        };
        let mut curve = Self {
            lead: lead(earlier, later, seconds),
            acceleration: mean,
            turn: turn.clamp_length_max(TURN_MAX),
            fade: fade.clamp(0.0, FADE_MAX),
            seconds,
        };
        curve.acceleration = curve.acceleration_after(0.5 * seconds);
        curve
    }

    pub(super) const fn is_known(&self) -> bool {
        self.seconds > 0.0
    }

    /// The way in so many seconds of a body with this velocity, its velocity then, and how that goes on.
    pub(super) fn follow(&self, velocity: Vec3, seconds: f32) -> (Vec3, Vec3, Self) {
        let velocity = velocity + self.lead;
        let (once, twice) = integrals(self.exponent() * seconds);
        let way = velocity * seconds + self.turned(twice) * (seconds * seconds);
        let later = Self {
            lead: Vec3::ZERO,
            acceleration: self.acceleration_after(seconds),
            ..*self
        };
        (way, velocity + self.turned(once) * seconds, later)
    }

    fn acceleration_after(&self, seconds: f32) -> Vec3 {
        self.turned(exponential(self.exponent() * seconds))
    }

    /// In the plane of the acceleration, whose x axis it is, turning and fading are one complex exponent.
    fn exponent(&self) -> Vec2 {
        Vec2::new(-self.fade, self.turn.length())
    }

    /// The acceleration times a complex number.
    fn turned(&self, by: Vec2) -> Vec3 {
        let axis = self.turn.normalize_or_zero();
        self.acceleration * by.x + axis.cross(self.acceleration) * by.y
    }
}

/// Finds the change of velocity that only places show. A game that moves by its new velocity in each step, as most do, reports half a step's change too
/// little; across two updates that shows as a way longer than by the mean of their velocities. Nothing but a part of the change is
/// believed: places are rounded, and bodies are put elsewhere.
fn lead(earlier: &Motion, later: &Motion, seconds: f32) -> Vec3 {
    let change = later.velocity - earlier.velocity;
    let mean = 0.5 * (earlier.velocity + later.velocity);
    let missing = (later.position - earlier.position) / seconds - mean;
    let share = missing.dot(change) / change.length_squared().max(f32::MIN_POSITIVE);
    change * share.clamp(-0.5, 0.5)
}

/// `e^z`.
fn exponential(z: Vec2) -> Vec2 {
    Vec2::from_angle(z.y) * z.x.exp()
}

/// The integrals of `e^(z t)` over `t` from 0 to 1, once and twice: `(e^z - 1) / z` and `(e^z - 1 - z) / z^2`.
fn integrals(z: Vec2) -> (Vec2, Vec2) {
    // `rotate` multiplies complex numbers.
    if z.length_squared() < SERIES_BELOW * SERIES_BELOW {
        let inner = Vec2::X / 24.0 + z / 120.0;
        let inner = Vec2::X / 6.0 + z.rotate(inner);
        let twice = Vec2::X / 2.0 + z.rotate(inner);
        return (Vec2::X + z.rotate(twice), twice);
    }
    let inverse = Vec2::new(z.x, -z.y) / z.length_squared();
    let once = (exponential(z) - Vec2::X).rotate(inverse);
    (once, (once - Vec2::X).rotate(inverse))
}

/// Faster turns, in radians a second, are a change of mind and do not go on.
const TURN_MAX: f32 = 6.0;
/// Faster fading, by its own size a second, is over at once, and the next update says so.
const FADE_MAX: f32 = 8.0;
/// Accelerations below, in units per second squared, have no direction worth following.
const STILL: f32 = 1e-4;
/// Below, the closed form loses its digits.
const SERIES_BELOW: f32 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::{Extrapolator, Path, derive_motion};
    use super::*;
    use muse_wire::{Duration, Instant};

    #[test]
    fn both_forms_of_the_integrals_agree() {
        for angle in 0..12 {
            let way = Vec2::from_angle(angle as f32 * 0.5);
            let (below, above) = (integrals(way * 0.099_9), integrals(way * 0.100_1));
            assert!(below.0.distance(above.0) < 3e-4, "{below:?} {above:?}");
            assert!(below.1.distance(above.1) < 3e-4, "{below:?} {above:?}");
        }
        assert_eq!(integrals(Vec2::ZERO), (Vec2::X, Vec2::X / 2.0));
    }

    #[test]
    fn going_on_twice_is_going_on_once() {
        let curve = Curve {
            lead: Vec3::X * 0.2,
            acceleration: Vec3::new(3.0, 4.0, 0.0),
            turn: Vec3::Z * 2.0,
            fade: 3.0,
            seconds: 0.1,
        };
        let whole = curve.follow(Vec3::Y, 0.3);
        let (first, velocity, later) = curve.follow(Vec3::Y, 0.1);
        let (second, velocity, later) = later.follow(velocity, 0.2);
        assert!((first + second).distance(whole.0) < 1e-5);
        assert!(velocity.distance(whole.1) < 1e-5);
        assert!(later.acceleration.distance(whole.2.acceleration) < 1e-5);
    }

    /// A runner who takes up new ways: velocities approach what is wanted, and places follow the new velocity of each step.
    fn runner(ticks: usize) -> Vec<Motion> {
        let mut motion = Motion::new(Vec3::ZERO, Vec3::ZERO);
        let mut motions = Vec::new();
        for tick in 0..ticks {
            let bend = tick as f32 * 0.03;
            let wish = Vec2::from_angle(bend + (tick / 40) as f32 * 1.3) * 7.0;
            motion.velocity += (Vec3::new(wish.x, wish.y, 0.0) - motion.velocity) * 0.15;
            motion.position += motion.velocity * STEP;
            motions.push(motion);
        }
        motions
    }

    /// The mean distance from the truth when every third state arrives, `age` steps old.
    fn mean_error(path: Path, age: usize) -> f32 {
        let truth = runner(1_000);
        let (mut body, mut last) = (None::<Extrapolator>, None);
        let (mut sum, mut count) = (0.0, 0);
        for (step, now) in truth.iter().enumerate().skip(age) {
            let at = Instant::from_millis(step as u64 * 20);
            if step % 3 == 0 {
                let state = truth[step - age];
                let spans = 3.0 * STEP;
                let state = last.map_or(state, |last| derive_motion(&last, state, spans));
                last = Some(state);
                let motion = state.after(age as f32 * STEP, path);
                let interval = Duration::from_millis(60);
                let known =
                    body.get_or_insert_with(|| Extrapolator::new(path, interval, at, motion));
                known.handle_update(at, motion, |_, to| to);
            }
            if let Some(body) = &mut body {
                sum += body.show(at, |_, to| to).position.distance(now.position);
                count += 1;
            }
        }
        sum / count as f32
    }

    #[test]
    fn runners_are_followed_better_than_with_fewer_terms() {
        for age in [1, 3, 5, 8] {
            let error = |path| mean_error(path, age);
            let curved = error(Path::Curved);
            for (path, share) in [
                (Path::Straight, 0.5),
                (Path::Accelerated, 0.9),
                (Path::Turning, 0.85),
            ] {
                let other = error(path);
                assert!(
                    curved < share * other,
                    "{age} steps: {curved} against {other} with {path:?}"
                );
            }
        }
    }

    #[test]
    fn a_place_far_off_is_no_velocity() {
        let earlier = Motion::new(Vec3::ZERO, Vec3::X);
        let later = Motion::new(Vec3::X * 500.0, Vec3::X * 1.5);
        assert_eq!(lead(&earlier, &later, 0.05), Vec3::X * 0.25);
        let still = Motion {
            velocity: Vec3::X,
            ..later
        };
        assert_eq!(lead(&earlier, &still, 0.05), Vec3::ZERO);
    }

    const STEP: f32 = 0.02;
}
