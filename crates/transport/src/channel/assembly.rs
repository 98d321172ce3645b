//! Putting the fragments of a large message together again.

use crate::memory::{ASSEMBLY_OVERHEAD, cost};
use crate::packet::{FRAGMENT_LEN, Fragment};

/// A message of which some fragments have arrived.
///
/// Memory follows what has arrived, whatever was announced: fragments are kept one by one, in the order in which they
/// came, and which ones are there in words that exist only where something is.
#[derive(Debug)]
pub(crate) struct Assembly {
    total: usize,
    missing: usize,
    /// Indices and bytes.
    fragments: Vec<(u32, Vec<u8>)>,
    /// One bit for each fragment that is there, by index divided by 64, in ascending order.
    arrived: Vec<(u32, u64)>,
    /// Memory that it counts.
    held: usize,
    /// The time at which it began, as the connection counts.
    began: u64,
}

/// The relation of a fragment to an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It belongs to another message.
    Foreign,
    /// It is there already.
    Duplicate,
    New,
}

impl Assembly {
    /// An empty assembly for a message of `total` bytes that begins now.
    pub(crate) fn new(total: u32, began: u64) -> Self {
        let total = total as usize;
        Self {
            total,
            missing: total.div_ceil(FRAGMENT_LEN),
            fragments: Vec::new(),
            arrived: Vec::new(),
            held: ASSEMBLY_OVERHEAD,
            began,
        }
    }

    pub(crate) fn fit(&self, fragment: Fragment) -> Fit {
        // All fragments of a message say the same length.
        if fragment.total as usize != self.total {
            return Fit::Foreign;
        }
        match self.word(fragment.index) {
            Ok(place) if self.arrived[place].1 >> (fragment.index % 64) & 1 != 0 => Fit::Duplicate,
            _ => Fit::New,
        }
    }

    /// Takes a fragment that is [`Fit::New`]; its length was checked when it was parsed.
    pub(crate) fn insert(&mut self, fragment: Fragment, bytes: Vec<u8>) {
        let place = self.word(fragment.index).unwrap_or_else(|place| {
            if self.arrived.is_empty() {
                self.arrived.reserve_exact(1);
            }
            self.arrived.insert(place, (fragment.index / 64, 0));
            place
        });
        self.arrived[place].1 |= 1 << (fragment.index % 64);
        self.missing -= 1;
        self.held += cost(bytes.len());
        if self.fragments.len() == self.fragments.capacity() {
            // Twice as much would be a lot for a peer that sends a message only in part.
            let more = (self.fragments.len() / GROWTH).max(1);
            self.fragments.reserve_exact(more);
        }
        self.fragments.push((fragment.index, bytes));
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Memory that it counts.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// Bytes of the whole message.
    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// The fragments in the order of the message: all of it, once complete.
    pub(crate) fn fragments(&mut self) -> impl Iterator<Item = &[u8]> {
        // Kept as they come and sorted once: most are in order already.
        self.fragments.sort_unstable_by_key(|(index, _)| *index);
        self.fragments.iter().map(|(_, bytes)| &bytes[..])
    }

    /// Its buffers, to be used again.
    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        self.fragments.into_iter().map(|(_, bytes)| bytes)
    }

    /// Returns the place of a fragment's word, or the place where it should be.
    fn word(&self, index: u32) -> Result<usize, usize> {
        let at = index / 64;
        match self.arrived.last() {
            // Mostly fragments come in order.
            Some((last, _)) if *last == at => Ok(self.arrived.len() - 1),
            Some((last, _)) if *last > at => self.arrived.binary_search_by_key(&at, |(at, _)| *at),
            _ => Err(self.arrived.len()),
        }
    }
}

/// The table of fragments grows by one in so many.
const GROWTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_in_any_order_with_duplicates_give_the_message() {
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let message: Vec<u8> = (0..rng.usize(FRAGMENT_LEN + 1..200_000))
                .map(|_| rng.u8(..))
                .collect();
            let total = message.len() as u32;
            let mut pieces: Vec<(usize, &[u8])> =
                message.chunks(FRAGMENT_LEN).enumerate().collect();
            rng.shuffle(&mut pieces);
            let mut assembly = Assembly::new(total, 0);
            for &(index, piece) in &pieces {
                assert!(!assembly.is_complete());
                let index = index as u32;
                let fragment = Fragment { index, total };
                assert_eq!(assembly.fit(fragment), Fit::New);
                assembly.insert(fragment, piece.to_vec());
                assert_eq!(assembly.fit(fragment), Fit::Duplicate);
                let total = total + 1;
                assert_eq!(assembly.fit(Fragment { index, total }), Fit::Foreign);
            }
            assert!(assembly.is_complete());
            let bytes: Vec<u8> = assembly.fragments().flatten().copied().collect();
            assert_eq!(bytes, message);
        }
    }

    #[test]
    fn memory_follows_what_arrived() {
        let total = 16 << 20;
        let mut assembly = Assembly::new(total, 0);
        let last = total / FRAGMENT_LEN as u32 - 1;
        for index in [last, 0, last / 2] {
            assembly.insert(Fragment { index, total }, vec![1; FRAGMENT_LEN]);
        }
        assert_eq!(assembly.held(), ASSEMBLY_OVERHEAD + 3 * cost(FRAGMENT_LEN));
        let tables = assembly.fragments.capacity() * size_of::<(u32, Vec<u8>)>()
            + assembly.arrived.capacity() * size_of::<(u32, u64)>();
        assert!(tables <= ASSEMBLY_OVERHEAD, "{tables}");
    }
}
