//! `muse bench netcode`: what replication costs in bytes and in CPU time.
//!
//! N1: 1,000 bodies that all move at 20 ticks a second, 8 clients with round trips of 20 to 160 ms, 2 % loss and different
//! interest. First everything runs in virtual time in this process: bytes are counted, and every state that a client decodes is
//! compared with the server's. Then the server's part runs again alone with the same packets of its clients, for its CPU time; what is
//! done once for all clients is measured apart. N2: the same with 200 visible of many. Plugins for Bevy are measured in [`bevy`].

mod bevy;
mod cost;
mod simulation;

use std::net::UdpSocket;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::cubes::motion;
use super::results::Output;
use super::statistics::Figure;
use cost::measure;
use muse_program::bars::Bar;
use simulation::{Interest, Setup, TICKS_WARM, Traffic, simulate};

/// The duration, and what to print.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench netcode --bars\n         muse bench netcode --bevy --bars   the plugin for Bevy beside its peers\n\nTimes are CPU time of a release build; run them on a quiet machine."
)]
pub(crate) struct Arguments {
    /// Fewer ticks and runs.
    #[arg(long)]
    quick: bool,
    /// Let the server send its packets by UDP over loopback, and count that.
    #[arg(long)]
    udp: bool,
    /// Measure Muse's plugin for Bevy beside lightyear and bevy_replicon instead, over UDP and in real time.
    #[arg(long, conflicts_with = "udp")]
    bevy: bool,
    #[command(flatten)]
    output: Output,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
struct Report {
    load_average: Option<f64>,
    udp: bool,
    n1: Row,
    n2: Vec<Row>,
    coder: Vec<motion::Figures>,
}

/// One setting.
#[derive(Clone, Debug, Serialize)]
struct Row {
    entities: usize,
    clients: usize,
    seen: f64,
    /// Per entity that a client sees, and tick, with all headers down to IP's.
    bytes_per_entity: f64,
    /// The same of the snapshot packets alone.
    payload_bytes_per_entity: f64,
    packets_per_tick: f64,
    shared_ms: Figure,
    client_ms: Figure,
    /// Both, per client and tick.
    server_ms: f64,
    rows_compared: u64,
    packets_refused: u64,
}

/// Runs and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.bevy {
        return bevy::run(arguments);
    }
    let socket = if arguments.udp { Some(sink()?) } else { None };
    let sender = socket.as_ref().map(|(sender, _)| sender);
    let ticks = TICKS_WARM + if arguments.quick { 60 } else { 200 };
    let runs = if arguments.quick { 3 } else { 7 };
    let setup = Setup {
        entities: 1_000,
        clients: 8,
        ticks,
        interest: Interest::Nearly,
    };
    let n1 = Row::measure(setup, runs, sender)?;
    println!("{}", n1.line("n1"));
    let mut n2 = Vec::new();
    for entities in [1_000, 10_000] {
        for clients in [1, 8, 64] {
            let setup = Setup {
                entities,
                clients,
                ticks: TICKS_WARM + if arguments.quick { 20 } else { 60 },
                interest: Interest::Some(200),
            };
            let row = Row::measure(setup, runs.min(3), sender)?;
            println!("{}", row.line("n2"));
            n2.push(row);
        }
    }
    let coder = motion::run(arguments.quick)?;
    for figures in &coder {
        println!("{}", figures.line());
    }
    let report = Report {
        load_average: load_average(),
        udp: arguments.udp,
        n1,
        n2,
        coder,
    };
    if let Some(load) = report.load_average {
        println!("load average of the last minute: {load}");
    }
    arguments.output.finish(&report, &bars(&report))
}

impl Row {
    fn measure(setup: Setup, runs: usize, socket: Option<&UdpSocket>) -> anyhow::Result<Self> {
        let (script, traffic) = simulate(setup)?;
        let cost = measure(setup, &script, runs, socket)?;
        let rounds = (setup.clients * (setup.ticks - TICKS_WARM)) as f64;
        let Traffic {
            packets,
            bytes,
            seen,
            rows_compared,
            packets_refused,
        } = traffic;
        let headers = packets * HEADERS;
        Ok(Self {
            entities: setup.entities,
            clients: setup.clients,
            seen: seen as f64 / rounds,
            bytes_per_entity: (bytes + headers) as f64 / seen as f64,
            payload_bytes_per_entity: bytes as f64 / seen as f64,
            packets_per_tick: packets as f64 / rounds,
            shared_ms: cost.shared,
            client_ms: cost.per_client,
            server_ms: cost.per_client.median + cost.shared.median / setup.clients as f64,
            rows_compared,
            packets_refused,
        })
    }

    fn line(&self, name: &str) -> String {
        let Self {
            entities,
            clients,
            seen,
            bytes_per_entity,
            payload_bytes_per_entity,
            packets_per_tick,
            server_ms,
            rows_compared,
            ..
        } = self;
        let [shared, client] = [self.shared_ms, self.client_ms].map(|figure| {
            let Figure { median, min, max } = figure;
            (format!("{median:.3} ms"), format!("({min:.3} to {max:.3})"))
        });
        format!(
            "{name}: {entities} entities, {clients} clients that see {seen:.0}: {bytes_per_entity:.2} bytes per entity and tick with all headers ({payload_bytes_per_entity:.2} without, {packets_per_tick:.1} packets), \
             server {} a tick shared {} and {} per client {}, together {server_ms:.3} ms per client and tick; {rows_compared} states decoded exactly",
            shared.0, shared.1, client.0, client.1
        )
    }
}

fn bars(report: &Report) -> Vec<Bar> {
    let crowd = |clients| {
        let find = |entities| {
            let mut rows = report.n2.iter();
            rows.find(|row: &&Row| row.entities == entities && row.clients == clients)
        };
        Some(find(10_000)?.client_ms.median / find(1_000)?.client_ms.median)
    };
    vec![
        Bar::at_most("n1_bytes_per_entity", report.n1.bytes_per_entity, 7.0),
        Bar::at_most("n1_server_ms", report.n1.server_ms, 0.25),
        // Ten times the entities, as many visible: caches are all that may be felt.
        Bar::at_most("n2_growth_with_entities", crowd(64), 2.0),
    ]
}

/// A socket connected to one that nobody reads.
fn sink() -> anyhow::Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Of a datagram: IP and UDP 28 bytes, the transport's header 7, its tag 16, the message's 4.
const HEADERS: u64 = 28 + 7 + 16 + 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_exact_and_small() {
        let setup = Setup {
            entities: 200,
            clients: 3,
            ticks: TICKS_WARM + 30,
            interest: Interest::Nearly,
        };
        let (script, traffic) = simulate(setup).expect("exact states");
        let states = 200 * 3 * 30;
        assert!(traffic.rows_compared > states * 8 / 10, "{traffic:?}");
        assert!(traffic.bytes < traffic.seen * 7, "{traffic:?}");
        assert_eq!(traffic.packets_refused, 0);
        let cost = measure(setup, &script, 1, None).expect("the same answers");
        assert!(cost.per_client.median >= 0.0);
    }
}
