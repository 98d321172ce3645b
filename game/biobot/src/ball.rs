//! The ball: how it rolls and bounces, who pushes, kicks and shoots it, and whom it stops. One step for server and clients alike.
//!
//! A step goes by the rows of the ball and of the robots near it only, and keeps nothing from one tick to the next: [`rapier3d`] gets a
//! little world of what is near the ball, made from the states on their grid, and is asked for one tick of it. So both sides come to the same
//! row, whoever else they know of.
//!
//! Robots have their own mover and are as heavy as they like to rapier: bodies that go from their place before the tick to their place after it.
//! That the ball weighs something, and stops who runs against it, are two rules of their own: see `contact.rs`.

mod contact;
mod physics;

use std::sync::Arc;

use glam::Vec3;
use muse::netcode::Tick;
use muse::schema::State;

use crate::level::Level;
use crate::rules::Effect;
use crate::states::{BALL_RADIUS, Ball, Robot};
use crate::weapons::{self, Sort};
use contact::Gap;
use physics::{Physics, Push};

/// A robot in a tick, as the ball sees it.
#[derive(Clone, Debug)]
pub struct Pusher {
    /// Before the tick.
    pub before: Robot,
    /// After its own step; the ball may stop it.
    pub after: Robot,
    /// The events of its step: shots push the ball.
    pub effects: Vec<Effect>,
    /// True if it kicked the ball in this tick.
    pub kicked: bool,
}

impl Pusher {
    /// A robot that made a step.
    pub const fn new(before: Robot, after: Robot) -> Self {
        Self {
            before,
            after,
            effects: Vec::new(),
            kicked: false,
        }
    }

    /// True if it is there before and after the tick, in the same life.
    fn is_there(&self) -> bool {
        self.after.alive() && self.before.lives == self.after.lives
    }
}

/// The rules of the ball on a level.
///
/// ```
/// use std::sync::Arc;
/// use muse_biobot::ball::{BallRules, Pusher};
/// use muse_biobot::{Level, Robot};
/// use muse::netcode::Tick;
/// let level = Arc::new(Level::pitch());
/// let mut rules = BallRules::new(Arc::clone(&level));
/// let mut ball = rules.kick_off();
/// // Somebody stands in front of it, looks along +x and presses use.
/// let before = Robot::new(0, [-1.3, 0.01, 0.0], -1.571);
/// let after = Robot { use_held: true, ..before.clone() };
/// let mut pushers = [Pusher::new(before, after)];
/// rules.step(Tick(1), &mut ball, &mut pushers);
/// assert!(pushers[0].kicked && ball.velocity[0] > 8.0);
/// assert_eq!(ball.last_touch(), Some(0));
/// ```
#[derive(Debug)]
pub struct BallRules {
    level: Arc<Level>,
    physics: Physics,
    pushes: Vec<Push>,
}

impl BallRules {
    /// For a level.
    pub fn new(level: Arc<Level>) -> Self {
        Self {
            physics: Physics::new(&level),
            pushes: Vec::new(),
            level,
        }
    }

    /// The ball at the first kick-off.
    pub fn kick_off(&self) -> Ball {
        Ball::at(self.place()).snapped()
    }

    /// One tick of the ball, after the robots' own steps: robots that touch it are slowed down and stopped. Everything is on its grid afterwards.
    pub fn step(&mut self, tick: Tick, ball: &mut Ball, pushers: &mut [Pusher]) {
        if ball.restart != 0 && tick.0 >= ball.restart {
            let serves = ball.serves.wrapping_add(1);
            *ball = Ball {
                serves,
                ..self.kick_off()
            };
        }
        // The order in which pushes are made is the same whoever tells of them.
        pushers.sort_by_key(|pusher| pusher.after.slot);
        let mut touch = None;
        for pusher in pushers.iter_mut().filter(|pusher| pusher.is_there()) {
            if kick(tick, ball, pusher) | self.shoot(tick, ball, pusher) {
                touch = Some(pusher.after.slot);
            }
        }
        limit(&mut ball.velocity, SPEED_MAX);
        for pusher in pushers.iter_mut().filter(|pusher| pusher.is_there()) {
            contact::share_speed(&self.level, ball, pusher);
        }
        self.roll(ball, pushers);
        let mut nearest = TOUCH;
        let kicked = touch.is_some();
        for pusher in pushers.iter_mut().filter(|pusher| pusher.is_there()) {
            let gap = Gap::between(pusher.after.feet(), ball.middle());
            if gap.width < nearest && !kicked {
                (nearest, touch) = (gap.width, Some(pusher.after.slot));
            }
            contact::stop(&self.level, ball, pusher);
            pusher.after = pusher.after.snapped();
        }
        if let Some(slot) = touch {
            ball.touched = slot + 1;
        }
        *ball = ball.snapped();
    }

