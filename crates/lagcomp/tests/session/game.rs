//! The tests' game: players who run about in a plane and shoot at each other, and bots.

use glam::Vec3;
use muse_lagcomp::{Claim, HitVolume, Pose, Rig, Volume};
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{Kind, KindOptions, Kinds, SessionConfig, Tick};
use muse_schema::{Schema, State};
use muse_wire::Duration;

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Player {
    #[field(range = -200.0..=200.0, step = 0.001, predict = linear, velocity = velocity)]
    pub(crate) position: [f32; 3],
    #[field(range = -20.0..=20.0, step = 0.001)]
    pub(crate) velocity: [f32; 3],
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub(crate) x: i8,
    #[field(range = -1..=1)]
    pub(crate) z: i8,
    /// The picture when the trigger was pulled, and the direction of the shot.
    pub(crate) fire: Option<Fire>,
}

#[derive(Schema, Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fire {
    pub(crate) claim: Claim,
    pub(crate) yaw: f32,
}

impl Fire {
    pub(crate) fn direction(&self) -> Vec3 {
        let (sin, cos) = self.yaw.sin_cos();
        Vec3::new(sin, 0.0, cos)
    }
}

pub(crate) struct Rules;

impl Game for Rules {
    type Player = Player;
    type Input = Keys;
    type Event = Tick;

    fn step(&mut self, player: &mut Player, keys: &Keys, context: &mut StepContext<'_, Tick>) {
        let wish = [f32::from(keys.x), 0.0, f32::from(keys.z)];
        for (axis, wish) in wish.into_iter().enumerate() {
            player.velocity[axis] += (wish * 7.0 - player.velocity[axis]) * 0.2;
            player.position[axis] += player.velocity[axis] * TICK.as_secs_f64() as f32;
        }
        if keys.fire.is_some() {
            context.emit(context.tick);
        }
    }
}

pub(crate) type Server = muse_netcode::Server<Rules>;
pub(crate) type Client = muse_netcode::Client<Rules>;

pub(crate) fn kinds() -> (Kinds, Kind<Player>) {
    let mut kinds = Kinds::new();
    let options = KindOptions::new(1).inputs();
    let player = kinds.register(options).expect("the first");
    (kinds, player)
}

pub(crate) fn config() -> SessionConfig {
    SessionConfig::new(TICK)
}

pub(crate) fn distance(a: &Player, b: &Player) -> f32 {
    a.place().distance(b.place())
}

pub(crate) fn rig() -> Rig {
    Rig::new([HitVolume::new(Volume::Sphere { radius: RADIUS })]).expect("a sphere")
}

impl Player {
    pub(crate) fn at(x: f32, z: f32) -> Self {
        let player = Self {
            position: [x, 0.0, z],
            velocity: [0.0; 3],
        };
        player.snapped()
    }

    pub(crate) fn place(&self) -> Vec3 {
        self.position.into()
    }

    pub(crate) fn pose(&self) -> Pose {
        Pose::at(self.place())
    }
}

/// The input of a player who never stands still for long and never goes far from `home`.
pub(crate) fn wander(seed: u64, tick: Tick, player: &Player, home: Vec3) -> Keys {
    let mut rng = fastrand::Rng::with_seed(seed ^ u64::from(tick.0 / 17) << 20);
    let away = player.place() - home;
    let mut axis = |away: f32| match away {
        away if away > 8.0 => -1,
        away if away < -8.0 => 1,
        _ => rng.i8(-1..=1),
    };
    Keys {
        x: axis(away.x),
        z: axis(away.z),
        fire: None,
    }
}

pub(crate) const TICK: Duration = Duration::from_millis(20);
pub(crate) const RADIUS: f32 = 0.4;
