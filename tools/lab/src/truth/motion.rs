//! The true positions of bodies, as a function of time.

use glam::Vec3;

/// The way a body moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Jumps on the spot, lands, rests for a while.
    Jump,
    /// Runs in circles and never rests.
    Circle,
    /// Runs straight on, stops within a tick, rests, runs back.
    StopAndGo,
    /// Runs straight on and turns by a right angle within a tick.
    Turns,
    /// Rides a platform that rises, waits, and sinks.
    Platform,
    /// A ball that is kicked, bounces on the floor, and rests.
    Ball,
}

/// A body at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    /// Its position; the floor is at height 0.
    pub place: Vec3,
    /// Its velocity.
    pub velocity: Vec3,
    /// For how long it has been at rest, in seconds.
    pub rested: f64,
}

impl Motion {
    /// All motions.
    pub const ALL: [Self; 6] = [
        Self::Jump,
        Self::Circle,
        Self::StopAndGo,
        Self::Turns,
        Self::Platform,
        Self::Ball,
    ];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jump => "jump",
            Self::Circle => "circle",
            Self::StopAndGo => "stop_and_go",
            Self::Turns => "turns",
            Self::Platform => "platform",
            Self::Ball => "ball",
        }
    }

    /// True if gravity pulls the body down wherever it is above the floor.
    pub(super) const fn falls(self) -> bool {
        matches!(self, Self::Jump | Self::Ball)
    }

    /// Body `number` at a time in seconds.
    pub fn at(self, number: u32, seconds: f64) -> Truth {
        let home = Vec3::new(
            f32::from(number as u16 % 20) * 4.0 - 40.0,
            0.0,
            f32::from(number as u16 / 20) * 4.0,
        );
        // Everybody at another time; what changes does so at a tick, as in a game.
        let seconds = seconds + f64::from(number) * 19.0 * TICK;
        match self {
            Self::Jump => jump(home, number, seconds),
            Self::Circle => circle(home, seconds),
            Self::StopAndGo => stop_and_go(home, number, seconds),
            Self::Turns => turns(home, seconds),
            Self::Platform => platform(home, number, seconds),
            Self::Ball => ball(home, number, seconds),
        }
    }
}

fn jump(home: Vec3, number: u32, seconds: f64) -> Truth {
    let (phase, _) = phase(seconds, AIR + rest(number));
    if is_at_rest(phase, AIR) {
        return resting(home, phase, AIR, rest(number));
    }
    let height = JUMP * phase - 0.5 * GRAVITY * phase * phase;
    Truth {
        place: home + Vec3::Y * height.max(0.0) as f32,
        velocity: Vec3::Y * (JUMP - GRAVITY * phase) as f32,
        rested: 0.0,
    }
}

fn circle(home: Vec3, seconds: f64) -> Truth {
    let angle = seconds * SPEED / RADIUS;
    let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
    moving(
        home + Vec3::new(cos, 0.0, sin) * RADIUS as f32,
        Vec3::new(-sin, 0.0, cos) * SPEED as f32,
    )
}

fn stop_and_go(home: Vec3, number: u32, seconds: f64) -> Truth {
    let rest = rest(number);
    let (phase, cycle) = phase(seconds, RUN + rest);
    let (way, from) = match cycle % 2 {
        0 => (1.0, 0.0),
        _ => (-1.0, RUN * SPEED),
    };
    let place = |run: f64| home + Vec3::X * (from + way * run * SPEED) as f32;
    if is_at_rest(phase, RUN) {
        let run = if phase < RUN / 2.0 { 0.0 } else { RUN };
        return resting(place(run), phase, RUN, rest);
    }
    moving(place(phase), Vec3::X * (way * SPEED) as f32)
}

