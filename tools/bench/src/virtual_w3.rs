//! W3 and W4 in virtual time: latency and bytes of a reliable stream over a bad network, pooled over many seeds.
//!
//! Judged here rather than over real sockets because a seed replays and a hundred runs take seconds.

use std::net::SocketAddr;
use std::ops::Range;

use muse_netem::{Conditions, Jitter, Network, NodeId, Simulation};
use muse_program::parallel::in_parallel;
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, Repair, SeededEntropy,
    ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};

use super::statistics::quantile;

/// The stream that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// The bandwidth to pay for latency.
    pub(crate) repair: Repair,
    /// Channels over which messages go in turn.
    pub(crate) channels: u8,
    /// Message sizes, drawn uniformly.
    pub(crate) size: (usize, usize),
    /// Messages a second.
    pub(crate) rate: u64,
    /// Duration.
    pub(crate) seconds: u64,
}

impl Stream {
    /// W3's: 60 messages of 100 bytes a second on one channel for 60 s.
    pub(crate) fn w3(repair: Repair) -> Self {
        Self {
            repair,
            channels: 1,
            size: (100, 100),
            rate: 60,
            seconds: 60,
        }
    }
}

/// The network of W3: 50 ms + uniform 0..10 ms one way, independent loss.
pub(crate) fn w3_network(loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(loss)
}

/// The network of W4: jitter 0..60 ms that reorders, Gilbert-Elliott loss of 5 % in bursts of 4.
pub(crate) fn w4_network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(50))
        .jitter(Jitter::Uniform(Duration::from_millis(60)))
        .burst_loss(0.05, 4.0)
}

/// The results of all seeds together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pooled {
    /// Latencies in microseconds, sorted.
    latencies: Vec<u64>,
    /// Messages sent.
    pub(crate) sent: u64,
    ip_bytes: u64,
    datagrams: u64,
    seeds: u64,
}

impl Pooled {
    /// The latency that a share of messages does not exceed, in milliseconds.
    pub(crate) fn percentile_ms(&self, share: f64) -> f64 {
        let micros = quantile(&self.latencies, share);
        micros.map_or(f64::NAN, |micros| micros as f64 / 1e3)
    }

    /// Mean IP bytes of a run, both ways, headers included, in kB.
    pub(crate) fn ip_kb(&self) -> f64 {
        self.ip_bytes as f64 / self.seeds.max(1) as f64 / 1e3
    }

    /// Mean datagrams of a run, both ways.
    pub(crate) fn datagrams(&self) -> f64 {
        self.datagrams as f64 / self.seeds.max(1) as f64
    }

    fn and(mut self, mut other: Self) -> Self {
        self.latencies.append(&mut other.latencies);
        self.sent += other.sent;
        self.ip_bytes += other.ip_bytes;
        self.datagrams += other.datagrams;
        self.seeds += other.seeds;
        self
    }

    /// Messages delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.latencies.len() as u64
    }
}

/// Runs `stream` over `network` once per seed, on all cores. The outcome does not depend on how many there are.
pub(crate) fn run(
    stream: Stream,
    network: &Conditions,
    seeds: Range<u64>,
    done: impl Fn() + Sync,
) -> Pooled {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    run_on(threads, stream, network, seeds, &done)
}

fn run_on(
    threads: usize,
    stream: Stream,
    network: &Conditions,
    seeds: Range<u64>,
    done: &(impl Fn() + Sync),
) -> Pooled {
    let count = (seeds.end - seeds.start) as usize;
    let parts = in_parallel(count, threads, |number| {
        let mut pooled = Pooled::default();
        Run::new(stream, network, seeds.start + number as u64).run(&mut pooled);
        done();
        pooled
    });
    let mut pooled = parts.into_iter().fold(Pooled::default(), Pooled::and);
    // Which thread ran which seed is left to chance: sorted, the pool no longer shows it.
    pooled.latencies.sort_unstable();
    pooled
}

