//! Room in the fleet: how many matches may be made now, and when to try again if there was none.
//!
//! A fleet of processes knows how much room it has. One of a cluster says so only by refusing, so after a refusal it is tried with one match when a
//! server is released, and besides less and less often; with each match that finds a server, more may look for one at once.

use muse_wire::{Duration, Instant};

/// The reason why a match got no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoServer {
    /// All servers are busy. The players wait for as long as it takes, and it does not count as an attempt.
    Full,
    /// Servers cannot be started, do not come up or cannot be asked for. The match is called off after a while, which counts as an attempt.
    Failed,
}

/// Knowledge about room in the fleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The fleet's own number.
    fleet: usize,
    refused: Option<Refused>,
}

/// The fleet refused a match, and has not yet shown that there is room for all.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// No match is made before this.
    closed_until: Instant,
    /// Time for which the next refusal closes it.
    wait: Duration,
    /// Matches that found a server since.
    placed: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            fleet: usize::MAX,
            refused: None,
        }
    }
}

impl Room {
    pub(super) fn handle_fleet(&mut self, matches: usize) {
        self.fleet = matches;
    }

    /// Returns how many matches may be made while so many look for a server.
    pub(super) fn free(&self, now: Instant, placing: usize) -> usize {
        let window = match &self.refused {
            None => usize::MAX,
            Some(refused) if now < refused.closed_until => 0,
            Some(refused) => refused.placed.max(1),
        };
        self.fleet.min(window).saturating_sub(placing)
    }

    /// True if a match was refused: the next ones only try.
    pub(super) fn is_tight(&self) -> bool {
        self.refused.is_some()
    }

    /// A match was refused because all servers are busy. Returns when another may try.
    pub(super) fn handle_full(&mut self, now: Instant) -> Instant {
        let refused = self.refused.get_or_insert(Refused {
            closed_until: now,
            wait: WAIT_FIRST,
            placed: 0,
        });
        refused.placed = 0;
        // Several that were made together are refused together, which is one refusal.
        if now >= refused.closed_until {
            refused.closed_until = now + refused.wait;
            refused.wait = (refused.wait + refused.wait).min(WAIT_LAST);
        }
        refused.closed_until
    }

    /// A match found a server.
    pub(super) fn handle_placed(&mut self) {
        if let Some(refused) = &mut self.refused {
            refused.placed += 1;
        }
        self.refused = self.refused.filter(|refused| refused.placed < PLACED_MAX);
    }

    /// A server is not needed any more. Returns when there may be room for its successor.
    pub(super) fn handle_released(&mut self, now: Instant) -> Instant {
        let soon = now + WAIT_FIRST;
        if let Some(refused) = &mut self.refused {
            refused.closed_until = refused.closed_until.min(soon);
        }
        soon
    }
}

/// Time between the first refusal and the next match that is made; twice as long after each. Also the time that a released server takes to end.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// The longest of these times.
const WAIT_LAST: Duration = Duration::from_secs(16);
/// After so many matches that found a server, the refusal is forgotten.
const PLACED_MAX: usize = 64;
