//! Waits that grow with every failure in a row.

use muse_wire::Duration;

/// Failures in a row, and how long to wait after each: twice as long every time, up to a limit, and a random part of the second half of it, so
/// that many clients of one server do not come back in the same instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Counts a failure and returns the wait after it.
    pub(crate) fn next(
        &mut self,
        first: Duration,
        longest: Duration,
        rng: &mut fastrand::Rng,
    ) -> Duration {
        let factor = 1_u64 << self.failures.min(FACTOR_LOG_MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = first
            .as_micros()
            .saturating_mul(factor)
            .min(longest.as_micros());
        let half = wait / 2;
        Duration::from_micros(half + rng.u64(0..=wait - half))
    }
}

/// Beyond this the limit holds anyway.
const FACTOR_LOG_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit_and_differ_between_seeds() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
        let waits = |seed| {
            let (mut backoff, mut rng) = (Backoff::default(), fastrand::Rng::with_seed(seed));
            let waits: [Duration; 8] =
                std::array::from_fn(|_| backoff.next(first, longest, &mut rng));
            waits
        };
        for (wait, limit_s) in waits(1).into_iter().zip([1, 2, 4, 8, 16, 30, 30, 30]) {
            let limit = Duration::from_secs(limit_s);
            assert!(wait <= limit && wait.as_micros() >= limit.as_micros() / 2);
        }
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }
}
