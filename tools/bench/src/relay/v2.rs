//! `muse bench relay`: packets that relay v2 passes on per second of CPU time, beside a bare forwarder and coturn.
//!
//! Players in pairs send through the forwarder, one packet each in turn, from many sockets to many: what a relay of games sees, and nothing
//! that could go as a train. The forwarder has a core to itself and the players another. Capacity is packets
//! that arrived per CPU second of the forwarder while the players keep a bounded number under way; latency is measured at half of the
//! smaller capacity, from the call that sends to the call that receives, less the same without anything between. Everything
//! runs three times, alternating, latency nine times, and the medians count.

mod bare;
mod load;
mod turn;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::Subcommand;
use muse_bench_workload::control::Control;
use serde::Serialize;

use super::super::bars::{Bar, judge};
use super::super::counters::cpu_time;
use super::super::isolation::Surroundings;
use super::super::relay_v1::first_in_line;
use super::super::results::write_json;
use super::super::role::{Role, pinned_muse};
use super::super::statistics::Figure;
use super::super::table::write_aligned;
use load::{Kind, LoadArguments, LoadReport};
use muse_program::relay::v2::{LimitArguments, Server};

/// Options of the measurement.
pub(crate) struct Options<'a> {
    /// Seconds that each run lasts.
    pub(crate) seconds: u64,
    /// Number of times everything is run.
    pub(crate) rounds: usize,
    /// Number of times latency is measured.
    pub(crate) latency_rounds: usize,
    /// Print the bars.
    pub(crate) bars: bool,
    /// The file to write all results to.
    pub(crate) json: Option<&'a Path>,
}

/// The program of the benchmark to run.
#[derive(Subcommand)]
pub(crate) enum RoleName {
    /// Relay v2.
    Relay(LimitArguments),
    /// The bare forwarder.
    Bare,
    /// The players.
    Load(LoadArguments),
}

/// Runs one program of the benchmark.
pub(crate) fn run_role(role: &RoleName) -> anyhow::Result<()> {
    match role {
        RoleName::Relay(limits) => serve(limits),
        RoleName::Bare => bare::run(),
        RoleName::Load(arguments) => load::run(arguments),
    }
}

/// The relay that ships, until told to stop.
fn serve(limits: &LimitArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let mut server = Server::bind(([127, 0, 0, 1], 0).into(), limits)?;
    control.ready(server.local_addr()?.port());
    while !control.has_stopped() {
        server.turn()?;
    }
    control.result(&());
    Ok(())
}

/// One run through one forwarder.
#[derive(Clone, Debug, Serialize)]
struct Run {
    kind: Kind,
    size: usize,
    /// Packets a second that were asked for; as many as possible if none.
    rate: Option<u64>,
    packets_per_cpu_second: f64,
    packets_per_second: f64,
    core_share: f64,
    load: LoadReport,
}

#[derive(Serialize)]
struct Results {
    seconds: u64,
    coturn: bool,
    runs: Vec<Run>,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges.
pub(crate) fn run(options: &Options<'_>) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    for warning in surroundings.warnings() {
        eprintln!("warning: {warning}");
    }
    let coturn = turn::is_installed();
    if !coturn {
        eprintln!(
            "warning: coturn is left out: turnserver is not installed (apt-get install coturn)"
        );
    }
    let mut kinds = vec![Kind::Bare, Kind::Relay];
    kinds.extend(coturn.then_some(Kind::Turn));
    println!(
        "{PAIRS} pairs of players through one core, {} s, {} times; medians",
        options.seconds, options.rounds
    );
    let mut runs = Vec::new();
    for size in SIZES {
        for _ in 0..options.rounds {
            for &kind in &kinds {
                runs.push(measure(&surroundings, kind, size, None, options.seconds)?);
            }
        }
        let capacity = |kind| figure(&runs, kind, size, false, |run| run.packets_per_cpu_second);
        let smaller = capacity(Kind::Bare).min(capacity(Kind::Relay));
        let rate = Some((smaller / 2.0) as u64);
        // Other programs disturb the 99th percentile of some runs: many short ones.
        for _ in 0..options.latency_rounds {
            for kind in [Kind::None, Kind::Bare, Kind::Relay] {
                runs.push(measure(&surroundings, kind, size, rate, LATENCY_SECONDS)?);
            }
        }
    }
    print(&runs, &kinds);
    let bars = bars(&runs);
    let code = match options.bars {
        true => judge(&bars),
        false => ExitCode::SUCCESS,
    };
    if let Some(path) = options.json {
        let results = Results {
            seconds: options.seconds,
            coturn,
            runs,
            bars,
        };
        write_json(path, &results)?;
    }
    Ok(code)
}

