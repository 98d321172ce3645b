//! `muse bench connections`: many connections on one socket and one core, idle and talking.
//!
//! The server has a core to itself and the clients another. Memory is that of the server's process: with everybody
//! connected and silent, less that before the first came.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::bars::{Bar, judge};
use super::counters::{Traffic, cpu_time, memory};
use super::crowd::{ClientsReport, ServerReport};
use super::isolation::Surroundings;
use super::results::write_json;
use super::role::{Role, pinned_muse};

/// The number of clients, their messages, and the duration.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench connections --bars\n\nExit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// Number of connections.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    clients: u64,
    /// Packets a second each way on each connection.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rate: u64,
    /// Seconds of traffic; 10, or 3 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Shortened: 3 seconds.
    #[arg(long)]
    quick: bool,
    /// Print each value beside its limit, and exit with 3 if one falls short.
    #[arg(long)]
    bars: bool,
    /// Write everything to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Everything that was measured.
#[derive(Serialize)]
struct Results {
    connections: u64,
    seconds: u64,
    connect_seconds: f64,
    bytes_per_idle_connection: f64,
    bytes_per_talking_connection: f64,
    server_core_share: f64,
    clients_core_share: f64,
    to_server_percent: f64,
    to_clients_percent: f64,
    traffic: Traffic,
    server: ServerReport,
    clients: ClientsReport,
    bars: Vec<Bar>,
}

/// Measures, prints, and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::detect();
    for warning in surroundings.warnings() {
        eprintln!("warning: {warning}");
    }
    let results = measure(arguments, &surroundings)?;
    print(&results);
    if let Some(path) = &arguments.json {
        write_json(path, &results)?;
    }
    Ok(match arguments.bars {
        true => judge(&results.bars),
        false => ExitCode::SUCCESS,
    })
}

fn measure(arguments: &Arguments, surroundings: &Surroundings) -> anyhow::Result<Results> {
    let seconds = arguments
        .seconds
        .unwrap_or(if arguments.quick { 3 } else { 10 });
    let operations = OPERATIONS.to_string();
    let words = pinned_muse(0, &["bench-crowd", "server", "--operations", &operations])?;
    let mut server = Role::start("the server".to_owned(), surroundings.first(&words))?;
    let port = server.expect("ready", START_MAX)?;
    let pid = server.pid();
    surroundings.raise(pid);
    let before = memory(pid)?.resident;

    let began = std::time::Instant::now();
    let address = format!("127.0.0.1:{port}");
    let [count, rate, time] = [arguments.clients, arguments.rate, seconds].map(|n| n.to_string());
    let words = [
        "bench-crowd",
        "clients",
        "--server",
        &address,
        "--clients",
        &count,
    ];
    let words = [&words[..], &["--rate", &rate, "--seconds", &time]].concat();
    let words = pinned_muse(1, &words)?;
    let mut clients = Role::start("the clients".to_owned(), surroundings.further(pid, &words))?;
    surroundings.raise(clients.pid());
    clients.expect("connected", CONNECT_MAX)?;
    let connect_seconds = began.elapsed().as_secs_f64();
    // Path probes and the like leave work behind; a connection is idle after it.
    std::thread::sleep(SETTLE);
    let idle = memory(pid)?.resident.saturating_sub(before);

    let traffic = Traffic::of(pid)?;
    let (server_cpu, clients_cpu) = (cpu_time(pid)?, cpu_time(clients.pid())?);
    let began = std::time::Instant::now();
    server.say("go")?;
    clients.say("go")?;
    clients.expect("done", Duration::from_secs(seconds + 30))?;
    let took = began.elapsed().as_secs_f64();
    let server_cpu = (cpu_time(pid)? - server_cpu).as_secs_f64();
    let clients_cpu = (cpu_time(clients.pid())? - clients_cpu).as_secs_f64();
    let traffic = Traffic::of(pid)?.since(&traffic);
    let talking = memory(pid)?.resident.saturating_sub(before);
    let clients: ClientsReport = clients.stop()?;
    let server: ServerReport = server.stop()?;

    let per_connection = |bytes: u64| bytes as f64 / arguments.clients as f64;
    let mut results = Results {
        connections: arguments.clients,
        seconds,
        connect_seconds,
        bytes_per_idle_connection: per_connection(idle),
        bytes_per_talking_connection: per_connection(talking),
        server_core_share: server_cpu / took,
        clients_core_share: clients_cpu / took,
        to_server_percent: percent(server.received.all(), clients.sent.all() + clients.refused),
        to_clients_percent: percent(clients.received.all(), server.sent.all() + server.refused),
        traffic,
        server,
        clients,
        bars: Vec::new(),
    };
    results.bars = bars(&results);
    Ok(results)
}

fn print(results: &Results) {
    let Results {
        server,
        clients,
        traffic,
        ..
    } = results;
    println!(
        "{} connections on one socket and one core, connected in {:.1} s (socket buffer {} kB)",
        results.connections,
        results.connect_seconds,
        server.receive_buffer / 1_024
    );
    println!(
        "  memory per idle connection     {:.0} bytes",
        results.bytes_per_idle_connection
    );
    println!(
        "  memory per talking connection  {:.0} bytes",
        results.bytes_per_talking_connection
    );
    println!(
        "  to the server   {} of {} delivered ({:.4} %)",
        server.received.all(),
        clients.sent.all() + clients.refused,
        results.to_server_percent
    );
    println!(
        "  to the clients  {} of {} delivered ({:.4} %)",
        clients.received.all(),
        server.sent.all() + server.refused,
        results.to_clients_percent
    );
    println!(
        "  server {:.0} % of its core, clients {:.0} %; clients lagged {:.0} ms at most; {} connections cut",
        results.server_core_share * 100.0,
        results.clients_core_share * 100.0,
        clients.lag_ms_max,
        clients.cut
    );
    println!(
        "  RcvbufErrors {}, {} datagrams, most at once {}",
        traffic.receive_buffer_errors, traffic.datagrams, server.datagrams_at_once_max
    );
}

fn bars(results: &Results) -> Vec<Bar> {
    let errors = results.traffic.receive_buffer_errors as f64;
    let memory = results.bytes_per_idle_connection;
    vec![
        Bar::at_least(
            "connections_to_server_percent",
            Some(results.to_server_percent),
            100.0,
        ),
        Bar::at_least(
            "connections_to_clients_percent",
            Some(results.to_clients_percent),
            100.0,
        ),
        Bar::at_most("connections_receive_buffer_errors", Some(errors), Some(0.0)),
        Bar::at_most("connections_idle_bytes", Some(memory), Some(8_000.0)),
    ]
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Enough that the ramp-up takes seconds.
const OPERATIONS: u32 = 20_000;
const START_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(70);
const SETTLE: Duration = Duration::from_secs(3);
