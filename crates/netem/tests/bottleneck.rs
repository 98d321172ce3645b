//! Pipes that several flows share.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, PipeId, Queue};
use muse_wire::{Duration, Ecn, Instant};

#[test]
fn flows_through_one_pipe_share_its_rate() {
    let mut world = World::new(
        4,
        Conditions::default()
            .rate(1_000_000)
            .queue(Queue::Bytes(20_000)),
    );
    // Each flow alone would take 60 % of the pipe.
    let end = Instant::from_secs(10);
    world.blast(end, Duration::from_micros(20_000), 1_472);
    let received: Vec<u64> = world
        .senders
        .iter()
        .map(|&sender| world.received_from(sender))
        .collect();
    let total = world.network.stats(world.server).received.ip_bytes as f64 * 8.0 / 10.0;
    assert!(
        (total / 1_000_000.0 - 1.0).abs() < 0.03,
        "{total} bits/s, {received:?}"
    );
    assert!(
        received.iter().all(|&datagrams| datagrams > 0),
        "{received:?}"
    );
    let counters = world.network.pipe(world.pipe).counters();
    assert!(counters.lost_queue > 1_000, "{counters:?}");
}

#[test]
fn a_flow_elsewhere_does_not_feel_the_pipe() {
    let mut world = World::new(
        2,
        Conditions::default()
            .rate(100_000)
            .queue(Queue::Bytes(5_000)),
    );
    world.network.route(world.senders[0], world.server, &[]);
    world.blast(Instant::from_secs(2), Duration::from_millis(10), 972);
    assert_eq!(world.received_from(world.senders[0]), 200);
    assert!(world.received_from(world.senders[1]) < 40);
}

#[test]
fn datagrams_enter_a_pipe_in_order_of_arrival_not_of_sending() {
    let mut network = Network::new(1);
    let server = network.add_node(address(0));
    let far = network.add_node(address(1));
    let near = network.add_node(address(2));
    network.set_link(
        far,
        server,
        Conditions::default().delay(Duration::from_millis(100)),
    );
    network.set_link(
        near,
        server,
        Conditions::default().delay(Duration::from_millis(1)),
    );
    let pipe = network.add_pipe(Conditions::default().rate(80_000));
    network.route(far, server, &[pipe]);
    network.route(near, server, &[pipe]);
    // 100 bytes with headers: 10 ms in the pipe.
    network.send(
        Instant::ZERO,
        address(1),
        address(0),
        Ecn::NotCapable,
        &[1; 72],
    );
    network.send(
        Instant::from_millis(95),
        address(2),
        address(0),
        Ecn::NotCapable,
        &[2; 72],
    );
    let mut arrivals = Vec::new();
    while let Some(now) = network.next_delivery() {
        if let Some(delivery) = network.poll_deliver(now) {
            arrivals.push((delivery.payload[0], delivery.at.as_millis()));
        }
    }
    assert_eq!(arrivals, [(2, 106), (1, 116)]);
}

#[test]
fn pipes_follow_each_other() {
    let mut world = World::new(1, Conditions::default().delay(Duration::from_millis(10)));
    let second = world
        .network
        .add_pipe(Conditions::default().delay(Duration::from_millis(5)));
    world.network.route(
        world.senders[0],
        world.server,
        &[world.pipe, second, world.pipe],
    );
    world
        .network
        .send(Instant::ZERO, address(1), address(0), Ecn::NotCapable, b"x");
    assert!(
        world
            .network
            .poll_deliver(Instant::from_micros(24_999))
            .is_none()
    );
    assert!(
        world
            .network
            .poll_deliver(Instant::from_millis(25))
            .is_some()
    );
    assert_eq!(world.network.pipe(world.pipe).counters().offered, 2);
}

#[test]
fn a_pipe_can_change_while_in_use() {
    let mut world = World::new(1, Conditions::default());
    world
        .network
        .set_pipe(world.pipe, Conditions::default().loss(1.0));
    world.blast(Instant::from_secs(1), Duration::from_millis(10), 100);
    assert_eq!(world.network.pipe(world.pipe).counters().lost_random, 100);
    assert_eq!(world.network.stats(world.server).received.datagrams, 0);
}

struct World {
    network: Network,
    server: NodeId,
    senders: Vec<NodeId>,
    pipe: PipeId,
    received: Vec<u64>,
}

impl World {
    fn new(senders: u8, conditions: Conditions) -> Self {
        let mut network = Network::new(9);
        let server = network.add_node(address(0));
        let pipe = network.add_pipe(conditions);
        let senders: Vec<NodeId> = (1..=senders)
            .map(|index| network.add_node(address(index)))
            .collect();
        for &sender in &senders {
            network.route(sender, server, &[pipe]);
        }
        Self {
            network,
            server,
            received: vec![0; senders.len()],
            senders,
            pipe,
        }
    }

    /// All senders send at the same pace, each a little after the one before it.
    fn blast(&mut self, end: Instant, interval: Duration, payload_len: usize) {
        let payload = vec![0; payload_len];
        let mut at = Instant::ZERO;
        while at < end {
            for index in 0..self.senders.len() as u64 {
                let now = at + interval * index / self.senders.len() as u64;
                let from = address(index as u8 + 1);
                self.network
                    .send(now, from, address(0), Ecn::NotCapable, &payload);
            }
            at += interval;
        }
        while let Some(delivery) = self.network.poll_deliver(end) {
            let SocketAddr::V4(from) = delivery.from else {
                continue;
            };
            self.received[usize::from(from.ip().octets()[3]) - 1] += 1;
        }
    }

    fn received_from(&self, sender: NodeId) -> u64 {
        let index = self.senders.iter().position(|&other| other == sender);
        self.received[index.expect("one of ours")]
    }
}

fn address(index: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, index], 1_000))
}
