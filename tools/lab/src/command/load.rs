//! `muse lab load`: more and more bots against `muse up`, until something breaks, and what it was.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;

use muse_program::child::Program;
use muse_program::figures::PlayerFigures as Bot;

#[derive(Args)]
#[command(
    after_help = "Example: muse lab load --steps 2,20,100 --seconds 30 --json load.json\n\nEach step is a new `muse up` and a new `muse bots`, on this machine, which they share. A step breaks when fewer than 95 of 100 bots play, or when\none of twenty is told less than 20 times a second. Exits with 3 if the first step that breaks comes before --want."
)]
pub(super) struct Arguments {
    /// Numbers of bots, step by step; it ends after the first step that breaks.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "2,10,20,40,70,100,140,200,300,400"
    )]
    steps: Vec<u32>,
    /// Seconds for which each step is watched.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(10..=3_600))]
    seconds: u64,
    /// Players of a match: two against the machines, or more against each other.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=16))]
    players: u8,
    /// Bots that have to be carried.
    #[arg(long, default_value_t = 40)]
    want: u32,
    /// First port of game servers.
    #[arg(long, value_name = "PORT", default_value_t = 18_888)]
    first_port: u16,
    /// Go on past the first step that breaks.
    #[arg(long)]
    past: bool,
    /// Write the steps to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The result of a step.
#[derive(Clone, Debug, Default, Serialize)]
struct Step {
    bots: u32,
    matches: u32,
    /// Bots that were in a match that was played.
    played: usize,
    /// The time until all of them played.
    all_play_s: Option<f64>,
    /// Told a second, by the game: half of the bots are told less, and one of twenty.
    told_p50: f64,
    told_p5: f64,
    /// Bits to each bot, and round trips.
    down_kbit_s: f64,
    rtt_ms_p95: f64,
    /// Of cores: master, game servers and relay; bots.
    servers_cores: f64,
    bots_cores: f64,
    breaks: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut steps = Vec::new();
        println!(
            " bots  matches    play  all play s  told p50   told p5  down kbit   rtt p95  servers   bots"
        );
        for bots in &self.steps {
            let step = self.play(*bots)?;
            println!("{}", step.line());
            let breaks = step.breaks.is_some();
            steps.push(step);
            if breaks && !self.past {
                break;
            }
        }
        super::files::write_json(self.json.as_ref(), &steps)?;
        let carried = steps.iter().filter(|step| step.breaks.is_none());
        let carried = carried.map(|step| step.bots).max().unwrap_or(0);
        match steps.iter().find(|step| step.breaks.is_some()) {
            None => println!("carries {carried} bots; where it breaks lies beyond"),
            Some(step) => println!(
                "carries {carried} bots; breaks at {}: {}",
                step.bots,
                step.breaks.as_deref().unwrap_or_default()
            ),
        }
        Ok(super::exit(carried >= self.want))
    }

    fn play(&self, bots: u32) -> anyhow::Result<Step> {
        let matches = bots.div_ceil(u32::from(self.players));
        let folder = tempfile::tempdir().context("cannot create a folder for the service")?;
        let mut up = self.up(bots, matches, folder.path())?;
        let said = up.line()?;
        let Some(address) = said.strip_prefix("master") else {
            bail!("muse up is not ready: {said}");
        };
        let address = address.trim().trim_end_matches('/');
        // Its co-operative level has two places.
        let mode = if self.players > 2 { "versus" } else { "coop" };
        let (players, seconds) = (self.players, self.seconds + WAIT_S);
        let line = format!(
            "bots --figures --mode {mode} --master {address} --count {bots} --players {players} --seconds {seconds}"
        );
        let mut crowd = Program::start(&line, quiet)?;
        let (started, crowd_id) = (Instant::now(), crowd.id());
        let reader = std::thread::spawn(move || read_output(&mut crowd, started));
        std::thread::sleep(Duration::from_secs(WAIT_S));
        let before = (Instant::now(), cpu_with_children(up.id()), cpu_of(crowd_id));
        // Until shortly before they end.
        std::thread::sleep(Duration::from_secs(self.seconds - 2));
        let took = before.0.elapsed().as_secs_f64();
        let servers_cores = (cpu_with_children(up.id()) - before.1) / took;
        let bots_cores = (cpu_of(crowd_id) - before.2) / took;
        let read = reader.join().ok().context("reading the bots failed")??;
        drop(up);
        let step = Step {
            matches,
            servers_cores,
            bots_cores,
            all_play_s: read.all_play_s,
            ..Step::of(&read.bots, bots)
        };
        Ok(step.judged(self.seconds))
    }

    /// The service that they play on.
    fn up(&self, bots: u32, matches: u32, folder: &Path) -> anyhow::Result<Program> {
        // What is looked for is what the machine carries, not what the service lets in.
        let line = format!(
            "up --no-page --port 0 --relay-port 0 --bots-after-seconds 0 --players-max {} --matches-max {} --first-port {} --players {}",
            bots + 2,
            matches + 2,
            self.first_port,
            self.players
        );
        Program::start(&line, |command| {
            quiet(command);
            command.arg("--data").arg(folder);
        })
    }
}

