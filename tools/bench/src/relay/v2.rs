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

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Subcommand;
use muse_bench_workload::control::Control;
use serde::Serialize;

use super::super::isolation::Surroundings;
use super::super::results::Output;
use super::super::role::{Programs, Role};
use super::super::statistics::Figure;
use super::super::table::aligned;
pub(crate) use load::LoadReport;
use load::{Kind, LoadArguments};
use muse_program::bars::Bar;
use muse_program::relay::RelayServer;
use muse_program::relay::v2::{LimitArguments, Server};

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
    let mut server = Server::bind_open(([127, 0, 0, 1], 0).into(), limits)?;
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

/// Measures, prints, and judges; each run lasts `seconds`.
pub(crate) fn run(seconds: u64, quick: bool, output: &Output) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    let coturn = turn::is_installed();
    if !coturn {
        eprintln!(
            "warning: coturn is left out: turnserver is not installed (apt-get install coturn)"
        );
    }
    let mut kinds = vec![Kind::Bare, Kind::Relay];
    kinds.extend(coturn.then_some(Kind::Turn));
    println!("{PAIRS} pairs of players through one core, {seconds} s, {ROUNDS} times; medians");
    let mut runs = Vec::new();
    for size in SIZES {
        for _ in 0..ROUNDS {
            for &kind in &kinds {
                runs.push(measure(surroundings, kind, size, None, seconds)?);
            }
        }
        let capacity = |kind| figure(&runs, kind, size, false, |run| run.packets_per_cpu_second);
        let smaller = capacity(Kind::Bare).min(capacity(Kind::Relay));
        let rate = Some((smaller / 2.0) as u64);
        // Other programs disturb the 99th percentile of some runs: many short ones.
        for _ in 0..if quick { 3 } else { 9 } {
            for kind in [Kind::None, Kind::Bare, Kind::Relay] {
                runs.push(measure(surroundings, kind, size, rate, LATENCY_SECONDS)?);
            }
        }
    }
    print(&runs, &kinds);
    let results = Results {
        seconds,
        coturn,
        bars: bars(&runs),
        runs,
    };
    output.finish(&results, &results.bars)
}

fn measure(
    surroundings: Surroundings,
    kind: Kind,
    size: usize,
    rate: Option<u64>,
    seconds: u64,
) -> anyhow::Result<Run> {
    let mut programs = Programs::new(surroundings);
    programs.set_realtime(PRIORITY);
    let (forwarder, port) = start(&mut programs, kind)?;
    let rate_option = rate.map_or(String::new(), |rate| format!("--rate {rate}"));
    let words = format!(
        "bench-relay v2 load --kind {} --server 127.0.0.1:{port} --size {size} --seconds {seconds} {rate_option}",
        kind.name()
    );
    let mut load = programs.muse("the players", 1, &words)?;
    load.expect("connected", START_MAX)?;
    let cpu = forwarder.cpu_seconds()?;
    load.say("go")?;
    load.expect("done", Duration::from_secs(seconds + 60))?;
    let cpu = forwarder.cpu_seconds()? - cpu;
    let report: LoadReport = load.stop()?;
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

/// Starts the program between the players; returns it with the port that they send to.
fn start(programs: &mut Programs, kind: Kind) -> anyhow::Result<(Role, u16)> {
    let name = "the forwarder";
    let mut role = match kind {
        Kind::Relay => {
            let limits = "--room-packets-per-second 100000000 --room-bytes-per-second 4000000000 --guest-packets-per-second 100000000 \
                          --guest-bytes-per-second 4000000000 --egress-bytes-per-second 4000000000";
            programs.muse(name, 0, &format!("bench-relay v2 relay {limits}"))?
        }
        // It idles while the players speak directly, and holds the namespace.
        Kind::Bare | Kind::None => programs.muse(name, 0, "bench-relay v2 bare")?,
        Kind::Turn => {
            let coturn = programs.start(name, &turn::words())?;
            turn::await_program(coturn.pid())?;
            coturn.raise();
            return Ok((coturn, turn::PORT));
        }
    };
    let port = role.port(START_MAX)?;
    Ok((role, port))
}

/// The median of a figure over the runs of one kind and size.
fn figure(runs: &[Run], kind: Kind, size: usize, paced: bool, of: impl Fn(&Run) -> f64) -> f64 {
    let wanted = runs
        .iter()
        .filter(|run| run.kind == kind && run.size == size && run.rate.is_some() == paced);
    Figure::median(wanted.map(of)).unwrap_or(f64::NAN)
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
    print!("{}", aligned(&cells));
}

type Percentile = fn(&LoadReport) -> f64;

/// A percentile of the latency: the median of all runs.
fn latency(runs: &[Run], kind: Kind, size: usize, of: Percentile) -> f64 {
    figure(runs, kind, size, true, |run| of(&run.load))
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
        let share = relay / capacity(Kind::Bare);
        let (per_core, of_bare) = ("packets_per_second_per_core", "share_of_bare_forwarder");
        bars.push(Bar::at_least(name(per_core), relay, CAPACITY_MIN));
        bars.push(Bar::at_least(name(of_bare), share, SHARE_MIN));
        let percentiles: [(&str, Percentile); 2] = [
            ("added_latency_p50_us", |load| load.p50_us),
            ("added_latency_p99_us", |load| load.p99_us),
        ];
        for (what, of) in percentiles {
            let [relay, bare] = [Kind::Relay, Kind::Bare].map(|kind| added(runs, kind, size, of));
            bars.push(Bar::at_most(name(what), relay, bare * LATENCY_MAX));
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
const PRIORITY: u8 = 20;
/// Number of times everything is run.
const ROUNDS: usize = 3;
const START_MAX: Duration = Duration::from_secs(15);
