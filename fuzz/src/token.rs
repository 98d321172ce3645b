//! Connect tokens: whatever is read is written the same, and whatever is shown to a server is judged without a panic.

use crate::{Bound, Target, no_setup};

/// A connect token.
pub const TARGET: Target = Target {
    name: "token",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_384,
        per_byte: 16,
    },
    steps: Bound {
        base: 2_000_000,
        per_byte: 400,
    },
};

/// The bytes are a token.
fn run(data: &[u8]) {
    muse_transport::fuzzing::token(data);
}
