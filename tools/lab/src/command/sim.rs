//! `muse lab sim`: the whole system in virtual time, seed after seed.

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sim::{Failure, Game, PARTS, Sim, SimConfig, Told};
use clap::{Args, ValueEnum};
use muse_program::parallel::in_parallel;

use super::progress;

#[derive(Args)]
#[command(
    after_help = "Example: muse lab sim --seed 7\nExample: muse lab sim --minutes 10        (new seeds for ten minutes)\nExample: muse lab sim --plant 10000      (does it find a planted bug?)\n\nA failure prints its seed and the last things that happened, and exits with 3."
)]
pub(super) struct Arguments {
    /// The first random seed; by default, a new one.
    #[arg(long)]
    seed: Option<u64>,
    /// Explore further seeds for so many minutes of real time.
    #[arg(long)]
    minutes: Option<f64>,
    /// Explore so many seeds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Players.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=5_000))]
    players: u32,
    /// Virtual seconds of each seed in which things go wrong; two minutes of rest follow.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// The game to play.
    #[arg(long, value_enum, default_value_t = Played::Stub)]
    game: Played,
    /// Nothing goes wrong.
    #[arg(long)]
    calm: bool,
    /// Plant a bug: one of so many reliable messages is lost.
    #[arg(long, value_name = "ONE_IN")]
    plant: Option<u32>,
    /// Threads; by default, as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

/// The game to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Played {
    /// A game of the laboratory's own.
    Stub,
    /// Biobot, two against the machines.
    Coop,
    /// Biobot, everybody against everybody.
    Versus,
    /// Biobot, two teams with the ball.
    Ball,
}

/// The time that all seeds took.
#[derive(Default)]
struct Sum {
    told: Vec<Told>,
    cpu: Duration,
    failure: Option<Failure>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let first = self.seed.unwrap_or_else(new_seed);
        let until = self
            .minutes
            .map(|minutes| Instant::now() + Duration::from_secs_f64(minutes.max(0.0) * 60.0));
        let seeds = match until {
            Some(_) => usize::MAX,
            None => self.seeds as usize,
        };
        let bar = progress::bar(seeds.min(u32::MAX as usize), "seeds")?;
        let sum = Mutex::new(Sum::default());
        let started = Instant::now();
        let threads = progress::threads(self.threads).min(seeds);
        // Each thread takes every so-manieth seed until something fails or the time is over.
        in_parallel(threads, threads, |thread| {
            let mut number = thread;
            while number < seeds && until.is_none_or(|until| Instant::now() < until) {
                if sum.lock().is_ok_and(|sum| sum.failure.is_some()) {
                    break;
                }
                let before = progress::thread_cpu();
                let outcome = Sim::new(self.config(first.wrapping_add(number as u64))).run();
                let took = progress::thread_cpu().saturating_sub(before);
                if let Ok(mut sum) = sum.lock() {
                    sum.cpu += took;
                    match outcome {
                        Ok(told) => sum.told.push(told),
                        Err(failure) => {
                            // The least seed, so that what is printed does not depend on threads.
                            let known = sum.failure.take();
                            let failures = known.into_iter().chain([failure]);
                            sum.failure = failures.min_by_key(|failure| failure.seed);
                        }
                    }
                }
                bar.inc(1);
                number += threads;
            }
        });
        bar.finish_and_clear();
        let sum = sum.into_inner().unwrap_or_default();
        self.print(&sum, started.elapsed());
        Ok(super::exit(sum.failure.is_none()))
    }

    fn config(&self, seed: u64) -> SimConfig {
        let config = SimConfig::new(seed)
            .players(self.players)
            .length(muse_wire::Duration::from_secs(self.seconds))
            .troubles(!self.calm)
            .stopwatch(progress::thread_cpu)
            .game(match self.game {
                Played::Stub => Game::Stub,
                Played::Coop => Game::Cooperative,
                Played::Versus => Game::Versus,
                Played::Ball => Game::Ball,
            });
        match self.plant {
            Some(one_in) => config.plant(one_in),
            None => config,
        }
    }

    fn print(&self, sum: &Sum, wall: Duration) {
        let total = |value: fn(&Told) -> u64| sum.told.iter().map(value).sum::<u64>();
        let seconds = |value: fn(&Told) -> muse_wire::Duration| {
            let times = sum.told.iter().map(value);
            times.map(|time| time.as_secs_f64()).sum::<f64>()
        };
        let cpu = sum.cpu.as_secs_f64();
        if !sum.told.is_empty() {
            let hours = seconds(|told| told.played) / 3_600.0;
            let datagrams = total(|told| told.datagrams);
            println!(
                "{} seeds kept every promise: {:.1} virtual minutes with {} players, {hours:.2} player-hours in {} matches, {} promised messages, {datagrams} datagrams",
                sum.told.len(),
                seconds(|told| told.time) / 60.0,
                self.players,
                total(|told| told.matches),
                total(|told| told.messages),
            );
            println!(
                "  {} programs, {} servers, {} masters and {} relays killed, {} outages, {} changes of address, {} forged datagrams",
                total(|told| told.crashes[0]),
                total(|told| told.crashes[1]),
                total(|told| told.crashes[2]),
                total(|told| told.crashes[3]),
                total(|told| told.outages),
                total(|told| told.address_changes),
                total(|told| told.forged),
            );
            if cpu > 0.0 {
                let (each, wall) = (cpu * 1e6 / datagrams.max(1) as f64, wall.as_secs_f64());
                println!(
                    "  {:.1} player-hours for each minute of CPU time; {cpu:.1} s of CPU time in {wall:.1} s; {each:.1} us for each datagram",
                    hours * 60.0 / cpu,
                );
                println!("  {}", bounds(&sum.told));
            }
        }
        if let Some(failure) = &sum.failure {
            println!("{failure}");
            println!(
                "after {:.1} s; again with: muse lab sim --seed {}{}",
                wall.as_secs_f64(),
                failure.seed,
                self.flags()
            );
        }
    }

    /// The further options that reproduce a failure.
    fn flags(&self) -> String {
        let mut flags = format!(" --players {} --seconds {}", self.players, self.seconds);
        if self.game != Played::Stub {
            let name = self.game.to_possible_value();
            let name = name.map_or_else(String::new, |value| value.get_name().to_owned());
            flags.push_str(&format!(" --game {name}"));
        }
        if self.calm {
            flags.push_str(" --calm");
        }
        if let Some(plant) = self.plant {
            flags.push_str(&format!(" --plant {plant}"));
        }
        flags
    }
}

/// A seed that nobody has tried, by the clock.
fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(1, |since| since.as_nanos() as u64);
    fastrand::Rng::with_seed(nanos).u64(..1_000_000_000)
}

/// Returns the parts by the time that they take, most first.
fn bounds(told: &[Told]) -> String {
    let mut parts = PARTS.map(|name| (name, Duration::ZERO));
    for told in told {
        for (part, spent) in parts.iter_mut().zip(told.spent) {
            part.1 += spent;
        }
    }
    let all: Duration = parts.iter().map(|(_, spent)| *spent).sum();
    parts.sort_by_key(|(_, spent)| std::cmp::Reverse(*spent));
    let share = |spent: Duration| 100.0 * spent.as_secs_f64() / all.as_secs_f64().max(1e-9);
    let parts = parts.map(|(name, spent)| format!("{name} {:.0} %", share(spent)));
    format!("bounded by {}", parts.join(", "))
}
