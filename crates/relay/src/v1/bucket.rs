//! Rates with bursts: a bucket that fills steadily and is emptied by what passes.

use muse_wire::Instant;

/// The amount that a client may still send now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// In millionths, so that a microsecond's share is exact.
    level: u64,
    filled: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn full(now: Instant, burst: u32) -> Self {
        Self {
            level: u64::from(burst) * MILLIONTHS,
            filled: now,
        }
    }

    /// Returns how much may pass now, after it was filled at `rate` a second up to `burst`.
    pub(super) fn available(&mut self, now: Instant, rate: u32, burst: u32) -> u64 {
        let passed = now.saturating_since(self.filled).as_micros();
        let gained = passed.saturating_mul(u64::from(rate));
        self.level = self
            .level
            .saturating_add(gained)
            .min(u64::from(burst) * MILLIONTHS);
        self.filled = self.filled.max(now);
        self.level / MILLIONTHS
    }

    /// Something passed.
    pub(super) fn take(&mut self, amount: u64) {
        self.level = self.level.saturating_sub(amount.saturating_mul(MILLIONTHS));
    }
}

const MILLIONTHS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = Bucket::full(Instant::ZERO, 10);
        assert_eq!(bucket.available(Instant::ZERO, 4, 10), 10);
        bucket.take(10);
        assert_eq!(bucket.available(Instant::ZERO, 4, 10), 0);
        assert_eq!(bucket.available(Instant::from_millis(250), 4, 10), 1);
        assert_eq!(bucket.available(Instant::from_millis(499), 4, 10), 1);
        assert_eq!(bucket.available(Instant::from_millis(500), 4, 10), 2);
        assert_eq!(bucket.available(Instant::from_secs(1_000), 4, 10), 10);
        // A clock that goes back gives nothing twice.
        bucket.take(10);
        assert_eq!(bucket.available(Instant::from_secs(999), 4, 10), 0);
        assert_eq!(bucket.available(Instant::from_secs(1_000), 4, 10), 0);
    }
}
