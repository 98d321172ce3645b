//! Headers, acknowledgement blocks and frames: what parses is written again alike.

/// Runs the bytes.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::packet(data);
}
