//! Packet protection by the RustCrypto crates, for WASM, where `ring` does not build with our means.
//!
//! Native tests compile it as well and check it against `ring`.

use aes_gcm::Aes128Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};

use super::{AEAD_TAG_LEN, NONCE_LEN, PacketCipher, Rejected, Suite};

/// An expanded key.
pub(super) enum Aead {
    Aes(Box<Aes128Gcm>),
    ChaCha(ChaCha20Poly1305),
}

impl Aead {
    /// Expands a key of the suite's length.
    pub(super) fn new(suite: Suite, key: &[u8]) -> Self {
        const LENGTH: &str = "a key of the suite's length";
        if suite == Suite::Aes128Gcm {
            Self::Aes(Box::new(Aes128Gcm::new_from_slice(key).expect(LENGTH)))
        } else {
            Self::ChaCha(ChaCha20Poly1305::new_from_slice(key).expect(LENGTH))
        }
    }
}

impl PacketCipher for Aead {
    fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        buffer: &mut [u8],
        plain_len: usize,
    ) -> usize {
        let (plain, rest) = buffer.split_at_mut(plain_len);
        let tag: [u8; AEAD_TAG_LEN] = match self {
            Self::Aes(aead) => aead.encrypt_inout_detached(&nonce.into(), ad, plain.into()),
            Self::ChaCha(aead) => aead.encrypt_inout_detached(&nonce.into(), ad, plain.into()),
        }
        .expect("a packet is far shorter than an AEAD's limit")
        .into();
        rest[..AEAD_TAG_LEN].copy_from_slice(&tag);
        plain_len + AEAD_TAG_LEN
    }

    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        ad: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, Rejected> {
        let (cipher, tag) = payload
            .split_last_chunk_mut::<AEAD_TAG_LEN>()
            .ok_or(Rejected)?;
        let (len, tag) = (cipher.len(), (*tag).into());
        match self {
            Self::Aes(aead) => aead.decrypt_inout_detached(&nonce.into(), ad, cipher.into(), &tag),
            Self::ChaCha(aead) => {
                aead.decrypt_inout_detached(&nonce.into(), ad, cipher.into(), &tag)
            }
        }
        .map_err(|_| Rejected)?;
        Ok(len)
    }
}
