//! `muse bench match`: what a match of Biobot costs a server, and what it costs each player in bytes.
//!
//! Servers are processes of `muse game`, players are one process of `muse bots`, over real UDP on this machine. A match of two among
//! enemies, a match of sixteen, and twenty matches at once beside an idle timer, which says how late this machine itself is.

mod control;
mod programs;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::counters::cpu_time;
use super::results::Output;
use control::Control;
use muse_program::bars::Bar;
use muse_program::figures::PlayerFigures;
use programs::{Bots, Game};

/// The matches to measure.
#[derive(Args)]
#[command(after_help = "Example: muse bench match --quick --bars")]
pub(crate) struct Arguments {
    /// Seconds that each match is watched.
    #[arg(long, value_name = "S", default_value_t = 40, value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Number of matches at once.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    matches: u32,
    /// Shortened: a fifth of the time.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// The measurements.
#[derive(Debug, Serialize)]
struct Figures {
    two: MatchFigures,
    sixteen: MatchFigures,
    many: ManyFigures,
}

/// One match.
#[derive(Debug, Serialize)]
struct MatchFigures {
    players: usize,
    /// CPU time of the server in percent of a core.
    server_core_percent: f64,
    /// Of the player with most.
    up_kbit_s_max: f64,
    down_kbit_s_max: f64,
    /// Of the player with fewest.
    datagrams_down_s_min: f64,
    enemies_mean: f64,
    /// Steps of others beyond what their speed allows, of all players.
    jumps: u64,
    /// States that players had mispredicted, in percent.
    corrected_percent: f64,
    late_p99_ms: f64,
}

/// Many matches at once.
#[derive(Debug, Serialize)]
struct ManyFigures {
    matches: usize,
    players: usize,
    servers_core_percent: f64,
    players_core_percent: f64,
    /// Of the server with the latest ticks.
    late_p99_ms_max: f64,
    late_p99_ms_median: f64,
    control_p99_ms: f64,
}

impl ManyFigures {
    /// By how much the latest server was later than an idle timer. None where that timer itself was late: then others kept the machine
    /// busy, and the difference says nothing about the servers.
    fn late_above_control_ms(&self) -> Option<f64> {
        let quiet = self.control_p99_ms <= LATE_MS_MAX;
        quiet.then_some(self.late_p99_ms_max - self.control_p99_ms)
    }
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let seconds = match arguments.quick {
        true => (arguments.seconds / 5).max(2),
        false => arguments.seconds,
    };
    let window = Duration::from_secs(seconds);
    let file = std::env::temp_dir().join(format!("muse-bench-{}.json", std::process::id()));
    std::fs::write(&file, programs::crowded_level()?)?;
    let level = file
        .to_str()
        .context("the directory's path is not valid UTF-8")?;
    eprintln!("a match of 2 among enemies");
    let two = one_match(2, "coop", Some(level), window);
    std::fs::remove_file(&file)?;
    let two = two?;
    eprintln!("a match of 16");
    let sixteen = one_match(16, "versus", None, window)?;
    eprintln!("{} matches of 2 at once", arguments.matches);
    let many = many_matches(arguments.matches, window)?;
    let figures = Figures { two, sixteen, many };
    println!("{}", serde_json::to_string_pretty(&figures)?);
    if figures.many.late_above_control_ms().is_none() {
        eprintln!(
            "an idle timer was {:.1} ms late at the 99th percentile: something else keeps this machine busy, and how late the ticks of \
             many matches were says nothing. Run it again when the machine is quiet.",
            figures.many.control_p99_ms
        );
    }
    arguments.output.finish(&figures, &bars(&figures))
}

fn bars(figures: &Figures) -> Vec<Bar> {
    let Figures { two, sixteen, many } = figures;
    let busy = sixteen.server_core_percent;
    let late = many.late_above_control_ms();
    let least = two.datagrams_down_s_min;
    vec![
        Bar::at_least("match_2_enemies", two.enemies_mean, 8.0),
        Bar::at_most("match_2_server_core_percent", two.server_core_percent, 2.0),
        Bar::at_most("match_2_up_kbit_s", two.up_kbit_s_max, 24.0),
        Bar::at_most("match_2_down_kbit_s", two.down_kbit_s_max, 24.0),
        Bar::at_least("match_2_datagrams_down_s", least, 20.0),
        Bar::at_most("match_16_server_core_percent", busy, 10.0),
        Bar::at_most("match_16_down_kbit_s", sixteen.down_kbit_s_max, 64.0),
        Bar::at_most("matches_late_p99_ms_above_control", late, LATE_MS_MAX),
    ]
}

fn one_match(
    players: u32,
    mode: &str,
    level: Option<&str>,
    window: Duration,
) -> anyhow::Result<MatchFigures> {
    let game = Game::start(players, mode, level)?;
    let mut bots = Bots::start(&game, players, level)?;
    bots.wait_until_all_play()?;
    let before = cpu_time(game.id())?;
    std::thread::sleep(window);
    let used = cpu_time(game.id())?.saturating_sub(before);
    let told = bots.finish()?;
    let late = game.finish()?;
    let over = |value: fn(&PlayerFigures) -> f64, join: fn(f64, f64) -> f64| {
        told.iter().map(value).reduce(join).unwrap_or(f64::NAN)
    };
    let sum = |value: fn(&PlayerFigures) -> u64| told.iter().map(value).sum::<u64>() as f64;
    let corrected = sum(|player| player.corrected);
    let confirmed = sum(|player| player.confirmed);
    Ok(MatchFigures {
        players: told.len(),
        server_core_percent: used.as_secs_f64() / window.as_secs_f64() * 100.0,
        up_kbit_s_max: over(|player| player.up_kbit_s, f64::max),
        down_kbit_s_max: over(|player| player.down_kbit_s, f64::max),
        datagrams_down_s_min: over(|player| player.datagrams_down_s, f64::min),
        enemies_mean: over(|player| player.enemies_mean, f64::min),
        jumps: told.iter().map(|player| player.jumps).sum(),
        corrected_percent: corrected / (corrected + confirmed).max(1.0) * 100.0,
        late_p99_ms: late.p99_ms,
    })
}

fn many_matches(matches: u32, window: Duration) -> anyhow::Result<ManyFigures> {
    let mut games = Vec::new();
    let mut crowds = Vec::new();
    for _ in 0..matches {
        let game = Game::start(2, "coop", None)?;
        crowds.push(Bots::start(&game, 2, None)?);
        games.push(game);
    }
    for bots in &mut crowds {
        bots.wait_until_all_play()?;
    }
    let servers: Vec<u32> = games.iter().map(Game::id).collect();
    let clients: Vec<u32> = crowds.iter().map(Bots::id).collect();
    let before = (used(&servers)?, used(&clients)?);
    let control = Control::start();
    std::thread::sleep(window);
    let control = control.finish();
    let percent = |after: f64, before: f64| (after - before) / window.as_secs_f64() * 100.0;
    let servers_core_percent = percent(used(&servers)?, before.0);
    let players_core_percent = percent(used(&clients)?, before.1);
    let mut players = 0;
    for bots in crowds {
        players += bots.finish()?.len();
    }
    let late: anyhow::Result<Vec<f64>> = games
        .into_iter()
        .map(|game| Ok(game.finish()?.p99_ms))
        .collect();
    let mut late = late?;
    late.sort_by(f64::total_cmp);
    Ok(ManyFigures {
        matches: late.len(),
        players,
        servers_core_percent,
        players_core_percent,
        late_p99_ms_max: late.last().copied().unwrap_or(f64::NAN),
        late_p99_ms_median: late.get(late.len() / 2).copied().unwrap_or(f64::NAN),
        control_p99_ms: control.p99_ms,
    })
}

/// CPU time of these processes so far, in seconds.
fn used(processes: &[u32]) -> anyhow::Result<f64> {
    let times = processes.iter().map(|id| cpu_time(*id));
    let sum = times.sum::<anyhow::Result<Duration>>()?;
    Ok(sum.as_secs_f64())
}

/// By how much ticks may be later than an idle timer, and how late that timer may be on a machine that is quiet.
const LATE_MS_MAX: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_gives_no_verdict() {
        let figures = |control_p99_ms| ManyFigures {
            matches: 20,
            players: 40,
            servers_core_percent: 11.0,
            players_core_percent: 20.0,
            late_p99_ms_max: 3.0,
            late_p99_ms_median: 2.0,
            control_p99_ms,
        };
        assert_eq!(figures(1.5).late_above_control_ms(), Some(1.5));
        assert_eq!(figures(7.0).late_above_control_ms(), None);
    }
}
