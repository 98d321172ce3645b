//! Congestion control through whole connections: short queues alone, equal shares together.
//!
//! The controllers' own tests say more about them, and have a CUBIC beside them; here they drive real packets.

use std::net::SocketAddr;

use muse_netem::{Conditions, Jitter, Network, NodeId, PipeId, Queue, Simulation};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, Repair, SeededEntropy,
    ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};

/// Bytes of a message of the bulk transfers.
const MESSAGE: usize = 1_000;
/// Messages kept waiting, so that a flow always has something to send.
const WAITING: usize = 1_000;

/// A bottleneck with some senders before it and one receiver behind it.
struct Bottleneck {
    simulation: Simulation<Endpoint>,
    pipe: PipeId,
    receiver: NodeId,
    senders: Vec<(NodeId, ConnectionId)>,
    /// By sender, as the receiver names them.
    received: Vec<(ConnectionId, u64)>,
    connected: usize,
    queue_delays_ms: Vec<f64>,
}

impl Bottleneck {
    fn new(
        flows: u8,
        apart: Duration,
        rate: u64,
        rtt: Duration,
        buffer: Duration,
        repair: Repair,
        seed: u64,
    ) -> Self {
        let bulk = ChannelConfig::new(Delivery::ReliableOrdered).repair(repair);
        let config = Config::new(9).channel(bulk).build().expect("sensible");
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        let public = key.public();
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed ^ 100));
        server.listen(ServerOptions::new(key));
        let there = SocketAddr::from(([192, 0, 2, 200], 1));
        let mut network = Network::new(seed);
        // A little noise, as every path has; without it deterministic flows fall into step.
        let noise = Jitter::Uniform(Duration::from_micros(500));
        network.set_default(
            Conditions::default()
                .delay(rtt / 2)
                .mtu(1_500)
                .jitter(noise)
                .keep_order(true),
        );
        let pipe = network.add_pipe(Conditions::default().rate(rate).queue(Queue::Time(buffer)));
        let mut simulation = Simulation::new(network);
        let receiver = simulation.add(there, server);
        let mut senders = Vec::new();
        for flow in 0..flows {
            let entropy = SeededEntropy::danger_seeded(seed ^ u64::from(flow) << 32);
            let mut client = Endpoint::new(config.clone(), entropy);
            // The phase at which a flow starts in the others' cycles is most of what a seed changes here.
            let phase = Duration::from_micros(seed * 7_919 % 1_000_000);
            simulation.run_for((apart + phase) * u64::from(flow));
            let now = simulation.now();
            let connection = client
                .connect(now, there, Connect::pinned(public))
                .expect("free");
            let node = simulation.add(SocketAddr::from(([192, 0, 2, flow], 1)), client);
            simulation.network_mut().route(node, receiver, &[pipe]);
            senders.push((node, connection));
        }
        Self {
            simulation,
            pipe,
            receiver,
            senders,
            received: Vec::new(),
            connected: 0,
            queue_delays_ms: Vec::new(),
        }
    }

    /// Lets all flows send as fast as they may until `until`.
    fn run(&mut self, until: Instant) {
        let mut buffer = Vec::new();
        while self.simulation.now() < until {
            let next = self.simulation.now() + Duration::from_millis(5);
            let (received, receiver, connected) =
                (&mut self.received, self.receiver, &mut self.connected);
            self.simulation.run_until(next, |simulation| {
                while let Some(event) = simulation.node_mut(receiver).poll_event(&mut buffer) {
                    match event {
                        Event::Connected { connection, .. } => {
                            received.push((connection, 0));
                            *connected += 1;
                        }
                        Event::Message {
                            connection,
                            payload,
                            ..
                        } => {
                            let flow = received.iter_mut().find(|flow| flow.0 == connection);
                            flow.expect("it connected").1 += payload.len() as u64;
                        }
                        other => unreachable!("{other:?}"),
                    }
                }
            });
            let now = self.simulation.now();
            for &(node, connection) in &self.senders {
                let client = self.simulation.node_mut(node);
                while client.poll_event(&mut buffer).is_some() {}
                while client.queued(connection, 0).1 < WAITING {
                    if client.send(now, connection, 0, &[0; MESSAGE]).is_err() {
                        break;
                    }
                }
            }
            let delay = self.simulation.network().pipe(self.pipe).queue_delay(now);
            self.queue_delays_ms.push(delay.as_micros() as f64 / 1e3);
        }
    }

    fn received(&self) -> Vec<u64> {
        self.received.iter().map(|(_, bytes)| *bytes).collect()
    }

    fn queue_delay_p95_ms(&self) -> f64 {
        let mut delays = self.queue_delays_ms.clone();
        delays.sort_by(f64::total_cmp);
        delays[delays.len() * 95 / 100]
    }
}

