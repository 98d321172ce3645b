//! The true positions of bodies, as a function of time.

use glam::Vec3;

/// The way a body moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// Jumps on the spot, lands, rests for a while.
    Jump,
    /// Runs in circles and never rests.
    Circle,
    /// Runs straight on, stops within a tick, rests, runs back.
    StopAndGo,
}

/// A body at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) place: Vec3,
    pub(crate) velocity: Vec3,
    /// For how long it has been at rest, in seconds.
    pub(crate) rested: f64,
}

impl Motion {
    /// Body `number` at a time in seconds.
    pub(crate) fn at(self, number: u32, seconds: f64) -> Truth {
        let home = Vec3::new(
            f32::from(number as u16 % 20) * 4.0 - 40.0,
            0.0,
            f32::from(number as u16 / 20) * 4.0,
        );
        // Everybody at another time; what changes does so at a tick, as in a game.
        let seconds = seconds + f64::from(number) * 19.0 * TICK;
        match self {
            Self::Jump => {
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
            Self::Circle => {
                let angle = seconds * SPEED / RADIUS;
                let (sin, cos) = (angle.sin() as f32, angle.cos() as f32);
                Truth {
                    place: home + Vec3::new(cos, 0.0, sin) * RADIUS as f32,
                    velocity: Vec3::new(-sin, 0.0, cos) * SPEED as f32,
                    rested: 0.0,
                }
            }
            Self::StopAndGo => {
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
                Truth {
                    place: place(phase),
                    velocity: Vec3::X * (way * SPEED) as f32,
                    rested: 0.0,
                }
            }
        }
    }
}

/// True from the end of a motion until the tick after which the next begins: that tick's state is still at rest, as when a player's input moves it in
/// the next.
fn is_at_rest(phase: f64, motion: f64) -> bool {
    phase <= 1e-9 || phase >= motion - 1e-9
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
const GRAVITY: f64 = 20.0;
const AIR: f64 = 2.0 * JUMP / GRAVITY;
const SPEED: f64 = 6.0;
const RADIUS: f64 = 3.0;
const RUN: f64 = 37.0 * TICK;
