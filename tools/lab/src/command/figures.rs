//! `muse lab figures`: the pictures of the documentation.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;

#[derive(Args)]
#[command(after_help = "Example: muse lab figures --only clock --out pictures")]
pub(super) struct Arguments {
    /// The folder to write to; it is made if it is not there.
    #[arg(long, value_name = "FOLDER", default_value = "docs/pictures")]
    out: PathBuf,
    /// Only the picture of this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let wanted = |name: &str| self.only.as_deref().is_none_or(|only| only == name);
        let all = crate::figures::ALL;
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        ensure!(
            all.iter().any(|(name, _)| wanted(name)),
            "there is no such picture; there are {}",
            names.join(", ")
        );
        for (name, plot) in all.iter().filter(|(name, _)| wanted(name)) {
            super::files::write_into(&self.out, &format!("{name}.svg"), &plot().svg())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
