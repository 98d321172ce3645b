//! Decides when the next frame is due: time synchronisation, so that no side runs ahead.
//!
//! The orderer tells each machine by how much it runs ahead of the average. A machine that is ahead makes its frames a little
//! longer, one that is behind a little shorter, in proportion: nobody sees it, and nothing swings.

use muse_wire::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Pace {
    next_at: Instant,
    step: Duration,
    /// Frames ahead of the others, smoothed.
    advantage: f32,
}

impl Pace {
    pub(crate) fn new(step: Duration) -> Self {
        Self {
            next_at: Instant::ZERO,
            step,
            advantage: 0.0,
        }
    }

    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    pub(crate) fn advantage(&self) -> f32 {
        self.advantage
    }

    /// The next step is due now.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.next_at = now;
    }

    pub(crate) fn set_step(&mut self, step: Duration) {
        self.step = step;
    }

    /// The orderer's word, in sixteenths of a frame.
    pub(crate) fn observe(&mut self, sixteenths: i8) {
        let told = f32::from(sixteenths) / 16.0;
        self.advantage += (told - self.advantage) * SMOOTHING;
    }

    /// A step was run; the next one is due a step later, more or less. Lost time is not made up for step by step.
    pub(crate) fn advance(&mut self, now: Instant) {
        let share = match self.advantage {
            far if far < -FAR => -STEER_FAR,
            far if far > FAR => STEER_FAR,
            near => (near * GAIN).clamp(-STEER_NEAR, STEER_NEAR),
        };
        let micros = self.step.as_micros() as f32 * (1.0 + share);
        self.next_at += Duration::from_micros(micros as u64);
        if self.next_at + self.step * BACKLOG_STEPS < now {
            self.next_at = now;
        }
    }

    /// Returns the position within the current step, in sixteenths.
    pub(crate) fn fraction(&self, now: Instant) -> u64 {
        let left = (self.next_at - now).as_micros() * 16 / self.step.as_micros().max(1);
        15u64.saturating_sub(left.min(15))
    }
}

/// Weight of a report: single ones jitter with the network.
const SMOOTHING: f32 = 0.1;
/// Share by which a frame is longer for each frame of advantage.
const GAIN: f32 = 0.02;
/// Largest change of a frame's length, too small to be seen.
const STEER_NEAR: f32 = 0.05;
/// Frames from which on being in step matters more than not being seen to get there.
const FAR: f32 = 4.0;
const STEER_FAR: f32 = 0.3;
/// Steps that may be made up for at once after a hitch.
const BACKLOG_STEPS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_machines_meet_and_stay_together() {
        let frame = Duration::from_millis(16);
        let (mut one, mut two) = (Pace::new(frame), Pace::new(frame));
        one.begin(Instant::ZERO);
        // The second begins three frames later, and its clock is half a per cent fast.
        two.begin(Instant::from_millis(48));
        let (mut at_one, mut at_two) = (0i64, 0i64);
        let mut apart_late = 0;
        for millis in 0..20_000 {
            let now = Instant::from_millis(millis);
            let fast = Instant::from_micros(now.as_micros() * 201 / 200);
            let ahead = ((at_one - at_two) * 8).clamp(-128, 127) as i8;
            if one.next_at() <= now {
                at_one += 1;
                one.observe(ahead);
                one.advance(now);
            }
            if two.next_at() <= fast {
                at_two += 1;
                two.observe(-ahead);
                two.advance(fast);
            }
            if millis > 5_000 {
                apart_late = apart_late.max((at_one - at_two).abs());
            }
        }
        assert!(apart_late <= 1, "{apart_late} frames apart");
        assert!(
            (1_200..1_300).contains(&at_one),
            "the game keeps its speed: {at_one}"
        );
    }
}
