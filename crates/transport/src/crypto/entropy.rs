//! The source of secret randomness: a provider given by the driver, never the operating system behind our back.

use muse_wire::keyed::Keyed;
use sha2::{Digest, Sha256};

/// Gives random bytes that nobody can predict.
///
/// Drivers implement it with the operating system's source. The simulation uses [`SeededEntropy`], so that a run
/// with keys and all replays from its seed.
pub trait Entropy: Send {
    /// Fills `bytes` completely.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<E: Entropy + ?Sized> Entropy for &mut E {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

impl<E: Entropy + ?Sized> Entropy for Box<E> {
    fn fill(&mut self, bytes: &mut [u8]) {
        (**self).fill(bytes);
    }
}

/// Draws the secret of maps whose keys strangers choose.
pub(crate) fn draw_keyed(entropy: &mut dyn Entropy) -> Keyed {
    let mut secret = [0; 16];
    entropy.fill(&mut secret);
    Keyed::new(secret)
}

/// Reproducible bytes for tests and simulation: anyone who knows the seed knows every key.
///
/// ```
/// use muse_transport::{Entropy, SeededEntropy};
/// let (mut one, mut other) = (SeededEntropy::danger_seeded(7), SeededEntropy::danger_seeded(7));
/// let (mut bytes, mut same) = ([0; 8], [0; 8]);
/// one.fill(&mut bytes);
/// other.fill(&mut same);
/// assert_eq!(bytes, same);
/// ```
#[derive(Clone, Debug)]
pub struct SeededEntropy {
    seed: u64,
    block: u64,
}

impl SeededEntropy {
    /// The same bytes for the same seed, so there is no secrecy at all.
    pub const fn danger_seeded(seed: u64) -> Self {
        Self { seed, block: 0 }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(self.block.to_le_bytes());
            chunk.copy_from_slice(&hash.finalize()[..chunk.len()]);
            self.block = self.block.wrapping_add(1);
        }
    }
}