impl Step {
    fn of(figures: &[Bot], bots: u32) -> Self {
        let playing = figures.iter().filter(|bot| bot.played_s > 0.0);
        let told: Vec<f64> = playing.clone().map(|bot| bot.datagrams_down_s).collect();
        let down: Vec<f64> = playing.clone().map(|bot| bot.down_kbit_s).collect();
        let trips: Vec<f64> = playing.map(|bot| f64::from(bot.rtt_ms)).collect();
        Self {
            bots,
            played: told.len(),
            told_p50: quantile(&told, 0.5),
            told_p5: quantile(&told, 0.05),
            down_kbit_s: quantile(&down, 0.5),
            rtt_ms_p95: quantile(&trips, 0.95),
            ..Self::default()
        }
    }

    /// Says whether it breaks, and what there was too little of.
    fn judged(mut self, seconds: u64) -> Self {
        let cores =
            std::thread::available_parallelism().map_or(1.0, |cores| usize::from(cores) as f64);
        let used = self.servers_cores + self.bots_cores;
        let what = if self.played as f64 * 100.0 < 95.0 * f64::from(self.bots) {
            format!(
                "{} of {} bots played within {} s",
                self.played,
                self.bots,
                seconds + WAIT_S
            )
        } else if self.told_p5 < TOLD_MIN {
            format!(
                "one of twenty bots was told less than {TOLD_MIN} times a second ({:.1})",
                self.told_p5
            )
        } else {
            return self;
        };
        let bound = match used > 0.9 * cores {
            true => format!(
                "the machine's {cores} cores are full: {:.2} for servers, {:.2} for bots",
                self.servers_cores, self.bots_cores
            ),
            false => format!("{used:.2} of {cores} cores were used, so it is not the processor"),
        };
        self.breaks = Some(format!("{what}; {bound}"));
        self
    }

    fn line(&self) -> String {
        let Self {
            bots,
            matches,
            played,
            told_p50,
            told_p5,
            down_kbit_s,
            rtt_ms_p95,
            servers_cores,
            bots_cores,
            ..
        } = self;
        let all = self.all_play_s.map(|seconds| format!("{seconds:.1}"));
        let all = all.unwrap_or("never".to_owned());
        let mark = self.breaks.as_ref().map_or("", |_| "  breaks");
        format!(
            "{bots:>5} {matches:>8} {played:>7} {all:>11} {told_p50:>9.1} {told_p5:>9.1} {down_kbit_s:>10.1} {rtt_ms_p95:>9.1} {servers_cores:>8.2} {bots_cores:>6.2}{mark}"
        )
    }
}

/// The output of the bots.
struct Heard {
    bots: Vec<Bot>,
    all_play_s: Option<f64>,
}

fn read_output(program: &mut Program, started: Instant) -> anyhow::Result<Heard> {
    let mut read = Heard {
        bots: Vec::new(),
        all_play_s: None,
    };
    loop {
        let line = program.line()?;
        if line.starts_with("all ") {
            read.all_play_s = Some(started.elapsed().as_secs_f64());
        } else if line.starts_with('[') {
            read.bots = serde_json::from_str(&line).context("the bots' figures are damaged")?;
        } else if line.is_empty() {
            return Ok(read);
        }
    }
}

/// Leaves out the logs of a program, which would be in the way.
fn quiet(command: &mut Command) {
    command.stderr(Stdio::null());
}

/// CPU seconds of programs and of those that they started.
fn cpu_with_children(parent: u32) -> f64 {
    let own = cpu_of(parent);
    let Ok(folders) = std::fs::read_dir("/proc") else {
        return own;
    };
    let pids = folders
        .flatten()
        .filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let children = pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.0 == parent));
    own + children.map(cpu_of).sum::<f64>()
}

fn cpu_of(pid: u32) -> f64 {
    stat(pid).map_or(0.0, |(_, ticks)| ticks as f64 / TICKS_PER_SECOND)
}

/// The parent of a process, and its clock ticks with those of its ended children.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Some((number(1)? as u32, ticks))
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values
        .get(at.min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

/// Time for everybody to come, before anything is measured.
const WAIT_S: u64 = 15;
/// Bots that are told less often see others stutter; the game tells 25 times a second.
const TOLD_MIN: f64 = 20.0;
const TICKS_PER_SECOND: f64 = 100.0;
