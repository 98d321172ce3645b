//! Operations on two honest endpoints and the network between them.

use crate::{Bound, Target, no_setup};

/// Operations on two endpoints.
pub const TARGET: Target = Target {
    name: "operations",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 1_000_000,
        per_byte: 1_500,
    },
    steps: Bound {
        base: 10_000_000,
        per_byte: 4_000,
    },
};

/// Runs the bytes.
fn run(data: &[u8]) {
    muse_transport::fuzzing::operations(data);
}
