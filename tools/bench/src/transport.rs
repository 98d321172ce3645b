//! `muse bench transport`: the workloads W1 to W4, Muse and its peers alternating, medians and ratios.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::build;
use super::cases::{Case, WorkloadName};
use super::isolation::Surroundings;
use super::measure::{Library, MUSE, Run, measure};
use super::results::Output;
use super::table::{Row, columns, render};
use super::virtual_cases::{self, VirtualCase, VirtualRow};
use muse_program::bars::Bar;

/// The workloads to run and the way to show them.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench transport --workload w1,w2 --peers rusty_enet,quinn --json results.json
         muse bench transport --workload w3,w4 --virtual-only --bars

Exit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// Workloads to run.
    #[arg(long, value_delimiter = ',', default_value = "w1,w2,w3,w4")]
    workload: Vec<WorkloadName>,
    /// Libraries to compare with: bare, kcp, rusty_enet, enet, quinn, renet, all, or none.
    #[arg(long, value_delimiter = ',', default_value = "all")]
    peers: Vec<String>,
    /// Number of times each library runs each workload; 3, or 1 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    runs: Option<u64>,
    /// Shortened workloads, under a minute in total.
    #[arg(long)]
    quick: bool,
    /// Run only the cases in virtual time: W3 and W4 with Muse alone, 100 seeds each, 10 with --quick.
    #[arg(long)]
    virtual_only: bool,
    #[command(flatten)]
    output: Output,
}

/// Everything that was measured, for `--json`.
#[derive(Serialize)]
struct Results {
    quick: bool,
    cases: Vec<(Case, Vec<Row>)>,
    virtual_time: Vec<VirtualRow>,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let cases = match arguments.virtual_only {
        true => Vec::new(),
        false => run_over_sockets(arguments)?,
    };
    let virtual_time = run_in_virtual_time(arguments);
    let mut bars = bars(&cases);
    bars.extend(virtual_cases::bars(&virtual_time));
    let results = Results {
        quick: arguments.quick,
        bars,
        cases,
        virtual_time,
    };
    arguments.output.finish(&results, &results.bars)
}

/// Runs Muse and its peers, each case in turn.
fn run_over_sockets(arguments: &Arguments) -> anyhow::Result<Vec<(Case, Vec<Row>)>> {
    let peers = build::build(&peer_names(&arguments.peers))?;
    let surroundings = Surroundings::detect();
    if arguments.quick {
        println!(
            "Shortened (--quick): 2 s of W1, a tenth of W2, 3 s of W3 and W4, one run each. Rough figures.\n"
        );
    }
    let runs = arguments
        .runs
        .unwrap_or(if arguments.quick { 1 } else { 3 });
    let all: Vec<Case> = arguments
        .workload
        .iter()
        .flat_map(|name| name.cases(arguments.quick))
        .copied()
        .collect();
    let libraries: Vec<Vec<Library>> = all
        .iter()
        .map(|case| libraries(*case, &peers))
        .collect::<anyhow::Result<_>>()?;
    let progress = progress(runs * libraries.iter().map(Vec::len).sum::<usize>() as u64);
    let mut cases = Vec::new();
    for (case, libraries) in all.into_iter().zip(libraries) {
        let bench = Bench {
            surroundings,
            case,
            quick: arguments.quick,
            progress: &progress,
        };
        let rows = bench.rows(&libraries, runs);
        progress.suspend(|| println!("{}", render(case, &rows)));
        cases.push((case, rows));
    }
    progress.finish_and_clear();
    Ok(cases)
}

/// Runs the cases that are judged in virtual time, after the others: they take all cores.
fn run_in_virtual_time(arguments: &Arguments) -> Vec<VirtualRow> {
    let seeds = if arguments.quick { SEEDS_QUICK } else { SEEDS };
    let names = arguments.workload.iter().copied();
    let cases: Vec<VirtualCase> = names.flat_map(VirtualCase::of).copied().collect();
    let progress = progress(cases.len() as u64 * VirtualCase::runs(seeds));
    let mut all = Vec::new();
    for case in cases {
        let rows = case.rows(seeds, &progress);
        progress.suspend(|| println!("{}", virtual_cases::render(&rows)));
        all.extend(rows);
    }
    progress.finish_and_clear();
    all
}

/// One case on its way.
struct Bench<'a> {
    surroundings: Surroundings,
    case: Case,
    quick: bool,
    progress: &'a ProgressBar,
}

