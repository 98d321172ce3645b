//! Deterministic sessions. The body is a file of its own, because the tests of `muse-lockstep` run it over damaged real packets.

mod body;

use crate::{Bound, Target, no_setup};

/// Packets of a match.
pub const TARGET: Target = Target {
    name: "lockstep",
    setup: no_setup,
    body: body::run,
    memory: Bound {
        base: 500_000,
        per_byte: 256,
    },
    steps: Bound {
        base: 500_000,
        per_byte: 1_000,
    },
};
