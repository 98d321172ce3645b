//! `Remotes` shows bodies where they really were at the time it claims to show: on every network and under a byte budget, above all when they
//! land and rest.
//!
//! `cargo test -p muse-netcode --test shown -- --nocapture` prints every cell.

mod motion;
mod theatre;

use motion::Motion;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;
use theatre::{Errors, Scene, play};

fn network(jitter_ms: u64, loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Around(Duration::from_millis(jitter_ms)))
        .loss(loss)
}

/// Plays a scene with several seeds and prints how it looked.
fn run(name: &str, motion: Motion, scene: &Scene) -> Errors {
    let mut errors = Errors::default();
    for seed in 0..SEEDS {
        errors.add(play(seed, motion, scene));
    }
    println!(
        "{name:28} {motion:?}: p99 {:5.1} worst {:5.1} cm, at rest {:5.2} cm, below the floor {:.3} %, underruns {:.2} %, age {:.1} ms, {:.0} bytes/s",
        errors.quantile(0.99) * 100.0,
        errors.worst() * 100.0,
        errors.worst_at_rest * 100.0,
        errors.below_floor as f64 / errors.shown() as f64 * 100.0,
        errors.underruns as f64 / errors.shown() as f64 * 100.0,
        errors.age_seconds / errors.shown() as f64 * 1e3,
        errors.bytes as f64 / errors.seconds,
    );
    errors
}

/// A network to watch bodies over, and how far from the truth they may be shown, in metres.
struct Case {
    name: &'static str,
    scene: Scene,
    p99_max: f32,
    at_rest_max: f32,
}

fn cases() -> Vec<Case> {
    let plain = |name, conditions| Case {
        name,
        scene: Scene {
            conditions,
            bodies: 4,
            bytes_per_snapshot: 16_384,
        },
        p99_max: 0.05,
        at_rest_max: 0.01,
    };
    let crowd = |name, conditions, bytes_per_snapshot, p99_max| {
        let case = plain(name, conditions);
        let scene = Scene {
            bodies: 200,
            bytes_per_snapshot,
            ..case.scene
        };
        Case {
            scene,
            p99_max,
            ..case
        }
    };
    vec![
        plain("no loss", network(10, 0.0)),
        plain("2 % loss", network(10, 0.02)),
        plain("5 % loss", network(10, 0.05)),
        plain("20 % loss", network(10, 0.2)),
        // For a third of a second nothing arrives: bodies go on, and come back from further away.
        Case {
            p99_max: 0.15,
            at_rest_max: 0.05,
            ..plain(
                "bursts of 4, 5 % loss",
                network(10, 0.0).burst_loss(0.05, 4.0),
            )
        },
        plain("+-30 ms that reorders", network(30, 0.0)),
        crowd("200 others, 500 bytes", network(10, 0.0), 500, 0.05),
        crowd("200 others, 500 bytes, 5 %", network(10, 0.05), 500, 0.05),
        // Most bodies wait for their turn longer than others are shown late.
        crowd("200 others, 200 bytes", network(10, 0.0), 200, 0.15),
    ]
}

fn hold(motion: Motion) {
    for case in cases() {
        let mut errors = run(case.name, motion, &case.scene);
        let (p99, at_rest) = (errors.quantile(0.99), errors.worst_at_rest);
        assert!(p99 <= case.p99_max, "{}: {p99}", case.name);
        assert!(at_rest <= case.at_rest_max, "{}: {at_rest}", case.name);
    }
}

#[test]
fn who_jumps_and_lands_is_shown_on_the_floor() {
    hold(Motion::Jump);
}

#[test]
fn who_runs_in_circles_is_shown_on_the_circle() {
    hold(Motion::Circle);
}

#[test]
fn who_stops_is_shown_where_they_stopped() {
    hold(Motion::StopAndGo);
}

/// While every state arrives there is nothing to extrapolate, and so no way through the floor.
#[test]
fn nobody_is_shown_below_the_floor_while_packets_arrive() {
    for jitter_ms in [10, 30] {
        let scene = Scene {
            conditions: network(jitter_ms, 0.0),
            bodies: 4,
            bytes_per_snapshot: 16_384,
        };
        let errors = run("no loss", Motion::Jump, &scene);
        assert_eq!(errors.below_floor, 0, "+-{jitter_ms} ms");
    }
}

const SEEDS: u64 = 4;
