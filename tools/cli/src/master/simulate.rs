//! `muse master simulate`: what the rules of queues do to a trace of players, before they go live.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use muse_master::matching::{MatchingConfig, Queue, QueueRules};
use muse_master::ticket::{Member, Ticket};
use muse_master_client::{AccountId, Preferences, TicketId};
use muse_wire::{Duration, Instant};

/// The rules, and the players who come.
#[derive(Args)]
#[command(
    after_help = "Example: muse master simulate --queues queues.toml --queue ranked --queue casual\n         \
muse master simulate --queues queues.toml --queue ranked --players players.csv\n\n\
A trace has a line for each player, in order of time, and a first line with the names of the regions:\n  \
at_s,rating,eu,us\n  0.5,1510,20,110\n  0.9,1320,95,35\n\
Round trips are in milliseconds; a field that is empty was not measured."
)]
pub(crate) struct Arguments {
    /// File with the rules of queues.
    #[arg(long, value_name = "FILE")]
    queues: PathBuf,
    /// Queue to try; can be repeated, to compare them.
    #[arg(long = "queue", value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Trace of players as CSV; by default one is made: ratings around 1,500 with a deviation of 350, three regions 20, 80 and 150 ms away.
    #[arg(long, value_name = "FILE")]
    players: Option<PathBuf>,
    /// Players of the trace that is made.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        conflicts_with = "players"
    )]
    count: u32,
    /// Players who come in a second, in the trace that is made.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10.0,
        conflicts_with = "players"
    )]
    per_second: f64,
    /// Random seed of the trace that is made.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "players"
    )]
    seed: u64,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints how long players wait in each queue, and for what.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = &arguments.queues;
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let rules =
        QueueRules::parse(&text).with_context(|| format!("{} is no use", file.display()))?;
    let trace = match &arguments.players {
        Some(file) => read_trace(file)?,
        None => {
            let rate = arguments.per_second;
            ensure!(
                rate.is_finite() && rate > 0.0,
                "--per-second is above 0, not {rate}"
            );
            make_trace(arguments.count, rate, arguments.seed)
        }
    };
    let regions: Vec<&str> = trace.regions.iter().map(String::as_str).collect();
    let general = MatchingConfig::default().regions(&regions);
    let mut all = Vec::new();
    for name in &arguments.names {
        let Some(config) = rules.config(name, &general) else {
            let known: Vec<&str> = rules.names().collect();
            bail!(
                "{} has no queue {name:?}; it has {}",
                file.display(),
                known.join(", ")
            );
        };
        all.push((name.as_str(), simulate(config, &trace, name)));
    }
    match arguments.json {
        true => {
            let figures = all.iter().map(|(name, figures)| (*name, figures.json()));
            let figures: BTreeMap<&str, serde_json::Value> = figures.collect();
            println!("{}", serde_json::to_string_pretty(&figures)?);
        }
        false => all
            .iter()
            .for_each(|(name, figures)| figures.print(name, trace.players.len())),
    }
    Ok(ExitCode::SUCCESS)
}

/// Players who come, in order of time.
struct Trace {
    regions: Vec<String>,
    players: Vec<Player>,
}

struct Player {
    at: Instant,
    rating: f64,
    /// Round trip to each region that was measured.
    latency_ms: Vec<Option<u16>>,
}

fn make_trace(count: u32, per_second: f64, seed: u64) -> Trace {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut seconds: f64 = 0.0;
    let player = |_| {
        // Poisson: waits between two are exponential; the sum of twelve uniform values is all but normal.
        seconds += -(1.0 - rng.f64()).ln() / per_second;
        let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        let home = rng.usize(..3);
        let away = |region: usize| [20, 80, 150][(region + 3 - home) % 3];
        Player {
            at: Instant::from_micros((seconds * 1e6) as u64),
            rating: 1_500.0 + 350.0 * normal,
            latency_ms: (0..3).map(|region| Some(away(region))).collect(),
        }
    };
    Trace {
        players: (0..count).map(player).collect(),
        regions: ["one", "two", "three"].map(str::to_owned).to_vec(),
    }
}

fn read_trace(file: &Path) -> anyhow::Result<Trace> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut lines = text.lines().map(str::trim).enumerate();
    let (_, first) = lines.next().unwrap_or_default();
    let mut names = first.split(',').map(str::trim);
    ensure!(
        names.next() == Some("at_s") && names.next() == Some("rating"),
        "{}: the first line is at_s,rating and the regions' names",
        file.display()
    );
    let mut trace = Trace {
        regions: names.map(str::to_owned).collect(),
        players: Vec::new(),
    };
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let place = || format!("{}:{}: {line:?}", file.display(), index + 1);
        let player = read_player(line, trace.regions.len()).with_context(place)?;
        let last = trace.players.last().map_or(Instant::ZERO, |last| last.at);
        ensure!(player.at >= last, "{} comes before the last", place());
        trace.players.push(player);
    }
    ensure!(
        !trace.players.is_empty(),
        "{}: nobody comes",
        file.display()
    );
    Ok(trace)
}

