//! `muse bench cost`: instructions that the server's endpoint spends on a message, against the figure that is checked in.
//!
//! Time depends on the machine and on who else uses it; instructions, counted by callgrind, hardly do. So a change that makes
//! messages dearer shows in review. There are no sockets in it: what the kernel costs is W1's matter.

mod echo;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use muse_bench_workload::control::parse_result;
use serde::{Deserialize, Serialize};

use super::callgrind;
use super::results::{Output, write_json};
pub(crate) use echo::{EchoReport, run as run_echo};
use muse_program::bars::{Bar, judge};

/// Options for comparing or updating the figure.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench cost\n         muse bench cost --update   after a change that is worth its cost\n\nNeeds valgrind and a release build. Exit code 3: more than 5 % above the figure in bench/cost.json."
)]
pub(crate) struct Arguments {
    /// Write the figure to bench/cost.json, to be checked in.
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    output: Output,
}

/// The figures, as they are checked in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cost {
    workload: String,
    instructions_per_echo: u64,
    echoes: u64,
    packets_received: u64,
    packets_sent: u64,
}

/// Counts, compares, and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    ensure!(
        !cfg!(debug_assertions),
        "only a release build has comparable figures: cargo run --release -p muse-cli --features tools -- bench cost"
    );
    let cost = count()?;
    println!(
        "{} instructions per echo of 64 bytes (taken in, opened, acknowledged, sealed, sent); {} echoes in {} packets, {} packets out",
        cost.instructions_per_echo, cost.echoes, cost.packets_received, cost.packets_sent
    );
    arguments.output.write(&cost)?;
    let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/cost.json");
    if arguments.update {
        write_json(&checked_in, &cost)?;
        println!("written to bench/cost.json");
        return Ok(ExitCode::SUCCESS);
    }
    let hint = "no bench/cost.json to compare with; --update writes it";
    let text = fs::read_to_string(&checked_in).context(hint)?;
    let before: Cost = serde_json::from_str(&text).context("bench/cost.json is damaged")?;
    let bar = bar(&cost, &before);
    let change = cost.instructions_per_echo as f64 / before.instructions_per_echo as f64 - 1.0;
    println!(
        "{:+.1} % against the {} checked in",
        change * 100.0,
        before.instructions_per_echo
    );
    Ok(match (arguments.output.bars, bar.is_cleared()) {
        (true, _) => judge(&[bar]),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(3),
    })
}

/// Runs the workload under callgrind, which counts in [`echo`]'s server alone.
fn count() -> anyhow::Result<Cost> {
    let (instructions, text) = callgrind::count(echo::MEASURED_FUNCTION, &["bench-cost"])?;
    let report: EchoReport = text
        .lines()
        .find_map(parse_result)
        .context("the workload reported nothing")?;
    Ok(Cost {
        workload: echo::DESCRIPTION.to_owned(),
        instructions_per_echo: instructions / report.echoes.max(1),
        echoes: report.echoes,
        packets_received: report.packets_received,
        packets_sent: report.packets_sent,
    })
}

fn bar(cost: &Cost, before: &Cost) -> Bar {
    let limit = before.instructions_per_echo as f64 * (1.0 + TOLERANCE);
    let count = cost.instructions_per_echo as f64;
    Bar::at_most("cost_instructions_per_echo", count, limit)
}

/// Compilers and processors differ by a few per cent.
const TOLERANCE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_of_more_than_a_twentieth_falls_short() {
        let cost = |instructions_per_echo| Cost {
            workload: String::new(),
            instructions_per_echo,
            echoes: 1,
            packets_received: 1,
            packets_sent: 1,
        };
        assert!(bar(&cost(1_050), &cost(1_000)).is_cleared());
        assert!(!bar(&cost(1_051), &cost(1_000)).is_cleared());
    }
}
