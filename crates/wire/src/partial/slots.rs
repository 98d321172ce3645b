//! A set of slots that all lie within one window, as a ring of bits: fixed memory, no allocation after the start.

/// Slots of a range no longer than the window given to [`Slots::new`].
///
/// Two slots of one such range never share a bit; keeping to the range is up to the owner.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Bit `slot & mask` stands for `slot`; the number of words is a power of two.
    words: Box<[u64]>,
    mask: u64,
    len: u32,
}

impl Slots {
    /// An empty set for ranges of at most `window` slots.
    pub(super) fn new(window: u32) -> Self {
        let words = (window as usize).div_ceil(WORD_BITS).next_power_of_two();
        let bits = words * WORD_BITS;
        Self {
            words: vec![0; words].into(),
            mask: bits as u64 - 1,
            len: 0,
        }
    }

    /// Returns the number of slots in the set.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn contains(&self, slot: u64) -> bool {
        let (word, bit) = self.position(slot);
        self.words[word] & bit != 0
    }

    /// Adds `slot`; `false` when it was there already.
    pub(super) fn insert(&mut self, slot: u64) -> bool {
        let (word, bit) = self.position(slot);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += u32::from(new);
        new
    }

    /// Removes `slot`; `false` when it was not there.
    pub(super) fn remove(&mut self, slot: u64) -> bool {
        let (word, bit) = self.position(slot);
        let present = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.len -= u32::from(present);
        present
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    /// The lowest slot in `from..to`, where the range is no longer than the window.
    pub(super) fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let mut slot = from;
        while slot < to {
            let (word, bit) = self.position(slot);
            // Bits of this word at or above the slot's own.
            let rest = self.words[word] & !(bit - 1);
            if rest != 0 {
                let found = slot + u64::from((rest.trailing_zeros()) - bit.trailing_zeros());
                return (found < to).then_some(found);
            }
            slot = slot.saturating_add(u64::from(64 - bit.trailing_zeros()));
        }
        None
    }

    /// Returns the number of slots of `from..to` in the set, where the range is no longer than the window.
    pub(super) fn count_in(&self, from: u64, to: u64) -> u32 {
        let mut count = 0;
        let mut slot = from;
        while self.len != 0 && slot < to {
            let (word, bit) = self.position(slot);
            let offset = u64::from(bit.trailing_zeros());
            let taken = (64 - offset).min(to - slot);
            let ones = if taken == 64 {
                u64::MAX
            } else {
                ((1 << taken) - 1) << offset
            };
            count += (self.words[word] & ones).count_ones();
            slot += taken;
        }
        count
    }

    fn position(&self, slot: u64) -> (usize, u64) {
        let index = slot & self.mask;
        // Masked, so it fits and is in bounds.
        ((index / 64) as usize, 1 << (index % 64))
    }
}

const WORD_BITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_an_ordinary_set_anywhere_in_the_number_space() {
        for (window, start) in [(1, 0), (10, 60), (64, 1), (65, 127), (200, u64::MAX - 201)] {
            let end = start + u64::from(window);
            let members: Vec<u64> = (start..end).filter(|slot| slot % 3 == 1).collect();
            let mut set = Slots::new(window);
            for &slot in &members {
                assert!(set.insert(slot) && !set.insert(slot));
            }
            assert_eq!(set.len() as usize, members.len());
            for slot in start..end {
                assert_eq!(set.contains(slot), members.contains(&slot));
                let first = members.iter().copied().find(|&member| member >= slot);
                assert_eq!(
                    set.first_in(slot, end),
                    first,
                    "window {window} from {slot}"
                );
                let count = members.iter().filter(|&&member| member >= slot).count();
                assert_eq!(set.count_in(slot, end) as usize, count);
                assert_eq!(set.count_in(start, slot) as usize, members.len() - count);
            }
            for &slot in &members {
                assert!(set.remove(slot) && !set.remove(slot));
            }
            assert_eq!((set.len(), set.first_in(start, end)), (0, None));
        }
    }
}
