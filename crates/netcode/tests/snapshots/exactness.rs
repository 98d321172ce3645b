//! Whatever the network does, clients decode exactly what the server had, see nothing that is none of their business, get
//! every event once and in order, and know everything in the end.

use crate::lossy::Conditions;
use crate::seeds;
use crate::simulation::Simulation;

#[test]
fn clients_follow_a_changing_world_over_bad_networks() {
    for seed in seeds(300) {
        run(seed);
    }
}

/// An unreliable event in a late packet, when its entity had already been told gone.
#[test]
fn seeds_that_once_failed() {
    run(914);
}

fn run(seed: u64) {
    let mut simulation = Simulation::new(seed, 3);
    for _ in 0..simulation.random.u32(1..20) {
        simulation.spawn_body();
    }
    let ticks = simulation.random.u32(40..200);
    for client in &mut simulation.clients {
        client.packet = 300 + simulation.random.u32(0..900) as usize;
    }
    for _ in 0..ticks {
        simulation.disturb();
        simulation.step();
    }
    for client in &mut simulation.clients {
        client.conditions = Conditions::PERFECT;
        client.settles_at = simulation.tick;
    }
    for _ in 0..60 {
        simulation.step();
    }
    simulation.bodies.clear();
    for _ in 0..40 {
        simulation.step();
    }
    simulation.assert_converged();
}
