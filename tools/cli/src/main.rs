//! The `muse` binary: the parts of Muse that are run rather than linked.

mod bots;
mod config;
mod echo;
mod front;
mod game;
mod health;
mod manual;
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

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use muse_program::interrupt;
use muse_program::logs::LogFormat;

/// The allocator of the static program, because musl's own is slow and has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Multiplayer networking for games, from the UDP packet to the finished match.
#[derive(Parser)]
#[command(
    name = "muse",
    version,
    after_help = "Example: muse up\n\n`muse COMMAND --help` shows an example of each command. Options can also be in a file and in the environment:\n`muse config --help`. For more logs: RUST_LOG=debug muse ..."
)]
struct Muse {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command.
#[derive(Args)]
struct Common {
    /// File with options, in TOML: a table for each command; by default the one in MUSE_CONFIG, or muse.toml if it is there.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Format of log lines, which go to standard error; RUST_LOG says which.
    #[arg(long, value_enum, global = true, default_value_t)]
    log_format: LogFormat,
}

impl Common {
    /// Returns these options as words for the command line of a program that this one starts.
    fn words(&self) -> anyhow::Result<Vec<String>> {
        let mut words = vec![format!("--log-format={}", self.log_format.word())];
        if let Some(file) = &self.config {
            let file = file.to_str();
            let file = file.context("the path of --config is not valid UTF-8")?;
            words.push(format!("--config={file}"));
        }
        Ok(words)
    }
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
    /// Ask a server whether it is well.
    Health(health::Arguments),
    /// Check and print the options that a file and the environment set.
    Config(config::Arguments),
    /// Print the completions of a shell.
    Completions(manual::CompletionArguments),
    /// Print the pages of the manual.
    Man(manual::ManArguments),
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
    let muse = config::parse::<Muse>().unwrap_or_else(|faults| faults.exit());
    let common = &muse.common;
    common.log_format.start();
    let outcome = match muse.command {
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Echo(arguments) => echo::run(&arguments),
        #[cfg(feature = "legacy")]
        Command::Rp(arguments) => rp::run(&arguments),
        #[cfg(not(feature = "legacy"))]
        Command::Rp(ignored) => tools::missing("legacy", "rp", &ignored),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Up(arguments) => up::run(&arguments, common),
        Command::Game(arguments) => game::run(&arguments),
        Command::Bots(arguments) => bots::run(&arguments),
        Command::Master(arguments) => master::run(&arguments, common.log_format),
        Command::Health(arguments) => health::run(&arguments),
        Command::Config(arguments) => config::run::<Muse>(&arguments, common.config.as_deref()),
        Command::Completions(arguments) => manual::complete::<Muse>(&arguments),
        Command::Man(arguments) => manual::man::<Muse>(&arguments),
        Command::MasterGame => master::run_game(),
        Command::MasterPlayer(arguments) => master::run_player(&arguments),
        Command::Tools(command) => tools::run(command),
    };
    outcome.unwrap_or_else(|error| {
        common.log_format.fail(&error);
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

    /// Calls `visit` for each option that is shown, with the line of its command.
    fn walk(command: &clap::Command, line: &str, visit: &mut impl FnMut(&str, &clap::Arg)) {
        let line = format!("{line}{} ", command.get_name());
        for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
            visit(line.trim(), argument);
        }
        for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            walk(inner, &line, visit);
        }
    }

    fn help(argument: &clap::Arg) -> String {
        argument
            .get_help()
            .map(|help| help.to_string())
            .unwrap_or_default()
    }

    fn value_name(argument: &clap::Arg) -> String {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(|name| name.as_str()).collect()
    }

    #[test]
    fn the_same_thing_has_the_same_name_in_every_command() {
        let mut names = std::collections::BTreeMap::new();
        let mut faults = Vec::new();
        walk(&Muse::command(), "", &mut |line, argument| {
            let Some(name) = argument.get_long() else {
                return;
            };
            let help = help(argument);
            let (other, elsewhere) = names
                .entry(help.clone())
                .or_insert((name.to_owned(), line.to_owned()));
            if *other != name {
                faults.push(format!(
                    "`{line} --{name}` and `{elsewhere} --{other}`: {help}"
                ));
            }
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn names_are_formed_by_the_same_rules() {
        let mut faults = Vec::new();
        walk(&Muse::command(), "", &mut |line, argument| {
            let Some(name) = argument.get_long() else {
                return;
            };
            let (help, value) = (help(argument), value_name(argument));
            for (other, usual) in USUAL_WORDS {
                let is_there = format!("-{name}-").contains(&format!("-{other}-"));
                if is_there {
                    faults.push(format!("`{line} --{name}`: {usual} instead of {other}"));
                }
            }
            // A value that is text, as of `muse proxy`, brings its unit along.
            let text = clap::builder::ValueParser::string().type_id();
            let is_number = argument.get_value_parser().type_id() != text;
            let units = [("S", "seconds"), ("MS", "ms"), ("DAYS", "days")];
            for (_, unit) in units.iter().filter(|it| is_number && it.0 == value) {
                let has_it = name == *unit || name.ends_with(&format!("-{unit}"));
                if !has_it {
                    faults.push(format!(
                        "`{line} --{name} {value}` does not end with {unit}"
                    ));
                }
            }
            let is_limit = name.ends_with("-max") || name.contains("-per-");
            if help.starts_with("Most ") && !is_limit {
                faults.push(format!("`{line} --{name}` is a limit without -max: {help}"));
            }
            let first = help.split(['.', ';', ',']).next().unwrap_or_default();
            let is_rate = name == "rate" || name.ends_with("-per-second");
            if first.contains(" per second") && !is_rate {
                faults.push(format!(
                    "`{line} --{name}` is a rate without -per-second: {help}"
                ));
            }
        });
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Words that a name might have, and the one that all others have.
    const USUAL_WORDS: [(&str, &str); 9] = [
        ("s", "seconds"),
        ("sec", "seconds"),
        ("secs", "seconds"),
        ("milliseconds", "ms"),
        ("time-out", "timeout"),
        ("address", "ip, or listen"),
        ("certificate", "cert"),
        ("maximum", "max"),
        ("limit", "max"),
    ];
}