#[test]
fn alone_the_queue_stays_short_and_the_link_busy() {
    for (seed, repair) in [Repair::Frugal, Repair::Balanced, Repair::Fast]
        .into_iter()
        .enumerate()
    {
        for rtt_ms in [20, 40, 80] {
            let rtt = Duration::from_millis(rtt_ms);
            let buffer = Duration::from_secs(1);
            let mut bottleneck = Bottleneck::new(
                1,
                Duration::ZERO,
                1_000_000,
                rtt,
                buffer,
                repair,
                seed as u64,
            );
            bottleneck.run(Instant::from_secs(60));
            let p95 = bottleneck.queue_delay_p95_ms();
            let used = bottleneck.received()[0] as f64 * 8.0 / 60.0 / 1e6;
            println!(
                "{repair:?}, round trip {rtt_ms} ms: queue p95 {p95:.0} ms, goodput {:.0} %",
                used * 100.0
            );
            assert!(
                p95 < 100.0,
                "{repair:?}, round trip {rtt_ms} ms: queue p95 {p95:.0} ms"
            );
            assert!(
                used > 0.85,
                "{repair:?}, round trip {rtt_ms} ms: goodput {used:.2} of the link"
            );
        }
    }
}

#[test]
fn two_flows_get_equal_shares_of_a_thin_path() {
    for rtt_ms in [20, 80] {
        judge_shares(1_000_000, rtt_ms, 40);
    }
}

#[test]
fn two_flows_get_equal_shares() {
    for (rate, rtt_ms, seeds) in [
        (5_000_000, 20, 10),
        (5_000_000, 80, 10),
        (20_000_000, 80, 2),
    ] {
        judge_shares(rate, rtt_ms, seeds);
    }
}

/// The worst seed counts; `MUSE_SEEDS` says how many there are.
fn judge_shares(rate: u64, rtt_ms: u64, seeds: u64) {
    let wanted = std::env::var("MUSE_SEEDS").ok();
    let seeds = wanted.and_then(|text| text.parse().ok()).unwrap_or(seeds);
    for products in [1, 4] {
        for apart_s in [0, 10] {
            let apart = Duration::from_secs(apart_s);
            let mut ratios: Vec<f64> = (0..seeds)
                .map(|seed| share(rate, rtt_ms, products, apart, seed))
                .collect();
            ratios.sort_by(f64::total_cmp);
            let (least, median) = (ratios[0], ratios[ratios.len() / 2]);
            println!(
                "{rate} bit/s, round trip {rtt_ms} ms, {products} products, {apart_s} s apart: {least:.2} ({median:.2})"
            );
            // 20 ms of 1 Mbit/s are a queue for less than two of a connection's packets, once it has found that the path takes 1,452
            // bytes: what arrives when one fits is a lottery. Printed, not judged; docs/congestion.md has the figures.
            let is_lottery = rate / 8 * rtt_ms * products / 1_000 < 2 * 1_452;
            assert!(is_lottery || least >= 0.8, "unfair: {ratios:.2?}");
        }
    }
}

/// The smaller of two flows' shares as a part of the larger, from 20 to 60 s, with a buffer of `products` times rate and
/// round trip.
fn share(rate: u64, rtt_ms: u64, products: u64, apart: Duration, seed: u64) -> f64 {
    let rtt = Duration::from_millis(rtt_ms);
    let buffer = rtt * products;
    let mut bottleneck = Bottleneck::new(2, apart, rate, rtt, buffer, Repair::Balanced, seed);
    bottleneck.run(Instant::from_secs(20));
    assert_eq!(bottleneck.connected, 2);
    let before = bottleneck.received();
    bottleneck.run(Instant::from_secs(60));
    let after = bottleneck.received();
    let received = [0, 1].map(|flow| after[flow] - before[flow]);
    let used = received.iter().sum::<u64>() as f64 * 8.0 / 40.0 / rate as f64;
    assert!(
        used > 0.8,
        "{rate} bit/s, {rtt_ms} ms, {products} products, seed {seed}: used {used:.2}"
    );
    let least = received.iter().min().copied().unwrap_or_default() as f64;
    let most = received.iter().max().copied().unwrap_or_default() as f64;
    least / most
}
