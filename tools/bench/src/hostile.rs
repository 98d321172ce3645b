//! `muse bench hostile`: attacks on the real programs over real sockets, and what honest players notice beside them.
//!
//! The game server has one core; attackers and honest players share the other. Each attack runs beside the same players as a run without one,
//! and is judged by their round trips, their reliable messages and the memory that it makes a server hold. What a hostile packet costs is
//! measured apart, in one process and without sockets, beside an honest packet of the same size. The master is asked for
//! sign-ins from one address while another attacks it.

mod attacker;
mod browsers;
mod cost;
mod http;
mod master;
mod quic;
mod requests;
mod rooms;
mod seats;
mod sign_ins;
mod web;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use muse_bench_workload::Report;
use muse_bench_workload::control::Control;
use serde::Serialize;

use super::isolation::Surroundings;
use super::results::Output;
use super::role::{Programs, Role};
use attacker::{Attack, AttackReport};
pub(crate) use attacker::{AttackArguments, run as run_attacker};
use muse_program::bars::{Bar, Verdict, settle};

/// One program of the attacks that have several.
#[derive(Args)]
pub struct RoleArguments {
    #[command(subcommand)]
    role: RoleName,
}

#[derive(Subcommand)]
enum RoleName {
    /// Attackers over TCP.
    Http(http::HttpArguments),
    /// Players who sign in.
    SignIns(sign_ins::SignInArguments),
    /// Attackers of a relay.
    Rooms(rooms::RoomArguments),
    /// A full game server, its players, or strangers.
    #[command(subcommand)]
    Seats(seats::SeatRole),
    /// Attackers over QUIC.
    Quic(quic::QuicArguments),
    /// Browsers that open sessions.
    Browsers(browsers::BrowserArguments),
}

/// Runs one program.
pub(crate) fn run_role(arguments: &RoleArguments) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        RoleName::Http(arguments) => http::run(arguments),
        RoleName::SignIns(arguments) => sign_ins::run(arguments),
        RoleName::Rooms(arguments) => rooms::run(arguments),
        RoleName::Seats(role) => seats::run(role),
        RoleName::Quic(arguments) => quic::run(arguments),
        RoleName::Browsers(arguments) => browsers::run(arguments),
    }
}

/// Runs the whole work of a program that waits for many connections at a time.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// Tells that a program is ready, and waits for the word to begin.
async fn ready(control: &Control) {
    control.connected();
    while !control.has_started() {
        tokio::time::sleep(LOOK).await;
    }
}

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The price of a packet, without sockets.
    Cost,
    /// A game server.
    Game,
    /// A full game server to which players come back.
    Full,
    /// The port for browsers of a game server.
    Web,
    /// A relay.
    Relay,
    /// A master.
    Master,
}

/// The players, the attackers' rate, and the duration.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench hostile --bars\n\nA bar that falls short is measured again: the median of three counts. With --quick, a bar of times or CPU time is short only if it was in each of five \
rounds.\n\nExit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// Honest players, each with 20 unreliable and 2 reliable messages a second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    players: u64,
    /// Hostile packets a second.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// Seconds that each attack lasts; 8, or 3 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Shortened: 3 seconds for each attack, and times are judged by the best of up to five rounds.
    #[arg(long)]
    quick: bool,
    /// Run these parts alone; can be repeated.
    #[arg(long = "only", value_name = "PART")]
    only: Vec<Part>,
    #[command(flatten)]
    output: Output,
}

/// One run: honest players, with an attacker beside them or without.
#[derive(Serialize)]
struct Run {
    attack: Option<String>,
    round_trip_ms_p50: f32,
    round_trip_ms_p99: f32,
    reliable_percent: f64,
    server_cpu_seconds: f64,
    server_memory_growth_bytes: u64,
    attacker: AttackReport,
}

