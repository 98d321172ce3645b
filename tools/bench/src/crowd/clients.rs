//! The crowd's clients: a few sockets with many connections each, in one thread.

use std::net::SocketAddr;

use anyhow::ensure;
use clap::Args;
use muse_bench_workload::control::Control;
use muse_drivers::{Clock, Driver, SystemEntropy, UdpDriver};
use muse_transport::{Connect, ConnectionId, Endpoint, Event};
use muse_wire::{Duration, Instant, Machine};
use serde::{Deserialize, Serialize};

use crate::statistics::quantile;

use super::{
    Counts, MESSAGE_LEN, RELIABLE, UNRELIABLE, config, localhost, server_key, socket_options,
};

/// The number of clients and their messages.
#[derive(Args)]
pub(crate) struct ClientsArguments {
    /// The server.
    #[arg(long)]
    server: SocketAddr,
    /// Connections.
    #[arg(long)]
    clients: usize,
    /// Sockets that they share.
    #[arg(long, default_value_t = 10)]
    sockets: usize,
    /// Messages a second of each.
    #[arg(long)]
    rate: u64,
    /// Every so many messages one is reliable; 0 for none.
    #[arg(long, default_value_t = 0)]
    reliable_every: u64,
    /// Seconds of traffic.
    #[arg(long)]
    seconds: u64,
    /// Seconds of traffic before anything is counted.
    #[arg(long, default_value_t = 0)]
    warm_up_seconds: u64,
}

/// The clients' counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientsReport {
    /// Messages sent.
    pub(crate) sent: Counts,
    /// Messages that came back.
    pub(crate) received: Counts,
    /// Messages that a queue had no room for.
    pub(crate) refused: u64,
    /// Largest delay of the clients behind their own schedule.
    pub(crate) lag_ms_max: f64,
    /// Connections that were interrupted or ended.
    pub(crate) cut: u64,
    /// Time from sending a message to its echo, in 99 of 100 cases at most.
    pub(crate) round_trip_ms_p99: f64,
}

/// Connects, waits for `go`, talks, waits for the last echoes, reports.
pub(super) fn run(arguments: &ClientsArguments) -> anyhow::Result<()> {
    let control = Control::start();
    let mut clients = Clients::new(arguments)?;
    clients.connect_all(arguments)?;
    clients.talk(arguments, arguments.warm_up_seconds)?;
    control.connected();
    while !control.has_started() {
        clients.turn()?;
    }
    clients.report = ClientsReport::default();
    clients.round_trips.clear();
    clients.talk(arguments, arguments.seconds)?;
    control.done();
    while !control.has_stopped() {
        clients.turn()?;
    }
    clients.report.round_trip_ms_p99 = quantile(&clients.round_trips, 0.99).unwrap_or_default();
    control.result(&clients.report);
    Ok(())
}

struct Clients {
    nodes: Vec<Node>,
    /// Node and connection.
    connections: Vec<(usize, ConnectionId)>,
    connected: usize,
    clock: Clock,
    next_turn: Instant,
    message: Vec<u8>,
    /// Of each message that came back, in milliseconds.
    round_trips: Vec<f64>,
    report: ClientsReport,
}

/// A socket and its endpoint.
struct Node {
    driver: UdpDriver,
    endpoint: Endpoint,
}

impl Clients {
    fn new(arguments: &ClientsArguments) -> anyhow::Result<Self> {
        let node = |_| {
            let driver = UdpDriver::bind(localhost(0), &socket_options())?;
            let endpoint = Endpoint::new(config()?, SystemEntropy::new()?);
            anyhow::Ok(Node { driver, endpoint })
        };
        let nodes = (0..arguments.sockets.max(1)).map(node);
        let clock = Clock::start();
        Ok(Self {
            nodes: nodes.collect::<anyhow::Result<_>>()?,
            connections: Vec::new(),
            connected: 0,
            next_turn: clock.now(),
            clock,
            message: Vec::new(),
            round_trips: Vec::new(),
            report: ClientsReport::default(),
        })
    }

