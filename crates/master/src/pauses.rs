//! Pauses of the master itself: a process that was stopped, starved or moved to another machine has heard nobody meanwhile.
//!
//! Silence is judged only by time in which this master could have heard something. It looks at its clock each [`TICK`]; when two looks are further
//! apart than [`PAUSE_MIN`], everybody gets the full time again.

use muse_wire::{Duration, Instant};

/// Notices pauses. Call [`tick`](Self::tick) each [`TICK`].
///
/// ```
/// use muse_master::pauses::Pauses;
/// use muse_wire::{Duration, Instant};
/// let mut pauses = Pauses::default();
/// assert_eq!(pauses.tick(Instant::from_secs(1)), None);
/// assert_eq!(pauses.tick(Instant::from_secs(2)), None);
/// assert_eq!(pauses.tick(Instant::from_secs(14)), Some(Duration::from_secs(12)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    ticked: Option<Instant>,
}

impl Pauses {
    /// Begins to look, if it does not yet: ticks are due from now on.
    pub fn start(&mut self, now: Instant) {
        self.ticked.get_or_insert(now);
    }

    /// Returns the time since the last tick, if that is so long that the master must have been paused.
    pub fn tick(&mut self, now: Instant) -> Option<Duration> {
        let gap = now - self.ticked.replace(now)?;
        (gap > PAUSE_MIN).then_some(gap)
    }

    /// Ends looking: nobody can be silent, and no tick is due.
    pub fn stop(&mut self) {
        self.ticked = None;
    }

    /// Returns when the next tick is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ticked.map(|ticked| ticked + TICK)
    }
}

/// Time between two ticks.
pub const TICK: Duration = Duration::from_secs(1);
/// Time without a tick after which the master counts as paused: more than a busy machine is late, and far less than anybody may be silent.
pub const PAUSE_MIN: Duration = Duration::from_secs(3);
