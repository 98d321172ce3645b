//! `muse completions` and `muse man`: what shells and readers want to know about the commands, from the commands themselves.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, Command, CommandFactory, ValueEnum};

/// The shell.
#[derive(Args)]
#[command(
    after_help = "Example: muse completions bash > ~/.local/share/bash-completion/completions/muse
         muse completions zsh > ~/.zfunc/_muse        (with ~/.zfunc in fpath)
         muse completions fish > ~/.config/fish/completions/muse.fish"
)]
pub(crate) struct CompletionArguments {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

/// The page, or the directory for all of them.
#[derive(Args)]
#[command(after_help = "Example: muse man master | man -l -
         muse man --out /usr/local/share/man/man1")]
pub(crate) struct ManArguments {
    /// The command whose page is printed; by default that of `muse` itself.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Directory to write the pages of all commands to, instead of printing one.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn complete<P: CommandFactory>(
    arguments: &CompletionArguments,
) -> anyhow::Result<ExitCode> {
    let mut command = shown(&P::command());
    let name = command.get_name().to_owned();
    let shell = clap_complete::Shell::from(arguments.shell);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&script)
}

/// Returns the same tree without the commands that are hidden, of which completions would tell.
fn shown(command: &Command) -> Command {
    // Names of commands live as long as the program, which ends after this.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut shown = Command::new(name)
        .args(command.get_arguments().cloned())
        .subcommands(
            command
                .get_subcommands()
                .filter(|inner| !inner.is_hide_set())
                .map(shown),
        );
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(&*version.to_owned().leak());
    }
    shown
}

/// Prints a page of the manual, or writes all of them.
pub(crate) fn man<P: CommandFactory>(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let mut root = P::command();
    root.build();
    if let Some(directory) = &arguments.out {
        return write_pages(root, directory);
    }
    let mut names = arguments.command.iter();
    let command = names.try_fold(&root, |command, name| command.find_subcommand(name));
    let line = arguments.command.join(" ");
    let command = command.ok_or_else(|| anyhow!("there is no command `muse {line}`"))?;
    print(&page(command)?)
}

fn write_pages(root: Command, directory: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(root, directory))
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .context("cannot write the page")?;
    Ok(page)
}

fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text).context("cannot print")?;
    out.flush().context("cannot print")?;
    Ok(ExitCode::SUCCESS)
}
