//! The `muse` binary.
fn main() {}
