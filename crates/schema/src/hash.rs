//! The hash of schemas: FNV-1a with 64 bits, written out because it is part of the protocol.

/// FNV-1a of `bytes`: start with 0xcbf29ce484222325; for each byte, exclusive-or it in and multiply by 0x100000001b3, modulo
/// 2^64.
///
/// It tells accidents apart, not attacks: who wants two schemas of one hash finds them.
pub const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}
