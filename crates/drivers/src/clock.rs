//! The source of `now`: the operating system's monotonic clock, read by the driver of a machine.

#[cfg(not(target_arch = "wasm32"))]
use std::time::{Instant as SystemInstant, SystemTime};

use muse_wire::{Duration, Instant};
#[cfg(target_arch = "wasm32")]
use web_time::{Instant as SystemInstant, SystemTime};

/// A monotonic clock whose origin is the moment it was started.
///
/// It is `Copy`: hand the same clock to every thread and driver that runs parts of one machine, so that their `now`
/// agree. Reading it costs some 25 ns and no system call on the usual platforms.
///
/// ```
/// use muse_drivers::Clock;
/// let clock = Clock::start();
/// let before = clock.now();
/// assert!(clock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: SystemInstant,
}

impl Clock {
    /// Starts a clock: its `now` begins at [`Instant::ZERO`].
    pub fn start() -> Self {
        Self {
            origin: SystemInstant::now(),
        }
    }

    /// The time since the start. Never goes backwards.
    pub fn now(&self) -> Instant {
        Instant::ZERO + Duration::from(self.origin.elapsed())
    }

    /// Returns the time from now until `due`; zero when it has passed.
    pub fn until(&self, due: Instant) -> Duration {
        due.saturating_since(self.now())
    }
}

/// Time since 1970-01-01 UTC by the wall clock: for the expiry of tokens, never for timers. Zero if the clock is set
/// before then.
pub fn unix_time() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_clock_share_its_origin() {
        let clock = Clock::start();
        let copy = clock;
        let (first, second, third) = (clock.now(), copy.now(), clock.now());
        assert!(first <= second && second <= third);
        assert_eq!(clock.until(Instant::ZERO), Duration::ZERO);
        assert!(clock.until(clock.now() + Duration::from_secs(60)) > Duration::from_secs(50));
    }

    #[test]
    fn the_wall_clock_is_past_2023() {
        assert!(unix_time() > Duration::from_secs(1_700_000_000));
    }
}
