//! One-way delays of packets, and the smallest delay that still catches them.
//!
//! Inputs on their way to the server and snapshots on their way to a client meet the same question: how long must the
//! receiver wait so that what it needs is there in time, if a packet that is lost or late is made good by the next one? The
//! answer here comes from the delays that were measured, not from an assumed distribution.

/// The delays of the last [`WINDOW`](Self::WINDOW) packets of one direction, in microseconds.
///
/// Sender and receiver have different clocks, so a delay counts from an unknown origin; only differences mean something.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// In order of arrival, from `next` on.
    ring: Vec<i32>,
    sorted: Vec<i32>,
    next: usize,
    sum: i64,
}

/// The packets that have to arrive, for [`Delays::required`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Need {
    /// The time from the moment that the delay counts from until the first packet that will do is sent, in microseconds.
    pub(crate) first: i32,
    /// Time from one packet that will do to the next, in microseconds.
    pub(crate) spacing: i32,
    /// The number of packets that will do, at least 1.
    pub(crate) copies: u32,
    /// Share of packets that are lost.
    pub(crate) loss: f64,
    /// Share of cases in which nothing may have arrived.
    pub(crate) miss_share_max: f64,
}

impl Delays {
    /// Packets remembered.
    pub(crate) const WINDOW: usize = 512;

    /// Nothing measured yet.
    pub(crate) fn new() -> Self {
        Self {
            ring: Vec::with_capacity(Self::WINDOW),
            sorted: Vec::with_capacity(Self::WINDOW),
            next: 0,
            sum: 0,
        }
    }

    /// Records the delay of a packet that arrived. When the last ones differ from all before, the path has changed, and what was
    /// before is forgotten.
    pub(crate) fn record(&mut self, delay: i32) {
        let delay = delay.clamp(-DELAY_MAX, DELAY_MAX);
        if self.ring.len() == Self::WINDOW {
            let oldest = std::mem::replace(&mut self.ring[self.next], delay);
            self.next = (self.next + 1) % Self::WINDOW;
            self.forget(oldest);
        } else {
            self.ring.push(delay);
        }
        // Kept sorted, because one search of `required` asks for the share above a delay dozens of times.
        let place = self.sorted.partition_point(|&other| other < delay);
        self.sorted.insert(place, delay);
        self.sum += i64::from(delay);
        if self.has_changed() {
            self.keep_newest(CHANGE_PACKETS - CHANGE_EXCEPTIONS);
        }
    }

    /// Returns the number of delays that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// The mean, or zero.
    pub(crate) fn mean(&self) -> i32 {
        (self.sum / (self.len() as i64).max(1)) as i32
    }

    /// The delay that this share of the packets did not exceed, or zero.
    pub(crate) fn quantile(&self, share: f64) -> i32 {
        let last = self.sorted.len().saturating_sub(1);
        let place = (share.clamp(0.0, 1.0) * last as f64).ceil() as usize;
        self.sorted.get(place).copied().unwrap_or(0)
    }

    /// The share of packets that take longer than `delay`. Of what was never seen a tenth of a packet is assumed, so that
    /// few measurements give careful answers.
    pub(crate) fn share_above(&self, delay: i32) -> f64 {
        let above = self.len() - self.sorted.partition_point(|&other| other <= delay);
        (above as f64 + UNSEEN) / (self.len() as f64 + 1.0)
    }

    /// Forgets all but the last `newest`.
    fn keep_newest(&mut self, newest: usize) {
        let len = self.len();
        if newest >= len {
            return;
        }
        self.ring.rotate_left(self.next);
        self.next = 0;
        self.ring.copy_within(len - newest.., 0);
        self.ring.truncate(newest);
        self.sorted.clear();
        self.sorted.extend_from_slice(&self.ring);
        self.sorted.sort_unstable();
        self.sum = self.ring.iter().copied().map(i64::from).sum();
    }

    /// Moves the origin that delays count from: each becomes longer by `by`.
    pub(crate) fn shift(&mut self, by: i32) {
        let moved = |delay: i32| delay.saturating_add(by).clamp(-DELAY_MAX, DELAY_MAX);
        self.ring
            .iter_mut()
            .for_each(|delay| *delay = moved(*delay));
        self.sorted
            .iter_mut()
            .for_each(|delay| *delay = moved(*delay));
        self.sum = self.ring.iter().copied().map(i64::from).sum();
    }