fn measure(
    surroundings: &Surroundings,
    kind: Kind,
    size: usize,
    rate: Option<u64>,
    seconds: u64,
) -> anyhow::Result<Run> {
    let mut forwarder = start(surroundings, kind)?;
    let (first, port) = (forwarder.pid(), forwarder.port());
    surroundings.raise(first);
    let mut words: Vec<String> = ["bench-relay", "v2", "load"].map(str::to_owned).to_vec();
    words.extend(["--kind".to_owned(), kind.name().to_owned()]);
    words.extend(["--server".to_owned(), format!("127.0.0.1:{port}")]);
    words.extend(["--size".to_owned(), size.to_string()]);
    words.extend(["--seconds".to_owned(), seconds.to_string()]);
    if let Some(rate) = rate {
        words.extend(["--rate".to_owned(), rate.to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = first_in_line(PRIORITY, pinned_muse(1, &words)?);
    let mut load = Role::start(
        "the players".to_owned(),
        surroundings.further(first, &words),
    )?;
    load.expect("connected", START_MAX)?;
    let cpu = cpu_time(first)?;
    load.say("go")?;
    load.expect("done", Duration::from_secs(seconds + 60))?;
    let cpu = (cpu_time(first)? - cpu).as_secs_f64();
    let report: LoadReport = load.stop()?;
    forwarder.end();
    let arrived = report.received as f64;
    Ok(Run {
        kind,
        size,
        rate,
        packets_per_cpu_second: arrived / cpu.max(1e-9),
        packets_per_second: arrived / report.seconds,
        core_share: cpu / report.seconds,
        load: report,
    })
}

/// The program between the players.
enum Forwarder {
    Ours(Role, u16),
    Coturn(std::process::Child),
}

impl Forwarder {
    fn pid(&self) -> u32 {
        match self {
            Self::Ours(role, _) => role.pid(),
            Self::Coturn(child) => child.id(),
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::Ours(_, port) => *port,
            Self::Coturn(_) => turn::PORT,
        }
    }

    fn end(&mut self) {
        if let Self::Coturn(child) = self {
            // It may have ended by itself, with an error that the load has reported already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.end();
    }
}

fn start(surroundings: &Surroundings, kind: Kind) -> anyhow::Result<Forwarder> {
    let words: Vec<OsString> = match kind {
        Kind::Relay => {
            let mut words = vec!["bench-relay", "v2", "relay"];
            words.extend(["--room-packets", "100000000", "--room-bytes", "4000000000"]);
            pinned_muse(0, &words)?
        }
        // It idles while the players speak directly, and holds the namespace.
        Kind::Bare | Kind::None => pinned_muse(0, &["bench-relay", "v2", "bare"])?,
        Kind::Turn => turn::words(),
    };
    let words = first_in_line(PRIORITY, words);
    let mut command = surroundings.first(&words);
    if kind == Kind::Turn {
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let forwarder = Forwarder::Coturn(command.spawn().context("cannot start coturn")?);
        turn::await_program(forwarder.pid())?;
        return Ok(forwarder);
    }
    let mut role = Role::start("the forwarder".to_owned(), command)?;
    let port = role.expect("ready", START_MAX)?;
    let port = port.parse().context("no port")?;
    Ok(Forwarder::Ours(role, port))
}

/// The median of a figure over the runs of one kind and size.
fn figure(runs: &[Run], kind: Kind, size: usize, paced: bool, of: impl Fn(&Run) -> f64) -> f64 {
    let wanted = runs
        .iter()
        .filter(|run| run.kind == kind && run.size == size && run.rate.is_some() == paced);
    Figure::of(wanted.map(of)).map_or(f64::NAN, |figure| figure.median)
}

fn print(runs: &[Run], kinds: &[Kind]) {
    let heading = [
        "forwarder",
        "bytes",
        "packets/s per core",
        "of bare",
        "core %",
        "arrived %",
        "half load /s",
        "p50 us",
        "p99 us",
        "added p50",
        "added p99",
    ];
    let mut cells = vec![heading.map(str::to_owned).to_vec()];
    for size in SIZES {
        for kind in [Kind::None].iter().chain(kinds) {
            let of = |paced, of: fn(&Run) -> f64| figure(runs, *kind, size, paced, of);
            let bare = figure(runs, Kind::Bare, size, false, |run| {
                run.packets_per_cpu_second
            });
            let capacity = of(false, |run| run.packets_per_cpu_second);
            let number = |value: f64, digits: usize| match value.is_nan() {
                true => "-".to_owned(),
                false => format!("{value:.digits$}"),
            };
            cells.push(vec![
                kind.title().to_owned(),
                size.to_string(),
                number(capacity, 0),
                number(capacity / bare, 2),
                number(of(false, |run| run.core_share * 100.0), 0),
                number(of(false, |run| run.load.arrived_percent()), 1),
                number(of(true, |run| run.packets_per_second), 0),
                number(latency(runs, *kind, size, |load| load.p50_us), 1),
                number(latency(runs, *kind, size, |load| load.p99_us), 1),
                number(added(runs, *kind, size, |load| load.p50_us), 1),
                number(added(runs, *kind, size, |load| load.p99_us), 1),
            ]);
        }
    }
    let mut text = String::new();
    write_aligned(&mut text, &cells);
    print!("{text}");
}

type Percentile = fn(&LoadReport) -> f64;

/// A percentile of the latency: the median of all runs.
fn latency(runs: &[Run], kind: Kind, size: usize, of: Percentile) -> f64 {
    let paced = runs
        .iter()
        .filter(|run| run.kind == kind && run.size == size && run.rate.is_some());
    let mut times: Vec<f64> = paced.map(|run| of(&run.load)).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns what a forwarder adds to the time that players need without one.
fn added(runs: &[Run], kind: Kind, size: usize, of: Percentile) -> f64 {
    match kind {
        Kind::None => f64::NAN,
        kind => latency(runs, kind, size, of) - latency(runs, Kind::None, size, of),
    }
}

fn bars(runs: &[Run]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for size in SIZES {
        let capacity = |kind| figure(runs, kind, size, false, |run| run.packets_per_cpu_second);
        let name = |what: &str| format!("relay_v2_{size}_bytes_{what}");
        let relay = capacity(Kind::Relay);
        bars.push(Bar::at_least(
            name("packets_per_second_per_core"),
            Some(relay),
            CAPACITY_MIN,
        ));
        let share = relay / capacity(Kind::Bare);
        bars.push(Bar::at_least(
            name("share_of_bare_forwarder"),
            Some(share),
            SHARE_MIN,
        ));
        let percentiles: [(&str, Percentile); 2] = [
            ("added_latency_p50_us", |load| load.p50_us),
            ("added_latency_p99_us", |load| load.p99_us),
        ];
        for (what, of) in percentiles {
            let [relay, bare] = [Kind::Relay, Kind::Bare].map(|kind| added(runs, kind, size, of));
            bars.push(Bar::at_most(
                name(what),
                Some(relay),
                Some(bare * LATENCY_MAX),
            ));
        }
    }
    bars
}

/// True if a program is installed.
fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

const SIZES: [usize; 2] = [64, 1_200];
/// Pairs of players.
const PAIRS: usize = 16;
/// The bars: packets a second and core, as a share of a bare forwarder's, and added latency as a multiple of its.
const CAPACITY_MIN: f64 = 100_000.0;
const SHARE_MIN: f64 = 0.6;
const LATENCY_MAX: f64 = 1.5;
/// Duration of a run for latency.
const LATENCY_SECONDS: u64 = 1;
/// In the real-time class, where that is allowed.
const PRIORITY: &str = "20";
const START_MAX: Duration = Duration::from_secs(15);
