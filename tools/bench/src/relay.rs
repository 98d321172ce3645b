//! `muse bench relay`: what a relay carries on one core.

pub(super) mod v2;

use std::process::ExitCode;

use clap::Args;

use super::relay_v1;
use super::results::Output;

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
    #[command(flatten)]
    output: Output,
}

/// Measures the relay that was asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let quick = arguments.quick;
    let seconds = |whole, short| {
        let default = if quick { short } else { whole };
        arguments.seconds.unwrap_or(default)
    };
    match arguments.v1 {
        true => relay_v1::run(seconds(20, 4), quick, &arguments.output),
        false => v2::run(seconds(5, 1), quick, &arguments.output),
    }
}