/// Around a square.
fn turns(home: Vec3, seconds: f64) -> Truth {
    let side = 25.0 * TICK;
    let (phase, cycle) = phase(seconds, side);
    let ways = [Vec3::X, Vec3::Z, Vec3::NEG_X, Vec3::NEG_Z];
    let turn = (cycle % 4) as usize;
    let corner: Vec3 = ways[..turn].iter().sum();
    let run = corner * (side * SPEED) as f32 + ways[turn] * (phase * SPEED) as f32;
    moving(home + run, ways[turn] * SPEED as f32)
}

fn platform(home: Vec3, number: u32, seconds: f64) -> Truth {
    let (rest, way) = (rest(number), 50.0 * TICK);
    let (phase, cycle) = phase(seconds, way + rest);
    let (from, to) = match cycle % 2 {
        0 => (0.0, LIFT),
        _ => (LIFT, 0.0),
    };
    let height = |share: f64| home + Vec3::Y * (from + (to - from) * share) as f32;
    if is_at_rest(phase, way) {
        let share = if phase < way / 2.0 { 0.0 } else { 1.0 };
        return resting(height(share), phase, way, rest);
    }
    moving(height(phase / way), Vec3::Y * ((to - from) / way) as f32)
}

/// Each flight is half as high as the one before it.
fn ball(home: Vec3, number: u32, seconds: f64) -> Truth {
    let flights = [40.0 * TICK, 28.0 * TICK, 20.0 * TICK];
    let whole: f64 = flights.iter().sum();
    let rest = rest(number);
    let (phase, cycle) = phase(seconds, whole + rest);
    let (way, from) = match cycle % 2 {
        0 => (1.0, 0.0),
        _ => (-1.0, whole * ROLL),
    };
    let place = |run: f64| home + Vec3::X * (from + way * run * ROLL) as f32;
    if is_at_rest(phase, whole) {
        let run = if phase < whole / 2.0 { 0.0 } else { whole };
        return resting(place(run), phase, whole, rest);
    }
    let mut begun = 0.0;
    for flight in flights {
        let (flown, up) = (phase - begun, GRAVITY * flight / 2.0);
        if flown < flight - 1e-9 {
            let height = (up * flown - 0.5 * GRAVITY * flown * flown).max(0.0);
            let velocity = Vec3::new((way * ROLL) as f32, (up - GRAVITY * flown) as f32, 0.0);
            return moving(place(phase) + Vec3::Y * height as f32, velocity);
        }
        begun += flight;
    }
    moving(place(phase), Vec3::X * (way * ROLL) as f32)
}

/// True from the end of a motion until the tick after which the next begins: that tick's state is still at rest, as when a player's input moves it in
/// the next.
fn is_at_rest(phase: f64, motion: f64) -> bool {
    phase <= 1e-9 || phase >= motion - 1e-9
}

const fn moving(place: Vec3, velocity: Vec3) -> Truth {
    Truth {
        place,
        velocity,
        rested: 0.0,
    }
}

fn resting(place: Vec3, phase: f64, motion: f64, rest: f64) -> Truth {
    Truth {
        place,
        velocity: Vec3::ZERO,
        rested: if phase <= 1e-9 { rest } else { phase - motion },
    }
}

/// Position of a time within its cycle, and the number of that cycle. Ticks are not exact in binary: one that is just short of the next cycle is in it.
fn phase(seconds: f64, period: f64) -> (f64, u64) {
    let cycle = (seconds / period + 1e-9).floor();
    ((seconds - cycle * period).max(0.0), cycle as u64)
}

/// Time that a body rests; differs between bodies.
fn rest(number: u32) -> f64 {
    f64::from(31 + number % 7 * 11) * TICK
}

const TICK: f64 = 0.02;
const JUMP: f64 = 9.0;
pub(super) const GRAVITY: f64 = 20.0;
const AIR: f64 = 2.0 * JUMP / GRAVITY;
const SPEED: f64 = 6.0;
const RADIUS: f64 = 3.0;
const RUN: f64 = 37.0 * TICK;
/// Height of the platform's way.
const LIFT: f64 = 3.0;
/// Speed of the ball over the ground.
const ROLL: f64 = 8.0;
