//! `muse lab grids`: the grids that are kept for review, compared with what the netcode does now, or refreshed.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::compare::Comparison;
use crate::grid::Plan;
use crate::recording::Recording;
use clap::Args;

use super::run::{SEED, make};

#[derive(Args)]
#[command(after_help = "Example: muse lab grids --bless")]
pub(super) struct Arguments {
    /// The folder of the grids.
    #[arg(long, value_name = "FOLDER", default_value = "lab/grids")]
    folder: PathBuf,
    /// Write them again instead of comparing; the difference is then for review.
    #[arg(long)]
    bless: bool,
    /// Only the corners.
    #[arg(long)]
    quick: bool,
    /// Threads; by default, as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut plans = vec![("quick.json", Plan::quick())];
        if !self.quick {
            plans.push(("whole.json", Plan::whole()));
        }
        let mut differs = false;
        for (name, plan) in plans {
            let path = self.folder.join(name);
            let (run, _) = make(&plan, &Recording::shipped(), SEED, self.threads)?;
            let run = run.brief();
            if self.bless {
                super::files::write_into(&self.folder, name, &run.emit())?;
                continue;
            }
            let kept = super::compare::read(&path)?;
            let comparison = Comparison::new(&kept, &run).named(&path.display().to_string(), "now");
            print!("{}", comparison.text());
            differs |= kept != run;
        }
        Ok(super::exit(!differs))
    }
}
