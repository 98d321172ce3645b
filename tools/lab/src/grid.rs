//! The prototype's grid: round trip, jitter and loss, with mechanisms switched on and off, over recorded inputs in virtual time (the evaluation
//! of `docs/laboratory.md`).
//!
//! A [`Case`] is a cell of the grid with some mechanisms on. Each is a match of its own with its own seed, so cases run on as many
//! threads as there are, in any order, and give the same numbers.

mod figures;
mod findings;
mod replay;
mod run;

pub use figures::{Better, Column, Figures, TABLE, ViewFigures};
pub(crate) use findings::view;
pub use findings::{Finding, findings};
pub use replay::Replay;
pub use run::{About, CaseResult, Run, RunError};

use muse_netcode::SessionConfig;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::arena::{Arena, Carrier, Switches, Virtual};
use crate::recording::Recording;
use crate::stage::TICK;
use figures::rounded;

/// One kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// There and back, in the mean.
    pub round_trip_ms: u32,
    /// Standard deviation of the round trip, in percent of it.
    pub jitter_percent: u32,
    /// Of packets lost, on each way.
    pub loss_percent: u32,
}

/// A cell with some mechanisms on.
///
/// ```
/// use muse_lab::grid::{Case, Plan};
/// assert_eq!(Plan::whole().cases().len(), 64 * 5);
/// let case = Plan::quick().cases()[0];
/// assert_eq!(case.name(), "40 ms, jitter 0 %, loss 0 %, all on");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// The network.
    pub cell: Cell,
    /// The mechanisms that are on.
    pub switches: Switches,
}

/// Which cells are run, and for how long each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    round_trips_ms: Vec<u32>,
    jitters_percent: Vec<u32>,
    losses_percent: Vec<u32>,
    seconds: u32,
}

impl Cell {
    /// The conditions of either way. Jitter is normal, of both ways together so much of the round trip, and part of its mean.
    pub fn conditions(&self) -> Conditions {
        let (least, mean, deviation) = self.delays();
        let jitter = match self.jitter_percent {
            0 => Jitter::None,
            _ => Jitter::Normal { mean, deviation },
        };
        Conditions::default()
            .delay(least)
            .jitter(jitter)
            .loss(f64::from(self.loss_percent) / 100.0)
    }

    /// Of either way: the least delay, and mean and standard deviation of what comes on top of it.
    pub fn delays(&self) -> (Duration, Duration, Duration) {
        let way = u64::from(self.round_trip_ms) * 500;
        let share = f64::from(self.jitter_percent) / 100.0;
        let deviation = f64::from(self.round_trip_ms) * 1e3 * share / core::f64::consts::SQRT_2;
        let deviation = Duration::from_micros(deviation as u64);
        // Three deviations above the least: hardly a draw is cut off, and the mean stays where it is.
        let mean = deviation * 3;
        let least = Duration::from_micros(way.saturating_sub(mean.as_micros()));
        (least, mean, deviation)
    }

    /// In words.
    pub fn name(&self) -> String {
        format!(
            "{} ms, jitter {} %, loss {} %",
            self.round_trip_ms, self.jitter_percent, self.loss_percent
        )
    }
}

impl Case {
    /// In words.
    pub fn name(&self) -> String {
        format!("{}, {}", self.cell.name(), switches_name(self.switches))
    }

    /// Runs it with these recordings for so many seconds. The same numbers every time.
    pub fn run(&self, recordings: &[Recording], seed: u64, seconds: u32) -> CaseResult {
        let carrier = Box::new(Virtual::new(self.seed(seed)));
        self.run_over(carrier, recordings, seed, seconds)
    }

    /// Returns the random seed of this case in a run with this seed. Cases that differ in switches only have the same network.
    pub fn seed(&self, seed: u64) -> u64 {
        let Cell {
            round_trip_ms,
            jitter_percent,
            loss_percent,
        } = self.cell;
        let cell = u64::from(round_trip_ms) << 16
            | u64::from(jitter_percent) << 8
            | u64::from(loss_percent);
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ cell
    }

