//! The budget of a game for this tick, as one number.

use muse_wire::Duration;

use super::bytes_in;

/// The bytes that a connection may send now and keep sending.
///
/// A game that adapts its stream (fewer entities, coarser updates) reads it once a tick and fills at most
/// [`this_tick`](Self::this_tick): what stays within it leaves at once instead of waiting in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    window_free: usize,
    burst: usize,
    rate: Option<u64>,
}

impl Budget {
    /// From a controller's window and pacing rate, the bytes in flight, and what the [`Pacer`](super::Pacer) has available.
    pub fn new(
        window: usize,
        in_flight: usize,
        pacer_available: usize,
        pacing_rate: Option<u64>,
    ) -> Self {
        Self {
            window_free: window.saturating_sub(in_flight),
            burst: pacer_available,
            rate: pacing_rate,
        }
    }

    /// Bytes that may be handed over in this tick so that all of them have left before the next one, `tick` later. Headers
    /// count; `usize::MAX` when nothing limits the connection.
    pub fn this_tick(&self, tick: Duration) -> usize {
        let paced = match self.rate {
            Some(rate) => self
                .burst
                .saturating_add(usize::try_from(bytes_in(rate, tick)).unwrap_or(usize::MAX)),
            None => usize::MAX,
        };
        self.window_free.min(paced)
    }

    /// Bytes that may leave at this instant.
    pub fn at_once(&self) -> usize {
        self.window_free.min(self.burst)
    }

    /// Bytes that the congestion window leaves free.
    pub fn window_free(&self) -> usize {
        self.window_free
    }

    /// Bytes per second at which packets leave, if they are paced.
    pub fn rate(&self) -> Option<u64> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let tick = Duration::from_millis(16);
        assert_eq!(
            Budget::new(10_000, 9_000, 12_000, Some(1_000_000)).this_tick(tick),
            1_000
        );
        assert_eq!(
            Budget::new(10_000, 20_000, 12_000, Some(1_000_000)).this_tick(tick),
            0
        );
        assert_eq!(
            Budget::new(100_000, 0, 1_000, Some(1_000_000)).this_tick(tick),
            17_000
        );
        assert_eq!(
            Budget::new(usize::MAX, 5, usize::MAX, None).this_tick(tick),
            usize::MAX - 5
        );
    }

    #[test]
    fn at_once_is_never_more_than_this_tick() {
        let budget = Budget::new(50_000, 10_000, 7_000, Some(64_000));
        assert_eq!(budget.at_once(), 7_000);
        assert!(budget.at_once() <= budget.this_tick(Duration::ZERO));
    }
}
