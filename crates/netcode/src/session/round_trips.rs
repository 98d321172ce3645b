//! The way to a client and back, as the server measures it: finer than ticks, for shots are judged by it.

use muse_wire::{Duration, Instant};

/// The times at which snapshots left, and how long their acknowledgements took.
#[derive(Clone, Debug)]
pub(super) struct RoundTrips {
    sent: [Option<(u16, Instant)>; SENT_MAX],
    mean: Option<Duration>,
}

impl RoundTrips {
    pub(super) const fn new() -> Self {
        Self {
            sent: [None; SENT_MAX],
            mean: None,
        }
    }

    /// The first packet of a snapshot leaves.
    pub(super) fn handle_sent(&mut self, now: Instant, number: u16) {
        self.sent[usize::from(number) % SENT_MAX] = Some((number, now));
    }

    /// The client has heard the snapshot of this number and has held its answer for so long. Each counts once, and none that was
    /// never sent.
    pub(super) fn handle_answer(&mut self, now: Instant, number: u16, held: Duration) {
        // Also of those that were overtaken: the quick ones alone would make a jittery way look short.
        let place = &mut self.sent[usize::from(number) % SENT_MAX];
        let Some((_, sent)) = place.take_if(|sent| sent.0 == number) else {
            return;
        };
        let took = now.saturating_since(sent).min(ROUND_TRIP_MAX);
        let took = Duration::from_micros(took.as_micros().saturating_sub(held.as_micros()));
        self.mean = Some(match self.mean {
            Some(mean) => (mean * (WEIGHT - 1) + took) / WEIGHT,
            None => took,
        });
    }

    /// The mean of the last ones.
    pub(super) const fn mean(&self) -> Option<Duration> {
        self.mean
    }
}

/// Snapshots whose time of sending is remembered: more than a second at 50 a second.
const SENT_MAX: usize = 64;
/// Each answer counts one part in so many.
const WEIGHT: u64 = 16;
/// Longest round trip counted.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_held_does_not_count() {
        let mut trips = RoundTrips::new();
        for number in 0..100_u16 {
            let sent = Instant::from_millis(1_000 + u64::from(number) * 20);
            trips.handle_sent(sent, number.wrapping_add(65_500));
            let held = Duration::from_micros(u64::from(number % 7) * 3_000);
            let back = sent + Duration::from_millis(73) + held;
            trips.handle_answer(back, number.wrapping_add(65_500), held);
        }
        assert_eq!(trips.mean(), Some(Duration::from_millis(73)));
    }

    #[test]
    fn forged_answers_change_nothing() {
        let mut trips = RoundTrips::new();
        let now = Instant::from_secs(1);
        trips.handle_sent(now, 7);
        trips.handle_answer(now, 71, Duration::ZERO);
        assert_eq!(trips.mean(), None, "never sent");
        trips.handle_answer(now + Duration::from_millis(50), 7, Duration::ZERO);
        trips.handle_answer(now + Duration::from_secs(9), 7, Duration::ZERO);
        assert_eq!(trips.mean(), Some(Duration::from_millis(50)), "only once");
        trips.handle_sent(now, 8);
        trips.handle_answer(now, 8, Duration::from_secs(1));
        assert!(trips.mean() < Some(Duration::from_millis(50)));
    }
}
