//! The share of shots on which the server agrees with what the shooter saw, by round trip.

use muse_lagcomp::Verdict;
use muse_wire::Duration;

use super::shots::{self, Judged};
use crate::plot::*;

pub(super) fn plot() -> Plot {
    let round_trips = [
        0, 20, 40, 60, 80, 100, 120, 140, 160, 170, 180, 200, 220, 240, 280,
    ];
    let runs: Vec<(f64, Vec<Judged>)> = round_trips
        .iter()
        .map(|rtt| {
            (
                *rtt as f64,
                shots::run(*rtt, Duration::from_secs(33), 40 + rtt),
            )
        })
        .collect();
    let share = |of: fn(&Judged) -> bool| {
        let points = runs.iter().map(move |(rtt, shots)| {
            let count = shots.iter().filter(|shot| of(shot)).count();
            (*rtt, count as f64 / shots.len().max(1) as f64 * 100.0)
        });
        points.collect::<Vec<_>>()
    };
    let agreed = share(|shot| shot.judged == shot.seen);
    let present = share(|shot| shot.judged_in_present == shot.seen);
    let late = share(|shot| shot.verdict == Verdict::Late);
    let shots: usize = runs.iter().map(|(_, shots)| shots.len()).sum();
    Plot::new(
        "Fairness: does the server see what the shooter saw?",
        &format!(
            "{shots} shots at a runner at 7 m/s, half of them near misses, 2 % loss. With rewind the server agrees with the shooter's screen. Beyond 250 ms, round trip, interpolation and wait \
             together, nothing is rewound: the shooter has to lead, as without rewind, and nobody is hit long after reaching cover.",
        ),
    )
    .panel(
        Panel::new(("round trip (ms)", 0.0, 280.0), ("share of shots (%)", 0.0, 105.0))
            .with("verdict as the shooter saw it, with rewind", Green, Joined, agreed)
            .with("without rewind", Red, Joined, present)
            .with("too old to be rewound", Grey, Dashed, late),
    )
}
