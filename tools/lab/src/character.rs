//! A little game: characters that run, turn and fire, kept on a grid of a millimetre after each step.

use glam::Vec2;
use muse::Protocol;
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{KindOptions, Kinds, Tick, TickTime};
use muse_schema::{Schema, State};

/// The state of a character, which lives on a plane: x to the right, z away.
///
/// ```
/// use muse_lab::character::Body;
/// assert_eq!(Body::at(1.0, 2.0).position, [1.0, 0.0, 2.0]);
/// ```
#[derive(State, Clone, Debug, PartialEq)]
pub struct Body {
    /// Its position, in metres.
    #[field(range = -1000.0..=1000.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    pub position: [f32; 3],
    /// Its velocity, in metres a second.
    #[field(range = -60.0..=60.0, step = 0.001)]
    pub velocity: [f32; 3],
}

impl Body {
    /// At rest.
    pub const fn at(x: f32, z: f32) -> Self {
        Self {
            position: [x, 0.0, z],
            velocity: [0.0; 3],
        }
    }

    /// Returns the distance between two characters.
    pub fn distance(&self, other: &Self) -> f32 {
        self.place().distance(other.place())
    }

    /// Returns its speed, in metres a second.
    pub fn speed(&self) -> f32 {
        Vec2::new(self.velocity[0], self.velocity[2]).length()
    }

    /// Returns its position on the plane.
    pub fn place(&self) -> Vec2 {
        Vec2::new(self.position[0], self.position[2])
    }
}

/// A player's input for a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub struct Keys {
    /// Backwards, not at all, forwards.
    #[field(range = -1..=1)]
    pub forward: i8,
    /// To the left, not at all, to the right.
    #[field(range = -1..=1)]
    pub right: i8,
    /// The direction the player looks in, in 1/4,096 of a turn from the z axis towards the x axis.
    #[field(range = 0..=4095)]
    pub yaw: u16,
    /// A shot.
    pub fire: Option<Fire>,
}

/// A shot, with the instant of the server's world that its shooter saw.
#[derive(Schema, Clone, Debug, PartialEq)]
pub struct Fire {
    /// The instant that was on the screen.
    pub seen: TickTime,
    /// From where, on the plane.
    pub from: [f32; 2],
    /// The place aimed at.
    pub towards: [f32; 2],
}

/// The rules, the same on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Rules;

impl Game for Rules {
    type Player = Body;
    type Input = Keys;
    type Event = ();
    const TICKS_PER_SECOND: u32 = TICKS_PER_SECOND;

    fn step(&mut self, body: &mut Body, keys: &Keys, _: &mut StepContext<'_, ()>) {
        let turn = f32::from(keys.yaw) / 4_096.0 * core::f32::consts::TAU;
        // x and y of `from_angle` are cosine and sine: the same bits on every platform.
        let facing = Vec2::from_angle(turn);
        let (forward, right) = (f32::from(keys.forward), f32::from(keys.right));
        let way = [
            facing.y * forward + facing.x * right,
            facing.x * forward - facing.y * right,
        ];
        for (axis, wanted) in [0, 2].into_iter().zip(way) {
            body.velocity[axis] += (wanted * SPEED - body.velocity[axis]) * GRIP;
            body.position[axis] += body.velocity[axis] * TICK_SECONDS;
        }
    }
}

/// Returns the keys of a player that keeps changing direction: they follow from seed and tick alone.
pub fn play(seed: u64, tick: Tick) -> Keys {
    // Not all change their minds at the same time.
    let tick = tick + (seed % 97) as u32;
    let phase = |length: u32, salt: u64| {
        let part = u64::from(tick.0 / length).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        fastrand::Rng::with_seed(seed ^ salt ^ part).u32(..)
    };
    let legs = phase(31, 1);
    let mouse = phase(17, 2);
    Keys {
        forward: if legs.is_multiple_of(6) { -1 } else { 1 },
        right: (legs / 6 % 3) as i8 - 1,
        yaw: ((mouse % 4_096 + tick.0 % 17 * 24) % 4_096) as u16,
        fire: None,
    }
}

/// Returns what server and clients agree on.
pub fn protocol() -> Protocol {
    Protocol::new("muse-lab")
        .kind_with::<Body>(KindOptions::new(1))
        .for_game::<Rules>()
}

/// The kinds of this game, declared alike by server and clients; the handle is that of [`Body`].
pub fn kinds() -> (Kinds, muse_netcode::Kind<Body>) {
    let mut kinds = Kinds::new().with_tick_rate(f64::from(TICKS_PER_SECOND));
    let body = kinds
        .register(KindOptions::new(1))
        .expect("the first kind of its id");
    (kinds, body)
}

/// Ticks a second.
pub const TICKS_PER_SECOND: u32 = 50;
/// Length of a tick.
pub const TICK_SECONDS: f32 = 0.02;
/// Ground speed, in metres a second.
pub const SPEED: f32 = 7.0;
/// The share of the wanted change of velocity that happens in a tick.
const GRIP: f32 = 0.15;
