//! Prediction of other things than the own player: it agrees with the server where nobody else has a part in it, is corrected where somebody has,
//! and comes and goes without a step.

mod pitch;

use muse_netcode::ClientId;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use pitch::{Keys, Pitch};

fn network(delay_ms: u64, jitter_ms: u64, loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(delay_ms))
        .jitter(Jitter::Uniform(Duration::from_millis(jitter_ms)))
        .loss(loss)
}

/// 75 ms there and back again, 5 % lost: a cart pushes the ball to and fro alone.
#[test]
fn a_ball_that_only_the_player_touches_is_predicted_without_corrections() {
    for seed in 0..20 {
        let mut pitch = Pitch::new(seed, &network(75, 5, 0.05), 1);
        pitch.run(Duration::from_secs(20), |_, tick| {
            Keys::towards(!(tick.0 / 40).is_multiple_of(3))
        });
        let seat = &pitch.seats[0];
        let counters = seat.game.prediction();
        // An input that came too late for its tick corrects the player and what it pushes alike.
        assert_eq!(counters.corrected_others, 0, "seed {seed}: {counters:?}");
        assert!(
            seat.moved > 20.0,
            "seed {seed}: the ball went {} m",
            seat.moved
        );
        assert_eq!(counters.others, 1, "seed {seed}");
        let newest = seat.game.predicted_tick().expect("it predicts");
        assert_eq!(seat.game.predicted_at(newest), seat.game.predicted());
        assert_eq!(seat.game.predicted_at(newest + 1), None);
        let places = [0, 1, 8].map(|back| seat.predicted_ball(newest.back(back)));
        let [now, then, before] = places.map(|place| place.expect("it is predicted that far back"));
        assert!((now - then).abs() <= (now - before).abs(), "{places:?}");
        assert_eq!(seat.predicted_ball(newest + 1), None);
    }
}

/// Four carts push the same ball: what is shown is corrected, the own cart is exact, and the ball is near the truth at the time shown.
#[test]
fn a_ball_that_others_touch_is_corrected_and_shown_where_it_is() {
    for seed in 0..10 {
        let mut pitch = Pitch::new(seed, &network(50, 10, 0.02), 4);
        pitch.run(Duration::from_secs(20), |client, tick| {
            let turn = 50 + 13 * client.0;
            Keys::towards((tick.0 / turn).is_multiple_of(2))
        });
        for (index, seat) in pitch.seats.iter().enumerate() {
            let counters = seat.game.prediction();
            assert!(counters.corrected_others > 10, "seed {seed}: {counters:?}");
            assert!(counters.others >= 3, "seed {seed}: {counters:?}");
            assert_eq!(seat.wrong_without_cause, 0, "seed {seed}");
            let errors = pitch.errors(index);
            let (median, far) = (errors[errors.len() / 2], errors[errors.len() * 99 / 100]);
            // Three tenths of a second of a cart's speed in the wrong direction at most.
            assert!(
                median < 0.1 && far < 2.4,
                "seed {seed}: {median} and {far} m"
            );
        }
    }
}

/// A cart drives past another one: it is predicted while near, and what is drawn of it never jumps.
#[test]
fn an_entity_goes_over_to_prediction_and_back_without_a_step() {
    for seed in 0..10 {
        let mut pitch = Pitch::new(seed, &network(60, 10, 0.02), 2);
        pitch.place_carts(-5.0, 40.0);
        pitch.run(Duration::from_secs(20), |client, _| match client {
            ClientId(2) => Keys::towards(true),
            _ => Keys::default(),
        });
        let seat = &pitch.seats[0];
        assert!(
            seat.switches >= 3,
            "seed {seed}: {} switches",
            seat.switches
        );
        assert!(
            seat.step_beyond_motion <= 0.02,
            "seed {seed}: a step of {} m",
            seat.step_beyond_motion
        );
    }
}

/// A game whose machine is too slow predicts what is nearest, and says what it leaves out.
#[test]
fn a_slow_machine_predicts_fewer() {
    let mut pitch = Pitch::new(1, &network(30, 5, 0.0), 4);
    pitch.seats[0].game.set_predicted_max(2);
    pitch.run(Duration::from_secs(5), |_, _| Keys::default());
    let counters = pitch.seats[0].game.prediction();
    assert_eq!((counters.others, counters.left_out), (2, 2));
    assert_eq!(pitch.seats[1].game.prediction().left_out, 0);
}

/// The client believed that it moved the ball, and the server that the ball had not moved: the ball comes back although it rests.
#[test]
fn a_push_that_did_not_happen_is_taken_back() {
    let mut pitch = Pitch::new(3, &network(60, 0, 0.0), 1);
    pitch.place_carts(2.15, 0.0);
    pitch.run(Duration::from_secs(3), |_, _| Keys::default());
    let rests_at = pitch.ball();
    // The server holds the cart back, as a wall that only the server knows would.
    pitch.held = true;
    pitch.run(Duration::from_secs(1), |_, _| Keys::towards(true));
    let most = pitch.seats[0].ball_most;
    assert!(most > rests_at + 0.1, "{most} and {rests_at}");
    pitch.run(Duration::from_secs(3), |_, _| Keys::default());
    assert_eq!(pitch.ball(), rests_at);
    assert_eq!(pitch.seats[0].ball_predicted(), rests_at);
}
