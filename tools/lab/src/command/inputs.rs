//! `muse lab inputs`: the recorded inputs of the laboratory's players, made by its model of a player.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::recording::{STYLES, record};
use anyhow::Context;
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
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot make the folder {}", self.out.display()))?;
        for style in &STYLES {
            let path = self.out.join(format!("{}.inputs", style.name));
            std::fs::write(&path, record(style).emit())
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
