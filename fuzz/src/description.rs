//! A server's description: any answers end a client's questions, within bounds.

/// The bytes are pages, and a description.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::description(data);
}
