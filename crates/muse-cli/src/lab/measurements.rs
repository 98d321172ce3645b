//! `muse lab measurements`: the laboratory's part of docs/measurements.md, from the grid that is kept.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

#[derive(Args)]
#[command(after_help = "Example: muse lab measurements --run lab/grids/whole.json")]
pub(super) struct Arguments {
    /// The run to write down: a run.json, or the folder that holds one.
    #[arg(long, value_name = "RUN", default_value = "lab/grids/whole.json")]
    run: PathBuf,
    /// The page to write it into.
    #[arg(long, value_name = "FILE", default_value = "docs/measurements.md")]
    page: PathBuf,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let run = super::compare::read(&self.run)?;
        let path = self.page.display().to_string();
        let text =
            std::fs::read_to_string(&self.page).with_context(|| format!("cannot read {path}"))?;
        let page = muse_lab::measurements::page(&text, &run).with_context(|| path.clone())?;
        std::fs::write(&self.page, page).with_context(|| format!("cannot write {path}"))?;
        println!("{path}");
        Ok(ExitCode::SUCCESS)
    }
}
