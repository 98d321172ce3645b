//! Putting the fragments of a large message together again.

use crate::packet::{FRAGMENT_LEN, Fragment};

/// A message of which some fragments have arrived.
///
/// Memory grows with what has arrived, not with what was announced: the buffer reaches as far as the furthest
/// fragment seen.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    total: usize,
    buffer: Vec<u8>,
    arrived: Vec<u64>,
    missing: usize,
}

impl Assembly {
    /// An empty assembly for a message of `total` bytes.
    pub(crate) fn new(total: u32) -> Self {
        let total = total as usize;
        let count = total.div_ceil(FRAGMENT_LEN);
        Self {
            total,
            buffer: Vec::new(),
            arrived: vec![0; count.div_ceil(64)],
            missing: count,
        }
    }

    /// Takes a fragment; `false` when it does not belong (another total). Its length was checked when it was parsed.
    pub(crate) fn insert(&mut self, fragment: Fragment, payload: &[u8]) -> bool {
        if fragment.total as usize != self.total {
            return false;
        }
        let index = fragment.index as usize;
        let Some(word) = self.arrived.get_mut(index / 64) else {
            return false;
        };
        let bit = 1 << (index % 64);
        if *word & bit != 0 {
            return true;
        }
        let start = index * FRAGMENT_LEN;
        let end = start + payload.len();
        if end > self.total {
            return false;
        }
        *word |= bit;
        self.missing -= 1;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.buffer[start..end].copy_from_slice(payload);
        true
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Bytes of memory held.
    pub(crate) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The message, once complete.
    pub(crate) fn message(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn into_message(self) -> Vec<u8> {
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_in_any_order_with_duplicates_give_the_message() {
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let message: Vec<u8> = (0..rng.usize(FRAGMENT_LEN + 1..20_000))
                .map(|_| rng.u8(..))
                .collect();
            let total = message.len() as u32;
            let mut pieces: Vec<(usize, &[u8])> =
                message.chunks(FRAGMENT_LEN).enumerate().collect();
            rng.shuffle(&mut pieces);
            let mut assembly = Assembly::new(total);
            for &(index, piece) in &pieces {
                assert!(!assembly.is_complete());
                let fragment = Fragment {
                    index: index as u32,
                    total,
                };
                assert!(assembly.insert(fragment, piece));
                assert!(
                    assembly.insert(fragment, piece),
                    "a duplicate changes nothing"
                );
                assert!(!assembly.insert(
                    Fragment {
                        index: index as u32,
                        total: total + 1
                    },
                    piece
                ));
            }
            assert!(assembly.is_complete());
            assert_eq!(assembly.message(), message);
        }
    }

    #[test]
    fn memory_follows_what_arrived() {
        let mut assembly = Assembly::new(16 << 20);
        assembly.insert(
            Fragment {
                index: 0,
                total: 16 << 20,
            },
            &[1; FRAGMENT_LEN],
        );
        assert_eq!(assembly.held(), FRAGMENT_LEN);
    }
}
