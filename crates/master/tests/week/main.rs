//! A week of ten thousand players in virtual time, with disconnects, crashes of game servers and of the master itself.
//!
//! Nobody is ever in two matches or two tickets, nobody waits for ever while a compatible player waits, every match ends once, a
//! master that lost its lease changes nothing, and when everyone has gone home no port, row or seat is left. `MUSE_SEEDS` runs more than 3
//! seeds, `MUSE_SEED` one alone.

mod world;

use world::{Figures, World};

/// Weeks that went wrong once: in 80, one who asked for four players kept two others apart who would have been content with each other.
const FOUND: [u64; 1] = [80];

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match (number("MUSE_SEED"), number("MUSE_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(seeds)) => (0..seeds).collect(),
        (None, None) => (0..3).chain(FOUND).collect(),
    }
}

/// Hosts of game servers, each for 20 matches: enough for everybody.
const HOSTS: usize = 8;

#[test]
fn a_day_with_too_few_servers_expels_nobody() {
    for seed in seeds() {
        let figures: Figures = World::new(seed, 10_000, 1).run(1);
        println!("seed {seed}: {figures:?}");
        assert!(figures.full > 100, "seed {seed}: {figures:?}");
        assert!(figures.finished > 1_000, "seed {seed}: {figures:?}");
    }
}

#[test]
fn a_week_of_ten_thousand_players() {
    for seed in seeds() {
        let figures: Figures = World::new(seed, 10_000, HOSTS).run(7);
        println!("seed {seed}: {figures:?}");
        assert!(figures.finished > 20_000, "seed {seed}: {figures:?}");
        assert!(
            figures.aborted > 20 && figures.cancelled > 20,
            "seed {seed}: {figures:?}"
        );
        assert!(
            figures.filled > 20 && figures.leaders > 20,
            "seed {seed}: {figures:?}"
        );
        assert!(figures.refused_old_epoch > 0, "seed {seed}: {figures:?}");
        assert!(figures.waited_p50_ms < 30_000, "seed {seed}: {figures:?}");
    }
}
