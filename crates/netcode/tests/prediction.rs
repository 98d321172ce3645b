//! Prediction: corrections lead to the server's state, effects happen once, whole worlds can be predicted.

use std::collections::BTreeMap;

use muse_netcode::Tick;
use muse_netcode::prediction::{
    EffectChange, Game, Predicted, Predictor, Reconciled, StepContext, run_step,
};
use muse_schema::State;

#[derive(State, Clone, Debug, PartialEq)]
struct Runner {
    #[field(range = -1000.0..=1000.0, step = 0.01)]
    x: f32,
    #[field(range = 0..=100)]
    ammo: u8,
}

/// Inputs above 9 shoot, if there is ammunition.
struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = u8;
    type Event = u8;

    fn step(&mut self, state: &mut Runner, input: &u8, context: &mut StepContext<'_, u8>) {
        state.x += f32::from(*input) * 0.013;
        if *input > 9 && state.ammo > 0 {
            state.ammo -= 1;
            context.emit(*input);
        }
    }
}

fn server_step(state: &mut Runner, tick: Tick, input: u8) {
    let mut emit = |_| ();
    run_step(
        &mut Rules,
        state,
        &input,
        &mut StepContext::new(tick, true, &mut emit),
    );
}

#[test]
fn effects_happen_once_whatever_the_server_says() {
    for seed in 0..50 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut predictor = Predictor::<Rules>::new();
        let mut server = Runner { x: 0.0, ammo: 60 };
        predictor.reconcile(&mut Rules, Tick(0), &server);
        let mut inputs = vec![0];
        let mut told: BTreeMap<(u32, u8), Vec<EffectChange>> = BTreeMap::new();
        let mut server_tick = 0;
        for tick in 1..=300 {
            inputs.push(random.u8(0..12));
            predictor.predict(&mut Rules, Tick(tick), inputs[tick as usize]);
            while server_tick + 6 < tick && random.u8(0..4) > 0 {
                server_tick += 1;
                // Now and then the server did not get the input, or hands out ammunition.
                let lost = random.u8(0..10) == 0;
                let input = if lost {
                    inputs[server_tick as usize - 1]
                } else {
                    inputs[server_tick as usize]
                };
                server_step(&mut server, Tick(server_tick), input);
                if random.u8(0..50) == 0 {
                    server.ammo = random.u8(0..40);
                }
                // Some snapshots are lost.
                if random.u8(0..5) > 0 {
                    predictor.reconcile(&mut Rules, Tick(server_tick), &server);
                    let state = predictor.confirmed().map(|(_, state)| state);
                    assert_eq!(state, Some(&server), "seed {seed}");
                }
            }
            while let Some(effect) = predictor.poll_effect() {
                told.entry((effect.tick.0, effect.event))
                    .or_default()
                    .push(effect.change);
            }
        }
        let corrected = predictor.counters().corrected;
        assert!(
            told.len() > 10 && corrected > 5,
            "{} and {corrected}",
            told.len()
        );
        for (key, changes) in &told {
            // An event may be cancelled and then happen after all; it never happens twice at a time.
            for (index, change) in changes.iter().enumerate() {
                let is_raise = *change == EffectChange::Emitted;
                assert_eq!(
                    is_raise,
                    index % 2 == 0,
                    "seed {seed}, {key:?}: {changes:?}"
                );
            }
        }
    }
}

/// Two bodies of which the other player's keeps its last input, for prediction of a whole world.
#[derive(Clone, Debug, PartialEq)]
struct Arena {
    bodies: Vec<Runner>,
    other_input: u8,
}

impl Predicted for Arena {
    fn differs(&self, other: &Self) -> bool {
        let pairs = self.bodies.iter().zip(&other.bodies);
        self.bodies.len() != other.bodies.len()
            || pairs.into_iter().any(|(a, b)| State::differs(a, b))
    }

    fn snap(&mut self) {
        self.bodies.iter_mut().for_each(Predicted::snap);
    }
}

struct ArenaRules;

impl Game for ArenaRules {
    type Player = Arena;
    type Input = u8;
    type Event = ();

    fn step(&mut self, arena: &mut Arena, input: &u8, context: &mut StepContext<'_, ()>) {
        let inputs = [*input, arena.other_input];
        for (body, input) in arena.bodies.iter_mut().zip(inputs) {
            let mut emit = |_| ();
            let mut context = StepContext::new(context.tick, context.first_run, &mut emit);
            Rules.step(body, &input, &mut context);
        }
        // A body that is overtaken is pushed ahead.
        if arena.bodies[0].x > arena.bodies[1].x {
            arena.bodies[1].x = arena.bodies[0].x;
        }
    }
}

#[test]
fn a_whole_world_is_predicted_with_the_others_last_inputs() {
    let start = Arena {
        bodies: vec![Runner { x: 0.0, ammo: 0 }, Runner { x: 0.2, ammo: 0 }],
        other_input: 1,
    };
    let mut predictor = Predictor::<ArenaRules>::new();
    predictor.reconcile(&mut ArenaRules, Tick(0), &start);
    let mut server = start;
    for tick in 1..=10 {
        predictor.predict(&mut ArenaRules, Tick(tick), 5);
    }
    let pushed = &predictor.state().expect("predicted").bodies;
    assert_eq!(pushed[0].x, pushed[1].x, "the push is predicted, too");
    // The other stops in tick 3, which no one could foresee.
    for tick in 1..=10 {
        server.other_input = if tick < 3 { 1 } else { 0 };
        let mut emit = |()| ();
        let mut context = StepContext::new(Tick(tick), true, &mut emit);
        run_step(&mut ArenaRules, &mut server, &5, &mut context);
        let result = predictor.reconcile(&mut ArenaRules, Tick(tick), &server);
        match tick {
            3 => assert!(matches!(result, Reconciled::Corrected { again: 7, .. })),
            _ => assert_eq!(result, Reconciled::Confirmed, "tick {tick}"),
        }
    }
}

#[test]
fn a_server_that_falls_silent_stops_prediction_and_a_late_client_starts_anew() {
    let mut predictor = Predictor::<Rules>::new();
    let start = Runner { x: 0.0, ammo: 0 };
    predictor.predict(&mut Rules, Tick(1), 5);
    assert_eq!(predictor.state(), None, "there is nothing to start from");
    assert_eq!(
        predictor.reconcile(&mut Rules, Tick(10), &start),
        Reconciled::Started
    );
    for tick in 11..500 {
        predictor.predict(&mut Rules, Tick(tick), 5);
    }
    let ahead = Predictor::<Rules>::AHEAD_MAX as u32;
    assert_eq!(predictor.tick(), Some(Tick(10 + ahead)));
    assert_eq!(
        predictor.reconcile(&mut Rules, Tick(5), &start),
        Reconciled::Outdated
    );
    assert_eq!(
        predictor.reconcile(&mut Rules, Tick(400), &start),
        Reconciled::Started
    );
    // Skipped ticks hold the input before them.
    predictor.predict(&mut Rules, Tick(401), 5);
    predictor.predict(&mut Rules, Tick(404), 5);
    assert_eq!(predictor.tick(), Some(Tick(404)));
    let x = predictor.state().expect("predicted").x;
    assert!((x - 0.26).abs() < 0.03, "{x}");
}
