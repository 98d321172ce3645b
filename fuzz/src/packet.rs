//! Headers, acknowledgement blocks and frames: what parses is written again alike.

use crate::{Bound, Target, no_setup};

/// One packet.
pub const TARGET: Target = Target {
    name: "packet",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 64,
    },
    steps: Bound {
        base: 10_000,
        per_byte: 100,
    },
};

/// Runs the bytes.
fn run(data: &[u8]) {
    muse_transport::fuzzing::packet(data);
}
