//! The rate of a sender's clock against ours, from the stamps of its packets.

use muse_wire::{Duration, Instant};

/// The rate of a sender's clock, a few seconds at a time: the quickest packet of each span says how far apart the clocks are, and what
/// changes from one span to the next is the sender's clock or its path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    /// The start of the span, and the shortest delay in it.
    span: Option<(Instant, i32)>,
    /// The same of the span before.
    before: Option<(Instant, i32)>,
    rate: Option<f64>,
    spans: u64,
}

impl Drift {
    /// Nothing measured.
    pub(crate) const fn new() -> Self {
        Self {
            span: None,
            before: None,
            rate: None,
            spans: 0,
        }
    }

    /// A packet arrived that says to have been under way for so many microseconds, counted from an unknown origin.
    pub(crate) fn record(&mut self, now: Instant, delay: i32) {
        let Some((began, least)) = &mut self.span else {
            self.span = Some((now, delay));
            return;
        };
        if now.saturating_since(*began) < SPAN {
            *least = (*least).min(delay);
            return;
        }
        let (began, least) = (*began, *least);
        if let Some((earlier, than)) = self.before {
            let passed = began.saturating_since(earlier).as_micros().max(1) as f64;
            let change = f64::from(least) - f64::from(than);
            self.rate = Some(1.0 - change / passed);
            self.spans += 1;
        }
        self.before = Some((began, least));
        self.span = Some((now, delay));
    }

    /// Seconds of the sender's clock in one of ours, over the last two spans; 1 before anything is known.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.unwrap_or(1.0)
    }

    /// Returns the number of times that the rate has been measured.
    pub(crate) const fn spans(&self) -> u64 {
        self.spans
    }
}

/// Long enough that a path which becomes shorter looks like a clock that is a little fast.
const SPAN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_no_drift() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut drift = Drift::new();
        for milli in (0..60_000).step_by(20) {
            drift.record(Instant::from_millis(milli), rng.i32(30_000..90_000));
            assert!((drift.rate() - 1.0).abs() < 0.02, "{}", drift.rate());
        }
        assert!(drift.spans() > 20);
    }

    #[test]
    fn extremes_are_taken() {
        let mut drift = Drift::new();
        for (second, delay) in [(0, i32::MIN), (3, i32::MAX), (6, i32::MIN), (9, 0)] {
            drift.record(Instant::from_secs(second), delay);
        }
        assert!(drift.rate().is_finite());
    }
}
