//! `muse bench relay`: what a relay carries on one core.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::relay_v1;

/// Which relay, and how long.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench relay --v1 --bars\n\nExit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// The relay of protocol version 1.
    #[arg(long, required = true)]
    v1: bool,
    /// How long each load lasts; 20, or 4 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Shortened: fewer loads, 4 seconds each.
    #[arg(long)]
    quick: bool,
    /// Print a line for each bar and exit with 3 if one falls short.
    #[arg(long)]
    bars: bool,
    /// Write everything to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures the relay that was asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    debug_assert!(arguments.v1, "the only relay there is");
    relay_v1::run(&relay_v1::Options {
        seconds: arguments
            .seconds
            .unwrap_or(if arguments.quick { 4 } else { 20 }),
        quick: arguments.quick,
        bars: arguments.bars,
        json: arguments.json.as_deref(),
    })
}
