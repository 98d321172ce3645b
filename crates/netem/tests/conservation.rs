//! Whatever is done to a network, every datagram is delivered, lost for a stated cause, or still under way.

#![expect(
    clippy::disallowed_methods,
    reason = "what a test does may differ on 32 bits"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, NatId, NatKind, Network, NodeId, PipeId, Queue, Stage};
use muse_wire::{Duration, Ecn, Instant};

#[test]
fn nothing_appears_or_vanishes_unaccounted() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.act();
        }
        let copies = world.links_copies();
        let [sent, delivered, lost] = world
            .seen
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed));
        let under_way = world.network.in_flight() as u64;
        assert_eq!(sent + copies, delivered + lost + under_way, "seed {seed}");
        assert!(
            delivered > 20 && lost > 20,
            "seed {seed}: {delivered} delivered, {lost} lost"
        );
        let stats = world.nodes.iter().map(|&node| *world.network.stats(node));
        let (out, into) = stats.fold((0, 0), |(out, into), stats| {
            (out + stats.sent.datagrams, into + stats.received.datagrams)
        });
        assert_eq!((out, into), (sent, delivered), "seed {seed}");
    }
}

struct World {
    rng: Rng,
    now: Instant,
    network: Network,
    nodes: Vec<NodeId>,
    nats: Vec<NatId>,
    pipes: Vec<PipeId>,
    addresses_made: u16,
    /// Addresses that something was heard from, among them external addresses of NATs.
    heard: Vec<SocketAddr>,
    /// Sent, delivered, lost.
    seen: Arc<[AtomicU64; 3]>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut network = Network::new(seed);
        let kinds = [
            NatKind::FullCone,
            NatKind::PortRestricted,
            NatKind::Symmetric,
        ];
        let nats = (1..).zip(kinds).map(|(index, kind)| {
            network.add_nat(
                kind,
                [203, 0, 113, index].into(),
                Duration::from_millis(300),
            )
        });
        let nats: Vec<NatId> = nats.collect();
        let pipes = vec![network.add_pipe(conditions(&mut Rng::with_seed(seed)))];
        let seen = Arc::new([const { AtomicU64::new(0) }; 3]);
        let log = Arc::clone(&seen);
        network.set_tap(move |sighting| {
            let index = match sighting.stage {
                Stage::Sent => 0,
                Stage::Delivered => 1,
                Stage::Lost(_) => 2,
            };
            log[index].fetch_add(1, Ordering::Relaxed);
        });
        let mut world = Self {
            rng: Rng::with_seed(seed),
            now: Instant::ZERO,
            network,
            nodes: vec![NodeId::OUTSIDE],
            nats,
            pipes,
            addresses_made: 0,
            heard: Vec::new(),
            seen,
        };
        for index in 0..8 {
            let address = world.new_address();
            let node = match world.nats.get(index) {
                Some(&nat) => world.network.add_node_behind(nat, address),
                None => world.network.add_node(address),
            };
            world.nodes.push(node);
        }
        world
    }

    fn act(&mut self) {
        self.now += Duration::from_micros(self.rng.u64(..5_000));
        let (a, b) = (self.any_node(), self.any_node());
        match self.rng.u8(..40) {
            0 => self.network.partition(a, b),
            1 => self.network.heal_all(),
            2 => self
                .network
                .rebind(self.nats[self.rng.usize(..self.nats.len())]),
            3 => {
                let (old, new) = (self.address_of(a), self.new_address());
                self.network.readdress(old, new);
            }
            4 => self.network.set_link(a, b, conditions(&mut self.rng)),
            5 => self.network.set_default(conditions(&mut self.rng)),
            6 => {
                let pipes = self.pipes.repeat(self.rng.usize(..3));
                self.network.route(a, b, &pipes);
            }
            7 => self
                .network
                .set_pipe(self.pipes[0], conditions(&mut self.rng)),
            8..=20 => self.receive(),
            _ => self.send(a, b),
        }
    }

    fn send(&mut self, a: NodeId, b: NodeId) {
        let from = self.address_of(a);
        let heard = self.rng.choice(&self.heard).copied();
        let to = heard
            .filter(|_| self.rng.bool())
            .unwrap_or(self.address_of(b));
        let payload = vec![7; self.rng.usize(..1_600)];
        self.network
            .send(self.now, from, to, Ecn::Capable0, &payload);
    }

    fn receive(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            assert!(delivery.at <= self.now);
            self.heard.push(delivery.from);
        }
    }

    fn any_node(&mut self) -> NodeId {
        self.nodes[self.rng.usize(1..self.nodes.len())]
    }

    fn address_of(&self, node: NodeId) -> SocketAddr {
        self.network.addresses(node)[0]
    }

    fn new_address(&mut self) -> SocketAddr {
        self.addresses_made += 1;
        SocketAddr::from(([192, 0, 2, 1], self.addresses_made))
    }

    fn links_copies(&self) -> u64 {
        let pairs = self
            .nodes
            .iter()
            .flat_map(|&a| self.nodes.iter().map(move |&b| (a, b)));
        let links = pairs.filter_map(|(a, b)| self.network.link_counters(a, b));
        let pipes = self
            .pipes
            .iter()
            .map(|&pipe| self.network.pipe(pipe).counters());
        links.chain(pipes).map(|counters| counters.duplicated).sum()
    }
}

fn conditions(rng: &mut Rng) -> Conditions {
    let ms = Duration::from_millis;
    Conditions::default()
        .delay(ms(rng.u64(..20)))
        .jitter(Jitter::Uniform(ms(rng.u64(..20))))
        .keep_order(rng.bool())
        .loss(rng.f64() * 0.2)
        .burst_loss(rng.f64() * 0.2, 1.0 + rng.f64() * 5.0)
        .duplicate(rng.f64() * 0.3, ms(rng.u64(..5)))
        .reorder(rng.f64() * 0.3, ms(rng.u64(..30)))
        .corrupt(rng.f64() * 0.3, rng.u8(..))
        .truncate(rng.f64() * 0.3)
        .rate(rng.u64(100_000..10_000_000))
        .queue(Queue::Bytes(rng.u64(..20_000)))
        .mtu(rng.usize(500..2_000))
}
