//! `muse lab compare`: two runs side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::compare::Comparison;
use crate::grid::Run;
use anyhow::Context;
use clap::Args;

use super::files;

#[derive(Args)]
#[command(
    after_help = "Example: muse lab compare before/run.json after/run.json --out compare.html --fail-on worse"
)]
pub(super) struct Arguments {
    /// The run before: a run.json, or the folder that holds one.
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The run after.
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Write the comparison as a page, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 3 when any figure is worse, or when any is not the same.
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Worse,
    Change,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let names = [&self.before, &self.after].map(|path| path.display().to_string());
        let comparison = Comparison::new(&before, &after).named(&names[0], &names[1]);
        print!("{}", comparison.text());
        if let Some(path) = &self.out {
            files::write(path, comparison.html())?;
        }
        let fails = match self.fail_on {
            Some(FailOn::Worse) => comparison.worse() > 0,
            Some(FailOn::Change) => comparison.differs(),
            None => false,
        };
        Ok(super::exit(!fails))
    }
}

/// Reads a run.
pub(super) fn read(path: &Path) -> anyhow::Result<Run> {
    let path = match path.is_dir() {
        true => path.join("run.json"),
        false => path.to_owned(),
    };
    Run::parse(&files::read(&path)?).with_context(|| path.display().to_string())
}