    /// As [`run`](Self::run), over something that has the cell's conditions by itself.
    pub fn run_over(
        &self,
        carrier: Box<dyn Carrier>,
        recordings: &[Recording],
        seed: u64,
        seconds: u32,
    ) -> CaseResult {
        let seed = self.seed(seed);
        let mut arena = Arena::over(carrier, seed, self.switches, SessionConfig::new(TICK));
        for (recording, number) in recordings.iter().zip(0..) {
            let player = Replay::new(recording.clone(), seed ^ number);
            arena.join(recording.start(), self.cell.conditions(), player);
        }
        let compares = self.switches == Switches::ALL;
        if compares {
            arena.compare_views();
        }
        arena.run(WARM_UP);
        arena.begin();
        arena.run(Duration::from_secs(u64::from(seconds)));
        let journal = arena.finish();
        let interpolation_alone = Switches {
            interpolation: self.switches.interpolation,
            ..Switches::ALL
        };
        let trace = match self.switches == interpolation_alone {
            true => journal.trace.iter().copied().map(rounded).collect(),
            false => Vec::new(),
        };
        CaseResult {
            case: *self,
            figures: Figures::new(&journal, self.switches),
            views: journal.views.map(|views| ViewFigures::all(&views)),
            course: moving_average(&journal.course),
            trace,
        }
    }
}

impl Plan {
    /// The prototype's grid, half a minute each.
    pub fn whole() -> Self {
        Self {
            round_trips_ms: vec![40, 80, 160, 320],
            jitters_percent: vec![0, 2, 4, 8],
            losses_percent: vec![0, 2, 4, 8],
            seconds: 30,
        }
    }

    /// Its corners within 160 ms, 20 seconds each.
    pub fn quick() -> Self {
        Self {
            round_trips_ms: vec![40, 160],
            jitters_percent: vec![0, 8],
            losses_percent: vec![0, 8],
            seconds: 20,
        }
    }

    /// Returns the seconds that count of each case.
    pub const fn seconds(&self) -> u32 {
        self.seconds
    }

    /// Other lengths.
    pub fn with_seconds(mut self, seconds: u32) -> Self {
        self.seconds = seconds.clamp(1, 3_600);
        self
    }

    /// The cells, in order.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for round_trip_ms in &self.round_trips_ms {
            for jitter_percent in &self.jitters_percent {
                cells.extend(self.losses_percent.iter().map(|loss_percent| Cell {
                    round_trip_ms: *round_trip_ms,
                    jitter_percent: *jitter_percent,
                    loss_percent: *loss_percent,
                }));
            }
        }
        cells
    }

    /// Every cell with everything on, with each mechanism off alone, and with everything off.
    pub fn cases(&self) -> Vec<Case> {
        let cells = self.cells().into_iter();
        cells
            .flat_map(|cell| SWITCHES.map(|(switches, _)| Case { cell, switches }))
            .collect()
    }
}

/// Returns the name of these switches.
pub fn switches_name(switches: Switches) -> &'static str {
    let known = SWITCHES.iter().find(|(known, _)| *known == switches);
    known.map_or("some on", |(_, name)| name)
}

/// The mean of the last second, twice a second.
fn moving_average(course: &[f64]) -> Vec<f64> {
    let window = crate::character::TICKS_PER_SECOND as usize;
    let ends = (window..=course.len()).step_by(window / 2);
    ends.map(|end| {
        let last = &course[end - window..end];
        rounded(last.iter().sum::<f64>() / window as f64)
    })
    .collect()
}

/// Sets of switches, and what they are called.
pub const SWITCHES: [(Switches, &str); 5] = [
    (Switches::ALL, "all on"),
    (Switches::NO_INTERPOLATION, "no interpolation"),
    (Switches::NO_PREDICTION, "no prediction"),
    (Switches::NO_LAG_COMPENSATION, "no lag compensation"),
    (Switches::NONE, "all off"),
];
/// Before anything counts: clocks settle, and delays are measured.
const WARM_UP: Duration = Duration::from_secs(4);