    /// The smallest delay with which what is needed is missing in at most the share of cases allowed, if packets are late and
    /// lost independently of each other; at most what makes the slowest of the last copies count. `None` before
    /// anything was measured.
    pub(crate) fn required(&self, need: &Need) -> Option<i32> {
        let (&fastest, &slowest) = (self.sorted.first()?, self.sorted.last()?);
        let spacing = i64::from(need.spacing.max(0));
        let last = spacing * i64::from(need.copies.saturating_sub(1));
        let mut low = i64::from(fastest) + i64::from(need.first);
        let mut high = i64::from(slowest) + i64::from(need.first) + last;
        // A longer delay never misses more, so halving finds the shortest that will do.
        while low < high {
            let middle = low + (high - low) / 2;
            if self.miss_share(middle, need) <= need.miss_share_max {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
    }

    /// The share of cases in which none of the copies arrives within `delay`.
    fn miss_share(&self, delay: i64, need: &Need) -> f64 {
        let mut missing = 1.0;
        for copy in 0..i64::from(need.copies) {
            let left = delay - i64::from(need.first) - copy * i64::from(need.spacing.max(0));
            let left = left.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            // Neither this copy nor a later one can arrive in time.
            if self.sorted.first().is_none_or(|&fastest| left < fastest) {
                break;
            }
            missing *= need.loss + (1.0 - need.loss) * self.share_above(left);
        }
        missing
    }

    /// True if nearly all of the last packets are slower, or nearly all are quicker, than nine of ten.
    fn has_changed(&self) -> bool {
        let len = self.len();
        // The last ones have to be few among all, or they would be compared with themselves.
        if len < CHANGE_PACKETS * 4 {
            return false;
        }
        let (quick, slow) = (self.quantile(0.1), self.quantile(0.9));
        let newest = (len - CHANGE_PACKETS..len).map(|index| self.ring[(self.next + index) % len]);
        let (mut quicker, mut slower) = (0, 0);
        for delay in newest {
            quicker += usize::from(delay < quick);
            slower += usize::from(delay > slow);
        }
        quicker.max(slower) >= CHANGE_PACKETS - CHANGE_EXCEPTIONS
    }

    fn forget(&mut self, delay: i32) {
        let place = self.sorted.partition_point(|&other| other < delay);
        self.sorted.remove(place);
        self.sum -= i64::from(delay);
    }
}

impl Default for Delays {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets assumed to be slower than any that was seen.
const UNSEEN: f64 = 0.1;
/// So many packets in a row show that a path has changed.
const CHANGE_PACKETS: usize = 16;
/// All but so many of them.
const CHANGE_EXCEPTIONS: usize = 2;
/// Longest delay counted, either way from the origin: 10 minutes.
const DELAY_MAX: i32 = 600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_forgets_the_oldest() {
        let mut delays = Delays::new();
        let mut random = fastrand::Rng::with_seed(1);
        let window = Delays::WINDOW as i32;
        // Ever slower in the long run, but not in leaps.
        for index in 0..3 * window {
            delays.record(index + random.i32(0..1_000));
        }
        assert_eq!(delays.len(), Delays::WINDOW);
        assert!(delays.quantile(0.0) >= 2 * window && delays.quantile(1.0) >= 3 * window);
        let mean = delays.mean() - (2 * window + window / 2 + 500);
        assert!(mean.abs() < 50, "{mean}");
        let least = delays.quantile(0.0);
        delays.shift(10);
        assert_eq!(delays.quantile(0.0), least + 10);
    }

    #[test]
    fn a_changed_path_is_noticed() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut delays = Delays::new();
        for base in [50_000, 90_000, 30_000] {
            for count in 0..Delays::WINDOW {
                delays.record(base + random.i32(0..10_000));
                let settled = count >= 2 * CHANGE_PACKETS;
                assert!(!settled || (delays.quantile(0.5) - base - 5_000).abs() < 3_000);
            }
            assert!(delays.len() >= Delays::WINDOW - CHANGE_PACKETS);
        }
    }

    #[test]
    fn losses_ask_for_time_for_later_packets() {
        let mut delays = Delays::new();
        for index in 0..Delays::WINDOW as i32 {
            delays.record(50_000 + index % 10 * 1_000);
        }
        let need = Need {
            first: 0,
            spacing: 20_000,
            copies: 3,
            loss: 0.0,
            miss_share_max: 0.001,
        };
        // Nothing is lost, so waiting for the slowest of them is enough.
        assert_eq!(delays.required(&need), Some(59_000));
        // With 5 % lost two later packets have to have their chance, too.
        let lossy = Need { loss: 0.05, ..need };
        assert!(delays.required(&lossy) > Some(50_000 + 40_000));
    }

    #[test]
    fn few_measurements_give_careful_answers() {
        let need = Need {
            first: 0,
            spacing: 1_000,
            copies: 4,
            loss: 0.0,
            miss_share_max: 0.001,
        };
        let mut delays = Delays::new();
        assert_eq!(delays.required(&need), None);
        let mut last = i32::MAX;
        for count in 0..Delays::WINDOW {
            delays.record(500);
            let required = delays.required(&need).expect("measured");
            assert!(required <= last && (count > 1 || required >= 2_500));
            last = required;
        }
        assert_eq!(last, 500);
    }

    #[test]
    fn any_number_is_survived() {
        let mut delays = Delays::new();
        for delay in [i32::MIN, i32::MAX, 0, -1] {
            delays.record(delay);
        }
        delays.shift(i32::MAX);
        let need = Need {
            first: i32::MAX,
            spacing: i32::MAX,
            copies: 16,
            loss: 1.0,
            miss_share_max: 0.0,
        };
        assert_eq!(delays.required(&need), Some(i32::MAX));
    }
}
