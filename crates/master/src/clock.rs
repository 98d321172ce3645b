//! The shell's clocks: the time of day for what is stored, and a steady one for how long something takes.

use std::time::{SystemTime, UNIX_EPOCH};

use muse_wire::{Duration, Instant};

/// Returns the time of day in microseconds since 1970, so that what is stored means the same after a restart and on every master. It can be set,
/// so no silence is judged by it.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// A clock that shows the time of day at which it was made, and then runs on whatever the system's is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    start: Instant,
    started: std::time::Instant,
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        Self {
            start: now(),
            started: std::time::Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.start + Duration::from(self.started.elapsed())
    }

    /// Returns the time from now until `instant`, for timers of the runtime.
    pub(crate) fn until(&self, instant: Instant) -> std::time::Duration {
        (instant - self.now()).into()
    }
}