struct Run {
    stream: Stream,
    simulation: Simulation<Endpoint>,
    server: NodeId,
    client: NodeId,
    connection: ConnectionId,
    rng: fastrand::Rng,
}

impl Run {
    fn new(stream: Stream, conditions: &Conditions, seed: u64) -> Self {
        let mut config = Config::new(0x5733);
        for _ in 0..stream.channels {
            config =
                config.channel(ChannelConfig::new(Delivery::ReliableOrdered).repair(stream.repair));
        }
        let config = config.build().expect("a sensible config");
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        let public = key.public();
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed ^ 1));
        server.listen(ServerOptions::new(key));
        let mut client = Endpoint::new(config, SeededEntropy::danger_seeded(seed ^ 2));
        let here = SocketAddr::from(([192, 0, 2, 1], 1_000));
        let there = SocketAddr::from(([192, 0, 2, 2], 2_000));
        let connection = client
            .connect(Instant::ZERO, there, Connect::pinned(public))
            .expect("a free slot");
        let mut network = Network::new(seed);
        network.set_default(conditions.clone());
        let mut simulation = Simulation::new(network);
        let server = simulation.add(there, server);
        let client = simulation.add(here, client);
        let rng = fastrand::Rng::with_seed(seed);
        Self {
            stream,
            simulation,
            server,
            client,
            connection,
            rng,
        }
    }

    fn run(&mut self, pooled: &mut Pooled) {
        self.wait_until_connected();
        let start = self.simulation.now();
        let before = self.bytes();
        let count = self.stream.rate * self.stream.seconds;
        let mut payload = [0; 2_048];
        for index in 0..count {
            let at = start + Duration::from_micros(index * 1_000_000 / self.stream.rate);
            self.advance(at, pooled);
            let len = self
                .rng
                .usize(self.stream.size.0.max(8)..=self.stream.size.1);
            payload[..8].copy_from_slice(&at.as_micros().to_le_bytes());
            let channel = (index % u64::from(self.stream.channels)) as u8;
            let client = self.simulation.node_mut(self.client);
            client
                .send(at, self.connection, channel, &payload[..len])
                .expect("room in the queue");
        }
        let end = self.simulation.now() + Duration::from_secs(5);
        self.advance(end, pooled);
        let after = self.bytes();
        pooled.sent += count;
        pooled.ip_bytes += after.0 - before.0;
        pooled.datagrams += after.1 - before.1;
        pooled.seeds += 1;
    }

    fn wait_until_connected(&mut self) {
        let mut buffer = Vec::new();
        let client = self.client;
        self.simulation
            .run_until_done(Instant::from_secs(20), |simulation| {
                let event = simulation.node_mut(client).poll_event(&mut buffer);
                matches!(event, Some(Event::Connected { .. }))
            });
    }

    fn advance(&mut self, until: Instant, pooled: &mut Pooled) {
        let server = self.server;
        let mut buffer = Vec::new();
        self.simulation.run_until(until, |simulation| {
            let now = simulation.now();
            while let Some(event) = simulation.node_mut(server).poll_event(&mut buffer) {
                if let Event::Message { payload, .. } = event
                    && let Some(sent) = payload.first_chunk()
                {
                    pooled
                        .latencies
                        .push(now.as_micros() - u64::from_le_bytes(*sent));
                }
            }
        });
    }

    fn bytes(&self) -> (u64, u64) {
        let network = self.simulation.network();
        let (server, client) = (network.stats(self.server), network.stats(self.client));
        (
            server.sent.ip_bytes + client.sent.ip_bytes,
            server.sent.datagrams + client.sent.datagrams,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_does_not_depend_on_the_number_of_threads() {
        let stream = Stream {
            seconds: 2,
            ..Stream::w3(Repair::Balanced)
        };
        let run = |threads, seeds| run_on(threads, stream, &w3_network(0.05), seeds, &|| ());
        let one = run(1, 0..4);
        assert_eq!((one.sent, one.delivered()), (480, 480));
        assert_eq!(one, run(3, 0..4));
        assert_ne!(one, run(1, 4..8));
    }
}
