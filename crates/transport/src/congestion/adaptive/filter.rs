//! The least value of a sliding span of time, in three samples instead of a queue.

use muse_wire::{Duration, Instant};

/// Keeps the least, second and third least sample of successive thirds of the span, so that one is at hand when the
/// least grows too old (after Kathleen Nichols's estimator). The answer is exact to a third of the span.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastOver {
    best: [(Instant, Duration); 3],
}

impl LeastOver {
    pub(super) fn new() -> Self {
        Self {
            best: [(Instant::ZERO, Duration::MAX); 3],
        }
    }

    /// The least sample still in the span at the last update; [`Duration::MAX`] before the first.
    pub(super) fn value(&self) -> Duration {
        self.best[0].1
    }

    pub(super) fn update(&mut self, now: Instant, span: Duration, value: Duration) {
        let sample = (now, value);
        if value <= self.best[0].1 || now - self.best[2].0 > span {
            self.best = [sample; 3];
            return;
        }
        if value <= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value <= self.best[2].1 {
            self.best[2] = sample;
        }
        self.expire(sample, span);
    }

    fn expire(&mut self, sample: (Instant, Duration), span: Duration) {
        let age = sample.0 - self.best[0].0;
        if age > span {
            self.best = [self.best[1], self.best[2], sample];
            if sample.0 - self.best[0].0 > span {
                self.best = [self.best[1], sample, sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > span / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > span / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_exact_minimum_within_the_span() {
        let span = Duration::from_millis(100);
        let mut random = fastrand::Rng::with_seed(7);
        let mut filter = LeastOver::new();
        let mut samples: Vec<(Instant, Duration)> = Vec::new();
        for step in 0..5_000u64 {
            let now = Instant::from_millis(step);
            let value = Duration::from_micros(random.u64(1_000..9_000) + 50 * (step % 300));
            samples.push((now, value));
            filter.update(now, span, value);
            let least = |span| {
                samples
                    .iter()
                    .rev()
                    .take_while(|s| now - s.0 <= span)
                    .map(|s| s.1)
                    .min()
            };
            assert!(
                Some(filter.value()) >= least(span),
                "older than the span at {step}"
            );
            assert!(
                Some(filter.value()) <= least(span / 4),
                "missed a recent minimum at {step}"
            );
        }
    }

    #[test]
    fn forgets_everything_after_silence() {
        let mut filter = LeastOver::new();
        let span = Duration::from_secs(10);
        filter.update(Instant::from_secs(1), span, Duration::from_millis(5));
        filter.update(Instant::from_secs(20), span, Duration::from_millis(50));
        assert_eq!(filter.value(), Duration::from_millis(50));
    }
}
