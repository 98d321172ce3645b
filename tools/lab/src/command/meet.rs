//! `muse lab meet`: every pair of ten kinds of networks, and what the way between two players keeps.

use std::process::ExitCode;

use crate::meet::{Kind, Meeting, Met, Pair, Trouble, Way};
use clap::Args;
use muse_program::bars::{Bar, judge};
use muse_program::parallel::in_parallel;
use muse_wire::Duration;
use serde::Serialize;

use super::{progress, run::SEED};

#[derive(Args)]
#[command(
    after_help = "Example: muse lab meet --bars --quick\n\nPrints the way that each host (rows) and guest (columns) found: D direct, R through the relay, - none. A small letter differs from what mapping\nand filtering permit: d is luck, where a guess has hit a random port, and ! plays not at all."
)]
pub(super) struct Arguments {
    /// Print a line for each bar (`name value limit ok|short`) as well, and exit with 3 if one falls short.
    #[arg(long)]
    bars: bool,
    /// One seed of each meeting rather than twenty.
    #[arg(long)]
    quick: bool,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// The first random seed.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Seeds of each meeting.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Threads; by default, as many as there are cores.
    #[arg(long)]
    threads: Option<usize>,
}

/// Everything that was found out.
#[derive(Serialize)]
struct Report {
    seeds: u64,
    pairs: Vec<PairReport>,
    bars: Vec<Bar>,
}

/// The ways that a pair found, and how soon.
#[derive(Serialize)]
struct PairReport {
    name: String,
    /// D, R or -, as mapping and filtering permit.
    permitted: char,
    /// The ways that the seeds found, each once.
    found: String,
    /// Milliseconds from the code typed; absent where nobody plays or nobody is direct.
    first_packet_ms_p95: Option<f64>,
    direct_ms_p95: Option<f64>,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let default = if self.quick { 1 } else { 20 };
        let seeds = self.seed..self.seed + self.seeds.unwrap_or(default);
        let threads = progress::threads(self.threads);
        let meetings = meet(&seeds, threads)?;
        let mut bars = Vec::new();
        if self.bars {
            bars.extend(ways(&meetings));
            bars.extend(in_time(&meetings));
            bars.extend(in_trouble(&seeds, threads)?);
            // There is no second relay to go on with.
            bars.push(Bar::at_most("gap_ms_p95_relay_killed", None, GAP_MS_MAX));
        }
        if !self.json {
            print!("{}", matrix(&meetings));
            println!();
            return Ok(judge(&bars));
        }
        let report = Report {
            seeds: seeds.end - seeds.start,
            pairs: meetings.iter().map(PairReport::of).collect(),
            bars,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
        Ok(super::exit(report.bars.iter().all(Bar::is_cleared)))
    }
}

/// A pair and its meetings, one for each seed.
type Meetings = Vec<(Pair, Vec<Met>)>;

/// Lets every pair meet, with every seed.
fn meet(seeds: &std::ops::Range<u64>, threads: usize) -> anyhow::Result<Meetings> {
    let pairs = Pair::all();
    let bar = progress::bar(pairs.len(), "pairs")?;
    let met = in_parallel(pairs.len(), threads, |number| {
        let met = seeds.clone().map(|seed| {
            let mut meeting = Meeting::new(pairs[number], ROUND_TRIP, LOSS, seed);
            meeting.play(PLAYED)
        });
        let met = met.collect();
        bar.inc(1);
        met
    });
    bar.finish_and_clear();
    Ok(pairs.into_iter().zip(met).collect())
}

/// The bars of which ways are found.
fn ways(meetings: &Meetings) -> [Bar; 3] {
    let (blocked, open): (Vec<_>, Vec<_>) = meetings
        .iter()
        .partition(|(pair, _)| pair.way() == Way::None);
    let play = |met: &[Met]| met.iter().all(|met| met.way != Way::None);
    let share = |of: &[&(Pair, Vec<Met>)]| {
        let playing = of.iter().filter(|(_, met)| play(met)).count();
        100.0 * playing as f64 / of.len() as f64
    };
    // A guess may hit a random port: better than permitted is as good.
    let as_permitted = |(pair, met): &&(Pair, Vec<Met>)| met.iter().all(|it| it.way <= pair.way());
    let right = open.iter().filter(|it| as_permitted(it)).count();
    let right = 100.0 * right as f64 / open.len() as f64;
    [
        Bar::at_least("pairs_that_play_percent", share(&open), 100.0),
        Bar::at_least("pairs_direct_where_permitted_percent", right, 100.0),
        Bar::at_least(
            "pairs_with_udp_blocked_that_play_percent",
            share(&blocked),
            100.0,
        ),
    ]
}

