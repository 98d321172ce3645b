//! The packets that arrived: the replay window and the source of acknowledgements.
//!
//! One bit per packet number for the last [`WINDOW`] numbers. A number outside the window or with its bit set is
//! a replay and changes nothing.

use muse_wire::Instant;

use crate::packet::{
    ACK_COVERAGE, ACK_DELAY_UNIT, ACK_RUNS_MAX, AckBlock, AckRun, PACKET_NUMBER_FIRST,
};

/// Numbers remembered.
pub(crate) const WINDOW: u64 = 2_048;
/// Blocks that tell how long the newest packet has been here; a sender takes a sample from the first that arrives.
const DELAY_REPEATS: u8 = 2;
/// Longest run reported beyond what is needed, so that it takes one byte.
const RUN_SHORT: u64 = 64;

/// The packets received on one connection.
#[derive(Debug)]
pub(crate) struct ReceivedPackets {
    highest: Option<u64>,
    highest_at: Instant,
    /// Blocks that have reported the highest number.
    highest_told: u8,
    arrived: Bits,
    recovered: Bits,
    /// Newest number recovered; while it is far away its bits need no care.
    recovered_highest: u64,
    /// Packets that arrived but are not acknowledged; there once the first one was.
    refused: Option<Box<Bits>>,
    /// Packets that came with a congestion mark, modulo 256.
    marks: u8,
    marked: bool,
    /// Lowest number recorded since the last acknowledgement, and before the two before it.
    fresh_lowest: [u64; 3],
}

impl ReceivedPackets {
    pub(crate) fn new() -> Self {
        Self {
            highest: None,
            highest_at: Instant::ZERO,
            highest_told: 0,
            arrived: Bits::default(),
            recovered: Bits::default(),
            recovered_highest: 0,
            refused: None,
            marks: 0,
            marked: false,
            fresh_lowest: [u64::MAX; 3],
        }
    }

    /// The newest number, or the one before the first that can come.
    pub(crate) fn highest(&self) -> u64 {
        self.highest.unwrap_or(PACKET_NUMBER_FIRST - 1)
    }

    /// True if `number` has not been seen and can still be told apart from a replay.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let newest = number > self.highest();
        newest
            || (number >= PACKET_NUMBER_FIRST
                && self.in_window(number)
                && !self.arrived.contains(number)
                && !self.is_refused(number))
    }

    /// True if `number`, which is in the window, has arrived.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn has_arrived(&self, number: u64) -> bool {
        self.arrived.contains(number)
    }

    /// Takes back what [`record`](Self::record) said: the packet is not acknowledged, as if it had been lost. It is not new
    /// any more either.
    pub(crate) fn refuse(&mut self, number: u64) {
        self.arrived.remove(number);
        self.refused.get_or_insert_default().insert(number);
    }

    fn is_refused(&self, number: u64) -> bool {
        self.refused
            .as_ref()
            .is_some_and(|refused| refused.contains(number))
    }

    /// Records a packet; it was [`is_new`](Self::is_new) and authentic. Returns whether it left a gap before it or
    /// filled one: the sender should hear of it at once.
    pub(crate) fn record(&mut self, now: Instant, number: u64, marked: bool) -> bool {
        let highest = self.highest();
        if number > highest {
            // The ring holds the bits of numbers that have left the window; those of the new ones begin clear.
            self.arrived.clear(highest + 1, number);
            if self.recovered_highest + WINDOW > highest {
                self.recovered.clear(highest + 1, number);
            }
            if let Some(refused) = &mut self.refused {
                refused.clear(highest + 1, number);
            }
            self.highest = Some(number);
            self.highest_at = now;
            self.highest_told = 0;
        }
        self.arrived.insert(number);
        self.fresh_lowest[0] = self.fresh_lowest[0].min(number);
        if marked {
            self.marks = self.marks.wrapping_add(1);
            self.marked = true;
        }
        number != highest + 1
    }

    /// Marks a missing packet whose protected section was reconstructed.
    pub(crate) fn record_recovered(&mut self, number: u64) {
        if self.highest.is_some_and(|highest| number < highest) && self.in_window(number) {
            self.recovered.insert(number);
            self.recovered_highest = self.recovered_highest.max(number);
            self.fresh_lowest[0] = self.fresh_lowest[0].min(number);
        }
    }

    /// True if any of the newest `count` numbers is missing.
    pub(crate) fn has_gap(&self, count: u64) -> bool {
        let highest = self.highest();
        let mut left = count.min(highest + 1 - PACKET_NUMBER_FIRST);
        let mut next = highest;
        while left > 0 {
            let run = self
                .arrived
                .run(next, true, left)
                .max(self.recovered.run(next, true, left));
            if run == 0 {
                return true;
            }
            left -= run;
            next -= run;
        }
        false
    }

    /// Fills `block` with what is known; `false` when nothing has arrived yet that is acknowledged.
    pub(crate) fn fill(&mut self, now: Instant, block: &mut AckBlock) -> bool {
        let Some(highest) = self.highest else {
            return false;
        };
        let oldest = (highest + 1)
            .saturating_sub(WINDOW)
            .max(PACKET_NUMBER_FIRST);
        let refused = self.arrived.run(highest, false, highest + 1 - oldest);
        if refused > highest - oldest {
            return false;
        }
        let newest = highest - refused;
        block.newest = newest;
        let units = now.saturating_since(self.highest_at).as_micros() / ACK_DELAY_UNIT;
        block.delay = if self.highest_told < DELAY_REPEATS && newest == highest {
            u8::try_from(units).ok()
        } else {
            None
        };
        self.highest_told = self.highest_told.saturating_add(1);
        block.marks = self.marked.then_some(self.marks);
        block.runs.clear();
        let wanted = self.fresh_lowest.iter().copied().min().unwrap_or(newest);
        let floor = wanted
            .min(newest.saturating_sub(ACK_COVERAGE - 1))
            .max(oldest);
        let mut next = newest;
        let mut missing = 0;
        let mut recovered = false;
        loop {
            // The first run may tell more for the same byte; later ones stop at the floor, so that a field of bits will do.
            let least = next + 1 - floor;
            let most = if block.runs.is_empty() {
                least.max(RUN_SHORT).min(next + 1 - oldest)
            } else {
                least
            };
            let arrived = self.arrived.run(next, true, most);
            block.runs.push(AckRun {
                missing,
                recovered,
                arrived,
            });
            if next < floor + arrived || block.runs.len() > ACK_RUNS_MAX {
                break;
            }
            next -= arrived;
            recovered = self.recovered.contains(next);
            let gap_most = next + 1 - floor;
            let absent = self.arrived.run(next, false, gap_most);
            missing = self.recovered.run(next, recovered, absent);
            if next < floor + missing {
                // A gap that reaches the floor says nothing more, except that it was repaired.
                if recovered {
                    block.runs.push(AckRun {
                        missing,
                        recovered,
                        arrived: 0,
                    });
                }
                break;
            }
            next -= missing;
        }
        self.fresh_lowest = [u64::MAX, self.fresh_lowest[0], self.fresh_lowest[1]];
        true
    }

    fn in_window(&self, number: u64) -> bool {
        number + WINDOW > self.highest()
    }
}

