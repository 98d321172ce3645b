//! The handshake: packets sent, repeated, changed, cut and made up let nobody in who has not the keys.

use crate::{Bound, Target, no_setup};

/// Packets of a handshake.
pub const TARGET: Target = Target {
    name: "handshake",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 300_000,
        per_byte: 200,
    },
    steps: Bound {
        base: 8_000_000,
        per_byte: 30_000,
    },
};

/// The bytes are operations of four bytes each.
fn run(data: &[u8]) {
    muse_transport::fuzzing::handshake(data);
}
