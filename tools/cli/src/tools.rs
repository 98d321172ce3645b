//! `muse bench`, `muse lab` and `muse proxy`: the tools of developers, which the feature `tools` builds in.
//!
//! Without it these commands say how to get them, so that readers of the documentation are not told that a command does not exist.

#[cfg(feature = "tools")]
pub(crate) use with::{Command, run};
#[cfg(not(feature = "tools"))]
pub(crate) use without::{Command, run};
#[cfg(not(feature = "legacy"))]
pub(crate) use without::{Ignored, missing};

#[cfg(feature = "tools")]
mod with {
    use std::process::ExitCode;

    use clap::Subcommand;

    /// A tool.
    #[derive(Subcommand)]
    pub(crate) enum Command {
        /// A bad network in front of any UDP server.
        Proxy(Box<muse_proxy::Arguments>),
        /// Run the shipped netcode in virtual time and draw what happens.
        Lab(muse_lab::command::Arguments),
        /// Measure Muse beside its peers on this machine.
        Bench(muse_bench::Arguments),
        #[command(flatten)]
        Role(muse_bench::RoleCommand),
    }

    /// Runs a tool.
    pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
        match command {
            Command::Proxy(arguments) => muse_proxy::run(&arguments),
            Command::Lab(arguments) => muse_lab::command::run(&arguments),
            Command::Bench(arguments) => muse_bench::run(&arguments),
            Command::Role(role) => muse_bench::run_role(role),
        }
    }
}

#[cfg(not(feature = "tools"))]
mod without {
    use std::process::ExitCode;

    use anyhow::bail;
    use clap::{Args, Subcommand};

    /// A tool that is not built in.
    #[derive(Subcommand)]
    pub(crate) enum Command {
        /// A bad network in front of any UDP server (needs --features tools).
        Proxy(Ignored),
        /// Run the shipped netcode in virtual time (needs --features tools).
        Lab(Ignored),
        /// Measure Muse beside its peers (needs --features tools).
        Bench(Ignored),
    }

    /// The tool's arguments, which are only repeated in the message.
    #[derive(Args)]
    #[command(disable_help_flag = true)]
    pub(crate) struct Ignored {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<String>,
    }

    /// Says how to build the tool in.
    pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
        match command {
            Command::Proxy(arguments) => missing("tools", "proxy", &arguments),
            Command::Lab(arguments) => missing("tools", "lab", &arguments),
            Command::Bench(arguments) => missing("tools", "bench", &arguments),
        }
    }

    /// Says how to build a command in that comes with a feature.
    pub(crate) fn missing(
        feature: &str,
        name: &str,
        arguments: &Ignored,
    ) -> anyhow::Result<ExitCode> {
        let words = [&[name.to_owned()], &arguments.words[..]].concat();
        let line = words.join(" ");
        bail!(
            "`muse {name}` is not built in; run it with: cargo run --release -p muse-cli --features {feature} -- {line}"
        )
    }
}
