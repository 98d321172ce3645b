//! A token bucket that turns a pacing rate into release times.
//!
//! The bucket holds a burst, so that a game which flushes once a tick and stays under its rate is never delayed: tokens
//! that gathered since the last tick are there when it flushes. What exceeds them leaves at the rate.

use muse_wire::{Duration, Instant};

use super::bytes_in;

/// Spreads packets over time.
///
/// Call [`available`](Self::available) with the current rate, send at most that much, and [`consume`](Self::consume) it;
/// when it does not suffice, wait until [`next_release`](Self::next_release).
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// Bytes in the bucket; negative after a packet larger than it held.
    tokens: i64,
    refilled_at: Instant,
    rate: Option<u64>,
    burst_bytes: u32,
    burst_span: Duration,
    /// The least that a packet takes out of the bucket.
    packet_min: usize,
}

impl Pacer {
    /// A full bucket for packets of `packet_size` bytes, with the default burst: the larger of ten packets and 2 ms worth.
    pub fn new(packet_size: usize) -> Self {
        Self::with_burst(packet_size.saturating_mul(BURST_PACKETS), BURST_SPAN)
    }

    /// A full bucket that holds the larger of `bytes` and what `span` yields at the rate. A larger burst lets a coarse tick
    /// flush at once and asks more of the shortest queue on the path.
    pub fn with_burst(bytes: usize, span: Duration) -> Self {
        let burst_bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        Self {
            tokens: i64::from(burst_bytes),
            refilled_at: Instant::ZERO,
            rate: None,
            burst_bytes,
            burst_span: span,
            packet_min: 0,
        }
    }

    /// Counts every packet as one of at least `bytes`, so that the rate bounds packets a second as well.
    pub fn packet_min(mut self, bytes: usize) -> Self {
        self.packet_min = bytes;
        self
    }

    /// Bytes that may leave now at `rate` bytes per second; everything if there is no rate.
    pub fn available(&mut self, now: Instant, rate: Option<u64>) -> usize {
        self.rate = rate;
        let Some(rate) = rate else {
            self.refilled_at = now;
            return usize::MAX;
        };
        let burst = i64::from(self.burst_bytes)
            .max(i64::try_from(bytes_in(rate, self.burst_span)).unwrap_or(i64::MAX));
        let earned = i64::try_from(bytes_in(rate, now - self.refilled_at)).unwrap_or(i64::MAX);
        let tokens = self.tokens.saturating_add(earned);
        if tokens >= burst {
            self.tokens = burst;
            self.refilled_at = now;
        } else if earned > 0 {
            // Keep the remainder of the division: advance only by the time that whole bytes took.
            let spent = u64::try_from(
                u128::from(earned.unsigned_abs()) * 1_000_000 / u128::from(rate.max(1)),
            );
            self.refilled_at += Duration::from_micros(spent.unwrap_or(u64::MAX));
            self.tokens = tokens;
        }
        usize::try_from(self.tokens).unwrap_or(0)
    }

    /// Takes a packet of `bytes` out of the bucket. It may be larger than what is available: the debt delays the next ones.
    pub fn consume(&mut self, bytes: usize) {
        if self.rate.is_some() {
            let bytes = bytes.max(self.packet_min);
            self.tokens = self
                .tokens
                .saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Returns the time at which `bytes` will be available at the rate last given to [`available`](Self::available); `now` if they already are.
    pub fn next_release(&self, now: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.rate else { return now };
        // More than a burst never gathers: release when the bucket is full.
        let wanted = i64::try_from(bytes)
            .unwrap_or(i64::MAX)
            .min(i64::from(self.burst_bytes));
        if self.tokens >= wanted {
            return now;
        }
        let missing = u128::from(wanted.saturating_sub(self.tokens).unsigned_abs());
        let wait = (missing * 1_000_000).div_ceil(u128::from(rate.max(1)));
        now.max(self.refilled_at + Duration::from_micros(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

/// As RFC 9002 suggests for the initial window, and about what drivers send in one call.
const BURST_PACKETS: usize = 10;
/// Timers are not finer than this on a busy machine.
const BURST_SPAN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_rate_is_exact() {
        let mut pacer = Pacer::new(1_200);
        let (rate, end) = (123_457, Instant::from_secs(60));
        let (mut now, mut sent) = (Instant::from_secs(50), 0u64);
        while now < end {
            while pacer.available(now, Some(rate)) >= 1_200 {
                pacer.consume(1_200);
                sent += 1_200;
            }
            let next = pacer.next_release(now, 1_200);
            assert!(next > now);
            now = next;
        }
        let expected = rate * 10 + 12_000;
        assert!(sent.abs_diff(expected) <= 1_200, "{sent} of {expected}");
    }

    #[test]
    fn a_tick_below_the_rate_is_never_delayed() {
        let mut pacer = Pacer::new(1_200);
        let mut now = Instant::from_secs(1);
        for _ in 0..1_000 {
            assert!(pacer.available(now, Some(20_000)) >= 300);
            pacer.consume(300);
            now += Duration::from_millis(16);
        }
    }

    #[test]
    fn idling_does_not_gather_more_than_a_burst() {
        let mut pacer = Pacer::new(1_000);
        pacer.available(Instant::from_secs(1), Some(100_000));
        assert_eq!(
            pacer.available(Instant::from_secs(9), Some(100_000)),
            10_000
        );
        assert_eq!(
            pacer.available(Instant::from_secs(9), Some(1_000_000_000)),
            10_000
        );
        assert_eq!(
            pacer.available(Instant::from_secs(10), Some(1_000_000_000)),
            2_000_000
        );
    }

    #[test]
    fn extreme_numbers_saturate() {
        let mut pacer = Pacer::with_burst(usize::MAX, Duration::MAX);
        pacer.available(Instant::FAR_FUTURE, Some(u64::MAX));
        pacer.consume(usize::MAX);
        pacer.consume(usize::MAX);
        assert_eq!(pacer.available(Instant::FAR_FUTURE, Some(0)), 0);
        assert_eq!(
            pacer.next_release(Instant::ZERO, usize::MAX),
            Instant::FAR_FUTURE
        );
    }

    #[test]
    fn no_rate_means_no_wait() {
        let mut pacer = Pacer::new(1_200);
        assert_eq!(pacer.available(Instant::ZERO, None), usize::MAX);
        pacer.consume(1 << 30);
        assert_eq!(
            pacer.next_release(Instant::from_secs(1), 1_200),
            Instant::from_secs(1)
        );
    }
}
