//! With fewer bytes than everything would need, everyone has its turn.

use crate::lossy::Conditions;
use crate::seeds;
use crate::simulation::Simulation;

const ENTITIES: usize = 200;
/// A second.
const WAIT_TICKS_MAX: u32 = 20;

/// Bodies that all move, and a client that sees them all through a narrow link.
fn scarce(seed: u64, budget: usize, packet: usize) -> Simulation {
    let mut simulation = Simulation::new(seed, 1);
    simulation.restless = true;
    for _ in 0..ENTITIES {
        simulation.spawn_body();
    }
    let client = &mut simulation.clients[0];
    client.settles_at = 0;
    client.budget = budget;
    client.packet = packet;
    client.conditions = Conditions {
        loss: 0.02,
        duplicates: 0.0,
        // Round trips of 100 to 200 ms.
        delay: 1,
        jitter: 1,
    };
    simulation
}

#[test]
fn no_entity_waits_for_a_second() {
    for seed in seeds(4) {
        for (budget, packet) in [(500, 1_200), (700, 250)] {
            let mut simulation = scarce(seed, budget, packet);
            let mut demand = 0;
            for tick in 1..=240 {
                simulation.step();
                let client = &simulation.clients[0];
                if tick < 100 {
                    continue;
                }
                assert_eq!(client.last_state.len(), ENTITIES);
                for (entity, last) in &client.last_state {
                    let waited = simulation.tick - last;
                    assert!(
                        waited <= WAIT_TICKS_MAX,
                        "seed {seed}: {entity:?} has waited for {waited} ticks "
                    );
                    demand += usize::from(waited > 4);
                }
            }
            assert!(demand > 0, "the budget was no limit");
        }
    }
}

#[test]
fn the_weightier_has_its_turn_more_often() {
    let mut simulation = scarce(1, 500, 1_200);
    for _ in 0..300 {
        simulation.step();
    }
    let mut told = [0u32; 5];
    for (entity, count) in &simulation.clients[0].states {
        told[entity.index() as usize % 5] += count;
    }
    // Weights are 1 to 5.
    assert!(told.is_sorted(), "{told:?}");
    assert!(told[4] > told[0] * 2, "{told:?}");
}