fn read_player(line: &str, regions: usize) -> anyhow::Result<Player> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    ensure!(
        fields.len() == regions + 2,
        "{} fields, not {}",
        fields.len(),
        regions + 2
    );
    let at: f64 = fields[0].parse().context("at_s is not a number")?;
    ensure!((0.0..1e9).contains(&at), "at_s is out of range");
    let rating: f64 = fields[1].parse().context("rating is not a number")?;
    ensure!(rating.is_finite(), "rating is not a number");
    let latency = |field: &&str| match field.is_empty() {
        true => Ok(None),
        false => field.parse().map(Some).context("not milliseconds"),
    };
    Ok(Player {
        at: Instant::from_micros((at * 1e6) as u64),
        rating,
        latency_ms: fields[2..].iter().map(latency).collect::<Result<_, _>>()?,
    })
}

/// The outcome of a trace.
#[derive(Default)]
struct Figures {
    matches: usize,
    waits_s: Vec<f64>,
    /// Between best and worst of a match.
    spreads: Vec<f64>,
    latencies_ms: Vec<f64>,
}

fn simulate(config: MatchingConfig, trace: &Trace, name: &str) -> Figures {
    let mut queue = Queue::new(config);
    let mut figures = Figures::default();
    let mut coming = trace.players.iter().enumerate().peekable();
    let mut now = Instant::ZERO;
    let mut end = Instant::FAR_FUTURE;
    while now < end {
        now += PASS_EVERY;
        while let Some((index, player)) = coming.next_if(|(_, player)| player.at <= now) {
            queue.insert(ticket(index as u64, player, name, &trace.regions));
        }
        if coming.peek().is_none() && end == Instant::FAR_FUTURE {
            end = now + PATIENCE;
        }
        if queue.is_empty() {
            match coming.peek() {
                Some((_, next)) => now = now.max(next.at),
                None => break,
            }
            continue;
        }
        for group in queue.pass(now, usize::MAX).groups {
            figures.matches += 1;
            let region = queue.regions(&group.preferences).into_iter().next();
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            for ticket in &group.tickets {
                (least, most) = (least.min(ticket.rating()), most.max(ticket.rating()));
                figures.waits_s.push((now - ticket.since).as_secs_f64());
                let region = region.as_ref();
                let latency = region.and_then(|it| ticket.preferences.latency_ms.get(it));
                figures.latencies_ms.extend(latency.copied().map(f64::from));
            }
            figures.spreads.push(most - least);
        }
    }
    let kinds = [
        &mut figures.waits_s,
        &mut figures.spreads,
        &mut figures.latencies_ms,
    ];
    for values in kinds {
        values.sort_unstable_by(f64::total_cmp);
    }
    figures
}

fn ticket(index: u64, player: &Player, queue: &str, regions: &[String]) -> Ticket {
    let measured = regions.iter().zip(&player.latency_ms);
    let wanted = measured.fold(
        Preferences::queue(queue),
        |wanted, (region, latency)| match latency {
            Some(latency) => wanted.latency(region, *latency),
            None => wanted,
        },
    );
    Ticket {
        id: TicketId(index),
        party: vec![Member {
            account: AccountId(index),
            rating: player.rating,
        }],
        preferences: wanted,
        since: player.at,
        attempts: 0,
    }
}

impl Figures {
    fn lines(&self) -> [(&'static str, &[f64]); 3] {
        [
            ("wait, s", &self.waits_s),
            ("ratings apart", &self.spreads),
            ("round trip, ms", &self.latencies_ms),
        ]
    }

    fn print(&self, name: &str, players: usize) {
        let (matched, matches) = (self.waits_s.len(), self.matches);
        println!("{name}: {matched} of {players} players in {matches} matches");
        println!(
            "  {:<16}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "", "mean", "p50", "p95", "p99", "worst"
        );
        for (what, values) in self.lines() {
            print!("  {what:<16}");
            for value in summary(values) {
                print!("{value:>9.2}");
            }
            println!();
        }
    }

    fn json(&self) -> serde_json::Value {
        let mut figures = serde_json::json!({
            "players": self.waits_s.len(),
            "matches": self.matches,
        });
        let names = ["wait_s", "ratings_apart", "round_trip_ms"];
        for (name, (_, values)) in names.into_iter().zip(self.lines()) {
            let [mean, p50, p95, p99, worst] = summary(values);
            figures[name] = serde_json::json!({
                "mean": mean, "p50": p50, "p95": p95, "p99": p99, "worst": worst,
            });
        }
        figures
    }
}

/// Mean, p50, p95, p99 and the worst of sorted values; zeros of none.
fn summary(values: &[f64]) -> [f64; 5] {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count.max(1) as f64;
    let at = |share: f64| {
        let index = (share * count as f64) as usize;
        values
            .get(index.min(count.saturating_sub(1)))
            .map_or(0.0, |value| *value)
    };
    [mean, at(0.5), at(0.95), at(0.99), at(1.0)]
}

/// As a master does.
const PASS_EVERY: Duration = Duration::from_millis(250);
/// Time after the last player for which the others are waited for.
const PATIENCE: Duration = Duration::from_secs(600);