#[derive(Serialize)]
struct Results {
    runs: Vec<Run>,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    let (time, rate) = (seconds(arguments), arguments.rate);
    let verdict = Verdict::of(arguments.quick);
    let (mut runs, mut bars) = (Vec::new(), Vec::new());
    if wanted(Part::Cost) {
        println!("CPU time of a server for a packet, without sockets:");
        bars.extend(cost::bars(verdict)?);
    }
    if wanted(Part::Game) {
        let players = arguments.players;
        println!("\n{players} players beside {rate} hostile packets a second:");
        let mut quiet = measure(arguments, &surroundings, None)?;
        for attack in Attack::value_variants() {
            bars.extend(settle(verdict, |again| {
                if again {
                    quiet = measure(arguments, &surroundings, None)?;
                }
                let run = measure(arguments, &surroundings, Some(*attack))?;
                let bars = players_bars(&run, &quiet);
                runs.push(run);
                Ok(bars)
            })?);
        }
        runs.push(quiet);
        bars.extend(settle(verdict, |_| {
            Ok(vec![biobot_memory(arguments, &surroundings)?])
        })?);
    }
    if wanted(Part::Full) {
        println!("\na full game server, to which players come back:");
        bars.extend(settle(verdict, |_| seats::bars(surroundings, time))?);
    }
    if wanted(Part::Web) {
        println!("\nthe port for browsers of a game server:");
        bars.extend(web::bars(verdict, surroundings, time)?);
    }
    if wanted(Part::Relay) {
        println!("\nrooms at a relay beside {rate} hostile packets a second:");
        bars.extend(rooms::bars(verdict, surroundings, time, rate)?);
    }
    if wanted(Part::Master) {
        println!("\nsign-ins at a master, the attacker at another address:");
        bars.extend(master::bars(verdict, surroundings, time)?);
    }
    println!();
    let results = Results { runs, bars };
    arguments.output.finish(&results, &results.bars)
}

/// Players who play for a while, and perhaps an attack that lasts as long.
fn measure(
    arguments: &Arguments,
    surroundings: &Surroundings,
    attack: Option<Attack>,
) -> anyhow::Result<Run> {
    let (players, time) = (arguments.players, seconds(arguments));
    let amount = format!("--workload w1 --clients {players} --seconds {time}");
    let mut programs = Programs::new(*surroundings);
    let mut server = programs.muse("the server", 0, &format!("bench-role server {amount}"))?;
    let address = format!("127.0.0.1:{}", server.port(START_MAX)?);
    let line = format!("bench-role client --server {address} {amount}");
    let mut honest = programs.muse("the players", 1, &line)?;
    honest.expect("connected", CONNECT_MAX)?;
    let attacker =
        attack.map(|attack| start_attacker(&mut programs, arguments, &address, attack, ATTACKERS));
    let mut attacker = attacker.transpose()?;
    let (before, cpu) = (server.watch_memory()?, server.cpu_seconds()?);
    if let Some(attacker) = &mut attacker {
        attacker.say("go")?;
    }
    honest.say("go")?;
    honest.expect("done", Duration::from_secs(time) + START_MAX)?;
    let server_cpu_seconds = server.cpu_seconds()? - cpu;
    let server_memory_growth_bytes = server.memory()?.resident_max.saturating_sub(before);
    let attacker = attacker.map(Role::stop::<AttackReport>).transpose()?;
    let honest: Report = honest.stop()?;
    let run = Run {
        attack: attack.map(Attack::name),
        round_trip_ms_p50: honest.latency_ms.p50,
        round_trip_ms_p99: honest.latency_ms.p99,
        reliable_percent: 100.0 * honest.reliable_received as f64 / honest.reliable_sent as f64,
        server_cpu_seconds,
        server_memory_growth_bytes,
        attacker: attacker.unwrap_or_default(),
    };
    println!(
        "  {:16} p50 {:.1} ms, p99 {:.1} ms, reliable {:.2} %, server {:.2} CPU-s, memory +{} kB, {} hostile packets of {} kB, {} connections cut",
        run.attack.as_deref().unwrap_or("no attack"),
        run.round_trip_ms_p50,
        run.round_trip_ms_p99,
        run.reliable_percent,
        run.server_cpu_seconds,
        run.server_memory_growth_bytes / 1_024,
        run.attacker.sent,
        run.attacker.sent_bytes / 1_024,
        run.attacker.cut,
    );
    Ok(run)
}

