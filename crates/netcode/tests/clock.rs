//! The clock follows what happens to network, server and client, and never jumps.

#[path = "support/character.rs"]
mod character;
#[path = "support/session.rs"]
mod session;

use muse_netem::{Conditions, Jitter};
use muse_wire::{Duration, Instant};
use session::{Outcome, Setup, run};

fn network(delay_ms: u64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(delay_ms))
        .jitter(Jitter::Uniform(Duration::from_millis(8)))
        .loss(0.01)
}

/// Inputs come in time, the clock is right, and it has neither jumped nor run too fast on the way.
fn assert_settled(outcome: &Outcome, what: &str) {
    let inputs = outcome.inputs_in_time + outcome.inputs_missed;
    assert!(inputs > 300, "{what}: {inputs} inputs");
    assert!(
        outcome.inputs_missed * 200 < inputs,
        "{what}: {} missed",
        outcome.inputs_missed
    );
    let mut errors = outcome.clock_errors.clone();
    errors.sort_unstable();
    let p95 = errors[errors.len() * 95 / 100];
    assert!(p95 <= 500, "{what}: clock off by {p95}/1000 tick");
    assert_eq!(outcome.tick_gaps, 0, "{what}");
    assert!(
        outcome.rate_most <= 0.25 + 1e-9,
        "{what}: rate {}",
        outcome.rate_most
    );
    assert_eq!(outcome.wrong_without_cause, 0, "{what}");
}

#[test]
fn a_longer_and_a_shorter_way_are_followed() {
    for (before, after) in [(20, 80), (80, 20)] {
        for seed in 0..8 {
            let mut setup = Setup::new(seed);
            setup.reroute = Some((Instant::from_secs(6), Duration::from_millis(after)));
            // The longer way is noticed at once; the memory of it fades within the window of measurements.
            let settling = if after > before { 4 } else { 12 };
            setup.warm_up = Duration::from_secs(6 + settling);
            setup.length = Duration::from_secs(28);
            let outcome = run(setup, network(before), network(before));
            assert_settled(&outcome, &format!("{before} to {after} ms, seed {seed}"));
            let mean = outcome.input_waited_micros / outcome.inputs_in_time;
            assert!(
                mean < 40_000,
                "{before} to {after} ms: inputs wait {mean} us"
            );
        }
    }
}

#[test]
fn a_server_that_hitches_tells_its_clients() {
    for seed in 0..8 {
        let mut setup = Setup::new(seed);
        setup.hitch = Some((Instant::from_secs(6), Duration::from_millis(400)));
        setup.warm_up = Duration::from_secs(10);
        setup.length = Duration::from_secs(20);
        let outcome = run(setup, network(40), network(40));
        assert_settled(&outcome, &format!("seed {seed}"));
        assert_eq!(outcome.teleports, 0, "seed {seed}");
        assert!(
            outcome.underruns * 50 < outcome.frames,
            "seed {seed}: {}",
            outcome.underruns
        );
    }
}

#[test]
fn a_client_that_looks_at_the_network_in_its_frames_only_plays_as_well() {
    for seed in 0..8 {
        let mut setup = Setup::new(seed);
        setup.bound_to_frames = true;
        setup.frames_per_second = 60;
        let outcome = run(setup, network(40), network(40));
        assert_settled(&outcome, &format!("seed {seed}"));
        assert_eq!(outcome.teleports, 0, "seed {seed}");
    }
}

#[test]
fn a_run_repeats_from_its_seed() {
    let once = |seed| {
        let outcome = run(Setup::new(seed), network(50), network(50));
        (
            outcome.input_waited_micros,
            outcome.shown_behind_micros,
            outcome.packets_up,
        )
    };
    assert_eq!(once(5), once(5));
    assert_ne!(once(5), once(6));
}
