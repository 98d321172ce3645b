//! `muse bench connections`: many connections on one socket and one core, idle and talking.
//!
//! The server has a core to itself and the clients another. Memory is that of the server's process: with everybody
//! connected and silent, less that before the first came.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::counters::Traffic;
use super::crowd::{ClientsReport, ServerReport};
use super::isolation::Surroundings;
use super::results::Output;
use super::role::Programs;
use muse_program::bars::Bar;

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
    #[command(flatten)]
    output: Output,
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
    let results = measure(arguments, Surroundings::detect())?;
    print(&results);
    arguments.output.finish(&results, &results.bars)
}

fn measure(arguments: &Arguments, surroundings: Surroundings) -> anyhow::Result<Results> {
    let default = if arguments.quick { 3 } else { 10 };
    let seconds = arguments.seconds.unwrap_or(default);
    let mut programs = Programs::new(surroundings);
    let words = format!("bench-crowd server --operations {OPERATIONS}");
    let mut server = programs.muse("the server", 0, &words)?;
    let port = server.port(START_MAX)?;
    let before = server.memory()?.resident;

    let began = Instant::now();
    let (count, rate) = (arguments.clients, arguments.rate);
    let words = format!(
        "bench-crowd clients --server 127.0.0.1:{port} --clients {count} --rate {rate} --seconds {seconds}"
    );
    let mut clients = programs.muse("the clients", 1, &words)?;
    clients.expect("connected", CONNECT_MAX)?;
    let connect_seconds = began.elapsed().as_secs_f64();
    // Path probes and the like leave work behind; a connection is idle after it.
    std::thread::sleep(SETTLE);
    let idle = server.memory()?.resident.saturating_sub(before);

    let traffic = Traffic::of(server.pid())?;
    let (server_cpu, clients_cpu) = (server.cpu_seconds()?, clients.cpu_seconds()?);
    let began = Instant::now();
    server.say("go")?;
    clients.say("go")?;
    clients.expect("done", Duration::from_secs(seconds + 30))?;
    let took = began.elapsed().as_secs_f64();
    let server_cpu = server.cpu_seconds()? - server_cpu;
    let clients_cpu = clients.cpu_seconds()? - clients_cpu;
    let traffic = Traffic::of(server.pid())?.since(&traffic);
    let talking = server.memory()?.resident.saturating_sub(before);
    let clients: ClientsReport = clients.stop()?;
    let server: ServerReport = server.stop()?;

    let per_connection = |bytes: u64| bytes as f64 / count as f64;
    let mut results = Results {
        connections: count,
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
        connections,
        connect_seconds,
        bytes_per_idle_connection,
        bytes_per_talking_connection,
        to_server_percent,
        to_clients_percent,
        server,
        clients,
        traffic,
        ..
    } = results;
    let buffer = server.receive_buffer / 1_024;
    println!(
        "{connections} connections on one socket and one core, connected in {connect_seconds:.1} s (socket buffer {buffer} kB)"
    );
    println!("  memory per idle connection     {bytes_per_idle_connection:.0} bytes");
    println!("  memory per talking connection  {bytes_per_talking_connection:.0} bytes");
    let (arrived, sent) = (server.received.all(), clients.sent.all() + clients.refused);
    println!("  to the server   {arrived} of {sent} delivered ({to_server_percent:.4} %)");
    let (arrived, sent) = (clients.received.all(), server.sent.all() + server.refused);
    println!("  to the clients  {arrived} of {sent} delivered ({to_clients_percent:.4} %)");
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
    let (to_server, to_clients) = (results.to_server_percent, results.to_clients_percent);
    let errors = results.traffic.receive_buffer_errors as f64;
    let memory = results.bytes_per_idle_connection;
    vec![
        Bar::at_least("connections_to_server_percent", to_server, 100.0),
        Bar::at_least("connections_to_clients_percent", to_clients, 100.0),
        Bar::at_most("connections_receive_buffer_errors", errors, 0.0),
        Bar::at_most("connections_idle_bytes", memory, 8_000.0),
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
