//! A server's description: any answers end a client's questions, within bounds.

use crate::{Bound, Target, no_setup};

/// Pages of a description.
pub const TARGET: Target = Target {
    name: "description",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 65_536,
        per_byte: 16,
    },
    steps: Bound {
        base: 20_000,
        per_byte: 50,
    },
};

/// The bytes are pages, and a description.
fn run(data: &[u8]) {
    muse_transport::fuzzing::description(data);
}
