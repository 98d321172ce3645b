//! The bad network of W3 and W4: a UDP proxy for one client that conditions each direction with [`Conditioner`].
//!
//! One thread takes in datagrams and stamps them, the other decides their fate and sends them on when their time has
//! come. It waits on a channel because a socket's own time-out is only as fine as the kernel's tick, up to 4 ms.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use anyhow::Context;
use clap::Args;
use muse_bench_workload::control::Control;
use muse_netem::{Conditioner, Conditions, Jitter, Packet};
use muse_wire::{Duration, Ecn, Instant};
use serde::{Deserialize, Serialize};

/// What the network does, the same in both directions.
#[derive(Args)]
pub(crate) struct ProxyArguments {
    /// Where datagrams of clients go.
    #[arg(long)]
    server: SocketAddr,
    /// What chance follows from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Delay one way.
    #[arg(long, default_value_t = 50)]
    delay_ms: u64,
    /// Further delay, uniform from zero to this.
    #[arg(long, default_value_t = 0)]
    jitter_ms: u64,
    /// Share of datagrams lost.
    #[arg(long, default_value_t = 0.0)]
    loss: f64,
    /// Mean length of a burst of losses; 1 for independent losses.
    #[arg(long, default_value_t = 1.0)]
    burst: f64,
}

/// What the two sides offered to the network since the run began, lost datagrams included.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProxyReport {
    /// Datagrams from the client.
    pub(crate) client_datagrams: u64,
    /// Their bytes with IP and UDP headers.
    pub(crate) client_ip_bytes: u64,
    /// Datagrams from the server.
    pub(crate) server_datagrams: u64,
    /// Their bytes with IP and UDP headers.
    pub(crate) server_ip_bytes: u64,
    /// Datagrams of both sides that were lost.
    pub(crate) lost: u64,
}

/// Runs the proxy until it is told to stop.
pub(crate) fn run(arguments: &ProxyArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no socket")?);
    let mut proxy = Proxy::new(arguments, Arc::clone(&socket));
    let arrivals = receive(Arc::clone(&socket));
    control.ready(socket.local_addr()?.port());
    let mut baseline = None;
    while !control.has_stopped() {
        if control.has_started() && baseline.is_none() {
            baseline = Some(proxy.totals());
            control.started();
        }
        proxy.turn(&arrivals)?;
    }
    control.result(&proxy.totals().since(&baseline.unwrap_or_default()));
    Ok(ExitCode::SUCCESS)
}

/// A datagram as it came in.
struct Arrival {
    at: std::time::Instant,
    from: SocketAddr,
    payload: Vec<u8>,
}

/// A datagram on its way: time of arrival, number of departure, destination and payload, compared in this order.
type Flight = (Instant, u64, SocketAddr, Vec<u8>);

struct Proxy {
    socket: Arc<UdpSocket>,
    server: SocketAddr,
    client: Option<SocketAddr>,
    to_server: Conditioner,
    to_client: Conditioner,
    started: std::time::Instant,
    /// What is on its way, by time of arrival and order of departure.
    in_flight: BinaryHeap<Reverse<Flight>>,
    departures: u64,
}

impl Proxy {
    fn new(arguments: &ProxyArguments, socket: Arc<UdpSocket>) -> Self {
        let base = Conditions::default()
            .delay(Duration::from_millis(arguments.delay_ms))
            .jitter(Jitter::Uniform(Duration::from_millis(arguments.jitter_ms)));
        let conditions = Arc::new(if arguments.burst > 1.0 {
            base.burst_loss(arguments.loss, arguments.burst)
        } else {
            base.loss(arguments.loss)
        });
        Self {
            socket,
            server: arguments.server,
            client: None,
            to_server: Conditioner::new(Arc::clone(&conditions), arguments.seed.wrapping_mul(2)),
            to_client: Conditioner::new(conditions, arguments.seed.wrapping_mul(2).wrapping_add(1)),
            started: std::time::Instant::now(),
            in_flight: BinaryHeap::new(),
            departures: 0,
        }
    }

    /// Waits for the next thing to do and does it.
    fn turn(&mut self, arrivals: &Receiver<Arrival>) -> anyhow::Result<()> {
        let now = self.clock(std::time::Instant::now());
        while let Some(Reverse((at, ..))) = self.in_flight.peek()
            && *at <= now
            && let Some(Reverse((_, _, to, payload))) = self.in_flight.pop()
        {
            // Whoever has gone away loses what was sent to him, as on any network.
            let _ = self.socket.send_to(&payload, to);
        }
        let wait = match self.in_flight.peek() {
            Some(Reverse((at, ..))) => at.saturating_since(now).min(TURN_MAX),
            None => TURN_MAX,
        };
        match arrivals.recv_timeout(std::time::Duration::from_micros(wait.as_micros())) {
            Ok(arrival) => self.condition(arrival),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the proxy's socket has failed"),
        }
        Ok(())
    }

    fn condition(&mut self, arrival: Arrival) {
        let (link, to) = if arrival.from == self.server {
            (&mut self.to_client, self.client)
        } else {
            self.client = Some(arrival.from);
            (&mut self.to_server, Some(self.server))
        };
        let Some(to) = to else { return };
        let now = Instant::from_micros(arrival.at.duration_since(self.started).as_micros() as u64);
        let packet = Packet::new(to, arrival.payload.len(), Ecn::NotCapable);
        for fate in link.offer(now, packet).arrivals() {
            self.departures += 1;
            let flight = (fate.at, self.departures, to, arrival.payload.clone());
            self.in_flight.push(Reverse(flight));
        }
    }

    fn totals(&self) -> ProxyReport {
        let (client, server) = (self.to_server.counters(), self.to_client.counters());
        ProxyReport {
            client_datagrams: client.offered,
            client_ip_bytes: client.offered_ip_bytes,
            server_datagrams: server.offered,
            server_ip_bytes: server.offered_ip_bytes,
            lost: client.lost() + server.lost(),
        }
    }

    fn clock(&self, now: std::time::Instant) -> Instant {
        Instant::from_micros(now.duration_since(self.started).as_micros() as u64)
    }
}

impl ProxyReport {
    /// Datagrams of both sides.
    pub(crate) fn datagrams(&self) -> u64 {
        self.client_datagrams + self.server_datagrams
    }

    /// Bytes of both sides with IP and UDP headers.
    pub(crate) fn ip_bytes(&self) -> u64 {
        self.client_ip_bytes + self.server_ip_bytes
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            client_datagrams: self.client_datagrams - earlier.client_datagrams,
            client_ip_bytes: self.client_ip_bytes - earlier.client_ip_bytes,
            server_datagrams: self.server_datagrams - earlier.server_datagrams,
            server_ip_bytes: self.server_ip_bytes - earlier.server_ip_bytes,
            lost: self.lost - earlier.lost,
        }
    }
}

/// Takes in datagrams in a thread of its own.
fn receive(socket: Arc<UdpSocket>) -> Receiver<Arrival> {
    let (sender, arrivals) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        loop {
            let Ok((len, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            let arrival = Arrival {
                at: std::time::Instant::now(),
                from,
                payload: buffer[..len].to_vec(),
            };
            if sender.send(arrival).is_err() {
                return;
            }
        }
    });
    arrivals
}

/// How often the proxy looks whether it is to stop.
const TURN_MAX: Duration = Duration::from_millis(20);