    /// Lets the ball move for a tick, among what stands and these robots.
    fn roll(&mut self, ball: &mut Ball, pushers: &[Pusher]) {
        self.pushes.clear();
        let mut fastest = 0.0_f32;
        for pusher in pushers.iter().filter(|pusher| pusher.is_there()) {
            let gap = Gap::between(pusher.after.feet(), ball.middle());
            if gap.width < NEAR {
                let push = Push::new(pusher.before.feet(), pusher.after.feet());
                fastest = fastest.max(push.speed());
                self.pushes.push(push);
            }
        }
        let before = Vec3::from(ball.velocity);
        if before == Vec3::ZERO && self.pushes.is_empty() && self.physics.supports(ball.middle()) {
            return;
        }
        let (mut at, mut velocity, grounded) =
            self.physics.step(ball.middle(), before, &self.pushes);
        if !at.is_finite() || !velocity.is_finite() {
            (at, velocity) = (self.place().into(), Vec3::ZERO);
        }
        // Squeezed between robots or under one, it would shoot out faster than anything that pushes it.
        let most = match self.pushes.is_empty() {
            true => before.length(),
            false => {
                before.length() * physics::BOUNCE_ROBOT + fastest * (1.0 + physics::BOUNCE_ROBOT)
            }
        };
        let fallen = fall_speed();
        let mut velocity: [f32; 3] = velocity.into();
        limit(&mut velocity, most.max(before.length()) + fallen);
        limit(&mut velocity, SPEED_MAX);
        if grounded {
            settle(&mut velocity);
        }
        at += self.physics.way_out(at);
        if !self.physics.contains(at) {
            (at, velocity) = (self.place().into(), [0.0; 3]);
        }
        let moved = at.distance(ball.middle());
        if velocity == [0.0; 3] && before.length() < REST_SPEED && moved < REST_WAY {
            // It stays where it is, to the last digit.
            at = ball.middle();
        }
        ball.position = at.into();
        ball.velocity = velocity;
    }

    /// Shots push the ball a little, if nothing is in between. They are judged by where it is in this tick: who shoots predicts it there.
    fn shoot(&self, tick: Tick, ball: &mut Ball, pusher: &Pusher) -> bool {
        let mut hit = false;
        for effect in &pusher.effects {
            let &Effect::Fired {
                weapon,
                origin,
                yaw,
                pitch,
                aiming,
            } = effect
            else {
                continue;
            };
            let constants = weapons::weapon(weapon);
            if constants.sort != Sort::Hitscan {
                continue;
            }
            let origin = Vec3::from(origin);
            let slot = pusher.after.slot;
            for way in weapons::pellets(weapon, (yaw, pitch), aiming, (tick, slot)) {
                let Some(far) = ray(origin, way, ball.middle()) else {
                    continue;
                };
                let point = origin + way * far;
                if far > constants.range || !self.level.collision().sees(origin, point, &[]) {
                    continue;
                }
                let push = way * (f32::from(constants.damage) * SHOT_SPEED);
                ball.velocity = (Vec3::from(ball.velocity) + push).into();
                hit = true;
            }
        }
        hit
    }

    fn place(&self) -> [f32; 3] {
        self.level.kick_off.unwrap_or([0.0, BALL_RADIUS, 0.0])
    }
}

