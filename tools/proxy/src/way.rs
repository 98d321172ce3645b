//! A direction through the proxy, and the link that conditions it.

use std::sync::Arc;

use muse_netem::{Conditioner, Conditions, Counters, Fates, Packet};
use muse_wire::Instant;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// From clients to the server.
    Up,
    /// From the server to clients.
    Down,
}

impl Way {
    /// Both.
    pub(crate) const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// Returns the index of its part of a pair.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// Conditions of both directions.
pub(crate) type Pair = [Arc<Conditions>; 2];

/// One direction of one client's link.
#[derive(Debug)]
pub(super) struct Link {
    conditioner: Conditioner,
    /// The latest time it has been told: arrivals are stamped by the kernel and may be told late.
    latest: Instant,
}

impl Link {
    /// The links of the `number`th client.
    pub(super) fn pair(conditions: &Pair, seed: u64, number: u64) -> [Self; 2] {
        Way::BOTH.map(|way| {
            let mut random = fastrand::Rng::with_seed(seed ^ number.wrapping_mul(SEED_STEP));
            let seeds = [random.u64(..), random.u64(..)];
            Self {
                conditioner: Conditioner::new(
                    Arc::clone(&conditions[way.index()]),
                    seeds[way.index()],
                ),
                latest: Instant::ZERO,
            }
        })
    }

    pub(super) fn offer(&mut self, at: Instant, packet: Packet) -> Fates {
        self.latest = self.latest.max(at);
        self.conditioner.offer(self.latest, packet)
    }

    pub(super) fn set_conditions(&mut self, now: Instant, conditions: Arc<Conditions>) {
        self.latest = self.latest.max(now);
        self.conditioner.set_conditions(self.latest, conditions);
    }

    pub(super) fn counters(&self) -> &Counters {
        self.conditioner.counters()
    }

    /// Bytes that wait for the rate.
    pub(super) fn backlog_bytes(&self, now: Instant) -> u64 {
        self.conditioner.backlog_bytes(now)
    }
}

/// Keeps the seeds of successive clients apart.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
