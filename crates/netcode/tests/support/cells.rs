//! The cells of the grid, what is measured in each, and the bars.

use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;

use super::session::{Outcome, Setup, TICK, run};

/// One kind of network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub round_trip_ms: u64,
    /// Standard deviation of the delay on each way.
    pub jitter_ms: u64,
    pub loss: f64,
    /// Mean length of a run of losses; 1 for independent ones.
    pub burst: f64,
}

impl Cell {
    /// Every cell with this round trip.
    fn all(round_trip_ms: u64) -> Vec<Self> {
        let losses = [
            (0.0, 1.0),
            (0.02, 1.0),
            (0.05, 1.0),
            (0.1, 1.0),
            (0.05, 4.0),
            (0.1, 4.0),
        ];
        let cell = |(jitter_ms, (loss, burst))| Self {
            round_trip_ms,
            jitter_ms,
            loss,
            burst,
        };
        let jitters = [0, 5, 20, 40].into_iter();
        jitters
            .flat_map(|jitter| losses.map(|loss| (jitter, loss)))
            .map(cell)
            .collect()
    }

    /// The conditions of one way. Jitter is even in half of the seeds, and normal in the others.
    fn conditions(&self, seed: u64) -> Conditions {
        let deviation = Duration::from_millis(self.jitter_ms);
        let jitter = match self.jitter_ms {
            0 => Jitter::None,
            _ if seed.is_multiple_of(2) => {
                Jitter::Uniform(Duration::from_micros(self.jitter_ms * 3_464))
            }
            _ => Jitter::Normal {
                mean: deviation * 2,
                deviation,
            },
        };
        let conditions = Conditions::default()
            .delay(Duration::from_millis(self.round_trip_ms / 2))
            .jitter(jitter);
        match self.burst > 1.0 {
            true => conditions.burst_loss(self.loss, self.burst),
            false => conditions.loss(self.loss),
        }
    }
}

/// Measurements of one cell, over all its seeds.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub cell: Cell,
    pub runs: u64,
    pub in_time: f64,
    /// In milliseconds; the limit is 1.5 ticks and the p99 of jitter.
    pub input_wait: f64,
    pub input_wait_limit: f64,
    pub shown_behind: f64,
    pub shown_behind_limit: f64,
    pub mispredicted: f64,
    pub wrong_without_cause: u64,
    pub underruns: f64,
    pub teleports: u64,
    /// p95, in ticks.
    pub clock_error: f64,
    pub packets_per_tick: f64,
    pub rate_most: f64,
    pub tick_gaps: u64,
}

/// Spreads the seeds over the cells with this round trip and runs them.
pub(crate) fn run_all(round_trip_ms: u64, seeds: u64) -> Vec<Measured> {
    let cells = Cell::all(round_trip_ms);
    let count = cells.len() as u64;
    let measured = cells.iter().zip(0..count).map(|(cell, index)| {
        let runs = (index..seeds)
            .step_by(count as usize)
            .map(|seed| seed / count);
        measure(
            *cell,
            runs.map(|run| run * 10_000 + round_trip_ms * 24 + index),
        )
    });
    measured.collect()
}

fn measure(cell: Cell, seeds: impl Iterator<Item = u64>) -> Measured {
    let mut sum = Outcome::default();
    let (mut runs, mut wait_limit, mut shown, mut shown_limit, mut seconds) =
        (0, 0.0, 0.0, 0.0, 0.0);
    for (run_index, seed) in seeds.enumerate() {
        let mut setup = Setup::new(seed);
        // All four kinds of jitter and update rate take turns.
        setup.update_ticks = 1 + (run_index as u32 / 2) % 2;
        let shape = run_index as u64;
        let mut outcome = run(setup, cell.conditions(shape), cell.conditions(shape));
        let (_, up_jitter) = mean_and_p99(&mut outcome.delays_up);
        let (down_mean, down_jitter) = mean_and_p99(&mut outcome.delays_down);
        let tick = TICK.as_millis_f64();
        wait_limit += 1.5 * tick + up_jitter;
        shown_limit += 2.0 * tick * f64::from(setup.update_ticks) + down_jitter;
        shown +=
            outcome.shown_behind_micros as f64 / 1e3 / outcome.frames.max(1) as f64 - down_mean;
        seconds += (setup.length - Duration::ZERO).as_secs_f64();
        runs += 1;
        add(&mut sum, outcome);
    }
    let each = runs.max(1) as f64;
    sum.clock_errors.sort_unstable();
    let p95 = sum.clock_errors.get(sum.clock_errors.len() * 95 / 100);
    Measured {
        cell,
        runs,
        in_time: share(sum.inputs_in_time, sum.inputs_in_time + sum.inputs_missed),
        input_wait: sum.input_waited_micros as f64 / 1e3 / sum.inputs_in_time.max(1) as f64,
        input_wait_limit: wait_limit / each,
        shown_behind: shown / each,
        shown_behind_limit: shown_limit / each,
        mispredicted: share(sum.mispredicted, sum.reconciled),
        wrong_without_cause: sum.wrong_without_cause,
        underruns: share(sum.underruns, sum.frames),
        teleports: sum.teleports,
        clock_error: f64::from(p95.copied().unwrap_or(0)) / 1e3,
        packets_per_tick: sum.packets_up as f64 / seconds.max(1.0) * TICK.as_secs_f64(),
        rate_most: sum.rate_most,
        tick_gaps: sum.tick_gaps,
    }
}

