//! The attempts that were accepted lately, so that a Connect that is repeated or replayed is not taken for another one.
//!
//! A Connect is good for as long as its cookie. Without this memory anyone who recorded one could repeat it in that time and,
//! with a token, have the session resumed by nobody.

use std::collections::BTreeSet;

use muse_wire::{Duration, Instant};

use super::ClientRandom;
use super::cookie::LIFETIME;

/// Attempts accepted within at least the life of a cookie. Two generations; the older is forgotten as a whole.
///
/// Ordered sets, for the names are chosen by strangers, who could make them collide in a hash.
pub(super) struct Recent {
    current: BTreeSet<ClientRandom>,
    previous: BTreeSet<ClientRandom>,
    since: Instant,
    limit: usize,
}

impl Recent {
    /// Remembers at most `limit` attempts per generation.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            current: BTreeSet::new(),
            previous: BTreeSet::new(),
            since: Instant::ZERO,
            limit,
        }
    }

    /// True if this attempt was accepted lately.
    pub(super) fn contains(&mut self, now: Instant, random: &ClientRandom) -> bool {
        self.turn(now);
        self.current.contains(random) || self.previous.contains(random)
    }

    /// True if there is no room to remember another.
    pub(super) fn is_full(&self) -> bool {
        self.current.len() >= self.limit
    }

    /// Remembers an attempt.
    pub(super) fn insert(&mut self, random: ClientRandom) {
        self.current.insert(random);
    }

    fn turn(&mut self, now: Instant) {
        let age = now - self.since;
        if age <= GENERATION {
            return;
        }
        self.previous = std::mem::take(&mut self.current);
        if age > GENERATION * 2 {
            self.previous.clear();
        }
        self.since = now;
    }
}

/// Longer than any cookie lives.
const GENERATION: Duration = Duration::from_micros(LIFETIME.as_micros() + 1_000_000);
/// Attempts remembered per generation, about 24 bytes each: some 6,000 acceptances a second.
pub(super) const RECENT_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_remembered_for_the_life_of_its_cookie_and_not_much_longer() {
        for start_ms in [0, 1, 10_999, 11_001, 50_000] {
            let mut recent = Recent::new(10);
            let start = Instant::from_millis(start_ms);
            assert!(!recent.contains(start, &[1; 16]));
            recent.insert([1; 16]);
            for millis in (0..=10_000).step_by(100) {
                assert!(
                    recent.contains(start + Duration::from_millis(millis), &[1; 16]),
                    "{start_ms} + {millis}"
                );
            }
            assert!(!recent.contains(start + Duration::from_secs(40), &[1; 16]));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::new(2);
        recent.insert([1; 16]);
        assert!(!recent.is_full());
        recent.insert([2; 16]);
        assert!(recent.is_full());
        recent.contains(Instant::from_secs(12), &[3; 16]);
        assert!(!recent.is_full());
    }
}
