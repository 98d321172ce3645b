//! `muse lab run`: the grid of networks, as a page and as JSON.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::grid::{Case, CaseResult, Plan, Run, findings};
use crate::recording::Recording;
use crate::report::{self, Machine};
use crate::truth;
use anyhow::{Context, ensure};
use clap::Args;
use muse_program::bars::judge;
use muse_program::parallel::in_parallel;

use super::sockets::Sockets;
use super::{files, progress};

#[derive(Args)]
#[command(
    after_help = "Example: muse lab run --out report\n\nWrites report/index.html (everything in one file), report/run.json (the same bytes for the same seed) and\nreport/machine.json (what this machine took)."
)]
pub(super) struct Arguments {
    /// The folder to write to; it is made if it is not there.
    #[arg(long, value_name = "FOLDER", default_value = "report")]
    out: PathBuf,
    /// Only the corners of the grid, 20 s each.
    #[arg(long)]
    quick: bool,
    /// Over real sockets through `muse proxy` and in real time, rather than over a virtual network. Cases take as long as they last, eight at a
    /// time; numbers are no longer the same in every run.
    #[arg(long)]
    sockets: bool,
    /// Print the JSON of the run instead of the findings.
    #[arg(long)]
    json: bool,
    /// Random seed.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Of each case that count.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: Option<u32>,
    /// Recorded inputs of other players than the laboratory's: all `*.inputs` of this folder, one player each.
    #[arg(long, value_name = "FOLDER")]
    inputs: Option<PathBuf>,
    /// Threads; by default, as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Exit with 3 when a finding does not hold.
    #[arg(long)]
    check: bool,
    /// Judge the truth of what is shown instead: bodies that run, turn, jump, ride, fly and rest, over every network, beside where they were. Prints a line for
    /// each cell and one for each bar (`name value limit ok|short`), and exits with 3 if one falls short.
    #[arg(long, conflicts_with_all = ["json", "sockets", "inputs", "check"])]
    bars: bool,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.bars {
            return Ok(self.judge_truth());
        }
        let mut plan = match self.quick {
            true => Plan::quick(),
            false => Plan::whole(),
        };
        if let Some(seconds) = self.seconds {
            plan = plan.with_seconds(seconds);
        }
        let recordings = match &self.inputs {
            Some(folder) => read_recordings(folder)?,
            None => Recording::shipped(),
        };
        files::create(&self.out)?;
        let (run, machine) = match self.sockets {
            true => make_over_sockets(&plan, &recordings, self.seed, self.threads)?,
            false => make(&plan, &recordings, self.seed, self.threads)?,
        };
        let json = run.emit();
        files::write(&self.out.join("run.json"), &json)?;
        files::write_json(Some(&self.out.join("machine.json")), &machine)?;
        let html = report::html(&run, Some(&machine));
        files::write(&self.out.join("index.html"), html)?;
        let findings = findings(&run);
        if self.json {
            print!("{json}");
        } else {
            for finding in &findings {
                let word = if finding.holds {
                    "holds"
                } else {
                    "does not hold"
                };
                println!("{} ({word}). {}", finding.title, finding.says);
            }
            println!(
                "{} cases in {:.1} s, {:.1} s of CPU time; see {}",
                run.cases.len(),
                machine.wall_seconds,
                machine.cpu_seconds_in_all(),
                self.out.join("index.html").display()
            );
        }
        let holds = findings.iter().all(|finding| finding.holds);
        Ok(super::exit(holds || !self.check))
    }
}

impl Arguments {
    fn judge_truth(&self) -> ExitCode {
        let (seeds, default) = if self.quick { (1, 20) } else { (4, 60) };
        let seconds = self.seconds.unwrap_or(default);
        let mut cells = truth::run(seeds, seconds, progress::threads(self.threads));
        let mut bars = Vec::new();
        for cell in &mut cells {
            println!("{}", cell.line());
            bars.extend(cell.bars());
        }
        println!();
        judge(&bars)
    }
}

/// Runs a plan on all cores under a bar.
pub(super) fn make(
    plan: &Plan,
    recordings: &[Recording],
    seed: u64,
    threads: Option<usize>,
) -> anyhow::Result<(Run, Machine)> {
    let threads = progress::threads(threads);
    measure(plan, recordings, seed, threads, |_, case| {
        Ok(case.run(recordings, seed, plan.seconds()))
    })
}

/// The same over real sockets.
fn make_over_sockets(
    plan: &Plan,
    recordings: &[Recording],
    seed: u64,
    threads: Option<usize>,
) -> anyhow::Result<(Run, Machine)> {
    // They mostly wait.
    let threads = threads.unwrap_or(SOCKET_CASES);
    let (mut run, machine) = measure(plan, recordings, seed, threads, |number, case| {
        let sockets = Sockets::new(case.cell, recordings.len(), seed + number as u64)?;
        Ok(case.run_over(Box::new(sockets), recordings, seed, plan.seconds()))
    })?;
    run.about.over = Some("in real time over sockets and muse proxy".to_owned());
    Ok((run, machine))
}

fn measure(
    plan: &Plan,
    recordings: &[Recording],
    seed: u64,
    threads: usize,
    work: impl Fn(usize, Case) -> anyhow::Result<CaseResult> + Sync,
) -> anyhow::Result<(Run, Machine)> {
    let cases = plan.cases();
    let bar = progress::bar(cases.len(), "grid")?;
    let started = Instant::now();
    let results = in_parallel(cases.len(), threads, |number| {
        let before = progress::thread_cpu();
        let result = work(number, cases[number]);
        let took = progress::thread_cpu().saturating_sub(before);
        bar.inc(1);
        Ok((result?, took.as_secs_f64()))
    });
    bar.finish_and_clear();
    let results: anyhow::Result<Vec<_>> = results.into_iter().collect();
    let (results, cpu_seconds) = results?.into_iter().unzip();
    let machine = Machine {
        wall_seconds: started.elapsed().as_secs_f64(),
        threads,
        cpu_seconds,
    };
    Ok((Run::of(plan, recordings, seed, results), machine))
}

fn read_recordings(folder: &Path) -> anyhow::Result<Vec<Recording>> {
    let paths = files::list(folder, "inputs")?;
    ensure!(
        (2..=PLAYERS_MAX).contains(&paths.len()),
        "{} holds {} recordings (*.inputs); 2 to {PLAYERS_MAX} are needed",
        folder.display(),
        paths.len()
    );
    let read = |path: &PathBuf| {
        Recording::parse(&files::read(path)?).with_context(|| path.display().to_string())
    };
    paths.iter().map(read).collect()
}

/// Of runs that nobody gave one.
pub(super) const SEED: u64 = 1;
const PLAYERS_MAX: usize = 64;
/// Cases over sockets at a time.
const SOCKET_CASES: usize = 8;
