//! All timers of a connection in one table.

use muse_wire::Instant;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Timer {
    /// A packet sent before an acknowledged one is old enough to count as lost.
    Loss,
    /// Nothing was acknowledged for a probe time-out.
    Probe,
    /// A delayed acknowledgement is due.
    Ack,
    /// The pacer lets the next packet go.
    Pace,
    /// The second copy of a retransmission, or a parity that found no packet to travel in, goes by itself.
    Redundancy,
    /// A message's deadline may have passed.
    Deadline,
    /// Nothing was sent for so long that the peer or a router might forget us.
    KeepAlive,
    /// Nothing was heard for so long that the connection counts as interrupted, then lost.
    Silence,
    /// A path challenge, an MTU probe or a close is repeated or given up.
    Path,
    /// The connection is done with.
    Close,
}

const COUNT: usize = Timer::Close as usize + 1;

/// Every timer of a connection and when it fires.
#[derive(Clone, Debug)]
pub(crate) struct Timers([Instant; COUNT]);

impl Timers {
    pub(crate) fn new() -> Self {
        Self([Instant::FAR_FUTURE; COUNT])
    }

    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = at;
    }

    /// Sets the timer unless it fires earlier already.
    pub(crate) fn set_earlier(&mut self, timer: Timer, at: Instant) {
        let slot = &mut self.0[timer as usize];
        *slot = (*slot).min(at);
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = Instant::FAR_FUTURE;
    }

    /// True if the timer has come; it is stopped then.
    pub(crate) fn expired(&mut self, timer: Timer, now: Instant) -> bool {
        let expired = self.0[timer as usize] <= now;
        if expired {
            self.stop(timer);
        }
        expired
    }

    /// The earliest of all.
    pub(crate) fn next(&self) -> Instant {
        self.0.iter().copied().min().unwrap_or(Instant::FAR_FUTURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_timer_counts_and_fires_once() {
        let mut timers = Timers::new();
        assert_eq!(timers.next(), Instant::FAR_FUTURE);
        timers.set(Timer::Ack, Instant::from_millis(5));
        timers.set(Timer::Close, Instant::from_millis(3));
        timers.set_earlier(Timer::Ack, Instant::from_millis(9));
        assert_eq!(timers.next(), Instant::from_millis(3));
        assert!(!timers.expired(Timer::Ack, Instant::from_millis(4)));
        assert!(timers.expired(Timer::Ack, Instant::from_millis(5)));
        assert!(!timers.expired(Timer::Ack, Instant::from_millis(6)));
    }
}
