//! Bots finish the co-operative level through the same messages as players, enemies on, over a bad network.
//! `MUSE_SEEDS` plays more matches than the four that every run plays.

#[path = "play/table.rs"]
#[allow(
    dead_code,
    clippy::panic,
    reason = "the table serves other tests, too, and not all need all of it"
)]
mod table;

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::bots::Brain;
use muse_biobot::{Level, Phase, StageConfig};
use muse_netem::{Conditions, Jitter};

use table::Table;

/// 100 ms there and back, one packet in twenty lost.
fn network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .loss(0.05)
}

fn seeds() -> std::ops::RangeInclusive<u64> {
    let asked = std::env::var("MUSE_SEEDS").ok();
    1..=asked.and_then(|count| count.parse().ok()).unwrap_or(4)
}

/// A match of bots, until it ends or a quarter of an hour has passed. Says what happened on the way.
fn play(seed: u64) -> (Table, Vec<String>) {
    let level = Arc::new(Level::escape());
    let config = StageConfig::new(Arc::clone(&level)).seed(seed).slots(2);
    let mut table = Table::new(config, 2, network(), seed);
    let mut brains = [1, 2].map(|bot| Brain::new(Arc::clone(&level), seed * 10 + bot));
    let mut log = Vec::new();
    let mut last = usize::MAX;
    for step in 0..MOST_STEPS {
        let now = table.now + Duration::from_millis(5);
        table.step(&mut |slot, player| brains[slot].act(now, player));
        let objective = brains[0].objective();
        if objective != last || step % 6_000 == 0 {
            last = objective;
            let robots = [0, 1].map(|slot| table.robot(slot));
            let line = robots.map(|robot| {
                let place = robot.position.map(|value| (value * 10.0).round() / 10.0);
                format!("{place:?} {}%", robot.health)
            });
            let line = format!(
                "{:>6.1} s: {objective} {:?} {line:?} {} awake, deaths {:?}",
                step as f32 * 0.005,
                level.objectives[objective].name,
                table.stage.horde().active(),
                &table.stage.round().deaths[..2],
            );
            if std::env::var("MUSE_WATCH").is_ok() {
                eprintln!("{line}");
            }
            log.push(line);
        }
        if table.stage.outcome().is_some() {
            break;
        }
    }
    (table, log)
}

#[test]
fn two_bots_escape_within_a_quarter_of_an_hour() {
    for seed in seeds() {
        let (table, log) = play(seed);
        let outcome = table.stage.outcome();
        assert!(
            outcome.is_some(),
            "seed {seed}: no end in sight:\n{}",
            log.join("\n")
        );
        let outcome = outcome.expect("it was just looked at");
        assert_eq!(outcome.phase, Phase::Won, "seed {seed}");
        let minutes = f64::from(outcome.ticks) / 50.0 / 60.0;
        let rates = table.guests.iter().map(|guest| {
            let rate = |way: usize| guest.bytes[way] as f64 * 8.0 / 1e3 / (minutes * 60.0);
            format!("{:.1} up, {:.1} down", rate(0), rate(1))
        });
        let rates: Vec<String> = rates.collect();
        println!(
            "seed {seed}: {minutes:.1} minutes, {rates:?} kbit/s, {:?}",
            outcome.table
        );
        assert!(
            (5.0..=15.0).contains(&minutes),
            "seed {seed}: {minutes} minutes:\n{}",
            log.join("\n")
        );
        let report = table.stage.report();
        for player in &report.players {
            assert!(
                !player.suspect,
                "seed {seed}: bots do not cheat: {report:?}"
            );
        }
    }
}

#[test]
fn the_same_seed_is_the_same_match() {
    let run = |seed: u64| {
        let level = Arc::new(Level::escape());
        let config = StageConfig::new(Arc::clone(&level)).seed(seed).slots(2);
        let mut table = Table::new(config, 2, network(), seed);
        let mut brains = [1, 2].map(|bot| Brain::new(Arc::clone(&level), seed * 10 + bot));
        for _ in 0..60 * 200 {
            let now = table.now + Duration::from_millis(5);
            table.step(&mut |slot, player| brains[slot].act(now, player));
        }
        table.stage.checksum()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn bots_fill_a_match_of_everyone_against_everyone() {
    let level = Arc::new(Level::arena());
    let config = StageConfig::new(Arc::clone(&level))
        .slots(6)
        .kills_to_win(5);
    let mut table = Table::new(config, 6, network(), 1);
    let mut brains: Vec<Brain> = (0..6)
        .map(|bot| Brain::new(Arc::clone(&level), bot))
        .collect();
    for _ in 0..310 * 200 {
        let now = table.now + Duration::from_millis(5);
        table.step(&mut |slot, player| brains[slot].act(now, player));
        if table.stage.outcome().is_some() {
            break;
        }
    }
    let outcome = table.stage.outcome().expect("it ends by kills or by time");
    let kills = |slot: usize| table.stage.round().kills[slot];
    let fighters = (0..6).filter(|slot| kills(*slot) > 0).count();
    assert_eq!(outcome.phase, Phase::Over);
    assert!(
        outcome.table[0].kills >= 5,
        "somebody wins: {:?}",
        outcome.table
    );
    assert!(fighters >= 3, "most of them hit: {:?}", outcome.table);
}

/// 15 minutes, and what it takes to begin.
const MOST_STEPS: u32 = (15 * 60 + 30) * 200;
