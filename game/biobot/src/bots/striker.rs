//! Bots with the ball: the nearest of a team gets behind it and takes it to the goal, the next guards its own, the others are at hand.

use glam::{Vec2, Vec3};
use muse::netcode::Tick;

use crate::ball::{KICK_REACH, can_kick};
use crate::collision::HULL;
use crate::level::Level;
use crate::player::Frame;
use crate::states::{BALL_RADIUS, Ball, ROBOT_RADIUS, Robot, team_of};
use crate::weapons;

/// The intent of a bot in a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Play {
    /// The direction to run: of length 1, or zero to stand.
    pub way: Vec2,
    /// Yaw and pitch.
    pub look: (f32, f32),
    pub kick: bool,
    pub fire: bool,
}

/// The goals as a team sees them, on the ground.
#[derive(Clone, Copy, Debug)]
struct Goals {
    own: Vec2,
    theirs: Vec2,
}

/// The part of a robot in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Attack,
    Guard,
    Support,
}

/// Returns what to do; `None` where there is no ball.
pub(super) fn play(level: &Level, frame: &Frame, robot: &Robot, stray: f32) -> Option<Play> {
    let ball = &frame.ball.as_ref()?.ball;
    let team = team_of(robot.slot);
    let flat_goal = |team: u8| level.goal(team).map(|goal| flat(goal.area.middle()));
    let goals = Goals {
        own: flat_goal(team)?,
        theirs: flat_goal(1 - team)? + Vec2::new(0.0, stray * AIM_WIDTH),
    };
    let tick = frame.time.tick;
    let feet = flat(robot.feet());
    // Who is far away runs to where the ball will be.
    let far = flat(ball.middle()).distance(feet);
    let ahead = (far / crate::mover::RUN_SPEED).min(AHEAD_MAX) * 0.7;
    let at = flat(ball.middle()) + flat(Vec3::from(ball.velocity)) * ahead;
    let mut play = match part(frame, robot, ball) {
        Part::Attack => attack(level, robot, ball, at, goals, tick),
        Part::Guard => stand_by(robot, ball, goals.own + (at - goals.own) * GUARD_SHARE),
        Part::Support => {
            let side = if robot.slot % 4 < 2 { 1.0 } else { -1.0 };
            let back = (goals.own - at).normalize_or_zero();
            let place = at + back * 7.0 + back.perp() * (side * 5.0);
            stand_by(robot, ball, place)
        }
    };
    play.kick &= !robot.use_held;
    Some(play)
}

/// The nearest to the ball attacks, and who is right beside it; of the others the nearest to their goal guards it.
fn part(frame: &Frame, robot: &Robot, ball: &Ball) -> Part {
    let place = flat(ball.middle());
    let far = |other: &Robot| (flat(other.feet()).distance(place), other.slot);
    let mates = frame.robots.iter().map(|shown| &shown.robot);
    let mates = mates.filter(|mate| mate.alive() && team_of(mate.slot) == team_of(robot.slot));
    let mine = far(robot);
    let rank = mates.filter(|mate| far(mate) < mine).count();
    match rank {
        0 => Part::Attack,
        _ if mine.0 < JOIN_RADIUS => Part::Attack,
        1 => Part::Guard,
        _ => Part::Support,
    }
}

/// Behind the ball, and through it to the goal.
fn attack(level: &Level, robot: &Robot, ball: &Ball, at: Vec2, goals: Goals, tick: Tick) -> Play {
    let feet = flat(robot.feet());
    let forward = (goals.theirs - at).normalize_or_zero();
    let to_ball = at - feet;
    let towards = to_ball.normalize_or_zero();
    let aligned = towards.dot(forward);
    let reach = BALL_RADIUS + ROBOT_RADIUS;
    let behind = at - forward * (reach + 0.4);
    let target = if aligned > ALIGNED {
        at + forward
    } else if aligned > -0.2 {
        behind
    } else {
        // Around it, on the side where it is already.
        let side = if forward.perp_dot(towards) > 0.0 {
            -1.0
        } else {
            1.0
        };
        at - forward * 0.8 + forward.perp() * (side * (reach + 0.7))
    };
    // What is behind the ball may be a wall.
    let open = |place: Vec2| {
        let middle = Vec3::new(place.x, robot.position[1] + HULL.y + 0.05, place.y);
        !level.collision().overlaps(middle, HULL)
    };
    let target = if open(target) { target } else { at };
    let near = ball.middle().distance(robot.middle()) < reach + KICK_REACH + 0.6;
    let kick_way = kick_way(robot, ball, forward, goals);
    let look = match near {
        true => (
            weapons::angles(Vec3::new(kick_way.x, 0.0, kick_way.y)).0,
            0.0,
        ),
        false => weapons::angles(ball.middle() - robot.eye()),
    };
    let gaze = weapons::direction(robot.yaw, 0.0);
    let faces = Vec2::new(gaze.x, gaze.z).dot(kick_way) > FACES;
    let eyes = weapons::direction(robot.yaw, robot.pitch);
    let aims = eyes.dot((ball.middle() - robot.eye()).normalize_or_zero()) > AIMS;
    Play {
        way: (target - feet).normalize_or_zero(),
        look,
        kick: near && faces && can_kick(robot, ball, tick),
        fire: !near && aims && aligned > SHOOTS && to_ball.length() < SHOOT_RANGE,
    }
}

/// The way to kick the ball from here: to the goal if it is on that side, else as near to that as it goes, and never towards the own goal.
fn kick_way(robot: &Robot, ball: &Ball, forward: Vec2, goals: Goals) -> Vec2 {
    let normal = flat(ball.middle() - robot.feet()).normalize_or_zero();
    let way = match normal.dot(forward) > 0.5 {
        true => forward,
        false => (forward + normal * 0.9).normalize_or_zero(),
    };
    let home = (goals.own - flat(ball.middle())).normalize_or_zero();
    match way.dot(home) > 0.6 {
        // Along the line of the goal instead.
        true => {
            home.perp()
                * if home.perp().dot(normal) > 0.0 {
                    1.0
                } else {
                    -1.0
                }
        }
        false => way,
    }
}

/// At a place, with an eye on the ball.
fn stand_by(robot: &Robot, ball: &Ball, place: Vec2) -> Play {
    let off = place - flat(robot.feet());
    Play {
        way: match off.length() > 0.8 {
            true => off.normalize_or_zero(),
            false => Vec2::ZERO,
        },
        look: weapons::angles(ball.middle() - robot.eye()),
        ..Play::default()
    }
}

fn flat(vector: Vec3) -> Vec2 {
    Vec2::new(vector.x, vector.z)
}

/// Half the width of the goal's middle part at which a bot aims.
const AIM_WIDTH: f32 = 2.5;
/// Seconds for which a bot foresees the ball.
const AHEAD_MAX: f32 = 1.2;
/// From its goal to the ball, the share of the way at which a guard stands.
const GUARD_SHARE: f32 = 0.35;
/// The distance from the ball from which a second robot attacks, too.
const JOIN_RADIUS: f32 = 3.0;
/// The cosine of the angle within which a bot runs through the ball.
const ALIGNED: f32 = 0.8;
/// The cosine of the angle within which a bot looks where it kicks.
const FACES: f32 = 0.95;
const AIMS: f32 = 0.998;
const SHOOTS: f32 = 0.93;
const SHOOT_RANGE: f32 = 14.0;
