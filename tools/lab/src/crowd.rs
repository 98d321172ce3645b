//! Characters that the server moves: bots that follow from seeds.

use muse_netcode::prediction::{StepContext, run_step};
use muse_netcode::{EntityId, Server, Tick};

use crate::character::{Body, Rules, kinds, play};

/// Bots, each with a seed of its own.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    bots: Vec<(EntityId, u64)>,
}

impl Crowd {
    /// So many bots in a square of `edge` metres around the origin.
    pub fn spawn(server: &mut Server<Rules>, count: u64, edge: f32, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let bots = (0..count).map(|number| {
            let mut place = || (random.f32() - 0.5) * edge;
            let body = Body::at(place(), place());
            let entity = server.world_mut().spawn(kinds().1, &body);
            (
                entity.expect("there is room for a bot"),
                seed * 1_000 + number,
            )
        });
        Self {
            bots: bots.collect(),
        }
    }

    /// The bots.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.bots.iter().map(|(entity, _)| *entity)
    }

    /// Moves them all.
    pub fn step(&self, server: &mut Server<Rules>, tick: Tick) {
        let (_, kind) = kinds();
        let world = server.world_mut();
        for (entity, seed) in &self.bots {
            let mut body = world.state(kind, *entity).expect("bots stay");
            let raise = &mut |()| ();
            let mut context = StepContext::new(tick, true, raise);
            run_step(&mut Rules, &mut body, &play(*seed, tick), &mut context);
            world.set(kind, *entity, &body).expect("bots stay");
        }
    }
}
