//! The whole system keeps its promises: for seeds that stay, for a few that nobody has tried, and with the game that ships. `MUSE_SEEDS`
//! tries more new ones; `muse lab sim --minutes 10` is made for that.

use muse_lab::sim::{Game, Sim, SimConfig, Told};
use muse_wire::Duration;

#[test]
fn seeds_that_stay() {
    for seed in SEEDS {
        let told = run(small(seed));
        assert!(told.matches > 2 && told.messages > 500, "{seed}: {told:?}");
        assert!(told.relayed > 1_000, "{seed}: {told:?}");
    }
}

#[test]
fn seeds_that_nobody_has_tried() {
    let count = std::env::var("MUSE_SEEDS").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(3);
    #[expect(clippy::disallowed_methods, reason = "nobody has tried it")]
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = since.map_or(1, |since| since.as_micros() as u64 % 1_000_000_000);
    println!("seeds from {first} on");
    for seed in first..first + count {
        assert!(run(small(seed)).matches > 2, "{seed}");
    }
}

#[test]
fn the_games_that_ship() {
    for game in [Game::Cooperative, Game::Versus, Game::Ball] {
        let config = SimConfig::new(8).players(6).length(SHORT).game(game);
        let told = run(config);
        assert!(
            told.matches > 0 && told.messages > 200,
            "{game:?}: {told:?}"
        );
    }
}

#[test]
fn a_seed_tells_the_same_every_time() {
    let config = SimConfig::new(21).players(8).length(SHORT);
    assert_eq!(run(config), run(config));
}

#[test]
fn nothing_is_killed_when_nothing_goes_wrong() {
    let told = run(SimConfig::new(3).players(6).length(SHORT).troubles(false));
    assert_eq!((told.crashes, told.forged), ([0; 4], 0));
}

#[test]
fn a_planted_bug_is_found_and_found_again() {
    let failed = |seed| Sim::new(small(seed).plant(1_000)).run().err();
    let failure = (1..20).find_map(failed).expect("it is found");
    assert!(failure.what.contains("reliable"), "{failure}");
    assert!(failure.to_string().contains("the master") || failure.trace.len() > 5);
    let again = failed(failure.seed).expect("and found again");
    assert_eq!(again, failure);
}

/// Kept every promise, or says with which seed to look.
fn run(config: SimConfig) -> Told {
    let outcome = Sim::new(config).run();
    if let Err(failure) = &outcome {
        // `expect` would show the trace as one line.
        println!("{failure}\n{config:?}");
    }
    outcome.expect("every promise is kept")
}

fn small(seed: u64) -> SimConfig {
    SimConfig::new(seed)
        .players(14)
        .length(Duration::from_secs(60))
}

const SEEDS: [u64; 3] = [1, 2, 3];
const SHORT: Duration = Duration::from_secs(20);
