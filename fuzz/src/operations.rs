//! Operations on two honest endpoints and the network between them.

/// Runs the bytes.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::operations(data);
}
