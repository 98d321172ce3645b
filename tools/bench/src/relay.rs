//! `muse bench relay`: what a relay carries on one core.

pub(super) mod v2;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::relay_v1;

/// The kind of relay, and the duration.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench relay --bars\n         muse bench relay --v1 --bars\n\nExit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// Measure the relay of protocol version 1.
    #[arg(long)]
    v1: bool,
    /// Seconds that each load lasts; 5, with --v1 20, with --quick 1 and 4.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Shortened: fewer or shorter loads.
    #[arg(long)]
    quick: bool,
    /// Print each value beside its limit, and exit with 3 if one falls short.
    #[arg(long)]
    bars: bool,
    /// Write everything to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures the relay that was asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.v1 {
        return v2::run(&v2::Options {
            seconds: arguments
                .seconds
                .unwrap_or(if arguments.quick { 1 } else { 5 }),
            rounds: 3,
            latency_rounds: if arguments.quick { 3 } else { 9 },
            bars: arguments.bars,
            json: arguments.json.as_deref(),
        });
    }
    relay_v1::run(&relay_v1::Options {
        seconds: arguments
            .seconds
            .unwrap_or(if arguments.quick { 4 } else { 20 }),
        quick: arguments.quick,
        bars: arguments.bars,
        json: arguments.json.as_deref(),
    })
}
