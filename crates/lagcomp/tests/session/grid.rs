//! On every kind of network: hits are what the shooter saw, as long as it is not too long ago, and a player's own predictions are exact
//! where its inputs came in time.
//!
//! `cargo test -p muse-lagcomp --test session grid -- --nocapture` prints every cell. `MUSE_SEEDS` runs more than 48 seeds.

use muse_lagcomp::Verdict;
use muse_netcode::ClientId;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use crate::arena::{Arena, Seat};
use crate::game::{Player, config};

/// The outcome of shots and predictions.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    shots: u64,
    agreed: u64,
    false_accepts: u64,
    false_rejects: u64,
    /// The input did not reach the server in time.
    lost: u64,
    clamped: u64,
    /// Beyond the limit; nothing is rewound for them.
    late: u64,
    late_rewound: u64,
    confirmed: u64,
    corrected: u64,
    corrected_without_cause: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.shots += other.shots;
        self.agreed += other.agreed;
        self.false_accepts += other.false_accepts;
        self.false_rejects += other.false_rejects;
        self.lost += other.lost;
        self.clamped += other.clamped;
        self.late += other.late;
        self.late_rewound += other.late_rewound;
        self.confirmed += other.confirmed;
        self.corrected += other.corrected;
        self.corrected_without_cause += other.corrected_without_cause;
    }

    fn agreement(&self) -> f64 {
        self.agreed as f64 / self.shots.max(1) as f64
    }

    fn judge(&mut self, arena: &Arena, seat: &Seat, limit: Duration) {
        // Those just fired are still on their way.
        let until = arena.now - Duration::from_secs(1);
        let fired = seat.shots.iter();
        for (tick, seen) in fired.filter(|(_, seen)| seen.fired_at < until) {
            let judged = arena.verdicts.get(&(seat.id, *tick));
            let age = Duration::from_secs_f64(seen.age_ticks * 0.02);
            let is_late = match judged {
                Some(judged) => judged.verdict == Verdict::Late,
                None => age > limit,
            };
            if is_late {
                self.late += 1;
                self.late_rewound += u64::from(judged.is_some_and(|judged| judged.rewound));
                continue;
            }
            let hit = judged.and_then(|judged| judged.hit);
            self.shots += 1;
            self.lost += u64::from(judged.is_none());
            let clamped = judged.is_some_and(|judged| judged.verdict == Verdict::Clamped);
            self.clamped += u64::from(clamped);
            self.agreed += u64::from(hit == seen.target);
            if hit != seen.target {
                self.false_accepts += u64::from(hit.is_some());
                self.false_rejects += u64::from(hit.is_none());
            }
        }
    }
}

fn conditions((round_trip_ms, jitter_ms, loss): (u64, u64, f64), seed: u64) -> Conditions {
    let deviation = Duration::from_millis(jitter_ms);
    let jitter = match jitter_ms {
        0 => Jitter::None,
        _ if seed.is_multiple_of(2) => Jitter::Uniform(Duration::from_micros(jitter_ms * 3_464)),
        _ => Jitter::Normal {
            mean: deviation * 2,
            deviation,
        },
    };
    Conditions::default()
        .delay(Duration::from_millis(round_trip_ms / 2))
        .jitter(jitter)
        .loss(loss)
}

fn run(seed: u64, conditions: &Conditions, limit: Duration) -> Tally {
    let interval = 1 + (seed / 2 % 2) as u32;
    let mut arena = Arena::new(seed, config().snapshot_interval(interval)).rewind_limit(limit);
    arena.add_bots(5);
    for id in [ClientId(1), ClientId(2)] {
        arena.server.join(id, &Player::at(0.0, 0.0)).expect("room");
        arena.connect(id, conditions);
    }
    arena.run(WARM_UP, |_, _| ());
    let mut before = Tally::default();
    for seat in &mut arena.seats {
        seat.shoots = true;
        seat.corrected_without_cause = 0;
        before.confirmed += seat.game.prediction().confirmed;
        before.corrected += seat.game.prediction().corrected;
    }
    arena.run(LENGTH, |_, _| ());
    let mut tally = Tally::default();
    for seat in &arena.seats {
        tally.judge(&arena, seat, limit);
        tally.confirmed += seat.game.prediction().confirmed;
        tally.corrected += seat.game.prediction().corrected;
        tally.corrected_without_cause += seat.corrected_without_cause;
    }
    tally.confirmed -= before.confirmed;
    tally.corrected -= before.corrected;
    tally
}

/// Runs every cell and gives the bars that were not held.
fn hold(limit: Duration, seeds: u64, cells: &[(u64, u64, f64)]) -> (Tally, Vec<String>) {
    let mut all = Tally::default();
    let mut broken = Vec::new();
    println!("rewind up to {} ms", limit.as_millis());
    println!(
        "  rtt jitter loss | shots   agree    accepts rejects lost clamped | beyond | confirmed corrected without cause"
    );
    for (index, cell) in (0..).zip(cells) {
        let mut sum = Tally::default();
        for run_index in 0..(seeds / cells.len() as u64).max(1) {
            let seed = index * 1_001 + run_index;
            sum.add(run(seed, &conditions(*cell, seed), limit));
        }
        println!(
            "{:5} {:6} {:4.0} | {:5} {:7.2} % {:8} {:7} {:4} {:7} | {:6} | {:9} {:9} {:7}",
            cell.0,
            cell.1,
            cell.2 * 100.0,
            sum.shots,
            sum.agreement() * 100.0,
            sum.false_accepts,
            sum.false_rejects,
            sum.lost,
            sum.clamped,
            sum.late,
            sum.confirmed,
            sum.corrected,
            sum.corrected_without_cause,
        );
        // One in a hundred; of a few shots some, for all cells together hold the bar.
        let wrong = sum.shots - sum.agreed;
        let exact = sum.corrected_without_cause == 0 && sum.confirmed > 0;
        if wrong > (sum.shots / 100).max(3) || !exact || sum.late_rewound > 0 {
            broken.push(format!("{cell:?}: {sum:?}"));
        }
        all.add(sum);
    }
    println!("{all:?}");
    (all, broken)
}

#[test]
fn verdicts_agree_with_what_the_shooter_saw() {
    let given = std::env::var("MUSE_SEEDS").ok();
    let seeds = given.and_then(|seeds| seeds.parse().ok()).unwrap_or(48);
    let mut cells = Vec::new();
    for round_trip in [40, 100, 160, 320] {
        for jitter in [0, 5, 20, 40] {
            cells.extend([0.0, 0.02, 0.1].map(|loss| (round_trip, jitter, loss)));
        }
    }
    let (all, broken) = hold(Duration::from_millis(250), seeds, &cells);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(all.agreement() >= 0.99, "{all:?}");
    assert!(all.shots > 1_000 && all.late > 1_000, "{all:?}");
}

#[test]
fn with_a_longer_limit_so_do_those_of_slow_links() {
    let cells = [
        (40, 40, 0.02),
        (100, 40, 0.1),
        (160, 20, 0.05),
        (320, 5, 0.02),
    ];
    let (all, broken) = hold(Duration::from_millis(700), 4, &cells);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(all.shots > 300 && all.late == 0, "{all:?}");
}

const WARM_UP: Duration = Duration::from_secs(4);
const LENGTH: Duration = Duration::from_secs(8);