    /// Connects a portion at a time, so that the server's limits on strangers are not what is measured.
    fn connect_all(&mut self, arguments: &ClientsArguments) -> anyhow::Result<()> {
        let deadline = self.clock.now() + CONNECT_MAX;
        while self.connected < arguments.clients {
            let now = self.clock.now();
            ensure!(now < deadline, "only {} connected", self.connected);
            while self.connections.len() < arguments.clients
                && self.connections.len() - self.connected < CONNECTING_MAX
            {
                let node = self.connections.len() % self.nodes.len();
                let how = Connect::pinned(server_key().public()).timeout(CONNECT_MAX);
                let endpoint = &mut self.nodes[node].endpoint;
                let id = endpoint.connect(now, arguments.server, how)?;
                self.connections.push((node, id));
            }
            self.turn()?;
        }
        Ok(())
    }

    fn talk(&mut self, arguments: &ClientsArguments, seconds: u64) -> anyhow::Result<()> {
        let start = self.clock.now();
        let count = self.connections.len() as u64;
        let total = count * arguments.rate * seconds;
        let each = 1_000_000.0 / (count * arguments.rate) as f64;
        let mut sent = 0;
        while sent < total {
            let now = self.clock.now();
            // Evenly spread, so that the figures do not depend on bursts that no real crowd makes.
            let passed = (now - start).as_micros() as f64;
            let due = ((passed / each) as u64 + 1).min(total);
            while sent < due {
                let (node, id) = self.connections[(sent % count) as usize];
                let turn = sent / count;
                // Connections take their turn at reliable messages at different times.
                let reliable = arguments.reliable_every > 0
                    && (turn + sent % count).is_multiple_of(arguments.reliable_every);
                let channel = if reliable { RELIABLE } else { UNRELIABLE };
                let endpoint = &mut self.nodes[node].endpoint;
                let mut message = [7; MESSAGE_LEN];
                message[..STAMP_LEN].copy_from_slice(&now.as_micros().to_le_bytes());
                match endpoint.send(now, id, channel, &message) {
                    Ok(_) => self.report.sent.add(channel),
                    Err(_) => self.report.refused += 1,
                }
                sent += 1;
            }
            self.turn()?;
        }
        let deadline = self.clock.now() + LAST_ECHO_MAX;
        while self.report.received != self.report.sent && self.clock.now() < deadline {
            self.turn()?;
        }
        Ok(())
    }

    /// Takes in and sends what there is on all sockets, then sleeps for the rest of the turn.
    fn turn(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        for Node { driver, endpoint } in &mut self.nodes {
            driver.receive(now, endpoint)?;
            while let Some(event) = endpoint.poll_event(&mut self.message) {
                match event {
                    Event::Message {
                        channel, payload, ..
                    } => {
                        self.report.received.add(channel);
                        if let Some(stamp) = payload.first_chunk::<STAMP_LEN>() {
                            let sent = Instant::from_micros(u64::from_le_bytes(*stamp));
                            let took = now - sent;
                            self.round_trips.push(took.as_micros() as f64 / 1e3);
                        }
                    }
                    Event::Connected { .. } => self.connected += 1,
                    _ => self.report.cut += 1,
                }
            }
            if endpoint.poll_timeout().is_some_and(|due| due <= now) {
                endpoint.handle_timeout(now);
            }
            driver.flush(now, endpoint)?;
        }
        self.next_turn += TURN;
        let now = self.clock.now();
        match self.next_turn > now {
            true => std::thread::sleep(self.clock.until(self.next_turn).into()),
            false => {
                let lag = (now - self.next_turn).as_micros() as f64 / 1e3;
                self.report.lag_ms_max = self.report.lag_ms_max.max(lag);
                self.next_turn = now;
            }
        }
        Ok(())
    }
}

const TURN: Duration = Duration::from_millis(5);
/// Bytes at the beginning of a message that say when it was sent.
const STAMP_LEN: usize = 8;
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// Attempts under way at a time.
const CONNECTING_MAX: usize = 100;
/// Time to wait for what is still on its way.
const LAST_ECHO_MAX: Duration = Duration::from_secs(3);
