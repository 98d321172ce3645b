//! Round-trip time, its variation, and jitter.

use muse_wire::{Duration, Instant};

/// Assumed before the first sample.
const RTT_INITIAL: Duration = Duration::from_millis(200);
/// Longest time to believe: a sample above it is cut (ten times what a game can be played with).
const RTT_MAX: Duration = Duration::from_secs(10);
/// The time for which a minimum is trusted.
const RTT_MIN_WINDOW: Duration = Duration::from_secs(30);

/// Estimates from the time between a packet and its acknowledgement.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    sampled: bool,
    latest: Duration,
    smoothed: Duration,
    /// Mean deviation from the smoothed value.
    variance: Duration,
    /// Moving mean of the difference between successive samples.
    jitter: Duration,
    min: Duration,
    min_at: Instant,
    min_next: Duration,
}

impl Rtt {
    pub(crate) fn new() -> Self {
        Self {
            sampled: false,
            latest: RTT_INITIAL,
            smoothed: RTT_INITIAL,
            variance: RTT_INITIAL / 2,
            jitter: Duration::ZERO,
            min: RTT_INITIAL,
            min_at: Instant::ZERO,
            min_next: RTT_INITIAL,
        }
    }

    /// Takes a sample, from which the receiver's delay has not been subtracted yet.
    pub(crate) fn sample(&mut self, now: Instant, raw: Duration, ack_delay: Duration) {
        let raw = raw.min(RTT_MAX);
        if !self.sampled {
            let sample = if raw > ack_delay {
                raw - ack_delay
            } else {
                raw
            };
            self.sampled = true;
            self.latest = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            self.min = sample;
            self.min_next = sample;
            self.min_at = now;
            return;
        }
        // A receiver that claims more delay than there was would make the path look shorter than it ever has been.
        let sample = if raw >= ack_delay + self.min {
            raw - ack_delay
        } else {
            raw.min(self.latest.max(self.min))
        };
        self.jitter = (self.jitter * 15 + sample.abs_diff(self.latest)) / 16;
        self.latest = sample;
        self.variance = (self.variance * 3 + self.smoothed.abs_diff(sample)) / 4;
        // Fiedler's smoothing: 10 % of the way to each sample.
        self.smoothed = (self.smoothed * 9 + sample) / 10;
        if sample <= self.min {
            self.min = sample;
            self.min_at = now;
            self.min_next = sample;
        } else {
            self.min_next = self.min_next.min(sample);
            if now.saturating_since(self.min_at) > RTT_MIN_WINDOW {
                self.min = self.min_next;
                self.min_next = sample;
                self.min_at = now;
            }
        }
    }

    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(crate) fn variance(&self) -> Duration {
        self.variance
    }

    pub(crate) fn jitter(&self) -> Duration {
        self.jitter
    }

    pub(crate) fn min(&self) -> Duration {
        self.min
    }

    /// Returns the time to wait for an acknowledgement before probing.
    pub(crate) fn probe_timeout(&self, ack_delay_max: Duration) -> Duration {
        self.smoothed + (self.variance * 4).max(Duration::from_millis(1)) + ack_delay_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_settle_on_a_steady_path() {
        let mut rtt = Rtt::new();
        for i in 0..200 {
            let raw = Duration::from_millis(100 + 4 * (i % 2)) + Duration::from_millis(7);
            rtt.sample(Instant::from_millis(i * 20), raw, Duration::from_millis(7));
        }
        assert_eq!(rtt.min(), Duration::from_millis(100));
        assert!(rtt.smoothed().abs_diff(Duration::from_millis(102)) < Duration::from_millis(1));
        assert!(
            rtt.variance() < Duration::from_millis(3),
            "{:?}",
            rtt.variance()
        );
        assert!(rtt.jitter().abs_diff(Duration::from_millis(4)) < Duration::from_micros(100));
    }

    #[test]
    fn a_boasted_delay_cannot_push_the_minimum_below_what_was_seen() {
        let mut rtt = Rtt::new();
        rtt.sample(Instant::ZERO, Duration::from_millis(50), Duration::ZERO);
        rtt.sample(
            Instant::ZERO,
            Duration::from_millis(60),
            Duration::from_millis(59),
        );
        assert_eq!(rtt.min(), Duration::from_millis(50));
    }

    #[test]
    fn an_old_minimum_is_forgotten() {
        let mut rtt = Rtt::new();
        rtt.sample(Instant::ZERO, Duration::from_millis(20), Duration::ZERO);
        for second in 1..100 {
            rtt.sample(
                Instant::from_secs(second),
                Duration::from_millis(80),
                Duration::ZERO,
            );
        }
        assert_eq!(rtt.min(), Duration::from_millis(80));
    }
}