/// True if a robot that presses use now would kick the ball.
pub fn can_kick(robot: &Robot, ball: &Ball, tick: Tick) -> bool {
    let gap = Gap::between(robot.feet(), ball.middle());
    let look = weapons::direction(robot.yaw, 0.0);
    robot.alive()
        && robot.ready <= tick.0
        && gap.width <= KICK_REACH
        && look.dot(gap.normal) > KICK_AHEAD
}

/// The velocity that a kick adds, for somebody who looks like this: never into the ground, where they look when the ball lies at their feet.
pub fn kick_velocity(yaw: f32, pitch: f32) -> Vec3 {
    let rise = (pitch + KICK_RISE).clamp(KICK_RISE_MIN, KICK_RISE_MAX);
    weapons::direction(yaw, rise) * KICK_SPEED
}

/// A robot that has just pressed use kicks; its hands are not free for a while then.
fn kick(tick: Tick, ball: &mut Ball, pusher: &mut Pusher) -> bool {
    let pressed = pusher.after.use_held && !pusher.before.use_held;
    pusher.kicked = pressed && can_kick(&pusher.after, ball, tick);
    if pusher.kicked {
        let added = kick_velocity(pusher.after.yaw, pusher.after.pitch);
        ball.velocity = (Vec3::from(ball.velocity) + added).into();
        pusher.after.ready = tick.0 + KICK_TICKS;
    }
    pusher.kicked
}

/// On the ground it does not bounce for ever, and rolls slower until it rests.
fn settle(velocity: &mut [f32; 3]) {
    let [x, y, z] = *velocity;
    let up = if y.abs() < BOUNCE_MIN { 0.0 } else { y };
    let flat = libm::sqrtf(x * x + z * z);
    let kept = match flat {
        flat if up == 0.0 && flat < REST_SPEED => 0.0,
        flat => (1.0 - ROLLING * crate::TICK_SECONDS / flat.max(REST_SPEED)).max(0.0),
    };
    *velocity = [x * kept, up, z * kept];
}

fn limit(velocity: &mut [f32; 3], most: f32) {
    let whole = Vec3::from(*velocity);
    let speed = whole.length();
    if speed > most {
        *velocity = (whole * (most / speed)).into();
    }
}

/// Returns the distance of the ball along a ray; `None` for a miss.
fn ray(origin: Vec3, way: Vec3, middle: Vec3) -> Option<f32> {
    let to = middle - origin;
    let along = to.dot(way);
    let aside = to.length_squared() - along * along;
    let deep = BALL_RADIUS * BALL_RADIUS - aside;
    (along > 0.0 && deep >= 0.0).then(|| (along - libm::sqrtf(deep)).max(0.0))
}

/// The speed that falling adds in a tick.
fn fall_speed() -> f32 {
    crate::mover::GRAVITY * crate::TICK_SECONDS
}

/// Fastest that the ball goes: in a tick less than its radius, so that it passes through nothing.
pub const SPEED_MAX: f32 = 30.0;
/// The distance from its surface within which a robot kicks it.
pub const KICK_REACH: f32 = 0.8;
/// Metres a second that a kick adds.
pub const KICK_SPEED: f32 = 13.0;
/// Ticks until a robot that kicked kicks or shoots again: 0.4 s.
pub const KICK_TICKS: u32 = 20;
/// The cosine of the angle from the look within which the ball is kicked: a bit more than what is before one.
const KICK_AHEAD: f32 = -0.2;
const KICK_RISE: f32 = 0.3;
const KICK_RISE_MIN: f32 = 0.08;
const KICK_RISE_MAX: f32 = 0.8;
/// Metres a second that a shot adds for each point of its damage: a blaster's 0.7.
const SHOT_SPEED: f32 = 0.05;
/// The gap within which a robot has touched the ball.
const TOUCH: f32 = 0.03;
/// The gap beyond which a robot cannot reach the ball in a tick.
const NEAR: f32 = 1.0;
/// Slower than this it comes to rest on the ground.
const REST_SPEED: f32 = 0.12;
/// The way that it may have to go in a tick to come to rest.
const REST_WAY: f32 = 0.004;
/// Slower than this it does not bounce off the ground.
const BOUNCE_MIN: f32 = 1.0;
/// Metres a second squared by which it rolls slower.
const ROLLING: f32 = 0.9;
