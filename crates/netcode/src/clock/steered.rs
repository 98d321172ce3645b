//! A clock that is led to where it should be by running a little faster or slower.

use muse_wire::{Duration, Instant};

/// A position in ticks that advances with time and is steered towards a target: never backwards, and never in a jump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steered {
    tick_micros: f64,
    dilation_max: f64,
    at: Instant,
    position: f64,
    rate: f64,
}

impl Steered {
    /// A clock at `position`, whose rate may differ by `dilation_max` (0.05 is 5 %) from that of time.
    pub(crate) fn new(tick: Duration, dilation_max: f64, now: Instant, position: f64) -> Self {
        Self {
            tick_micros: tick.as_micros().max(1) as f64,
            dilation_max,
            at: now,
            position,
            rate: 1.0,
        }
    }

    /// Lets the time until `now` pass, on the way to `target`, where the clock should be at `now`.
    pub(crate) fn advance(&mut self, now: Instant, target: f64) {
        self.advance_at_most(now, target, f64::INFINITY);
    }

    /// As [`advance`](Self::advance), but at no higher rate than this.
    pub(crate) fn advance_at_most(&mut self, now: Instant, target: f64, rate_max: f64) {
        let passed = (now - self.at).as_micros() as f64 / self.tick_micros;
        if passed <= 0.0 {
            return;
        }
        self.at = now;
        let error = target - (self.position + passed);
        // Further away it hurries: a server that hitched would otherwise be waited for too long.
        let hurry = (error.abs() / HURRY_TICKS).clamp(1.0, HURRY_MAX);
        let bound = (self.dilation_max * hurry).min(DILATION_LIMIT) * passed;
        let correction = (error * passed / (passed + RESPONSE_TICKS)).clamp(-bound, bound);
        let brake = (rate_max - 1.0).max(-DILATION_LIMIT) * passed;
        let correction = correction.min(brake);
        self.position += passed + correction;
        self.rate = 1.0 + correction / passed;
    }

    /// Puts the clock somewhere else at once; not for while somebody plays.
    pub(crate) fn set(&mut self, now: Instant, position: f64) {
        self.at = self.at.max(now);
        self.position = position;
        self.rate = 1.0;
    }

    /// Returns its position at the last call of [`advance`](Self::advance).
    pub(crate) fn position(&self) -> f64 {
        self.position
    }

    /// Ticks per tick of time: 1 when it is where it should be.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the time at which it reached, or will reach at its present rate, this position.
    pub(crate) fn time_of(&self, position: f64) -> Instant {
        let micros = (position - self.position) / self.rate * self.tick_micros;
        if micros >= 0.0 {
            self.at + Duration::from_micros(micros as u64)
        } else {
            self.at - Duration::from_micros(-micros as u64)
        }
    }
}

/// An error shrinks by half in about this many ticks, if the bounds allow.
const RESPONSE_TICKS: f64 = 10.0;
/// Up to this error the clock keeps to its usual bounds.
const HURRY_TICKS: f64 = 4.0;
/// Beyond, the bounds widen with the error up to so many times.
const HURRY_MAX: f64 = 5.0;
/// No clock runs at less than half or more than one and a half times the speed of time.
const DILATION_LIMIT: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_its_target_and_stays() {
        let tick = Duration::from_millis(20);
        for start in [-30.0, -1.0, 0.0, 2.5, 30.0] {
            let mut clock = Steered::new(tick, 0.05, Instant::ZERO, start);
            let mut last = start;
            for frame in 1..2_000_u64 {
                let now = Instant::from_micros(frame * 7_000);
                clock.advance(now, frame as f64 * 0.35);
                let step = clock.position() - last;
                assert!((0.175..=0.525).contains(&step), "{step} from {start}");
                last = clock.position();
            }
            assert!((last - 1_999.0 * 0.35).abs() < 0.01);
        }
    }

    #[test]
    fn instants_of_positions_follow_the_rate() {
        let mut clock = Steered::new(Duration::from_millis(10), 0.1, Instant::ZERO, 0.0);
        clock.advance(Instant::from_millis(10), 1.0);
        assert_eq!(clock.time_of(3.0), Instant::from_millis(30));
        assert_eq!(clock.time_of(0.5), Instant::from_millis(5));
    }
}
