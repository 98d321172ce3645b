//! The notes of a match: sums, so that a minute of four players is a few numbers.

use std::collections::VecDeque;

use glam::Vec2;

use super::views::{VIEWS, ViewTally};
use crate::character::{Body, TICKS_PER_SECOND};

/// A mean, and the largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    sum: f64,
    count: u64,
    most: f64,
}

impl Mean {
    /// Another value.
    pub fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
        self.most = self.most.max(value);
    }

    /// The values of another.
    pub fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
        self.most = self.most.max(other.most);
    }

    /// The mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The largest.
    pub const fn most(&self) -> f64 {
        self.most
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// The smoothness of movement on a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Movement {
    /// Times that something was drawn.
    pub drawn: u64,
    /// Of those, from no two states on either side: the next was overdue.
    pub underruns: u64,
    /// Frames in which it moved more than twice as far as it had really moved in any frame of the last second.
    pub jumps: u64,
    /// Squares of the third derivative of the place.
    pub jerk_squared: Mean,
}

impl Movement {
    /// Adds what another saw.
    pub fn merge(&mut self, other: &Self) {
        self.drawn += other.drawn;
        self.underruns += other.underruns;
        self.jumps += other.jumps;
        self.jerk_squared.merge(&other.jerk_squared);
    }
}

/// The last places at which something was drawn, a frame apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    places: [Vec2; 4],
    known: u8,
}

impl Track {
    /// Draws it somewhere, `seconds` after the last time. `speed_most` is the most that it really had.
    pub(super) fn draw(
        &mut self,
        place: Vec2,
        seconds: f32,
        speed_most: f32,
        movement: &mut Movement,
    ) {
        self.places.rotate_right(1);
        self.places[0] = place;
        self.known = (self.known + 1).min(4);
        movement.drawn += 1;
        if self.known < 2 {
            return;
        }
        let [a, b, c, d] = self.places;
        let step = a.distance(b);
        movement.jumps += u64::from(step > 2.0 * speed_most * seconds && step > STEP_MIN);
        if self.known == 4 {
            let jerk = (a - b * 3.0 + c * 3.0 - d).length() / (seconds * seconds * seconds);
            movement.jerk_squared.add(f64::from(jerk) * f64::from(jerk));
        }
    }
}

/// An entity's place and movement on the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Truth {
    pub(super) body: Option<Body>,
    /// True if it runs along a curve.
    pub(super) turns: bool,
    speeds: VecDeque<f32>,
}

impl Truth {
    /// It is there in the next tick.
    pub(super) fn note(&mut self, body: Body, tick_seconds: f32) {
        let velocity = |body: &Body| Vec2::new(body.velocity[0], body.velocity[2]);
        let now = velocity(&body);
        if let Some(before) = self.body.as_ref().map(velocity) {
            let turn = before.angle_to(now).abs() / tick_seconds;
            let runs = before.length() > CURVE_SPEED_MIN && now.length() > CURVE_SPEED_MIN;
            self.turns = runs && (CURVE_TURN.0..CURVE_TURN.1).contains(&turn);
        }
        self.speeds.push_back(now.length());
        if self.speeds.len() > TICKS_PER_SECOND as usize {
            self.speeds.pop_front();
        }
        self.body = Some(body);
    }

    pub(super) fn speed_most(&self) -> f32 {
        self.speeds.iter().copied().fold(0.0, f32::max)
    }
}

/// Everything that was noted of a match.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// Clients.
    pub clients: u64,
    /// The time that counted.
    pub seconds: f64,
    /// The distance of others on the screen from where the server has them at that instant, in metres.
    pub distance: Mean,
    /// The mean of that over all clients, for every tick.
    pub course: Vec<f64>,
    /// The distance of one shown player on one client in every tick of the first seconds, in metres.
    pub trace: Vec<f64>,
    /// 95 of 100 are below.
    pub distance_p95: f64,
    /// The movement of others on the screen.
    pub others: Movement,
    /// The movement of the own player on the screen.
    pub own: Movement,
    /// The distance of the own player's prediction from where the server then had it in the same tick, in metres.
    pub own_error: Mean,
    /// From a key to the own screen, in microseconds, in order.
    pub key_to_own: Vec<u32>,
    /// From a key to another's screen, in microseconds, in order.
    pub key_to_other: Vec<u32>,
    /// The delay of others behind their newest state, in milliseconds.
    pub shown_late: Mean,
    /// States of the server that had been foreseen.
    pub confirmed: u64,
    /// States of the server that had not.
    pub corrected: u64,
    /// Steps run again for that.
    pub steps_again: u64,
    /// Most steps run again at once.
    pub depth_most: u64,
    /// Ticks whose input was in time on the server.
    pub inputs_received: u64,
    /// Ticks whose input was not.
    pub inputs_missed: u64,
    /// The time that inputs waited on the server, in microseconds.
    pub inputs_waited: u64,
    /// Shots fired.
    pub shots: u64,
    /// Of those, hits by the server's judgement.
    pub hits: u64,
    /// Of those, judged as the shooter saw it.
    pub shots_agreed: u64,
    /// Of those, older than the limit of lag compensation.
    pub shots_late: u64,
    /// To all clients, with the headers of transport, UDP and IP.
    pub bytes_down: u64,
    /// From all clients, with the headers of transport, UDP and IP.
    pub bytes_up: u64,
    /// The other ways to show others.
    pub views: Option<[ViewTally; VIEWS.len()]>,
    pub(super) distances: Vec<f32>,
}

impl Journal {
    /// Puts what was collected in order.
    pub(super) fn settle(&mut self) {
        self.key_to_own.sort_unstable();
        self.key_to_other.sort_unstable();
        self.distances.sort_unstable_by(f32::total_cmp);
        let at = self.distances.len() * 95 / 100;
        self.distance_p95 = self.distances.get(at).copied().map_or(0.0, f64::from);
        self.distances = Vec::new();
    }
}

/// Shorter steps are no jumps, however slowly it moves.
const STEP_MIN: f32 = 0.05;
/// Slower players are not running along a curve, in metres a second.
const CURVE_SPEED_MIN: f32 = 4.0;
/// Turn rates of a curve, in radians a second: less is straight, more is a change of mind.
const CURVE_TURN: (f32, f32) = (0.8, 5.0);
