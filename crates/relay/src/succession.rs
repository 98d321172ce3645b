//! Shared by a host and its heir: a secret, the lock that it opens, and the room's key.

use hkdf::hmac::{Hmac, KeyInit, Mac};
use muse_wire::Duration;
use sha2::{Digest, Sha256};

use super::code::RoomKey;

/// The lock that a secret opens: the relay knows it from the host, and the secret from the heir alone.
pub(super) fn lock_of(secret: &[u8; 16]) -> [u8; 16] {
    let hash = Sha256::new()
        .chain_update(b"muse heir")
        .chain_update(secret)
        .finalize();
    *hash.first_chunk().expect("a hash has 32 bytes")
}

/// The room's key under a secret's pad, or without it.
pub(super) fn sealed(secret: &[u8; 16], key: &[u8; 16]) -> [u8; 16] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(b"muse heir pad");
    let pad: [u8; 32] = mac.finalize().into_bytes().into();
    std::array::from_fn(|index| key[index] ^ pad[index])
}

/// The room's key, if this is what a host sealed.
pub(super) fn unsealed(secret: &[u8; 16], bytes: &[u8; 16]) -> RoomKey {
    RoomKey::new(sealed(secret, bytes))
}

/// The time after the relay's last word for which a host with an heir may still count as the host.
pub(super) const HOST_LEASE: Duration = Duration::from_millis(250);
