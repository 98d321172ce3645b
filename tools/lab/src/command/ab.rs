//! `muse lab ab`: the prototype's beta test, with players who aim and react as people do.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::ab::{self, Arm, ArmResult};
use clap::Args;
use muse_program::parallel::in_parallel;

use super::{files, progress};

#[derive(Args)]
#[command(after_help = "Example: muse lab ab --matches 20 --out ab.html")]
pub(super) struct Arguments {
    /// Matches of each way to play; more make intervals narrower.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=1_000))]
    matches: u64,
    /// Seconds of each.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..=3_600))]
    seconds: u32,
    /// Six matches of 30 s of each way to play.
    #[arg(long)]
    quick: bool,
    /// Write the experiments as a page, too.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write them as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Threads; by default, as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (matches, seconds) = match self.quick {
            true => (6, 30),
            false => (self.matches, self.seconds),
        };
        let arms = Arm::all();
        let jobs = arms.len() * matches as usize;
        let bar = progress::bar(jobs, "matches")?;
        let played = in_parallel(jobs, progress::threads(self.threads), |job| {
            let (arm, number) = (job / matches as usize, job % matches as usize);
            let played = arms[arm].play(number as u64, seconds);
            bar.inc(1);
            played
        });
        bar.finish_and_clear();
        let played = played.chunks(matches as usize);
        let results: Vec<ArmResult> = arms
            .iter()
            .zip(played)
            .map(|(arm, played)| arm.sum(played))
            .collect();
        print(&results);
        if let Some(path) = &self.out {
            files::write(path, ab::html(&results, seconds))?;
        }
        files::write_json(self.json.as_ref(), &results)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn print(results: &[ArmResult]) {
    let mut experiment = "";
    for arm in results {
        if arm.experiment != experiment {
            experiment = &arm.experiment;
            println!(
                "{experiment}\n  {:44} {:>22} {:>22} {:>22} {:>22} {:>22}",
                "", "hit %", "agreed %", "mispredicted %", "jumps /min", "own jumps /min"
            );
        }
        let figures = arm
            .figures()
            .map(|figure| format!("{:>22}", figure.to_string()));
        println!("  {:44} {}", arm.name, figures.join(" "));
    }
    println!();
    for answer in ab::answers(results) {
        println!("{answer}");
    }
}
