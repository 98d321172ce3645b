//! The game loop's beat.

use std::time::Duration;

use crate::message::unix_nanos;
use crate::peer::Peer;

/// Length of a tick on both sides.
pub const TICK: Duration = Duration::from_millis(16);

/// Offset of a client's tick in the shared clock's 16 ms.
pub const CLIENT_PHASE: Duration = Duration::ZERO;

/// Offset of a server's tick: half a tick from the clients', so that what they send lies ready and an echo takes
/// exactly one tick unless one side lags. With phases left to chance some runs would split a tick's messages in two.
pub const SERVER_PHASE: Duration = Duration::from_millis(8);

/// A beat of 16 ms at a fixed phase of the shared clock.
#[derive(Debug)]
pub struct Ticks {
    next_nanos: u64,
}

impl Ticks {
    /// Starts with the next tick of this phase.
    pub fn new(phase: Duration) -> Self {
        let (tick, phase) = (TICK.as_nanos() as u64, phase.as_nanos() as u64);
        let now = unix_nanos().saturating_sub(phase);
        Self {
            next_nanos: (now / tick + 1) * tick + phase,
        }
    }

    /// Sleeps until the next tick. Ticks that have passed already are left out, as in a game's loop.
    pub fn sleep<P: Peer>(&mut self, peer: &mut P) {
        let now = unix_nanos();
        if let Some(left) = self.next_nanos.checked_sub(now) {
            peer.sleep(Duration::from_nanos(left));
        }
        self.advance();
    }

    /// True if a tick has come; then the next one is awaited.
    pub fn due(&mut self) -> bool {
        let due = unix_nanos() >= self.next_nanos;
        if due {
            self.advance();
        }
        due
    }

    fn advance(&mut self) {
        let (tick, now) = (TICK.as_nanos() as u64, unix_nanos());
        self.next_nanos += tick;
        if self.next_nanos <= now {
            self.next_nanos += (now - self.next_nanos) / tick * tick + tick;
        }
    }
}
