//! Predicts the place of a body whose next state is overdue, or without waiting for one at all.
//!
//! Projective velocity blending: the body goes on from where it is shown and is led to where the last update says it should be by the
//! time the next one is due. Paths that bend are followed as they bend ([`Path::Curved`], [`Path::Turning`]) instead of along their tangents.
//! The other way, for bodies that follow inputs, is to predict them ([`Game::predicts`](crate::prediction::Game::predicts)).

mod curve;

use glam::{Quat, Vec3};
use muse_wire::{Duration, Instant};

use crate::smoothing::IGNORE_BELOW;

use curve::Curve;

/// The motion of a body at an instant; units per second, radians per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// The position.
    pub position: Vec3,
    /// The velocity.
    pub velocity: Vec3,
    /// The change of the velocity; zero if nobody knows.
    pub acceleration: Vec3,
    /// The rotation.
    pub rotation: Quat,
    /// The angular velocity: axis times angle a second.
    pub angular_velocity: Vec3,
    /// The continuing change of its velocity; unknown until [`derive_motion`] finds it.
    curve: Curve,
}

impl Motion {
    /// A body at a position with a velocity, of which nothing else is known.
    pub fn new(position: Vec3, velocity: Vec3) -> Self {
        Self {
            position,
            velocity,
            acceleration: Vec3::ZERO,
            rotation: Quat::IDENTITY,
            angular_velocity: Vec3::ZERO,
            curve: Curve::default(),
        }
    }

    /// The body `seconds` later, by what `path` takes into account.
    pub fn after(&self, seconds: f32, path: Path) -> Self {
        let turned = turn(self.angular_velocity, seconds);
        let (way, velocity, curve) = match path {
            Path::Straight => (self.velocity * seconds, self.velocity, self.curve),
            Path::Accelerated => (
                self.velocity * seconds + self.acceleration * (0.5 * seconds * seconds),
                self.velocity + self.acceleration * seconds,
                self.curve,
            ),
            Path::Curved if self.curve.is_known() => self.curve.follow(self.velocity, seconds),
            Path::Turning | Path::Curved => (
                arc(self.velocity, self.angular_velocity, seconds),
                turned * self.velocity,
                self.curve,
            ),
        };
        Self {
            position: self.position + way,
            velocity,
            rotation: (turned * self.rotation).normalize(),
            curve,
            ..*self
        }
    }
}

/// The shape of the path beyond the last update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// With constant velocity.
    Straight,
    /// With constant acceleration.
    Accelerated,
    /// With a velocity that turns along with the body and keeps its speed: cars and planes whose updates say how they turn.
    Turning,
    /// With an acceleration that turns and fades as it did from the update before last to the last: bodies that are steered. Wants
    /// [`derive_motion`]; without it as [`Turning`](Self::Turning).
    #[default]
    Curved,
}

/// A body shown where it should be by now, from updates that come now and then.
///
/// ```
/// use glam::Vec3;
/// use muse_netcode::extrapolation::{Extrapolator, Motion, Path};
/// use muse_wire::{Duration, Instant};
/// let (interval, start) = (Duration::from_millis(50), Motion::new(Vec3::ZERO, Vec3::X));
/// let mut body = Extrapolator::new(Path::Curved, interval, Instant::ZERO, start);
/// let shown = body.show(Instant::from_millis(100), |_, to| to);
/// assert!((shown.position.x - 0.1).abs() < 1e-6);
/// // A wall at 0.15 stops it, although its updates do not say so.
/// let shown = body.show(Instant::from_millis(200), |_, to| to.min(Vec3::splat(0.15)));
/// assert_eq!(shown.position.x, 0.15);
/// ```
#[derive(Clone, Debug)]
pub struct Extrapolator {
    path: Path,
    interval: Duration,
    /// The motion that was shown when the last update came.
    start: Motion,
    /// The motion that the last update said.
    update: Motion,
    updated_at: Instant,
    shown: Motion,
}

impl Extrapolator {
    /// Time after its last update at which a body stops.
    pub const LIMIT: Duration = Duration::from_millis(250);