fn players_bars(run: &Run, quiet: &Run) -> Vec<Bar> {
    let attack = run.attack.as_deref().unwrap_or_default();
    let name = |what: &str| format!("hostile_{attack}_{what}");
    let ratio = f64::from(run.round_trip_ms_p99) / f64::from(quiet.round_trip_ms_p99);
    let held = run.server_memory_growth_bytes as f64 / 1e3;
    let limit = run.attacker.sent_bytes as f64 / 1e3 + MEMORY_KILOBYTES;
    let mut bars = vec![
        Bar::at_most(name("p99_ratio"), ratio, 2.0).timed(),
        Bar::at_least(name("reliable_percent"), run.reliable_percent, 100.0),
        Bar::at_most(name("memory_kilobytes"), held, limit),
    ];
    if attack == Attack::FalseAcks.name() {
        let cut = run.attacker.cut as f64;
        let name = name("connections_cut");
        bars.push(Bar::at_least(name, cut, ATTACKERS as f64));
    }
    bars
}

/// The memory that one connection can make a server of Biobot hold. There are as many as it has seats, because part of what the server takes is not held for
/// any of them: the pages of its receive buffers, of which it touches the more, the longer it could not read.
fn biobot_memory(arguments: &Arguments, surroundings: &Surroundings) -> anyhow::Result<Bar> {
    let mut programs = Programs::new(*surroundings);
    let line =
        "game --listen 127.0.0.1:0 --no-web --danger-no-tokens --mode versus --versus-seconds 3600";
    let line = format!("{line} --players {BIOBOT_ATTACKERS}");
    let mut game = programs.muse("the game server", 0, &line)?;
    let line = game.expect("listening at", START_MAX)?;
    let (address, key) = line.split_once(", key ").context("no key")?;
    let to = format!("{address} --biobot-key {key}");
    let mut attacker = start_attacker(
        &mut programs,
        arguments,
        &to,
        Attack::Fragments,
        BIOBOT_ATTACKERS,
    )?;
    let before = game.watch_memory()?;
    attacker.say("go")?;
    std::thread::sleep(Duration::from_secs(seconds(arguments)));
    let grown = game.memory()?.resident_max.saturating_sub(before);
    let report: AttackReport = attacker.stop()?;
    println!(
        "\nBiobot under {} last fragments of its largest message: memory +{} kB",
        report.sent,
        grown / 1_024
    );
    let name = "hostile_biobot_kilobytes_per_connection";
    let each = grown as f64 / 1e3 / BIOBOT_ATTACKERS as f64;
    Ok(Bar::at_most(name, each, BIOBOT_KILOBYTES))
}

fn start_attacker(
    programs: &mut Programs,
    arguments: &Arguments,
    server: &str,
    attack: Attack,
    connections: usize,
) -> anyhow::Result<Role> {
    let value = attack.to_possible_value();
    let value = value.context("every attack has a name")?;
    let (rate, attack) = (arguments.rate, value.get_name());
    let line = format!(
        "bench-attack --server {server} --attack {attack} --rate {rate} --connections {connections}"
    );
    let mut attacker = programs.muse("the attacker", 1, &line)?;
    attacker.expect("connected", CONNECT_MAX)?;
    Ok(attacker)
}

fn seconds(arguments: &Arguments) -> u64 {
    let default = if arguments.quick { 3 } else { 8 };
    arguments.seconds.unwrap_or(default)
}

/// Memory beside the bytes received that an attack may cost: what the program itself takes as it goes.
const MEMORY_KILOBYTES: f64 = 64.0;
/// Memory that a connection to a server of Biobot may cost, everything included.
const BIOBOT_KILOBYTES: f64 = 256.0;
/// Connections of the attacker.
const ATTACKERS: usize = 4;
/// Connections of the attacker to a server of Biobot, which has no more seats.
const BIOBOT_ATTACKERS: usize = 16;
const START_MAX: Duration = Duration::from_secs(20);
const CONNECT_MAX: Duration = Duration::from_secs(40);
/// Time between two looks for the word to begin or to end.
const LOOK: Duration = Duration::from_millis(2);
