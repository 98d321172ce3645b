//! The packets of an authenticated peer that breaks every rule: what it makes a server hold is what has arrived and a fixed amount, and no
//! packet of it costs much more than the costliest of an honest peer.

use std::sync::OnceLock;

use muse_transport::fuzzing::{Meter, Work, honest_peer, hostile_peer};

use crate::cost::{Cost, measure};
use crate::{Bound, Target};

/// The packets of a peer.
pub const TARGET: Target = Target {
    name: "hostile_peer",
    setup: || {
        honest();
    },
    body: run,
    memory: Bound {
        base: 262_144,
        per_byte: 256,
    },
    steps: Bound {
        base: 100_000,
        per_byte: 1_000,
    },
};

/// Memory that a connection may hold beside messages that have arrived or are to be sent, in bytes.
pub const HELD_BESIDE_MAX: i64 = 64_000;
/// No packet may cost more steps than this many times the costliest honest packet of at most its length.
pub const STEPS_RATIO_MAX: u64 = 4;

fn run(data: &[u8]) {
    hostile_peer(data, &mut Victim::default());
}

/// Measures everything that a connection does.
#[derive(Default)]
struct Victim {
    held: i64,
    /// Bytes of messages that our own application sent, all of which may wait.
    sent: i64,
}

impl Meter for Victim {
    fn run(&mut self, work: Work, act: &mut dyn FnMut()) {
        let cost = measure(act);
        self.held += cost.held;
        match work {
            Work::Receive(len) => {
                let allowed = STEPS_RATIO_MAX * honest_steps(len);
                let steps = cost.steps;
                assert!(
                    steps <= allowed,
                    "{len} bytes: {steps} steps, {allowed} allowed"
                );
            }
            Work::Send(len) => self.sent += len as i64,
            Work::Pass => {}
        }
    }

    fn check(&mut self, accounted: usize) {
        let allowed = accounted as i64 + self.sent + HELD_BESIDE_MAX;
        assert!(
            self.held <= allowed,
            "{} bytes held, {allowed} allowed",
            self.held
        );
    }
}

/// Returns the steps of the costliest honest packet of at most this length, or of the shortest one.
fn honest_steps(len: usize) -> u64 {
    let costs = honest();
    costs[len.min(costs.len() - 1)]
}

fn honest() -> &'static [u64] {
    struct Honest(Vec<u64>);
    impl Meter for Honest {
        fn run(&mut self, work: Work, act: &mut dyn FnMut()) {
            let Cost { steps, .. } = measure(act);
            if let Work::Receive(len) = work {
                self.0[len] = self.0[len].max(steps);
            }
        }
    }
    static COSTS: OnceLock<Vec<u64>> = OnceLock::new();
    COSTS.get_or_init(|| {
        let mut honest = Honest(vec![0; 2_048]);
        honest_peer(&mut honest);
        // Nothing honest is shorter than the shortest.
        let shortest = honest.0.iter().find(|cost| **cost > 0);
        let mut costliest = *shortest.expect("honest packets arrived");
        for cost in &mut honest.0 {
            costliest = costliest.max(*cost);
            *cost = costliest;
        }
        honest.0
    })
}
