//! The shell's clock: microseconds since 1970, so that what is stored means the same after a restart and on every master.

use std::time::{SystemTime, UNIX_EPOCH};

use muse_wire::Instant;

/// Now.
pub(crate) fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The time from now until `instant`, for timers of the runtime.
pub(crate) fn until(instant: Instant) -> std::time::Duration {
    (instant - now()).into()
}
