//! The same seed and the same calls give the same deliveries, bit for bit, on every platform.

use std::net::SocketAddr;

use muse_netem::{Conditions, Jitter, NatKind, Network, Queue};
use muse_wire::{Duration, Ecn, Instant};

#[test]
fn the_same_seed_gives_the_same_deliveries() {
    for seed in 0..20 {
        assert_eq!(
            digest_of_everything(seed),
            digest_of_everything(seed),
            "seed {seed}"
        );
    }
}

#[test]
fn different_seeds_give_different_deliveries() {
    let mut digests: Vec<u64> = (0..50).map(digest_of_everything).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 50);
}

/// A change of this figure means that recorded seeds no longer replay: say so in the changelog. It also fails on a
/// platform whose arithmetic differs.
#[test]
fn seed_one_gives_what_it_always_gave() {
    assert_eq!(digest_of_everything(1), 11_365_760_440_210_424_529);
}

#[test]
fn a_link_draws_the_same_whatever_else_happens() {
    let arrivals = |with_noise: bool| {
        let mut network = network(7);
        let mut arrivals = Vec::new();
        for index in 0..500u64 {
            let now = Instant::from_millis(index * 5);
            if with_noise {
                network.send(now, address(3), address(1), Ecn::NotCapable, b"noise");
            }
            network.send(
                now,
                address(0),
                address(4),
                Ecn::NotCapable,
                &index.to_le_bytes(),
            );
        }
        while let Some(delivery) = network.poll_deliver(Instant::from_secs(100)) {
            if delivery.to == address(4) {
                arrivals.push((delivery.at, delivery.payload.to_vec()));
            }
        }
        arrivals
    };
    assert!(arrivals(false).len() > 300);
    assert_eq!(arrivals(false), arrivals(true));
}

fn digest_of_everything(seed: u64) -> u64 {
    let mut network = network(seed);
    let nat = network.add_nat(
        NatKind::Symmetric,
        [203, 0, 113, 1].into(),
        Duration::from_secs(1),
    );
    let inside = SocketAddr::from(([10, 0, 0, 2], 5_000));
    network.add_node_behind(nat, inside);
    let mut digest = Digest(0xCBF2_9CE4_8422_2325);
    for index in 0..2_000u64 {
        let now = Instant::from_millis(index);
        let from = if index % 3 == 0 {
            inside
        } else {
            address((index % 4) as u8)
        };
        let to = address((index % 5) as u8);
        let len = (index * 7 % 1_300) as usize;
        network.send(now, from, to, Ecn::Capable0, &vec![index as u8; len]);
        if index % 500 == 0 {
            network.rebind(nat);
        }
        digest.take(&mut network, now);
    }
    digest.take(&mut network, Instant::from_secs(1_000));
    digest.0
}

/// Every impairment at once, a different jitter on each of three links.
fn network(seed: u64) -> Network {
    let ms = Duration::from_millis;
    let everything = Conditions::default()
        .delay(ms(20))
        .correlated_loss(0.05, 0.3)
        .burst_loss(0.05, 4.0)
        .duplicate(0.05, ms(3))
        .reorder(0.05, ms(15))
        .corrupt(0.05, 8)
        .truncate(0.05)
        .mtu(1_200)
        .outage(Instant::from_millis(700), Instant::from_millis(750));
    let mut network = Network::new(seed);
    let nodes: Vec<_> = (0..5)
        .map(|index| network.add_node(address(index)))
        .collect();
    let normal = Jitter::Normal {
        mean: ms(5),
        deviation: ms(10),
    };
    let pareto = Jitter::Pareto {
        scale: ms(5),
        shape: 1.5,
        max: ms(300),
    };
    network.set_default(everything.clone().jitter(Jitter::Uniform(ms(30))));
    network.set_links(nodes[1], nodes[2], everything.clone().jitter(normal));
    network.set_links(
        nodes[2],
        nodes[3],
        everything.jitter(pareto).keep_order(true),
    );
    let narrow = Conditions::default()
        .rate(500_000)
        .queue(Queue::Time(ms(50)))
        .mark_congestion(ms(5));
    let pipe = network.add_pipe(narrow);
    network.route(nodes[1], nodes[2], &[pipe]);
    network.route(nodes[3], nodes[2], &[pipe]);
    network
}

/// FNV-1a over all that a receiver sees.
struct Digest(u64);

impl Digest {
    fn take(&mut self, network: &mut Network, now: Instant) {
        while let Some(delivery) = network.poll_deliver(now) {
            self.add(&delivery.at.as_micros().to_le_bytes());
            self.add(&delivery.from.port().to_le_bytes());
            self.add(&delivery.to.port().to_le_bytes());
            self.add(&[delivery.ecn.bits()]);
            self.add(delivery.payload);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}

fn address(index: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, index], 1_000 + u16::from(index)))
}
