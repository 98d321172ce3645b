//! The states of the tests' game.

use muse_netcode::{Audience, EntityId, Kind, KindOptions, Kinds};
use muse_schema::State;

#[derive(State, Clone, PartialEq, Debug)]
pub(crate) struct Body {
    #[field(range = -500.0..=500.0, step = 0.001, predict = linear, velocity = velocity)]
    pub(crate) position: [f32; 3],
    #[field(rotation = 10)]
    pub(crate) rotation: [f32; 4],
    #[field(range = -50.0..=50.0, step = 0.01)]
    pub(crate) velocity: [f32; 3],
    pub(crate) target: Option<EntityId>,
}

#[derive(State, Clone, PartialEq, Debug)]
pub(crate) struct Crate {
    pub(crate) open: bool,
    #[field(range = 0..=100)]
    pub(crate) health: u8,
    #[field(max = 12)]
    pub(crate) label: String,
}

#[derive(State, Clone, PartialEq, Debug)]
pub(crate) struct Armor {
    pub(crate) strength: u16,
}

#[derive(State, Clone, PartialEq, Debug)]
pub(crate) struct Private {
    pub(crate) exact: [f32; 3],
    pub(crate) ammunition: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Handles {
    pub(crate) body: Kind<Body>,
    pub(crate) chest: Kind<Crate>,
    pub(crate) armor: Kind<Armor>,
    pub(crate) private: Kind<Private>,
}

pub(crate) fn kinds() -> (Kinds, Handles) {
    let mut kinds = Kinds::new().with_tick_rate(20.0);
    let handles = Handles {
        body: kinds
            .register(KindOptions::new(3).inputs())
            .expect("new id"),
        chest: kinds.register(KindOptions::new(7)).expect("new id"),
        armor: kinds
            .register(KindOptions::new(500).part(Audience::All))
            .expect("new id"),
        private: kinds
            .register(KindOptions::new(9).part(Audience::Owner))
            .expect("new id"),
    };
    (kinds, handles)
}

pub(crate) fn random_body(random: &mut fastrand::Rng) -> Body {
    let mut unit = || random.f32() * 2.0 - 1.0;
    Body {
        position: [unit() * 400.0, unit() * 400.0, unit() * 10.0],
        rotation: [unit(), unit(), unit(), unit() + 0.01],
        velocity: [unit() * 8.0, unit() * 8.0, unit()],
        target: None,
    }
}

pub(crate) fn random_crate(random: &mut fastrand::Rng) -> Crate {
    let label = "abcdefghijkl";
    Crate {
        open: random.bool(),
        health: random.u8(0..=100),
        label: label[..random.u32(0..12) as usize].to_owned(),
    }
}

/// Moves on for a twentieth of a second, turning a little.
pub(crate) fn step(body: &mut Body, random: &mut fastrand::Rng) {
    for axis in 0..3 {
        body.velocity[axis] += (random.f32() - 0.5) * 0.4;
        body.position[axis] += body.velocity[axis] / 20.0;
        if body.position[axis].abs() > 450.0 {
            body.velocity[axis] = -body.velocity[axis];
        }
    }
    body.rotation[0] += 0.02;
}
