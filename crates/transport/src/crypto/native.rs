//! Packet protection by `ring`, for everything but WASM.
//!
//! `ring` does not wipe expanded keys when they are dropped; the secrets that they come from are wiped.

use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use super::{AEAD_TAG_LEN, NONCE_LEN, PacketCipher, Rejected, Suite};

/// An expanded key.
pub(super) struct Aead(LessSafeKey);

impl Aead {
    /// Expands a key of the suite's length.
    pub(super) fn new(suite: Suite, key: &[u8]) -> Self {
        let algorithm = if suite == Suite::Aes128Gcm {
            &AES_128_GCM
        } else {
            &CHACHA20_POLY1305
        };
        Self(LessSafeKey::new(
            UnboundKey::new(algorithm, key).expect("a key of the suite's length"),
        ))
    }
}

impl PacketCipher for Aead {
    #[inline]
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        buffer: &mut [u8],
        plain_len: usize,
    ) -> usize {
        let (plain, rest) = buffer.split_at_mut(plain_len);
        let tag = self
            .0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(ad), plain)
            .expect("a packet is far shorter than an AEAD's limit");
        rest[..AEAD_TAG_LEN].copy_from_slice(tag.as_ref());
        plain_len + AEAD_TAG_LEN
    }

    #[inline]
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let plain = self
            .0
            .open_in_place(nonce, Aad::from(ad), payload)
            .map_err(|_| Rejected)?;
        Ok(plain.len())
    }
}
