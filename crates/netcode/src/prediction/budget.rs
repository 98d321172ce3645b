//! Predicts fewer entities on a machine that is too slow for all of them.

use muse_wire::{Duration, Instant};

/// The limit of entities that are predicted, by what predicting costs.
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    limit: usize,
    /// The start of the span that is being measured, and the time spent in it.
    from: Option<Instant>,
    spent: Duration,
    /// Spans in a row that left much time to spare.
    calm: u32,
}

impl Budget {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            limit: max,
            from: None,
            spent: Duration::ZERO,
            calm: 0,
        }
    }

    /// So much time was spent on prediction. Returns the limit if it changed.
    pub(crate) fn handle_cost(&mut self, now: Instant, spent: Duration) -> Option<usize> {
        self.spent += spent;
        let from = *self.from.get_or_insert(now);
        let span = now.saturating_since(from);
        if span < SPAN {
            return None;
        }
        let share = self.spent.as_secs_f64() / span.as_secs_f64();
        self.from = Some(now);
        self.spent = Duration::ZERO;
        let before = self.limit;
        if share > SHARE_MAX {
            self.calm = 0;
            // One is left: what the game wants most, such as the ball.
            self.limit = (self.limit * 3 / 4).max(self.limit.min(1));
        } else if share < SHARE_MAX / 3.0 {
            self.calm += 1;
            // One more at a time, and only after a while: what was too much once will be again.
            if self.calm >= CALM_SPANS && self.limit < self.max {
                self.calm = 0;
                self.limit += 1;
            }
        } else {
            self.calm = 0;
        }
        (self.limit != before).then_some(self.limit)
    }
}

/// Time over which costs are added up.
const SPAN: Duration = Duration::from_millis(500);
/// Share of the time that prediction may take: 5 ms of a frame at 60 a second.
const SHARE_MAX: f64 = 0.3;
/// Spans with much time to spare after which one more entity is predicted.
const CALM_SPANS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays for so many seconds on a machine on which an entity costs so many milliseconds of each second.
    fn play(budget: &mut Budget, now: &mut Instant, seconds: u64, millis_each: u64) -> usize {
        let end = *now + Duration::from_secs(seconds);
        while *now < end {
            let cost = Duration::from_micros(budget.limit as u64 * millis_each * 1_000 / 60);
            budget.handle_cost(*now, cost);
            *now += Duration::from_micros(16_667);
        }
        budget.limit
    }

    #[test]
    fn a_slow_machine_predicts_as_many_as_it_can_and_a_quick_one_all() {
        let (mut budget, mut now) = (Budget::new(16), Instant::ZERO);
        assert_eq!(play(&mut budget, &mut now, 10, 5), 16);
        // 50 ms a second for each: six are three tenths of the time.
        let left = play(&mut budget, &mut now, 20, 50);
        assert!((2..=6).contains(&left), "{left}");
        // Far too slow for any: one is left, the first by the game's own order.
        assert_eq!(play(&mut budget, &mut now, 20, 2_000), 1);
        // It recovers when others leave the machine alone.
        assert_eq!(play(&mut budget, &mut now, 60, 1), 16);
    }
}
