//! `muse lab`: runs of the shipped netcode in virtual time, and what they show.

mod ab;
mod compare;
mod figures;
mod files;
mod grids;
mod inputs;
mod load;
mod measurements;
mod meet;
mod progress;
mod run;
mod sim;
mod sockets;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// The commands.
#[derive(Args)]
#[command(after_help = "Example: muse lab run --quick --out report")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the grid of networks and write a report: a page, and JSON.
    Run(run::Arguments),
    /// Compare two runs.
    Compare(compare::Arguments),
    /// The questions of a beta test, answered by players who aim and react as people do.
    Ab(ab::Arguments),
    /// The whole system with everything that goes wrong, seed after seed, and what it promises checked.
    Sim(sim::Arguments),
    /// Compare the grids in lab/grids with what the netcode does now, or refresh them.
    Grids(grids::Arguments),
    /// Two players meet over every pair of ten kinds of networks: which way they find, how soon, and what it costs to lose it.
    Meet(meet::Arguments),
    /// More and more bots against `muse up`, until something breaks.
    Load(load::Arguments),
    /// Write docs/measurements.md from the results that are kept.
    Measurements(measurements::Arguments),
    /// Write the recorded inputs of the laboratory's players.
    Inputs(inputs::Arguments),
    /// Write the pictures of the book, the same bytes every time.
    Figures(figures::Arguments),
}

/// Does what the arguments say.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Run(arguments) => arguments.run(),
        Command::Compare(arguments) => arguments.run(),
        Command::Ab(arguments) => arguments.run(),
        Command::Sim(arguments) => arguments.run(),
        Command::Grids(arguments) => arguments.run(),
        Command::Meet(arguments) => arguments.run(),
        Command::Load(arguments) => arguments.run(),
        Command::Measurements(arguments) => arguments.run(),
        Command::Inputs(arguments) => arguments.run(),
        Command::Figures(arguments) => arguments.run(),
    }
}

/// Success, or the code of commands whose answer is no.
fn exit(is_fine: bool) -> ExitCode {
    match is_fine {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(EXIT_DIFFERS),
    }
}

/// The exit code of a command that found a difference, or a bar that is not held.
const EXIT_DIFFERS: u8 = 3;
