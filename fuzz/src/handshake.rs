//! The handshake: packets sent, repeated, changed, cut and made up let nobody in who has not the keys.

/// The bytes are operations of four bytes each.
pub fn run(data: &[u8]) {
    muse_transport::fuzzing::handshake(data);
}
