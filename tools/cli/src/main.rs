//! The `muse` binary: the parts of Muse that are run rather than linked.

mod bots;
mod config;
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

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use muse_program::interrupt;
use tracing_subscriber::EnvFilter;

/// Multiplayer networking for games, from the UDP packet to the finished match.
#[derive(Parser)]
#[command(
    name = "muse",
    version,
    after_help = "Example: muse up\n\n`muse COMMAND --help` shows an example of each command. Options can also be in a file and in the environment:\n`muse config --help`. For more logs: RUST_LOG=debug muse ..."
)]
struct Muse {
    /// File with options, in TOML: a table for each command; by default the one in MUSE_CONFIG, or muse.toml if it is there.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
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
    /// Check and print the options that a file and the environment set.
    Config(config::Arguments),
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
    let muse = config::parse::<Muse>().unwrap_or_else(|faults| faults.exit());
    let outcome = match muse.command {
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        #[cfg(feature = "legacy")]
        Command::Rp(arguments) => rp::run(&arguments),
        #[cfg(not(feature = "legacy"))]
        Command::Rp(ignored) => tools::missing("legacy", "rp", &ignored),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Up(arguments) => up::run(&arguments, muse.config.as_deref()),
        Command::Game(arguments) => game::run(&arguments),
        Command::Bots(arguments) => bots::run(&arguments),
        Command::Master(arguments) => master::run(&arguments),
        Command::Config(arguments) => config::run::<Muse>(&arguments, muse.config.as_deref()),
        Command::MasterGame => master::run_game(),
        Command::MasterPlayer(arguments) => master::run_player(&arguments),
        Command::Tools(command) => tools::run(command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use muse_program::options::Layers;

    use super::*;

    #[test]
    fn every_option_has_a_name_of_its_own_in_the_environment_and_in_a_file() {
        let mut names: BTreeSet<String> = config::NO_OPTIONS.map(str::to_owned).into();
        for (path, option, variable) in Layers::new::<Muse>([]).variables() {
            assert!(names.insert(variable.clone()), "{variable} is two things");
            let root = Muse::command();
            let mut names = path.iter();
            let command = names.try_fold(&root, |command, name| command.find_subcommand(name));
            let is_a_command = command.is_some_and(|it| it.find_subcommand(&option).is_some());
            assert!(
                !is_a_command,
                "{path:?} has an option and a command {option}"
            );
        }
    }
}
