//! A simple deterministic character: runs, turns, brakes, jumps, and is kept on a grid after each step.

use muse_netcode::Tick;
use muse_netcode::prediction::{Game, StepContext};
use muse_schema::{Schema, State};

/// The state of a character that both sides have: on a grid of 1 mm and 1 mm/s.
#[derive(State, Clone, Debug, PartialEq)]
pub(crate) struct Body {
    #[field(range = -2000.0..=2000.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    pub position: [f32; 3],
    #[field(range = -40.0..=40.0, step = 0.001)]
    pub velocity: [f32; 3],
    pub airborne: bool,
}

impl Body {
    pub(crate) const START: Self = Self {
        position: [0.0; 3],
        velocity: [0.0; 3],
        airborne: false,
    };

    pub(crate) fn distance(&self, other: &Self) -> f32 {
        let square = |axis: usize| (self.position[axis] - other.position[axis]).powi(2);
        (square(0) + square(1) + square(2)).sqrt()
    }
}

/// A player's input.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub forward: i8,
    #[field(range = -1..=1)]
    pub right: i8,
    pub jump: bool,
    #[field(range = 0..=4095)]
    pub yaw: u16,
}

/// The rules; a jump is heard.
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Body;
    type Input = Keys;
    type Event = &'static str;

    fn step(&mut self, body: &mut Body, keys: &Keys, context: &mut StepContext<'_, &'static str>) {
        // A direction without the platform's sine: around a square.
        let angle = f32::from(keys.yaw) / 1024.0;
        let along = angle.fract() * 2.0 - 1.0;
        let (x, z) = match angle as u32 {
            0 => (along, 1.0),
            1 => (1.0, -along),
            2 => (-along, -1.0),
            _ => (-1.0, along),
        };
        let (forward, right) = (f32::from(keys.forward), f32::from(keys.right));
        let wanted = [x * forward + z * right, 0.0, z * forward - x * right];
        for axis in [0, 2] {
            let change = (wanted[axis] * SPEED - body.velocity[axis]) * 0.15;
            body.velocity[axis] += change;
        }
        if keys.jump && !body.airborne {
            body.velocity[1] = 5.0;
            body.airborne = true;
            context.emit("jump");
        }
        if body.airborne {
            body.velocity[1] -= 15.0 * STEP_SECONDS;
        }
        for axis in 0..3 {
            body.position[axis] += body.velocity[axis] * STEP_SECONDS;
        }
        if body.position[1] <= 0.0 {
            body.position[1] = 0.0;
            body.velocity[1] = 0.0;
            body.airborne = false;
        }
    }
}

/// A player who keeps changing their mind: the input of a tick follows from seed and tick alone.
pub(crate) fn play(seed: u64, tick: Tick) -> Keys {
    let phase = |length: u32, salt: u64| {
        let part = u64::from(tick.0 / length);
        fastrand::Rng::with_seed(seed ^ salt ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15)).u32(..)
    };
    let slow = phase(23, 1);
    let mouse = phase(7, 2);
    Keys {
        forward: (slow % 3) as i8 - 1,
        right: (slow / 3 % 3) as i8 - 1,
        jump: phase(40, 3) % 4 == 0 && tick.0 % 40 < 2,
        yaw: ((mouse % 4096) as u16 + (tick.0 % 7 * 16) as u16) % 4096,
    }
}

/// Length of a step of these rules.
pub(crate) const STEP_SECONDS: f32 = 0.02;
/// Ground speed along one axis, in units a second.
pub(crate) const SPEED: f32 = 6.0;
