//! `muse rp`: both ends of MUSE-RP v1, for games and programs that use the original's protocol.
//!
//! Each event is one line on standard output, written at once, so that scripts can follow.

mod events;
mod send;
mod serve;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// The end to run.
#[derive(Args)]
#[command(
    after_help = "Example: muse rp serve --reliable-port 7777 --partial-port 7778 --window 64 --percent 80

Both print one line per event:
  connected
  received channel=reliable type=300 seq=16909061 len=2 data=6d31
  disconnected
`seq` is the number on the wire, `data` the payload in hexadecimal. Ctrl-C ends either."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    end: End,
}

#[derive(Subcommand)]
enum End {
    /// Run a server that prints what arrives.
    Serve(serve::Arguments),
    /// Run a client that sends numbered messages and prints what comes back.
    Send(send::Arguments),
}

/// Runs the end that was asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.end {
        End::Serve(arguments) => serve::run(arguments),
        End::Send(arguments) => send::run(arguments),
    }
}
