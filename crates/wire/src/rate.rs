//! Rates with bursts: a bucket that fills steadily and is emptied by what passes.

use crate::{Duration, Instant};

/// So much a second, and at most so much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    per_second: u64,
    /// In millionths.
    burst: u64,
}

impl Rate {
    /// `per_second` steadily, and `burst` at once after a pause.
    pub const fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second: per_second as u64,
            burst: burst as u64 * MILLIONTHS,
        }
    }

    /// `per_second` steadily, and at once what comes together in `window`, but at least one.
    pub fn over(per_second: u32, window: Duration) -> Self {
        let per_second = u64::from(per_second);
        Self {
            per_second,
            burst: per_second
                .saturating_mul(window.as_micros())
                .max(MILLIONTHS),
        }
    }

    /// Returns how much passes at once after a pause.
    pub const fn burst(&self) -> u64 {
        self.burst / MILLIONTHS
    }
}

/// A token bucket: the bytes or packets that may still pass at a [`Rate`]. The owner keeps the rate, since many buckets have the same one.
///
/// ```
/// use muse_wire::Instant;
/// use muse_wire::rate::{Rate, TokenBucket};
/// let rate = Rate::new(4, 10);
/// let mut bucket = TokenBucket::full(Instant::ZERO, rate);
/// assert_eq!((0..100).filter(|_| bucket.admit(Instant::ZERO, rate, 1)).count(), 10);
/// assert!(bucket.admit(Instant::from_millis(250), rate, 1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// In millionths, so that a microsecond's share is exact.
    level: u64,
    filled: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub fn full(now: Instant, rate: Rate) -> Self {
        Self {
            level: rate.burst,
            filled: now,
        }
    }

    /// Takes `amount` if there is enough; false if not, and nothing is taken.
    #[inline]
    pub fn admit(&mut self, now: Instant, rate: Rate, amount: u64) -> bool {
        let passes = self.has(now, rate, amount);
        if passes {
            self.take(amount);
        }
        passes
    }

    /// True if `amount` may pass now.
    #[inline]
    pub fn has(&mut self, now: Instant, rate: Rate, amount: u64) -> bool {
        self.fill(now, rate);
        self.level >= amount.saturating_mul(MILLIONTHS)
    }

    /// Returns how much may pass now.
    pub fn available(&mut self, now: Instant, rate: Rate) -> u64 {
        self.fill(now, rate);
        self.level / MILLIONTHS
    }

    /// Takes `amount`, or what is left.
    #[inline]
    pub fn take(&mut self, amount: u64) {
        self.level = self.level.saturating_sub(amount.saturating_mul(MILLIONTHS));
    }

    #[inline]
    fn fill(&mut self, now: Instant, rate: Rate) {
        let passed = now.saturating_since(self.filled).as_micros();
        if passed > 0 {
            let gained = passed.saturating_mul(rate.per_second);
            self.level = self.level.saturating_add(gained).min(rate.burst);
            self.filled = now;
        }
    }
}

const MILLIONTHS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let rate = Rate::new(4, 10);
        let mut bucket = TokenBucket::full(Instant::ZERO, rate);
        assert_eq!(bucket.available(Instant::ZERO, rate), 10);
        bucket.take(10);
        assert_eq!(bucket.available(Instant::ZERO, rate), 0);
        assert_eq!(bucket.available(Instant::from_millis(250), rate), 1);
        assert_eq!(bucket.available(Instant::from_millis(499), rate), 1);
        assert_eq!(bucket.available(Instant::from_millis(500), rate), 2);
        assert_eq!(bucket.available(Instant::from_secs(1_000), rate), 10);
        // A clock that goes back gives nothing twice.
        bucket.take(10);
        assert_eq!(bucket.available(Instant::from_secs(999), rate), 0);
        assert_eq!(bucket.available(Instant::from_secs(1_000), rate), 0);
    }

    #[test]
    fn a_window_says_how_much_comes_at_once() {
        let half_a_second = Duration::from_millis(500);
        let rate = Rate::over(10, half_a_second);
        assert_eq!(rate, Rate::new(10, 5));
        let rate = Rate::over(1, half_a_second);
        let mut bucket = TokenBucket::full(Instant::ZERO, rate);
        assert!(bucket.admit(Instant::ZERO, rate, 1), "one always passes");
        assert!(!bucket.admit(Instant::ZERO + half_a_second, rate, 1));
    }
}
