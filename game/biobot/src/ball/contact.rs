//! The ball as robots feel it: it weighs something, and it is in the way.
//!
//! Before the ball moves, a robot that runs into it loses the share of its speed that the ball's mass takes ([`share_speed`]); after it has
//! moved, a robot that is still inside of it goes back out and no further that way ([`stop`]). Both go by the two alone, so it does not
//! matter who else is known.

use glam::Vec3;

use super::Pusher;
use crate::TICK_SECONDS;
use crate::collision::HULL;
use crate::level::Level;
use crate::states::{BALL_RADIUS, Ball, ROBOT_HEIGHT, ROBOT_RADIUS};

/// The space between a robot and the ball.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Its width; negative when they overlap.
    pub width: f32,
    /// From the robot to the ball.
    pub normal: Vec3,
}

impl Gap {
    /// Between a robot with its feet there, which is a capsule, and a ball with its middle there.
    pub(super) fn between(feet: Vec3, middle: Vec3) -> Self {
        let height = (middle.y - feet.y).clamp(ROBOT_RADIUS, ROBOT_HEIGHT - ROBOT_RADIUS);
        let way = middle - (feet + Vec3::Y * height);
        let far = way.length();
        let normal = match far > 1e-4 {
            true => way / far,
            false => Vec3::X,
        };
        Self {
            width: far - BALL_RADIUS - ROBOT_RADIUS,
            normal,
        }
    }
}

/// A robot that would run into the ball in this tick is slowed down by the ball's mass.
pub(super) fn share_speed(level: &Level, ball: &Ball, pusher: &mut Pusher) {
    let (before, after) = (pusher.before.feet(), pusher.after.feet());
    let gap = Gap::between(before, ball.middle());
    let way = (after - before) - Vec3::from(ball.velocity) * TICK_SECONDS;
    let closing = way.dot(gap.normal);
    let inside = closing - gap.width.max(0.0);
    if closing <= 0.0 || inside <= 0.0 {
        return;
    }
    let Some(normal) = along(gap.normal, pusher) else {
        return;
    };
    let lost = normal * (closing * BALL_SHARE);
    set_back(level, pusher, -normal * (inside.min(closing) * BALL_SHARE));
    let velocity = Vec3::from(pusher.after.velocity) - lost / TICK_SECONDS;
    pusher.after.velocity = velocity.into();
}

/// A robot that is inside of the ball goes back out, and no further into it.
pub(super) fn stop(level: &Level, ball: &Ball, pusher: &mut Pusher) {
    let gap = Gap::between(pusher.after.feet(), ball.middle());
    if gap.width >= 0.0 {
        return;
    }
    let Some(normal) = along(gap.normal, pusher) else {
        return;
    };
    set_back(level, pusher, normal * gap.width);
    let velocity = Vec3::from(pusher.after.velocity);
    let closing = (velocity - Vec3::from(ball.velocity)).dot(normal);
    if closing > 0.0 {
        pusher.after.velocity = (velocity - normal * closing).into();
    }
}

/// A direction in which a robot may be moved: one on the ground is neither lifted nor pressed into it. `None` where that leaves nothing.
fn along(normal: Vec3, pusher: &Pusher) -> Option<Vec3> {
    if pusher.after.standing == 0 {
        return Some(normal);
    }
    let flat = Vec3::new(normal.x, 0.0, normal.z);
    let share = flat.length();
    (share > FLAT_MIN).then(|| flat / share)
}

/// Moves a robot, as far as the level lets it.
fn set_back(level: &Level, pusher: &mut Pusher, by: Vec3) {
    let middle = pusher.after.middle();
    let stopped = level.collision().sweep(middle, by, HULL, &[]);
    let share = stopped.map_or(1.0, |contact| contact.share);
    pusher.after.position = (pusher.after.feet() + by * share).into();
}

/// The ball's share of the mass of itself and a robot.
const BALL_SHARE: f32 = 0.35;
/// The ball is so much above or below that nobody on the ground can get out of its way aside.
const FLAT_MIN: f32 = 0.2;
