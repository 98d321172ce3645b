//! The schedule of the server's ticks, and a rule for when it cannot keep up.
//!
//! After a hitch a server has ticks to catch up. It simulates a bounded number at once; if that is not enough it lets the rest of
//! the time go, so that slow steps never cause more steps. Clients are told how much went
//! ([`InputBuffer::handle_slip`](crate::inputs::InputBuffer::handle_slip)), and move their clocks by it.

use muse_wire::{Duration, Instant};

use crate::Tick;

/// Decides which ticks a server simulates when.
#[derive(Clone, Debug)]
pub(crate) struct TickScheduler {
    tick: Duration,
    catch_up_max: u32,
    next: Tick,
    due: Instant,
    slipped: u64,
}

/// A tick to simulate now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueTick {
    /// The tick.
    pub(crate) tick: Tick,
    /// The time at which it was to begin, which is what inputs and clients are measured against.
    pub(crate) due: Instant,
    /// Ticks of time that were let go just before it; zero but after a long hitch.
    pub(crate) slipped: u32,
}

impl TickScheduler {
    /// A schedule whose tick 0 is at `start`, with ticks of this length. At most `catch_up_max` are simulated at once to catch up, at least 1;
    /// time beyond that is let go. More keeps the clock of the match after longer hitches, and makes each of them longer.
    pub(crate) fn new(tick: Duration, start: Instant, catch_up_max: u32) -> Self {
        Self {
            tick: tick.max(Duration::from_micros(100)),
            catch_up_max: catch_up_max.max(1),
            next: Tick(0),
            due: start,
            slipped: 0,
        }
    }

    /// The next tick to simulate, if it is time. Call it with one `now` until it returns `None`, then look at the clock again: so a call
    /// leads to at most `catch_up_max` ticks, however long they take.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<DueTick> {
        if now < self.due {
            return None;
        }
        // A server that tries to make up for everything falls behind further: each step that it makes up for takes time,
        // too.
        let behind = (now - self.due).as_micros() / self.tick.as_micros();
        let slipped = (behind + 1).saturating_sub(u64::from(self.catch_up_max));
        if slipped > 0 {
            self.due += self.tick * slipped;
            self.slipped = self.slipped.saturating_add(slipped);
        }
        let due = DueTick {
            tick: self.next,
            due: self.due,
            slipped: u32::try_from(slipped).unwrap_or(u32::MAX),
        };
        self.next = self.next + 1;
        self.due += self.tick;
        Some(due)
    }

    /// Returns the time at which the next tick is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// The next tick.
    pub(crate) fn next(&self) -> Tick {
        self.next
    }

    /// Ticks of time that were let go in all.
    pub(crate) fn slipped(&self) -> u64 {
        self.slipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled(scheduler: &mut TickScheduler, millis: u64) -> Vec<(u32, u32)> {
        let now = Instant::from_millis(millis);
        std::iter::from_fn(|| scheduler.poll(now))
            .map(|due| (due.tick.0, due.slipped))
            .collect()
    }

    #[test]
    fn a_short_hitch_is_caught_up_and_a_long_one_let_go() {
        let mut scheduler = TickScheduler::new(Duration::from_millis(10), Instant::ZERO, 3);
        assert_eq!(polled(&mut scheduler, 0), [(0, 0)]);
        assert_eq!(polled(&mut scheduler, 9), []);
        assert_eq!(polled(&mut scheduler, 35), [(1, 0), (2, 0), (3, 0)]);
        assert_eq!(scheduler.slipped(), 0);
        assert_eq!(polled(&mut scheduler, 1_000), [(4, 94), (5, 0), (6, 0)]);
        assert_eq!(scheduler.slipped(), 94);
        assert_eq!(scheduler.poll_timeout(), Instant::from_millis(1_010));
        assert_eq!(polled(&mut scheduler, 1_010), [(7, 0)]);
    }

    #[test]
    fn slow_steps_never_spiral() {
        // Every step takes three ticks of time: the server falls behind for ever, one bounded round after the other.
        let mut scheduler = TickScheduler::new(Duration::from_millis(10), Instant::ZERO, 5);
        let mut now = 0;
        for _ in 0..100 {
            let ticks = polled(&mut scheduler, now).len() as u64;
            assert!((1..=5).contains(&ticks));
            now += 30 * ticks;
        }
        assert!(scheduler.slipped() > 500);
    }
}
