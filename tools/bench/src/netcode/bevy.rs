//! `muse bench netcode --bevy`: Muse's plugin for Bevy beside lightyear and bevy_replicon, all on the scene N1.
//!
//! Each is a server program with 1,000 bodies that all move, 20 ticks a second, and a program with eight clients, behind a proxy for each client
//! (round trips of 20 to 160 ms, 2 % loss each way). Bytes are UDP payload that servers gave to the proxies. CPU time is the server's between two
//! marks, less that of the same server with the same clients while nothing moves.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::super::bars::{Bar, judge};
use super::super::build::build_bevy;
use super::super::counters::cpu_time;
use super::super::isolation::Surroundings;
use super::super::proxy::ProxyReport;
use super::super::results::write_json;
use super::super::role::Role;
use super::super::statistics::Figure;
use super::super::table::write_aligned;
use super::Arguments;

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
    for warning in surroundings.warnings() {
        eprintln!("warning: {warning}");
    }
    let (rounds, seconds) = if arguments.quick { (1, 4) } else { (3, 8) };
    let mut rows = LIBRARIES.map(|(library, _)| Row {
        library,
        runs: Vec::new(),
    });
    for round in 1..=rounds {
        for (row, program) in rows.iter_mut().zip(&programs) {
            eprintln!("round {round} of {rounds}: {}", row.library);
            let sample = |still| measure(&surroundings, row.library, program, seconds, still);
            let (moving, still) = (sample(false)?, sample(true)?);
            row.runs.push(Run { moving, still });
        }
    }
    print!("{}", render(&rows));
    if let Some(path) = &arguments.json {
        write_json(path, &rows)?;
    }
    Ok(match arguments.bars {
        true => judge(&bars(&rows)),
        false => ExitCode::SUCCESS,
    })
}

/// Runs a library's server, its clients and the proxies between them.
fn measure(
    surroundings: &Surroundings,
    library: &str,
    program: &PathBuf,
    seconds: u64,
    still: bool,
) -> anyhow::Result<Sample> {
    let mut words: Vec<OsString> = vec![program.into(), "server".into()];
    words.extend(still.then(|| "--still".into()));
    let mut server = Role::start(format!("{library}'s server"), surroundings.first(&words))?;
    let port: u16 = server.expect("ready", START_MAX)?.parse()?;
    let first = server.pid();
    surroundings.raise(first);
    let mut proxies = Vec::new();
    words = vec![program.into(), "client".into()];
    words.extend(["--seconds".into(), seconds.to_string().into()]);
    for client in 0..CLIENTS {
        let mut proxy = start_proxy(surroundings, first, port, client)?;
        let port: u16 = proxy.expect("ready", START_MAX)?.parse()?;
        surroundings.raise(proxy.pid());
        words.push(format!("127.0.0.1:{port}").into());
        proxies.push(proxy);
    }
    let name = format!("{library}'s clients");
    let mut clients = Role::start(name, surroundings.further(first, &words))?;
    clients.expect("connected", CONNECT_MAX)?;
    surroundings.raise(clients.pid());
    std::thread::sleep(SETTLE);

    for proxy in &mut proxies {
        proxy.say("go")?;
        proxy.expect("started", START_MAX)?;
    }
    let cpu = cpu_time(first)?;
    clients.say("go")?;
    clients.expect("done", START_MAX + Duration::from_secs(seconds))?;
    let cpu = cpu_time(first)? - cpu;
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
        server_ms: cpu.as_secs_f64() * 1e3 / rounds,
        updates: watched.updates as f64 / (rounds * BODIES),
    })
}

/// Round trips are spread evenly from 20 to 160 ms.
fn start_proxy(
    surroundings: &Surroundings,
    first: u32,
    port: u16,
    client: u64,
) -> anyhow::Result<Role> {
    let muse = std::env::current_exe().context("this program's own path")?;
    let delay = 10 + 70 * client / (CLIENTS - 1);
    let mut words: Vec<OsString> = vec![muse.into(), "bench-proxy".into()];
    words.extend(["--server".into(), format!("127.0.0.1:{port}").into()]);
    words.extend(["--seed".into(), (client + 1).to_string().into()]);
    words.extend(["--delay-ms".into(), delay.to_string().into()]);
    words.extend(["--loss", "0.02"].map(OsString::from));
    Role::start("a proxy".to_owned(), surroundings.further(first, &words))
}

/// The columns: heading, digits, and how the figure follows from a run.
type Column = (&'static str, usize, fn(&Run) -> f64);
const COLUMNS: [Column; 6] = [
    ("bytes/entity/tick", 2, |run| run.moving.bytes),
    ("with IP", 2, |run| run.moving.ip_bytes),
    ("server ms/client/tick", 4, Run::server_ms),
    ("with idle loop", 4, |run| run.moving.server_ms),
    ("idle loop", 4, |run| run.still.server_ms),
    ("updates seen %", 1, |run| run.moving.updates * 100.0),
];

fn render(rows: &[Row]) -> String {
    let mut cells = vec![vec!["plugin".to_owned()]];
    cells[0].extend(COLUMNS.iter().map(|column| column.0.to_owned()));
    for row in rows {
        let mut line = vec![row.library.to_owned()];
        for (_, digits, value) in COLUMNS {
            line.push(row.figure(value).map_or(String::new(), |figure| {
                format!(
                    "{:.digits$} ({:.digits$}..{:.digits$})",
                    figure.median, figure.min, figure.max
                )
            }));
        }
        cells.push(line);
    }
    let mut text = format!(
        "{BODIES} bodies that all move, 20 ticks a second, {CLIENTS} clients, round trips 20 to 160 ms, 2 % loss\n"
    );
    write_aligned(&mut text, &cells);
    text
}

impl Row {
    fn figure(&self, value: fn(&Run) -> f64) -> Option<Figure> {
        Figure::of(self.runs.iter().map(value))
    }

    fn median(&self, column: usize) -> Option<f64> {
        self.figure(COLUMNS[column].2).map(|figure| figure.median)
    }
}

fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for peer in &rows[1..] {
        let ratio = |column| Some(rows[0].median(column)? / peer.median(column)?);
        let name = |what: &str| format!("bevy_{what}_to_{}", peer.library);
        bars.push(Bar::at_most(name("bytes"), ratio(0), Some(0.2)));
        bars.push(Bar::at_most(name("cpu"), ratio(2), Some(0.5)));
    }
    bars.push(Bar::at_least(
        "bevy_updates_percent",
        rows[0].median(5),
        90.0,
    ));
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