    /// A body that is shown as it moves at `now`. Errors are blended away within `interval`, the time from one update to the next.
    pub fn new(path: Path, interval: Duration, now: Instant, motion: Motion) -> Self {
        // What places told of the velocity becomes part of it.
        let motion = motion.after(0.0, path);
        Self {
            path,
            interval: interval.max(Duration::from_millis(1)),
            start: motion,
            update: motion,
            updated_at: now,
            shown: motion,
        }
    }

    /// An update arrived: how the body moves at `now` (an older one is brought to `now` by [`Motion::after`]). `collide` is as
    /// for [`show`](Self::show).
    pub fn handle_update(
        &mut self,
        now: Instant,
        update: Motion,
        collide: impl FnOnce(Vec3, Vec3) -> Vec3,
    ) {
        self.show(now, collide);
        let update = update.after(0.0, self.path);
        let error = self.shown.position.distance(update.position);
        self.start = match (IGNORE_BELOW..=SNAP_ABOVE).contains(&error) {
            true => self.shown,
            false => update,
        };
        self.update = update;
        self.updated_at = now;
        self.shown = self.start;
    }

    /// Returns the motion to show at `now`. `collide` is given the last place shown and the next, and says how far the body
    /// gets; `|_, to| to` where there are no walls.
    pub fn show(&mut self, now: Instant, collide: impl FnOnce(Vec3, Vec3) -> Vec3) -> Motion {
        let since = (now - self.updated_at).min(Self::LIMIT);
        let seconds = since.as_secs_f64() as f32;
        let share = (seconds / self.interval.as_secs_f64() as f32).min(1.0);
        let path = self.path;
        // Both ways from the last update, the one that was shown with the velocity blended into the one that should be.
        let blended = Motion {
            position: self.start.position,
            velocity: self.start.velocity.lerp(self.update.velocity, share),
            rotation: self.start.rotation,
            ..self.update
        };
        let (from, to) = (
            blended.after(seconds, path),
            self.update.after(seconds, path),
        );
        let position = from.position.lerp(to.position, share);
        self.shown = Motion {
            position: collide(self.shown.position, position),
            velocity: from.velocity.lerp(to.velocity, share),
            rotation: from.rotation.slerp(to.rotation, share),
            ..to
        };
        if since >= Self::LIMIT {
            self.shown.velocity = Vec3::ZERO;
        }
        self.shown
    }

    /// True if the body has stopped because its next update is overdue for too long.
    pub fn is_stopped(&self, now: Instant) -> bool {
        now - self.updated_at >= Self::LIMIT
    }
}

/// Estimates what updates do not carry, from two of them in a row: acceleration, turn rate, and, if the earlier one came from here, how the
/// acceleration turns and fades. `earlier` is as it was received, not brought to another instant.
pub fn derive_motion(earlier: &Motion, later: Motion, seconds: f32) -> Motion {
    if seconds <= 0.0 {
        return later;
    }
    let (from, to) = (earlier.velocity, later.velocity);
    Motion {
        acceleration: (to - from) / seconds,
        angular_velocity: turn_between(from, to) / seconds,
        curve: Curve::between(earlier, &later, seconds),
        ..later
    }
}

/// The rotation by so many seconds of turning.
fn turn(angular_velocity: Vec3, seconds: f32) -> Quat {
    Quat::from_scaled_axis(angular_velocity * seconds)
}

/// The turn from one direction to another: axis times angle.
fn turn_between(from: Vec3, to: Vec3) -> Vec3 {
    let cross = from.cross(to);
    cross.normalize_or_zero() * cross.length().atan2(from.dot(to))
}

/// The way along an arc: velocity integrated while it turns.
fn arc(velocity: Vec3, angular_velocity: Vec3, seconds: f32) -> Vec3 {
    let rate = angular_velocity.length();
    let angle = rate * seconds;
    if angle < STRAIGHT_BELOW {
        return velocity * seconds;
    }
    let axis = angular_velocity / rate;
    let along = axis * axis.dot(velocity);
    let across = velocity - along;
    let (sin, cos) = angle.sin_cos();
    along * seconds + across * (sin / rate) + axis.cross(across) * ((1.0 - cos) / rate)
}

