//! Connect tokens: whatever is read is written the same, and whatever is shown to a server is judged without a panic.

/// The bytes are a token.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::token(data);
}
