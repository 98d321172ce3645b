//! The results of a benchmark: a file for `--json`, and a verdict for `--bars`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use muse_program::bars::{Bar, judge};

/// The options of every benchmark.
#[derive(Args)]
pub(crate) struct Output {
    /// Print each value beside its limit, and exit with 3 if one falls short.
    #[arg(long)]
    pub(crate) bars: bool,
    /// Write all results to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Output {
    /// Writes the results and judges them, as far as the options ask for it.
    pub(crate) fn finish(
        &self,
        results: &impl Serialize,
        bars: &[Bar],
    ) -> anyhow::Result<ExitCode> {
        self.write(results)?;
        Ok(match self.bars {
            true => judge(bars),
            false => ExitCode::SUCCESS,
        })
    }

    /// Writes the results if there is a file for them.
    pub(crate) fn write(&self, results: &impl Serialize) -> anyhow::Result<()> {
        match &self.json {
            Some(path) => write_json(path, results),
            None => Ok(()),
        }
    }
}

/// Writes `results` to `path`.
pub(crate) fn write_json(path: &std::path::Path, results: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