/// The bar of how long it takes.
fn in_time(meetings: &Meetings) -> [Bar; 1] {
    let reports = meetings.iter().filter(|(pair, _)| pair.way() != Way::None);
    let slowest = reports
        .map(|it| {
            PairReport::of(it)
                .first_packet_ms_p95
                .unwrap_or(f64::INFINITY)
        })
        .fold(0.0, f64::max);
    [Bar::at_most(
        "first_packet_ms_p95",
        slowest,
        FIRST_PACKET_MS_MAX,
    )]
}

/// The bars of ways that are lost.
fn in_trouble(seeds: &std::ops::Range<u64>, threads: usize) -> anyhow::Result<Vec<Bar>> {
    let mut bars = Vec::new();
    let mut lost = 0;
    let pairs = Pair::all().into_iter();
    let pairs: Vec<Pair> = pairs.filter(|pair| pair.way() != Way::None).collect();
    let bar = progress::bar(pairs.len() * Trouble::ALL.len(), "trouble")?;
    for trouble in Trouble::ALL {
        let gaps = in_parallel(pairs.len(), threads, |number| {
            let gaps = seeds.clone().filter_map(|seed| {
                let pair = pairs[number];
                Meeting::new(pair, ROUND_TRIP_IN_TROUBLE, LOSS_IN_TROUBLE, seed).suffer(trouble)
            });
            let gaps: Vec<_> = gaps.collect();
            bar.inc(1);
            gaps
        });
        let gaps = gaps.concat();
        lost += gaps.iter().map(|gap| gap.lost).sum::<u32>();
        let p95 = percentile(gaps.iter().map(|gap| gap.longest));
        let name = format!("gap_ms_p95_{}", trouble.name());
        bars.push(Bar::at_most(name, p95, GAP_MS_MAX));
    }
    bar.finish_and_clear();
    bars.push(Bar::at_most("reliable_lost", f64::from(lost), 0.0));
    Ok(bars)
}

/// The 95th percentile in milliseconds, if there is anything.
fn percentile(of: impl Iterator<Item = Duration>) -> Option<f64> {
    let mut all: Vec<Duration> = of.collect();
    all.sort_unstable();
    let place = (all.len() * 95).div_ceil(100).saturating_sub(1);
    all.get(place).map(|it| it.as_micros() as f64 / 1_000.0)
}

/// The ways that were found, a row for each kind of host.
fn matrix(meetings: &Meetings) -> String {
    let names = Kind::ALL.map(Kind::name);
    let mut text = format!("{:>10}", "");
    for name in names {
        text += &format!(" {name:>9}");
    }
    text.push('\n');
    let (apart, together): (Vec<_>, Vec<_>) = meetings
        .iter()
        .partition(|(pair, _)| matches!(pair, Pair::Apart(..)));
    for (name, row) in names.iter().zip(apart.chunks(names.len())) {
        text += &format!("{name:>10}");
        for (pair, met) in row {
            text += &format!(" {:>9}", letters(*pair, met));
        }
        text.push('\n');
    }
    for (pair, met) in together {
        text += &format!("{}: {}\n", pair.name(), letters(*pair, met));
    }
    text
}

/// The ways that the seeds found, each once; small ones differ from what is permitted.
fn letters(pair: Pair, met: &[Met]) -> String {
    let ways = [Way::Direct, Way::Relayed, Way::None];
    let found = ways
        .into_iter()
        .filter(|way| met.iter().any(|met| met.way == *way));
    found
        .map(|way| match way == pair.way() {
            true => way.letter(),
            false if way == Way::None => '!',
            false => way.letter().to_ascii_lowercase(),
        })
        .collect()
}

impl PairReport {
    fn of((pair, met): &(Pair, Vec<Met>)) -> Self {
        Self {
            name: pair.name(),
            permitted: pair.way().letter(),
            found: letters(*pair, met),
            first_packet_ms_p95: percentile(met.iter().filter_map(|met| met.first_packet)),
            direct_ms_p95: percentile(met.iter().filter_map(|met| met.direct_after)),
        }
    }
}

/// The network of meetings.
const ROUND_TRIP: Duration = Duration::from_millis(50);
const LOSS: f64 = 0.01;
/// The time after which the way that they have is the one that they keep.
const PLAYED: Duration = Duration::from_secs(20);
const FIRST_PACKET_MS_MAX: f64 = 1_500.0;
/// The network of ways that are lost.
const ROUND_TRIP_IN_TROUBLE: Duration = Duration::from_millis(80);
const LOSS_IN_TROUBLE: f64 = 0.02;
const GAP_MS_MAX: f64 = 500.0;
