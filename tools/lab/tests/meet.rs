//! Any two players meet: directly wherever mapping and filtering permit it, through the relay otherwise, soon, and without noticing much when the way is lost.

use muse_lab::meet::{Meeting, Pair, Trouble, Way};
use muse_wire::Duration;

#[test]
fn every_pair_finds_the_way_that_is_permitted_and_plays_soon() {
    let (mut ways, mut lucky) = ([0; 3], 0);
    for (number, pair) in Pair::all().into_iter().enumerate() {
        for round in 0..seeds(3) {
            let seed = 1_000 * round + number as u64;
            let round_trip = Duration::from_millis(50);
            let met = Meeting::new(pair, round_trip, 0.01, seed).play(Duration::from_secs(20));
            // A guess may hit a random port.
            lucky += u64::from(met.way == Way::Direct && pair.way() == Way::Relayed);
            assert!(met.way <= pair.way(), "{pair:?}, seed {seed}: {met:?}");
            let in_time = |it: Duration| it < Duration::from_millis(1_500);
            let plays = met.first_packet.is_some_and(in_time);
            assert_eq!(
                plays,
                pair.way() != Way::None,
                "{pair:?}, seed {seed}: {met:?}"
            );
        }
        ways[pair.way() as usize] += 1;
    }
    assert_eq!(ways, [73, 11, 19], "direct, relayed, none");
    assert!(lucky <= 1 + seeds(3) / 4, "{lucky} times");
}

#[test]
fn a_way_that_is_lost_costs_half_a_second_and_no_message() {
    let (mut gaps, mut number) = (Vec::new(), 0);
    for trouble in Trouble::ALL {
        for pair in Pair::all() {
            for round in 0..seeds(1) {
                number += 1;
                let seed = 1_000 * round + number;
                let mut meeting = Meeting::new(pair, Duration::from_millis(80), 0.02, seed);
                if let Some(gap) = meeting.suffer(trouble) {
                    assert_eq!(gap.lost, 0, "{pair:?}, {trouble:?}, seed {seed}");
                    gaps.push(gap.longest);
                }
            }
        }
    }
    assert!(gaps.len() > 250, "{}", gaps.len());
    gaps.sort_unstable();
    let p95 = gaps[gaps.len() * 95 / 100];
    assert!(p95 < Duration::from_millis(500), "{p95:?}");
    let longest = gaps.last().copied().expect("there are some");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

/// Number of seeds that a test tries: `MUSE_SEEDS`, or the default.
fn seeds(default: u64) -> u64 {
    let asked = std::env::var("MUSE_SEEDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(default)
}
