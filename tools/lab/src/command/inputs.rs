//! `muse lab inputs`: the recorded inputs of the laboratory's players, made by its model of a player.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::recording::{STYLES, record};
use clap::Args;

#[derive(Args)]
#[command(after_help = "Example: muse lab inputs --out tools/lab/inputs")]
pub(super) struct Arguments {
    /// The folder to write to; it is made if it is not there.
    #[arg(long, value_name = "FOLDER", default_value = "tools/lab/inputs")]
    out: PathBuf,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        for style in &STYLES {
            let name = format!("{}.inputs", style.name);
            super::files::write_into(&self.out, &name, &record(style).emit())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
