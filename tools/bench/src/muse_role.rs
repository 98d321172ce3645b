//! Muse in the workloads: an endpoint and its UDP driver with their defaults, encryption on, the server's key pinned.
//!
//! Channel 0 is unreliable, channel 1 reliable and ordered; `--mode` chooses what that one pays for latency under loss.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use muse_bench_workload::{Clients, Failure, Kind, Library, Options, Peer, Sent};
use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions, fill_random};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Entropy, Event, Repair,
    SendError, ServerKey, ServerOptions,
};
use muse_wire::{Instant, Machine};
use rustc_hash::FxHashMap;

/// The role's own command line, which all programs under test share.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct RoleArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Runs a role of a workload with Muse.
pub(crate) fn run(arguments: RoleArguments) -> ExitCode {
    muse_bench_workload::run::<Muse>(arguments.words.into_iter())
}

struct Muse;

impl Library for Muse {
    type Server = Nodes;
    type Clients = Nodes;

    fn serve(options: &Options) -> Result<(Nodes, u16), Failure> {
        let mut nodes = Nodes::new(options, None)?;
        nodes.open(options.port)?;
        let node = &mut nodes.nodes[0];
        node.endpoint.listen(ServerOptions::new(server_key()));
        let port = node.driver.local_addr()?.port();
        Ok((nodes, port))
    }

    fn clients(options: &Options, server: SocketAddr) -> Result<Nodes, Failure> {
        Nodes::new(options, Some(server))
    }
}

/// The server's one endpoint, or one for each client; and the connections in the order they came about.
struct Nodes {
    config: Config,
    server: Option<SocketAddr>,
    nodes: Vec<Node>,
    connections: Vec<Connection>,
    numbers: FxHashMap<(usize, ConnectionId), usize>,
    connected: usize,
    clock: Clock,
    now: Instant,
    message: Vec<u8>,
}

/// An endpoint and its socket.
struct Node {
    endpoint: Endpoint,
    driver: UdpDriver,
}

#[derive(Clone, Copy)]
struct Connection {
    node: usize,
    id: ConnectionId,
}

impl Nodes {
    fn new(options: &Options, server: Option<SocketAddr>) -> Result<Self, Failure> {
        Ok(Self {
            config: config(&options.mode)?,
            server,
            nodes: Vec::new(),
            connections: Vec::new(),
            numbers: FxHashMap::default(),
            connected: 0,
            clock: Clock::start(),
            now: Instant::ZERO,
            message: Vec::new(),
        })
    }

    fn open(&mut self, port: u16) -> Result<(), Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        self.nodes.push(Node {
            endpoint: Endpoint::new(self.config.clone(), SystemEntropy),
            driver: UdpDriver::bind(address, &UdpOptions::default())?,
        });
        Ok(())
    }

    fn number(&mut self, node: usize, id: ConnectionId) -> usize {
        *self.numbers.entry((node, id)).or_insert_with(|| {
            self.connections.push(Connection { node, id });
            self.connections.len() - 1
        })
    }
}

impl Clients for Nodes {
    fn add(&mut self) -> Result<(), Failure> {
        let Some(server) = self.server else {
            return Err(Failure::new("a server adds no clients"));
        };
        self.open(0)?;
        let node = self.nodes.len() - 1;
        let how = Connect::pinned(server_key().public());
        let id = self.nodes[node]
            .endpoint
            .connect(self.clock.now(), server, how)
            .map_err(|error| Failure::new(error.to_string()))?;
        self.number(node, id);
        Ok(())
    }
}

impl Peer for Nodes {
    fn connected(&self) -> usize {
        self.connected
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        self.now = self.clock.now();
        let mut message = std::mem::take(&mut self.message);
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            report(node.driver.receive(self.now, &mut node.endpoint));
            while let Some(event) = self.nodes[index].endpoint.poll_event(&mut message) {
                match event {
                    Event::Message {
                        connection,
                        channel,
                        payload,
                    } => {
                        let kind = match channel {
                            UNRELIABLE => Kind::Unreliable,
                            _ => Kind::Reliable,
                        };
                        received(self.number(index, connection), kind, payload);
                    }
                    Event::Connected { connection, .. } => {
                        self.number(index, connection);
                        self.connected += 1;
                    }
                    other => eprintln!("muse: {other:?}"),
                }
            }
        }
        self.message = message;
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        let Connection { node, id } = self.connections[connection];
        let channel = match kind {
            Kind::Unreliable => UNRELIABLE,
            Kind::Reliable => RELIABLE,
        };
        match self.nodes[node]
            .endpoint
            .send(self.now, id, channel, message)
        {
            Ok(_) => Sent::Accepted,
            Err(SendError::QueueFull { .. }) => Sent::Full,
            Err(error) => {
                eprintln!("muse: {error}");
                Sent::Full
            }
        }
    }

    fn flush(&mut self) {
        for Node { endpoint, driver } in &mut self.nodes {
            if endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
                endpoint.handle_timeout(self.now);
            }
            report(driver.flush(self.now, endpoint));
        }
    }

    fn wait(&mut self, timeout: Duration) {
        // A loop that waits, unlike one that ticks, lets acknowledgements and repairs out at once.
        self.now = self.clock.now();
        self.flush();
        let Node { endpoint, driver } = &mut self.nodes[0];
        let due = endpoint.poll_timeout().map(|due| self.clock.until(due));
        let timeout = muse_wire::Duration::from(timeout);
        report(driver.wait(due.unwrap_or(timeout).min(timeout)));
    }
}

/// Randomness for keys from the operating system.
struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        fill_random(bytes).expect("a system that runs benchmarks has randomness");
    }
}

pub(crate) fn config(mode: &str) -> Result<Config, Failure> {
    let repair = match mode {
        "" | "balanced" => Repair::Balanced,
        "frugal" => Repair::Frugal,
        "fast" => Repair::Fast,
        _ => return Err(Failure::new("--mode is frugal, balanced or fast")),
    };
    Config::new(PROTOCOL)
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered).repair(repair))
        .build()
        .map_err(|error| Failure::new(error.to_string()))
}

/// The key of every benchmark's server: both processes know it, nobody relies on it.
pub(crate) fn server_key() -> ServerKey {
    ServerKey::from_bytes([0x6d; 32])
}

fn report<T>(outcome: std::io::Result<T>) {
    if let Err(error) = outcome {
        eprintln!("muse: {error}");
    }
}

const PROTOCOL: u64 = 0x6d75_7365_2062_656e;
pub(crate) const UNRELIABLE: u8 = 0;
pub(crate) const RELIABLE: u8 = 1;
