//! A set of numbers that move upwards, one bit each, which is searched 64 at a time.
//!
//! Packets and messages are numbered, and a peer can name long runs of them in a few bytes. With these sets the work
//! follows the members that a run has, not its length.

use std::collections::VecDeque;

use crate::work;

/// Numbers from a floor on, as a ring of words; memory follows the distance between the lowest and the highest.
#[derive(Debug, Default)]
pub(crate) struct NumberSet {
    /// The words before `words[0]` hold no member.
    first: u64,
    words: VecDeque<u64>,
}

impl NumberSet {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.word(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Adds a number; it is not below what [`advance`](Self::advance) was given.
    pub(crate) fn insert(&mut self, number: u64) {
        let at = number / 64;
        if self.words.is_empty() {
            self.first = at;
        }
        while at < self.first {
            self.words.push_front(0);
            self.first -= 1;
        }
        let index = (at - self.first) as usize;
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: u64) {
        let index = (number / 64).checked_sub(self.first);
        if let Some(word) = index.and_then(|index| self.words.get_mut(index as usize)) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Forgets the numbers below `floor`, a word at a time: those that share a word with it stay.
    pub(crate) fn advance(&mut self, floor: u64) {
        while self.first < floor / 64 && self.words.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// The lowest member in `from..to`.
    pub(crate) fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        self.first_without(&EMPTY, from, to)
    }

    /// The lowest member in `from..to` that is none of `others`.
    pub(crate) fn first_without(&self, others: &Self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.first * 64);
        let end = to.min((self.first + self.words.len() as u64) * 64);
        let mut at = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while at * 64 < end {
            work::step();
            let word = self.word(at)? & !others.word(at).unwrap_or(0) & mask;
            if word != 0 {
                let number = at * 64 + u64::from(word.trailing_zeros());
                return (number < end).then_some(number);
            }
            mask = u64::MAX;
            at += 1;
        }
        None
    }

    /// The highest member in `from..to`.
    pub(crate) fn last_in(&self, from: u64, to: u64) -> Option<u64> {
        self.last_without(&EMPTY, from, to)
    }

    /// The highest member in `from..to` that is none of `others`.
    pub(crate) fn last_without(&self, others: &Self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.first * 64);
        let mut end = to.min((self.first + self.words.len() as u64) * 64);
        while end > from {
            work::step();
            let at = (end - 1) / 64;
            let word = self.word(at)? & !others.word(at).unwrap_or(0);
            let word = word << (63 - (end - 1) % 64);
            if word != 0 {
                let number = end - 1 - u64::from(word.leading_zeros());
                return (number >= from).then_some(number);
            }
            end = at * 64;
        }
        None
    }

    /// Gives back memory that an empty set does not need.
    pub(crate) fn shrink(&mut self) {
        if self.words.iter().all(|word| *word == 0) {
            self.words = VecDeque::new();
        }
    }

    fn word(&self, at: u64) -> Option<u64> {
        let index = usize::try_from(at.checked_sub(self.first)?).ok()?;
        self.words.get(index).copied()
    }
}

static EMPTY: NumberSet = NumberSet {
    first: 0,
    words: VecDeque::new(),
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_does_what_a_tree_does() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut set, mut tree) = (NumberSet::default(), BTreeSet::new());
        let mut floor = 60_000;
        for _ in 0..2_000 {
            let number = floor + rng.u64(..2_000);
            match rng.u8(..4) {
                0 | 1 => {
                    set.insert(number);
                    tree.insert(number);
                }
                2 => {
                    set.remove(number);
                    tree.remove(&number);
                }
                _ => {
                    floor += rng.u64(..40);
                    set.advance(floor);
                    tree = tree.split_off(&floor);
                }
            }
            let (from, to) = (floor + rng.u64(..2_500), floor + rng.u64(..2_500));
            let range = from.min(to)..to;
            assert_eq!(
                set.first_in(range.start, to),
                tree.range(range.clone()).next().copied()
            );
            assert_eq!(
                set.last_in(range.start, to),
                tree.range(range).next_back().copied()
            );
            let mut odd = NumberSet::default();
            tree.iter()
                .filter(|n| *n % 2 == 1)
                .for_each(|n| odd.insert(*n));
            let even = |n: &&u64| n.is_multiple_of(2);
            let mut evens = tree.range(from.min(to)..to).filter(even);
            assert_eq!(
                set.first_without(&odd, from.min(to), to),
                evens.next().copied()
            );
            let mut evens = tree.range(from.min(to)..to).filter(even);
            assert_eq!(
                set.last_without(&odd, from.min(to), to),
                evens.next_back().copied()
            );
            let number = number.max(floor);
            assert_eq!(set.contains(number), tree.contains(&number));
        }
    }
}
