//! The `muse` binary: the parts of Muse that are run rather than linked.

mod bots;
mod echo;
mod game;
mod master;
mod ping;
mod relay;
mod replay;
#[cfg(feature = "legacy")]
mod rp;
mod tools;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use muse_program::interrupt;
use tracing_subscriber::EnvFilter;

/// Multiplayer networking for games, from the UDP packet to the finished match.
#[derive(Parser)]
#[command(
    name = "muse",
    version,
    after_help = "Example: muse up\n\n`muse COMMAND --help` shows an example of each command. For more logs: RUST_LOG=debug muse ..."
)]
struct Muse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure round-trip times to a Muse server.
    Ping(ping::Arguments),
    /// Run a server that sends every message back, for `muse ping`.
    Echo(echo::Arguments),
    /// Run either end of MUSE-RP v1, to talk to the original implementation.
    #[cfg(feature = "legacy")]
    Rp(rp::Arguments),
    /// Run either end of MUSE-RP v1 (needs --features legacy).
    #[cfg(not(feature = "legacy"))]
    Rp(tools::Ignored),
    /// Run a relay, which connects players behind routers.
    Relay(Box<relay::Arguments>),
    /// Print a recorded match, and verify it by running it again.
    Replay(replay::Arguments),
    /// Run everything on this machine: the page, the master, game servers and a relay.
    Up(up::Arguments),
    /// Run a game server of Biobot for one match.
    Game(game::Arguments),
    /// Run bots that play Biobot.
    Bots(bots::Arguments),
    /// Run the master server: accounts, matchmaking, game servers on demand, friends, chat, ranking.
    Master(Box<master::Arguments>),
    /// A game server without a game.
    #[command(hide = true)]
    MasterGame,
    /// A player without a game.
    #[command(hide = true)]
    MasterPlayer(master::PlayerArguments),
    #[command(flatten)]
    Tools(tools::Command),
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let outcome = match Muse::parse().command {
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        #[cfg(feature = "legacy")]
        Command::Rp(arguments) => rp::run(&arguments),
        #[cfg(not(feature = "legacy"))]
        Command::Rp(ignored) => tools::missing("legacy", "rp", &ignored),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Up(arguments) => up::run(&arguments),
        Command::Game(arguments) => game::run(&arguments),
        Command::Bots(arguments) => bots::run(&arguments),
        Command::Master(arguments) => master::run(&arguments),
        Command::MasterGame => master::run_game(),
        Command::MasterPlayer(arguments) => master::run_player(&arguments),
        Command::Tools(command) => tools::run(command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
