//! Spawns of players are there at once, become the server's without a step, and fade where the server denies them.

mod range;

use muse_netcode::{ClientId, Tick};
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use range::{Keys, Range};

fn network(delay_ms: u64, jitter_ms: u64, loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(delay_ms))
        .jitter(Jitter::Uniform(Duration::from_millis(jitter_ms)))
        .loss(loss)
        .duplicate(0.01, Duration::from_millis(3))
}

/// Walks to and fro, and fires or throws most of the time.
fn keys(client: ClientId, tick: Tick) -> Keys {
    let phase = tick.0 / 7 + client.0 * 3;
    Keys {
        walk: if (tick.0 / 60).is_multiple_of(2) {
            1
        } else {
            -1
        },
        fire: !phase.is_multiple_of(3),
        throw: phase.is_multiple_of(4),
    }
}

#[test]
fn without_loss_every_spawn_is_the_servers_and_nothing_is_corrected() {
    let mut exact = 0;
    for seed in 0..10 {
        let mut range = Range::new(seed, &network(50, 0, 0.0), 1);
        range.run(Duration::from_secs(3), |_, _| Keys::default());
        range.run(Duration::from_secs(10), keys);
        range.run(Duration::from_secs(2), |_, _| Keys::default());
        let seat = &range.seats[0];
        let counters = seat.game.prediction();
        assert!(range.made.len() > 80, "seed {seed}: {}", range.made.len());
        // An input may still come too late for its tick while the clock is steered.
        if counters.corrected == 0 {
            exact += 1;
            let made = range.made.len() as u64;
            assert_eq!(counters.spawns_adopted, made, "seed {seed}");
            let wrong = (counters.spawns_denied, counters.corrected_others);
            assert_eq!(wrong, (0, 0), "seed {seed}");
        }
        assert_eq!(
            (seat.twice, seat.gaps, seat.popped),
            (0, 0, 0),
            "seed {seed}"
        );
        assert!(seat.step_most < 0.05, "seed {seed}: {} m", seat.step_most);
        assert!(seat.last.is_empty(), "seed {seed}");
    }
    assert!(exact >= 5, "{exact}");
}

/// 5 to 20 % lost, with jitter that reorders; the server denies one in six, and jams guns.
#[test]
fn every_spawn_is_adopted_or_fades_and_none_is_shown_twice() {
    let networks = [(25, 10, 0.05), (60, 30, 0.1), (100, 60, 0.2)];
    for seed in 0..30 {
        let (delay, jitter, loss) = networks[seed as usize % networks.len()];
        let mut range = Range::new(seed, &network(delay, jitter, loss), 2);
        (range.denies, range.jams) = (6, 90);
        range.run(Duration::from_secs(3), |_, _| Keys::default());
        range.run(Duration::from_secs(10), keys);
        range.run(Duration::from_secs(4), |_, _| Keys::default());
        for (index, seat) in range.seats.iter().enumerate() {
            let (id, name) = (ClientId(index as u32 + 1), format!("seed {seed}, {index}"));
            let counters = seat.game.prediction();
            let wrong = (seat.twice, seat.gaps, seat.popped);
            assert_eq!(
                wrong,
                (0, 0, 0),
                "{name}: shown twice, with gaps, not faded"
            );
            assert_eq!(seat.last.len(), 0, "{name}: something stays");
            assert!(
                seat.step_most < 0.05,
                "{name}: a step of {} m",
                seat.step_most
            );
            let denied = range.denied.iter().filter(|(_, client)| **client == id);
            for (label, _) in denied {
                let faded = seat
                    .seen
                    .get(label)
                    .is_none_or(|last| last.own && last.share < 0.2);
                assert!(faded, "{name}: {label:?} is {:?}", seat.seen.get(label));
            }
            let made = range.made.values().filter(|client| **client == id).count();
            assert!(
                counters.spawns_adopted * 10 >= made as u64 * 8,
                "{name}: {counters:?} of {made}"
            );
            assert!(counters.spawns_denied > 3, "{name}: {counters:?}");
        }
    }
}

/// A client that never hears of anything it spawned, because the link is cut, shows so much and no more, and not for ever.
#[test]
fn a_link_that_is_cut_leaves_nothing_in_the_air() {
    let mut range = Range::new(1, &network(40, 0, 0.0), 1);
    range.run(Duration::from_secs(3), |_, _| Keys::default());
    range.cut();
    range.run(Duration::from_secs(8), keys);
    let seat = &range.seats[0];
    assert!(!seat.seen.is_empty());
    assert_eq!(seat.last.len(), 0);
    assert_eq!((seat.twice, seat.gaps, seat.popped), (0, 0, 0));
    // It flies on in what is predicted, and stops where it is when it fades.
    assert!(seat.step_most < 0.25, "{} m", seat.step_most);
}
