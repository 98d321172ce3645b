//! `muse config`: checks and prints the options that a file and the environment set.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand};
use muse_program::options::{Faults, Layers};

/// The thing to do with the options.
#[derive(Args)]
#[command(after_help = CONFIG_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check every key and every value of a file, and the variables of the environment.
    #[command(after_help = "Example: muse config check muse.toml")]
    Check {
        /// The file; by default the one that would be read.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the options of a command as a file: each value, and where it is from. Secrets are hidden.
    #[command(
        after_help = "Example: muse config print master\n         muse config print master --drain-seconds 60"
    )]
    Print {
        /// The command, and anything else of its command line.
        #[arg(
            value_name = "COMMAND",
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        words: Vec<OsString>,
    },
}

/// Runs it; `file` is the one that `--config` names.
pub(crate) fn run<P: CommandFactory>(
    arguments: &Arguments,
    file: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let layers = layers::<P>();
    match &arguments.command {
        Command::Check { file: other } => {
            let checked = layers
                .check(other.as_deref().or(file))
                .unwrap_or_else(|faults| faults.exit());
            match checked.file {
                Some(file) => println!("{}: {} options", file.display(), checked.in_file),
                None => println!("no file: there is no muse.toml here, and none is named"),
            }
            println!("environment: {} options", checked.in_environment);
        }
        Command::Print { words } => {
            let mut line: Vec<OsString> = vec![P::command().get_name().into()];
            if let Some(file) = file {
                line.extend(["--config".into(), file.into()]);
            }
            line.extend_from_slice(words);
            let printed = layers.print(line).unwrap_or_else(|faults| faults.exit());
            print!("{printed}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads this program's command line, completed by the file and the environment.
pub(crate) fn parse<P: clap::Parser>() -> Result<P, Faults> {
    layers::<P>().parse(std::env::args_os())
}

fn layers<P: CommandFactory>() -> Layers {
    Layers::new::<P>(std::env::vars_os())
        .reserved(&NO_OPTIONS)
        .exempt(&["completions", "config", "man"])
}

const CONFIG_HELP: &str = "\
Every option can be on the command line, in the environment and in a file; the command line beats the environment, which beats the file.
For --drain-seconds of `muse master` that is MUSE_MASTER_DRAIN_SECONDS=60, or in the file, in TOML:

  [master]
  drain-seconds = 60

The file is the one of --config, or of MUSE_CONFIG, or muse.toml in the working directory.

Example: muse config print master";

/// Variables of programs and tests that are no options.
pub(crate) const NO_OPTIONS: [&str; 14] = [
    "MUSE_FLEET_KEY",
    "MUSE_GAME_SECONDS",
    "MUSE_MASTER",
    "MUSE_MASTER_CA",
    "MUSE_NODE",
    "MUSE_OPERATOR_PASSWORD",
    "MUSE_SECRET_KEY",
    "MUSE_SEED",
    "MUSE_SEEDS",
    "MUSE_SERVER_ADDRESS",
    "MUSE_SERVER_CERT",
    "MUSE_SERVER_CERT_KEY",
    "MUSE_SERVER_CREDENTIAL",
    "MUSE_SERVER_PORT",
];
