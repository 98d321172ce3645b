//! Aids of every step of the simulation: the post, a bug on purpose, and a stopwatch.

use std::net::SocketAddr;
use std::time::Duration as SystemDuration;

/// Handed to everybody in turn.
pub(super) struct Aid {
    pub(super) plant: Plant,
    pub(super) post: Posted,
    pub(super) meter: Meter,
}

/// A bug on purpose.
pub(super) struct Plant {
    pub(super) one_in: Option<u32>,
    pub(super) random: fastrand::Rng,
}

impl Plant {
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            one_in: None,
            random: fastrand::Rng::with_seed(0),
        }
    }

    pub(super) fn loses(&mut self) -> bool {
        let one_in = self.one_in;
        one_in.is_some_and(|one_in| self.random.u32(..one_in.max(1)) == 0)
    }
}

/// Datagrams that were sent in a step.
#[derive(Default)]
pub(super) struct Posted {
    pub(super) bytes: Vec<u8>,
    pub(super) letters: Vec<(SocketAddr, SocketAddr, usize)>,
}

impl Posted {
    pub(super) fn send(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
        self.letters.push((from, to, payload.len()));
    }
}

/// The parts of the simulation whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Network,
    Relay,
    Master,
    ServerTransport,
    ServerGame,
    PlayerTransport,
    PlayerGame,
    Checks,
}

/// The names of the parts of [`Told::spent`](super::Told::spent).
pub const PARTS: [&str; 8] = [
    "the network",
    "the relay",
    "the master",
    "the servers' transport",
    "the servers' game",
    "the players' transport",
    "the players' game",
    "the checks",
];

/// A stopwatch that runs in one of many steps, since looking at it takes time itself.
pub(super) struct Meter {
    clock: Option<fn() -> SystemDuration>,
    steps: u32,
    last: Option<SystemDuration>,
    pub(super) spent: [SystemDuration; PARTS.len()],
}

impl Meter {
    pub(super) fn new(clock: Option<fn() -> SystemDuration>) -> Self {
        Self {
            clock,
            steps: 0,
            last: None,
            spent: [SystemDuration::ZERO; PARTS.len()],
        }
    }

    /// A step begins.
    pub(super) fn begin(&mut self) {
        self.steps = self.steps.wrapping_add(1);
        let measures = self.steps.is_multiple_of(SAMPLE);
        self.last = self.clock.filter(|_| measures).map(|clock| clock());
    }

    /// Counts the time since the last call towards this part.
    pub(super) fn lap(&mut self, part: Part) {
        if let (Some(clock), Some(last)) = (self.clock, self.last) {
            let now = clock();
            self.spent[part as usize] += now.saturating_sub(last);
            self.last = Some(now);
        }
    }
}

/// One of so many steps is measured. Odd, so that every phase of a tick comes round.
const SAMPLE: u32 = 17;