impl Bench<'_> {
    fn rows(&self, libraries: &[Library], runs: u64) -> Vec<Row> {
        let row = |library: &Library| Row {
            library: library.name.clone(),
            figures: BTreeMap::new(),
            runs: Vec::new(),
            notes: Vec::new(),
        };
        let mut rows: Vec<Row> = libraries.iter().map(row).collect();
        for round in 0..runs {
            if self.case.network().is_some() {
                // These runs measure latency, not CPU time, and mostly wait: all libraries run at the same time, each
                // in a namespace of its own.
                std::thread::scope(|scope| {
                    for (library, row) in libraries.iter().zip(&mut rows) {
                        scope.spawn(move || self.add_run(library, round, row));
                    }
                });
            } else {
                for (library, row) in libraries.iter().zip(&mut rows) {
                    self.add_run(library, round, row);
                }
            }
        }
        for row in &mut rows {
            row.summarise(self.case);
        }
        rows
    }

    /// Runs a library once, and again if it lagged.
    fn add_run(&self, library: &Library, round: u64, row: &mut Row) {
        let size = self.case.size(self.quick);
        let label = format!("{} {}", self.case.workload(), library.name);
        self.progress.set_message(label);
        let mut lagged: Option<Run> = None;
        let retries_max = if self.quick { 0 } else { LAG_RETRIES_MAX };
        for attempt in 0..=retries_max {
            match measure(self.surroundings, library, self.case, size, round + 1) {
                Ok(run) if self.case == Case::ManyClients && !run.kept_its_ticks() => {
                    let p50 = run.client.latency_ms.p50;
                    row.notes.push(format!(
                        "run {} lagged (RTT p50 {p50:.1} ms, not one tick), attempt {}",
                        round + 1,
                        attempt + 1
                    ));
                    lagged = Some(run);
                }
                Ok(run) => {
                    row.runs.push(run);
                    lagged = None;
                    break;
                }
                Err(error) => {
                    row.notes
                        .push(format!("run {} failed: {error:#}", round + 1));
                    break;
                }
            }
        }
        if let Some(run) = lagged {
            row.notes
                .push(format!("run {} counts although it lagged", round + 1));
            row.runs.push(run);
        }
        self.progress.inc(1);
    }
}

/// Returns the libraries that run a case: Muse first, where latency under loss is measured with each of its choices.
fn libraries(case: Case, peers: &[Library]) -> anyhow::Result<Vec<Library>> {
    let mut libraries = vec![Library::muse(None)?];
    if case.network().is_some() {
        libraries.extend([Library::muse(Some("frugal"))?, Library::muse(Some("fast"))?]);
    }
    libraries.extend_from_slice(peers);
    Ok(libraries)
}

fn peer_names(asked: &[String]) -> Vec<String> {
    match asked {
        [one] if one == "all" => build::PEERS.map(String::from).to_vec(),
        [one] if one == "none" => Vec::new(),
        names => names.to_vec(),
    }
}

fn progress(runs: u64) -> ProgressBar {
    let bar = ProgressBar::new(runs);
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos}/{len} {msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Number of times a run that lagged is repeated.
const LAG_RETRIES_MAX: u32 = 2;
/// Seeds that are pooled in virtual time.
const SEEDS: u64 = 100;
const SEEDS_QUICK: u64 = 10;

/// The bars of the cases that were run.
fn bars(cases: &[(Case, Vec<Row>)]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (case, rows) in cases {
        let median = |library: &str, value: fn(&Run) -> f64| {
            let row = rows.iter().find(|row| row.library == library)?;
            row.figure(value).map(|figure| figure.median)
        };
        let main = columns(*case)[0].2;
        let ratio_to = |peer: &str| Some(median(MUSE, main)? / median(peer, main)?);
        match case {
            Case::ManyClients => {
                let name = "w1_server_cpu_ratio_to_rusty_enet";
                bars.push(Bar::at_most(name, ratio_to("rusty_enet"), 1.0));
                let echoes = median(MUSE, columns(*case)[1].2);
                bars.push(Bar::at_least("w1_echoes_percent", echoes, 100.0));
                let memory = median(MUSE, |run| run.server_memory_bytes as f64 / 1e6);
                bars.push(Bar::at_most("w1_server_memory_megabytes", memory, 10.0));
            }
            Case::FatPipe => {
                let name = "w2_cpu_ratio_to_quinn";
                bars.push(Bar::at_most(name, ratio_to("quinn"), 1.0));
            }
            // Judged in virtual time; what real sockets show is printed in the tables.
            Case::Loss5 | Case::Loss10 | Case::Bursts => (),
        }
    }
    bars
}
