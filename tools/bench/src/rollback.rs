//! `muse bench rollback`: the duel beside GGRS over bad links, and what saving, loading and rolling back cost.
//!
//! Both libraries play many duels in virtual time, over links in memory with the same luck (round trip 100 ms, 5 % loss), without
//! encryption: rollback depth and bytes are properties of the libraries, not of how busy the machine is. CPU is the thread's own time; rounds
//! alternate who goes first. Costs are instructions, counted by callgrind.

mod castle;
mod counted;
mod muse_side;
mod pairs;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use clap::Args;
use muse_bench_workload::control::parse_result;
use serde::Serialize;

use super::build;
use super::results::Output;
use super::statistics::Figure;
use super::table::{Column, spreads};
use counted::Costs;
use muse_program::bars::Bar;
use pairs::Report;

/// The measurements to make.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench rollback --bars\n         muse bench rollback --peers none   without GGRS\n\nCosts need valgrind and a release build."
)]
pub(crate) struct Arguments {
    /// Libraries to compare with: ggrs or none.
    #[arg(long, default_value = "ggrs")]
    peers: String,
    /// One round of 20 s of virtual time instead of five of 60.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// One program of the benchmark.
#[derive(Args)]
pub struct RoleArguments {
    /// `duels PAIRS SECONDS ROUND`, or the name of what is counted.
    what: Vec<String>,
}

/// Everything that was measured.
#[derive(Serialize)]
struct Results {
    muse: Vec<Report>,
    ggrs: Vec<Report>,
    costs: Option<Costs>,
    entity_steps_saved_percent: f64,
}

/// Measures, prints and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let peer = match arguments.peers.as_str() {
        "none" => None,
        "ggrs" => Some(build::build_program("ggrs")?),
        other => anyhow::bail!("there is no peer {other:?}; there is ggrs (or none)"),
    };
    let (rounds, seconds) = if arguments.quick { (1, 20) } else { (5, 60) };
    let mut results = Results {
        muse: Vec::new(),
        ggrs: Vec::new(),
        costs: None,
        entity_steps_saved_percent: castle::steps_saved(),
    };
    let own = std::env::current_exe()?;
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}: {PAIRS} duels of {seconds} s of virtual time");
        let numbers = [PAIRS, seconds, round];
        // Who plays first alternates, so that neither has the warmer machine.
        for is_muse in [round % 2 == 1, round % 2 == 0] {
            if is_muse {
                let report = play(&own, &["bench-rollback", "duels"], numbers)?;
                results.muse.push(report);
            } else if let Some(program) = &peer {
                results.ggrs.push(play(program, &[], numbers)?);
            }
        }
    }
    results.costs = match counted::count_all() {
        Ok(costs) => Some(costs),
        Err(error) => {
            eprintln!("costs: {error:#}");
            None
        }
    };
    print(&results);
    arguments.output.finish(&results, &bars(&results))
}

/// Runs one program of the benchmark.
pub(crate) fn run_role(arguments: &RoleArguments) -> anyhow::Result<ExitCode> {
    let number = |index: usize| arguments.what.get(index).and_then(|word| word.parse().ok());
    match arguments.what.first().map(String::as_str) {
        Some("duels") => {
            let pairs = muse_side::pairs(number(1).unwrap_or(PAIRS))?;
            let report = pairs::run(pairs, number(2).unwrap_or(10), number(3).unwrap_or(0));
            println!("result {}", serde_json::to_string(&report)?);
        }
        Some(name) => counted::run(name)?,
        None => anyhow::bail!("what to run?"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a program of the benchmark to its end.
fn play(program: &Path, words: &[&str], numbers: [u64; 3]) -> anyhow::Result<Report> {
    let output = Command::new(program)
        .args(words)
        .args(numbers.map(|number| number.to_string()))
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(parse_result)
        .context("a program of the benchmark reported nothing")
}

const COLUMNS: [Column<Report>; 7] = [
    ("rollback depth", 3, |run| {
        run.counts.resimulated as f64 / run.counts.rollbacks.max(1) as f64
    }),
    ("deeper side", 3, |run| run.depth_worse_side),
    ("resimulated/frame", 4, |run| {
        run.counts.resimulated as f64 / run.counts.frames.max(1) as f64
    }),
    ("bytes/frame", 1, |run| {
        run.bytes as f64 / run.counts.frames.max(1) as f64
    }),
    ("packets/frame", 2, |run| {
        run.packets as f64 / run.counts.frames.max(1) as f64
    }),
    ("us/frame", 3, |run| {
        run.nanos as f64 / 1e3 / run.counts.frames.max(1) as f64
    }),
    ("frames run %", 1, |run| {
        run.counts.frames as f64 * 100.0 / run.due.max(1) as f64
    }),
];

fn print(results: &Results) {
    println!("{PAIRS} duels, RTT 100 ms, 5 % loss, 60 frames a second");
    let rows = [("muse", &results.muse[..]), ("ggrs", &results.ggrs)];
    print!("{}", spreads("library", &COLUMNS, rows.into_iter()));
    if let Some(costs) = &results.costs {
        println!("instructions: {costs}");
    }
    println!(
        "sleeping entities and slower bots: {:.1} % of the entity steps saved",
        results.entity_steps_saved_percent
    );
}

fn bars(results: &Results) -> Vec<Bar> {
    let versus = |name: &str, column: usize| {
        let median = |runs: &[Report]| Figure::median(runs.iter().map(COLUMNS[column].2));
        Bar::at_most(name, median(&results.muse), median(&results.ggrs))
    };
    let cost = |value: fn(&Costs) -> f64| results.costs.as_ref().map(value);
    let sleeping = cost(Costs::sleeping_saved_percent);
    vec![
        versus("rollback_depth_frames", 0),
        versus("rollback_bytes_per_frame", 3),
        versus("rollback_cpu_us_per_frame", 5),
        Bar::at_most("save_4k_to_memcpy", cost(Costs::save_ratio), 2.0),
        Bar::at_most("load_4k_to_memcpy", cost(Costs::load_ratio), 2.0),
        Bar::at_most("rollback_8_to_8_steps", cost(Costs::rollback_ratio), 1.2),
        Bar::at_least("sleeping_saved_percent", sleeping, 90.0),
    ]
}

const PAIRS: u64 = 64;
