//! The proxy as a program of its own, for those who do not need the rest of `muse`.

use std::process::ExitCode;

use clap::Parser;
use muse_proxy::Arguments;

/// A bad network in front of any UDP server.
#[derive(Parser)]
#[command(name = "muse-proxy", version)]
struct Program {
    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> ExitCode {
    muse_proxy::run(&Program::parse().arguments).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
