//! The packets of an authenticated peer that breaks every rule.

/// Runs the bytes.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::hostile_peer(data);
}
