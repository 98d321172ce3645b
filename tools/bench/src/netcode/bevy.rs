//! `muse bench netcode --bevy`: Muse's plugin for Bevy beside lightyear and bevy_replicon, all on the scene N1.
//!
//! Each is a server program with 1,000 bodies that all move, 20 ticks a second, and a program with eight clients, behind a proxy for each client
//! (round trips of 20 to 160 ms, 2 % loss each way). Bytes are UDP payload that servers gave to the proxies. CPU time is the server's between two
//! marks, less that of the same server with the same clients while nothing moves.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::build::build_bevy;
use super::super::isolation::Surroundings;
use super::super::proxy::ProxyReport;
use super::super::role::{Programs, Role};
use super::super::statistics::Figure;
use super::super::table::{Column, spreads};
use super::Arguments;
use muse_program::bars::Bar;

/// A library's runs.
#[derive(Clone, Debug, Serialize)]
struct Row {
    library: &'static str,
    runs: Vec<Run>,
}

/// One run with moving bodies, and one where they stand still.
#[derive(Clone, Copy, Debug, Serialize)]
struct Run {
    moving: Sample,
    still: Sample,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// UDP payload to all clients, per body, client and tick.
    bytes: f64,
    /// The same with IP and UDP headers.
    ip_bytes: f64,
    /// CPU time of the server, in milliseconds per client and tick.
    server_ms: f64,
    /// Changes that clients saw, of those that there were.
    updates: f64,
}

/// The report of the clients' program.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Watched {
    updates: u64,
    seconds: f64,
}

/// The server's and nobody else's result.
#[derive(Deserialize)]
struct Nothing {}

impl Run {
    fn server_ms(&self) -> f64 {
        self.moving.server_ms - self.still.server_ms
    }
}

/// Measures all three, alternating, and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let programs = build_bevy(&LIBRARIES.map(|library| library.1))?;
    let surroundings = Surroundings::detect();
    let (rounds, seconds) = if arguments.quick { (1, 4) } else { (3, 8) };
    let mut rows = LIBRARIES.map(|(library, _)| Row {
        library,
        runs: Vec::new(),
    });
    for round in 1..=rounds {
        for (row, program) in rows.iter_mut().zip(&programs) {
            eprintln!("round {round} of {rounds}: {}", row.library);
            let sample = |option| measure(surroundings, row.library, program, seconds, option);
            let (moving, still) = (sample(None)?, sample(Some("--still"))?);
            row.runs.push(Run { moving, still });
        }
    }
    println!(
        "{BODIES} bodies that all move, 20 ticks a second, {CLIENTS} clients, round trips 20 to 160 ms, 2 % loss"
    );
    let lines = rows.iter().map(|row| (row.library, &row.runs[..]));
    print!("{}", spreads("plugin", &COLUMNS, lines));
    arguments.output.finish(&rows, &bars(&rows))
}

/// Runs a library's server, its clients and the proxies between them.
fn measure(
    surroundings: Surroundings,
    library: &str,
    program: &PathBuf,
    seconds: u64,
    option: Option<&str>,
) -> anyhow::Result<Sample> {
    let mut programs = Programs::new(surroundings);
    let mut words: Vec<OsString> = vec![program.into(), "server".into()];
    words.extend(option.map(OsString::from));
    let mut server = programs.start(&format!("{library}'s server"), &words)?;
    let port = server.port(START_MAX)?;
    let mut proxies = Vec::new();
    words = vec![program.into(), "client".into()];
    words.extend(["--seconds".into(), seconds.to_string().into()]);
    for client in 0..CLIENTS {
        // Round trips are spread evenly from 20 to 160 ms.
        let (seed, delay) = (client + 1, 10 + 70 * client / (CLIENTS - 1));
        let line = format!(
            "bench-proxy --server 127.0.0.1:{port} --seed {seed} --delay-ms {delay} --loss 0.02"
        );
        let mut proxy = programs.muse("a proxy", usize::MAX, &line)?;
        words.push(format!("127.0.0.1:{}", proxy.port(START_MAX)?).into());
        proxies.push(proxy);
    }
    let mut clients = programs.start(&format!("{library}'s clients"), &words)?;
    clients.expect("connected", CONNECT_MAX)?;
    std::thread::sleep(SETTLE);

    for proxy in &mut proxies {
        proxy.say("go")?;
        proxy.expect("started", START_MAX)?;
    }
    let cpu = server.cpu_seconds()?;
    clients.say("go")?;
    clients.expect("done", START_MAX + Duration::from_secs(seconds))?;
    let cpu = server.cpu_seconds()? - cpu;
    let reports = proxies.into_iter().map(Role::stop);
    let reports: Vec<ProxyReport> = reports.collect::<anyhow::Result<_>>()?;
    let watched: Watched = clients.stop()?;
    let _: Nothing = server.stop()?;

    let rounds = watched.seconds * TICKS_PER_SECOND * CLIENTS as f64;
    let ip_bytes: u64 = reports.iter().map(|report| report.server_ip_bytes).sum();
    let datagrams: u64 = reports.iter().map(|report| report.server_datagrams).sum();
    let per_body = |bytes: u64| bytes as f64 / (rounds * BODIES);
    Ok(Sample {
        bytes: per_body(ip_bytes - datagrams * IP_AND_UDP),
        ip_bytes: per_body(ip_bytes),
        server_ms: cpu * 1e3 / rounds,
        updates: watched.updates as f64 / (rounds * BODIES),
    })
}

const COLUMNS: [Column<Run>; 6] = [
    ("bytes/entity/tick", 2, |run| run.moving.bytes),
    ("with IP", 2, |run| run.moving.ip_bytes),
    ("server ms/client/tick", 4, Run::server_ms),
    ("with idle loop", 4, |run| run.moving.server_ms),
    ("idle loop", 4, |run| run.still.server_ms),
    ("updates seen %", 1, |run| run.moving.updates * 100.0),
];

impl Row {
    fn median(&self, column: usize) -> Option<f64> {
        Figure::median(self.runs.iter().map(COLUMNS[column].2))
    }
}

fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for peer in &rows[1..] {
        let ratio = |column| Some(rows[0].median(column)? / peer.median(column)?);
        let name = |what: &str| format!("bevy_{what}_to_{}", peer.library);
        bars.push(Bar::at_most(name("bytes"), ratio(0), 0.2));
        bars.push(Bar::at_most(name("cpu"), ratio(2), 0.5));
    }
    let updates = rows[0].median(5);
    bars.push(Bar::at_least("bevy_updates_percent", updates, 90.0));
    bars
}

/// Names in tables, and programs. Muse comes first.
const LIBRARIES: [(&str, &str); 3] = [
    ("muse", "bevy-muse"),
    ("lightyear", "bevy-lightyear"),
    ("bevy_replicon", "bevy-replicon"),
];
const CLIENTS: u64 = 8;
const BODIES: f64 = 1_000.0;
const TICKS_PER_SECOND: f64 = 20.0;
const IP_AND_UDP: u64 = 28;
const START_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(35);
/// Joining leaves work behind.
const SETTLE: Duration = Duration::from_secs(2);