fn add(sum: &mut Outcome, mut one: Outcome) {
    sum.inputs_in_time += one.inputs_in_time;
    sum.inputs_missed += one.inputs_missed;
    sum.input_waited_micros += one.input_waited_micros;
    sum.reconciled += one.reconciled;
    sum.mispredicted += one.mispredicted;
    sum.wrong_without_cause += one.wrong_without_cause;
    sum.frames += one.frames;
    sum.underruns += one.underruns;
    sum.teleports += one.teleports;
    sum.packets_up += one.packets_up;
    sum.rate_most = sum.rate_most.max(one.rate_most);
    sum.tick_gaps += one.tick_gaps;
    sum.clock_errors.append(&mut one.clock_errors);
}

/// The mean, and how much the slowest of a hundred is slower than the mean, in milliseconds.
fn mean_and_p99(delays: &mut [u64]) -> (f64, f64) {
    delays.sort_unstable();
    let mean = delays.iter().sum::<u64>() as f64 / delays.len().max(1) as f64;
    let p99 = delays.get(delays.len() * 99 / 100).copied().unwrap_or(0) as f64;
    (mean / 1e3, (p99 - mean).max(0.0) / 1e3)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// One line for each cell: delays in milliseconds, the clock's p95 in ticks.
pub(crate) fn print(cells: &[Measured]) {
    println!(
        "  rtt jitter loss burst runs |  in time  |  wait  limit | behind limit | mispredicted | underruns | teleports | clock \
         | packets a tick | rate"
    );
    for measured in cells {
        let cell = &measured.cell;
        println!(
            "{:5} {:6} {:4.0} {:5.0} {:4} | {:7.3} % | {:5.1} {:6.1} | {:5.1} {:6.1} | {:10.3} % | {:7.3} % | {:9} | {:5.3} | {:14.2} | {:4.2}",
            cell.round_trip_ms,
            cell.jitter_ms,
            cell.loss * 100.0,
            cell.burst,
            measured.runs,
            measured.in_time * 100.0,
            measured.input_wait,
            measured.input_wait_limit,
            measured.shown_behind,
            measured.shown_behind_limit,
            measured.mispredicted * 100.0,
            measured.underruns * 100.0,
            measured.teleports,
            measured.clock_error,
            measured.packets_per_tick,
            1.0 + measured.rate_most,
        );
    }
}

/// The bars that were not held.
pub(crate) fn broken(cells: &[Measured]) -> Vec<String> {
    let mut broken = Vec::new();
    for measured in cells {
        let cell = &measured.cell;
        let mut check = |holds: bool, what: &str, value: f64| {
            if !holds {
                broken.push(format!("{what}: {value:.4} in {cell:?}"));
            }
        };
        let (wait, behind) = (measured.input_wait, measured.shown_behind);
        check(wait <= measured.input_wait_limit, "input wait", wait);
        check(
            behind <= measured.shown_behind_limit,
            "interpolation delay",
            behind,
        );
        let wrong = measured.wrong_without_cause;
        check(wrong == 0, "prediction error", wrong as f64);
        check(
            measured.clock_error <= 0.5,
            "clock error",
            measured.clock_error,
        );
        check(
            measured.teleports == 0,
            "teleports",
            measured.teleports as f64,
        );
        check(
            measured.tick_gaps == 0,
            "ticks skipped",
            measured.tick_gaps as f64,
        );
        // Close to the target it hurries by less than twice the usual bound.
        check(measured.rate_most <= 0.1, "dilation", measured.rate_most);
        if cell.burst <= 1.0 && cell.loss <= 0.05 {
            check(
                measured.in_time >= 0.997,
                "inputs in time",
                measured.in_time,
            );
        }
        if cell.burst <= 1.0 && cell.loss <= 0.02 {
            check(
                measured.mispredicted < 0.01,
                "mispredictions",
                measured.mispredicted,
            );
        }
        if cell.burst <= 1.0 && cell.loss <= 0.05 && cell.jitter_ms == 20 {
            check(measured.underruns < 0.001, "underruns", measured.underruns);
        }
    }
    broken
}