/// A ring of bits, one per number modulo [`WINDOW`].
#[derive(Debug)]
struct Bits([u64; WINDOW as usize / 64]);

impl Default for Bits {
    fn default() -> Self {
        Self([0; WINDOW as usize / 64])
    }
}

impl Bits {
    fn contains(&self, number: u64) -> bool {
        self.0[Self::word(number)] >> (number % 64) & 1 != 0
    }

    fn insert(&mut self, number: u64) {
        self.0[Self::word(number)] |= 1 << (number % 64);
    }

    fn remove(&mut self, number: u64) {
        self.0[Self::word(number)] &= !(1 << (number % 64));
    }

    /// Clears the bits of `from..=to`.
    fn clear(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.0 = [0; WINDOW as usize / 64];
            return;
        }
        let mut number = from;
        while number <= to {
            if number.is_multiple_of(64) && to - number >= 63 {
                self.0[Self::word(number)] = 0;
                number += 64;
            } else {
                self.0[Self::word(number)] &= !(1 << (number % 64));
                number += 1;
            }
        }
    }

    /// Counts the consecutive numbers from `number` down that have their bit equal to `set`, at most `most`.
    fn run(&self, number: u64, set: bool, most: u64) -> u64 {
        let mut count = 0;
        while count < most {
            let at = number - count;
            let word = self.0[Self::word(at)];
            let word = if set { word } else { !word };
            let lead = u64::from((word << (63 - at % 64)).leading_ones());
            let in_word = at % 64 + 1;
            count += lead.min(in_word);
            if lead < in_word || at < in_word {
                break;
            }
        }
        count.min(most)
    }

    const fn word(number: u64) -> usize {
        (number % WINDOW / 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = PACKET_NUMBER_FIRST;

    fn status(block: &AckBlock) -> Vec<(u64, char)> {
        let mut number = block.newest + 1;
        let mut all = Vec::new();
        for run in &block.runs {
            for _ in 0..run.missing {
                number -= 1;
                all.push((number, if run.recovered { 'r' } else { '-' }));
            }
            for _ in 0..run.arrived {
                number -= 1;
                all.push((number, '+'));
            }
        }
        all
    }

    #[test]
    fn a_refused_packet_is_neither_acknowledged_nor_new() {
        let mut received = ReceivedPackets::new();
        let mut block = AckBlock::default();
        let now = Instant::from_secs(1);
        received.record(now, FIRST, false);
        received.refuse(FIRST);
        assert!(!received.fill(now, &mut block), "nothing to acknowledge");
        for number in FIRST + 1..FIRST + 6 {
            received.record(now, number, false);
        }
        received.refuse(FIRST + 3);
        received.refuse(FIRST + 5);
        assert!(received.fill(now, &mut block));
        assert_eq!((block.newest, block.delay), (FIRST + 4, None));
        let arrived = status(&block);
        let arrived = arrived.iter().filter(|(_, state)| *state == '+');
        let arrived: Vec<u64> = arrived.map(|(number, _)| *number).collect();
        assert_eq!(arrived, [FIRST + 4, FIRST + 2, FIRST + 1]);
        for number in FIRST..FIRST + 6 {
            assert!(!received.is_new(number), "{number}");
        }
        // Long after, its place in the ring belongs to another.
        received.record(now, FIRST + 5 + WINDOW - 1, false);
        assert!(received.is_new(FIRST + 3 + WINDOW));
    }

    #[test]
    fn a_number_counts_once() {
        let mut received = ReceivedPackets::new();
        assert!(received.is_new(FIRST) && !received.is_new(FIRST - 1));
        assert!(!received.record(Instant::ZERO, FIRST, false));
        assert!(!received.is_new(FIRST));
        assert!(received.record(Instant::ZERO, FIRST + 5, false), "a gap");
        assert!(received.is_new(FIRST + 4));
        received.record(Instant::ZERO, FIRST + 5 + WINDOW, false);
        assert!(!received.is_new(FIRST + 5), "too old to tell");
        assert!(received.is_new(FIRST + 6));
    }

    #[test]
    fn numbers_of_the_last_turn_of_the_ring_are_no_replays() {
        let mut received = ReceivedPackets::new();
        for number in FIRST..FIRST + 3 * WINDOW {
            assert!(received.is_new(number), "{number}");
            received.record(Instant::ZERO, number, false);
            assert!(!received.is_new(number));
        }
    }

    #[test]
    fn every_block_covers_at_least_33_numbers_and_tells_the_truth() {
        for seed in 0..300 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut received = ReceivedPackets::new();
            let mut truth = std::collections::BTreeMap::new();
            let mut number = FIRST;
            let mut block = AckBlock::default();
            let mut rebuilt = Vec::new();
            for _ in 0..400 {
                if rng.f64() < 0.8 {
                    received.record(Instant::ZERO, number, false);
                    truth.insert(number, '+');
                } else if rng.bool() {
                    rebuilt.push(number);
                }
                number += 1;
                if rng.u8(..) < 20 {
                    number += rng.u64(..100);
                }
                let highest = received.highest();
                for n in rebuilt.extract_if(.., |n| *n < highest) {
                    received.record_recovered(n);
                    truth.insert(n, 'r');
                }
                if !received.fill(Instant::ZERO, &mut block) {
                    continue;
                }
                let highest = received.highest();
                let told = status(&block);
                for &(n, kind) in &told {
                    let known = truth.get(&n).copied().unwrap_or('-');
                    assert_eq!(kind, known, "seed {seed} number {n}");
                }
                for n in highest.saturating_sub(32).max(FIRST)..=highest {
                    let known = truth.get(&n).copied().unwrap_or('-');
                    let found = told
                        .iter()
                        .find(|told| told.0 == n)
                        .map_or('-', |told| told.1);
                    assert!(found == known, "seed {seed}: {n} is {known}, told {found}");
                }
                assert!(block.runs.len() <= ACK_RUNS_MAX + 2);
            }
        }
    }

    #[test]
    fn what_came_since_the_last_blocks_is_reported_however_much_it_is() {
        let mut received = ReceivedPackets::new();
        for number in FIRST..FIRST + 500 {
            received.record(Instant::ZERO, number, false);
        }
        let mut block = AckBlock::default();
        for _ in 0..3 {
            assert!(received.fill(Instant::ZERO, &mut block));
            assert_eq!(block.runs[0].arrived, 500);
        }
        assert!(received.fill(Instant::ZERO, &mut block));
        assert_eq!(
            block.runs[0].arrived, RUN_SHORT,
            "one byte is enough once it was said three times"
        );
    }

    #[test]
    fn the_delay_is_told_while_it_is_news_and_fits() {
        let mut received = ReceivedPackets::new();
        received.record(Instant::from_millis(5), FIRST, true);
        let mut block = AckBlock::default();
        received.fill(Instant::from_millis(15), &mut block);
        assert_eq!(block.delay, Some((10_000 / ACK_DELAY_UNIT) as u8));
        assert_eq!(block.marks, Some(1));
        received.fill(Instant::from_secs(15), &mut block);
        assert_eq!(block.delay, None);
    }
}
