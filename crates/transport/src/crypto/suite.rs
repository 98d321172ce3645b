//! The ways to protect packets, and the one that suits this machine.

use super::{AEAD_TAG_LEN, CHECKSUM_LEN};

/// The protection of packets, agreed on in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Suite {
    /// AES-128-GCM: fastest where the processor has instructions for it.
    Aes128Gcm,
    /// ChaCha20-Poly1305: fast everywhere; every implementation has it.
    ChaCha20Poly1305,
    /// A checksum against corruption and nothing against attackers; only behind an option named `danger`.
    Null,
}

impl Suite {
    /// The suite's number on the wire: one bit, so that an offer is a sum.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Aes128Gcm => 1,
            Self::ChaCha20Poly1305 => 2,
            Self::Null => 4,
        }
    }

    /// The suite with this number.
    pub(crate) const fn from_bit(bit: u8) -> Option<Self> {
        match bit {
            1 => Some(Self::Aes128Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            4 => Some(Self::Null),
            _ => None,
        }
    }

    /// The secure suites that this machine is good at, as a sum of their numbers.
    pub(crate) fn offer() -> u8 {
        let aes = if aes_in_hardware() {
            Self::Aes128Gcm.bit()
        } else {
            0
        };
        aes | Self::ChaCha20Poly1305.bit()
    }

    /// The best secure suite in `offer`, as seen from this machine; none when the offer holds no secure suite that we know.
    pub(crate) fn choose(offer: u8) -> Option<Self> {
        let both = offer & Self::offer();
        [Self::Aes128Gcm, Self::ChaCha20Poly1305]
            .into_iter()
            .find(|suite| both & suite.bit() != 0)
    }

    /// Bytes that sealing adds to a packet.
    pub(crate) const fn tag_len(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => AEAD_TAG_LEN,
            Self::Null => CHECKSUM_LEN,
        }
    }

    /// Length of its key.
    pub(super) const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::ChaCha20Poly1305 | Self::Null => 32,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn aes_in_hardware() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn aes_in_hardware() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn aes_in_hardware() -> bool {
    false
}
