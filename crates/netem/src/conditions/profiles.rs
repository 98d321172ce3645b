//! Conditions of common access networks: one direction each, between a player and a server in the same region.
//!
//! They are typical, not measured on a particular network; `docs/netem.md` lists their numbers.

use muse_wire::Duration;

use super::{Conditions, Jitter, Queue};

impl Conditions {
    /// A cable in the same building: 1 Gbit/s, 0.2 ms, nothing lost.
    pub fn lan() -> Self {
        Self::default()
            .delay(Duration::from_micros(200))
            .rate(1_000_000_000)
            .queue(Queue::Time(Duration::from_millis(5)))
            .mtu(1_500)
    }

    /// A wired home connection: 20 Mbit/s, 15 ms and up to 2 ms of jitter in order, 0.1 % loss.
    pub fn broadband() -> Self {
        Self::default()
            .delay(Duration::from_millis(15))
            .jitter(Jitter::Uniform(Duration::from_millis(2)))
            .keep_order(true)
            .loss(0.001)
            .rate(20_000_000)
            .mtu(1_500)
    }

    /// A busy wireless network at home: 20 Mbit/s, 18 ms, long-tailed jitter in order (median 2.5 ms, at most 150 ms),
    /// 1 % loss in bursts of 2.
    pub fn wifi() -> Self {
        Self::default()
            .delay(Duration::from_millis(18))
            .jitter(Jitter::Pareto {
                scale: Duration::from_millis(6),
                shape: 2.0,
                max: Duration::from_millis(150),
            })
            .keep_order(true)
            .burst_loss(0.01, 2.0)
            .rate(20_000_000)
            .queue(Queue::Time(Duration::from_millis(150)))
            .mtu(1_500)
    }

    /// A phone on the move: 5 Mbit/s with a deep queue (500 ms), 40 ms, long-tailed jitter in order (median 6 ms, at
    /// most 400 ms), 2 % loss in bursts of 4, packets up to 1,400 bytes.
    pub fn mobile() -> Self {
        Self::default()
            .delay(Duration::from_millis(40))
            .jitter(Jitter::Pareto {
                scale: Duration::from_millis(15),
                shape: 2.0,
                max: Duration::from_millis(400),
            })
            .keep_order(true)
            .burst_loss(0.02, 4.0)
            .rate(5_000_000)
            .queue(Queue::Time(Duration::from_millis(500)))
            .mtu(1_400)
    }

    /// A geostationary satellite: 10 Mbit/s, 270 ms and normal jitter (6 ms, deviation 3 ms) in order, 0.5 % loss in
    /// bursts of 3.
    pub fn satellite() -> Self {
        Self::default()
            .delay(Duration::from_millis(270))
            .jitter(Jitter::Normal {
                mean: Duration::from_millis(6),
                deviation: Duration::from_millis(3),
            })
            .keep_order(true)
            .burst_loss(0.005, 3.0)
            .rate(10_000_000)
            .queue(Queue::Time(Duration::from_millis(300)))
            .mtu(1_500)
    }

    /// A modem: 56 kbit/s with a queue of 12,000 bytes (1.7 s), 75 ms, 0.5 % loss.
    pub fn dialup() -> Self {
        Self::default()
            .delay(Duration::from_millis(75))
            .loss(0.005)
            .rate(56_000)
            .queue(Queue::Bytes(12_000))
            .mtu(1_500)
    }
}
