//! Packet numbers that are left out on purpose, so that a peer cannot acknowledge what it has not received.
//!
//! Acknowledgements steer congestion control: a peer that names packets which are still under way, or were lost, looks as if it had a fast and
//! perfect path, and is sent more than the path carries, at the expense of all others on it. Now and then one number is therefore never used. A
//! peer does not know which, for they come from secret randomness and look like losses; one that acknowledges such a number is caught.

use crate::crypto::Entropy;

/// The numbers left out of late on one connection.
#[derive(Debug, Default)]
pub(crate) struct Traps {
    /// A ring; 0 where there is none yet.
    recent: [u64; KEPT],
    next: usize,
    newest: u64,
    /// The one before the newest.
    previous: u64,
}

impl Traps {
    /// A number is left out, above all before it.
    pub(crate) fn insert(&mut self, number: u64) {
        self.recent[self.next] = number;
        self.next = (self.next + 1) % KEPT;
        self.previous = std::mem::replace(&mut self.newest, number);
    }

    /// True if one of `from..to` was left out.
    #[inline]
    pub(crate) fn any_in(&self, from: u64, to: u64) -> bool {
        self.count_in(from, to) > 0
    }

    /// Counts those of `from..to` that were left out.
    #[inline]
    pub(crate) fn count_in(&self, from: u64, to: u64) -> u64 {
        // Nearly always what is asked about is newer than all of them, or all but one.
        if from > self.newest {
            return 0;
        }
        if from > self.previous {
            return u64::from(self.newest < to);
        }
        self.count_recent(from, to)
    }

    #[cold]
    #[inline(never)]
    fn count_recent(&self, from: u64, to: u64) -> u64 {
        let within = |number: &&u64| (from..to).contains(*number);
        self.recent.iter().filter(within).count() as u64
    }
}

/// Draws the number of packets until the first trap of a connection: a newcomer is tried soon.
pub(crate) fn draw_first(entropy: &mut dyn Entropy) -> u32 {
    draw_distance(entropy) / 4
}

/// Draws the number of packets until the next trap.
pub(crate) fn draw_distance(entropy: &mut dyn Entropy) -> u32 {
    let mut bytes = [0; 2];
    entropy.fill(&mut bytes);
    DISTANCE_MIN + u32::from(u16::from_le_bytes(bytes)) % DISTANCE_SPAN
}

/// Fewest packets from one trap to the next: a gap costs a byte or two in each acknowledgement block that spans it.
const DISTANCE_MIN: u32 = 128;
/// The distances are spread over so many values, 640 packets on average.
const DISTANCE_SPAN: u32 = 1_024;
/// Traps remembered. More than the largest reordering that the sender learns spans, and older acknowledgements change nothing.
const KEPT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::SeededEntropy;

    #[test]
    fn the_last_ones_are_known() {
        let mut traps = Traps::default();
        assert!(!traps.any_in(1, u64::MAX));
        for number in (100..2_000).step_by(100) {
            traps.insert(number);
        }
        assert!(traps.any_in(1_900, 1_901) && traps.any_in(1_150, 1_201));
        assert!(!traps.any_in(1_901, 2_500) && !traps.any_in(1_801, 1_900));
        assert_eq!(traps.count_in(1_500, 1_900), 4);
        assert_eq!(traps.count_in(0, 5_000), KEPT as u64);
    }

    #[test]
    fn they_come_once_in_some_hundred_packets_and_cannot_be_foreseen() {
        let mut entropy = SeededEntropy::danger_seeded(1);
        let drawn: Vec<u32> = (0..2_000).map(|_| draw_distance(&mut entropy)).collect();
        let mean = drawn.iter().sum::<u32>() / 2_000;
        assert!((600..680).contains(&mean), "{mean}");
        let different: std::collections::BTreeSet<u32> = drawn.iter().copied().collect();
        assert!(different.len() > 800, "{}", different.len());
        assert!(drawn.iter().all(|distance| (128..1_152).contains(distance)));
        assert!((32..288).contains(&draw_first(&mut entropy)));
    }
}