/// Errors above are jumped over, since blending would look worse.
const SNAP_ABOVE: f32 = 3.0;
/// Turns smaller than this, in radians, make no visible arc.
const STRAIGHT_BELOW: f32 = 1e-4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A body on a circle of radius 5 at 10 units a second.
    fn on_circle(seconds: f32) -> Motion {
        let rate = 2.0;
        let (sin, cos) = (rate * seconds).sin_cos();
        Motion {
            position: Vec3::new(5.0 * cos, 5.0 * sin, 0.0),
            velocity: Vec3::new(-10.0 * sin, 10.0 * cos, 0.0),
            acceleration: Vec3::new(-20.0 * cos, -20.0 * sin, 0.0),
            rotation: Quat::from_rotation_z(rate * seconds),
            angular_velocity: Vec3::Z * rate,
            curve: Curve::default(),
        }
    }

    /// The mean distance of what is shown from the truth, with an update every 100 ms that is 50 ms old.
    fn mean_error(path: Path) -> f32 {
        let interval = Duration::from_millis(100);
        let aged = |seconds: f32| on_circle(seconds - 0.05).after(0.05, path);
        let mut body = Extrapolator::new(path, interval, Instant::ZERO, aged(0.0));
        let mut sum = 0.0;
        let mut last = body.show(Instant::ZERO, |_, to| to);
        for frame in 1..1_000_u64 {
            let now = Instant::from_millis(frame * 10);
            let seconds = now.as_secs_f64() as f32;
            if frame % 10 == 0 {
                body.handle_update(now, aged(seconds), |_, to| to);
            }
            let shown = body.show(now, |_, to| to);
            assert!(
                shown.position.distance(last.position) < 0.3,
                "a jump at {seconds}"
            );
            last = shown;
            sum += shown.position.distance(on_circle(seconds).position);
        }
        sum / 1_000.0
    }

    #[test]
    fn curves_err_less_with_more_terms() {
        let [straight, accelerated, turning] =
            [Path::Straight, Path::Accelerated, Path::Turning].map(mean_error);
        assert!(straight > 0.05, "{straight}");
        assert!(
            accelerated < straight / 3.0,
            "{accelerated} against {straight}"
        );
        assert!(
            turning < accelerated / 3.0,
            "{turning} against {accelerated}"
        );
    }

    #[test]
    fn terms_that_do_not_travel_are_found_from_two_updates() {
        let (earlier, later) = (on_circle(0.1), on_circle(0.2));
        let bare = Motion {
            acceleration: Vec3::ZERO,
            angular_velocity: Vec3::ZERO,
            ..later
        };
        let derived = derive_motion(&earlier, bare, 0.1);
        assert!((derived.angular_velocity - later.angular_velocity).length() < 1e-4);
        assert!((derived.acceleration - on_circle(0.15).acceleration).length() < 0.2);
        assert_eq!(derive_motion(&earlier, bare, 0.0), bare);
    }

    #[test]
    fn it_stops_at_the_limit_and_comes_back_in_one_of_three_ways() {
        let start = Motion::new(Vec3::ZERO, Vec3::X * 4.0);
        let interval = Duration::from_millis(50);
        let mut body = Extrapolator::new(Path::Curved, interval, Instant::ZERO, start);
        let at_limit = body.show(Instant::from_millis(250), |_, to| to);
        let later = body.show(Instant::from_millis(900), |_, to| to);
        assert_eq!((at_limit.position, later.position), (Vec3::X, Vec3::X));
        assert!(body.is_stopped(Instant::from_millis(250)));
        let now = Instant::from_millis(900);
        let mut shown_after = |x: f32| {
            body.handle_update(now, Motion::new(Vec3::X * x, Vec3::ZERO), |_, to| to);
            let later = now + Duration::from_millis(25);
            [now, later].map(|at| body.show(at, |_, to| to).position.x)
        };
        // Ignored, smoothed and snapped.
        assert_eq!(shown_after(1.000_5)[0], 1.000_5);
        let [at_once, later] = shown_after(2.0);
        assert!(
            at_once < 1.01 && (1.2..1.8).contains(&later),
            "{at_once}, {later}"
        );
        assert_eq!(shown_after(50.0)[0], 50.0);
    }
}
