//! The two controllers that do not look at the path: a fixed rate, and none at all.

use muse_wire::{Duration, Instant};

use super::{Ack, Controller, Loss, bytes_in};

/// Sends at one rate. The window only bounds what may be outstanding when nothing comes back.
#[derive(Debug)]
pub(super) struct Fixed {
    rate: u64,
    window: usize,
}

impl Fixed {
    pub(super) fn new(rate: u64) -> Self {
        let rate = rate.max(1);
        Self {
            rate,
            window: window_for(rate),
        }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _: Instant, _: usize, _: usize, _: bool) {}
    fn on_ack(&mut self, _: &Ack) {}
    fn on_loss(&mut self, _: &Loss) {}

    fn window(&self) -> usize {
        self.window
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.rate)
    }

    fn reset(&mut self, _: Instant) {}
}

/// Never in the way.
#[derive(Debug)]
pub(super) struct Off;

impl Controller for Off {
    fn on_sent(&mut self, _: Instant, _: usize, _: usize, _: bool) {}
    fn on_ack(&mut self, _: &Ack) {}
    fn on_loss(&mut self, _: &Loss) {}

    fn window(&self) -> usize {
        usize::MAX
    }

    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self, _: Instant) {}
}

/// The window of a controller that thinks in rates: what the longest sensible round trip holds.
pub(super) fn window_for(rate: u64) -> usize {
    usize::try_from(bytes_in(rate, OUTSTANDING_MAX))
        .unwrap_or(usize::MAX)
        .max(WINDOW_MIN)
}

/// Twice the longest round trip of a game that can be played, a second: by then everything sent is acknowledged or taken as lost.
const OUTSTANDING_MAX: Duration = Duration::from_secs(2);
/// Two full packets of any path that is not jumbo.
const WINDOW_MIN: usize = 3_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_rate_ignores_losses() {
        let mut fixed = Fixed::new(100_000);
        let before = (fixed.window(), fixed.pacing_rate());
        fixed.on_loss(&Loss {
            now: Instant::from_secs(1),
            sent_at: Instant::ZERO,
            bytes: 1_200,
            in_flight: 0,
            persistent: true,
        });
        assert_eq!((fixed.window(), fixed.pacing_rate()), before);
        assert_eq!(before, (200_000, Some(100_000)));
    }

    #[test]
    fn absurd_rates_saturate() {
        assert_eq!(Fixed::new(0).window(), WINDOW_MIN);
        assert_eq!(Fixed::new(u64::MAX).window(), usize::MAX);
    }

    #[test]
    fn off_has_no_limits() {
        assert_eq!((Off.window(), Off.pacing_rate()), (usize::MAX, None));
    }
}
