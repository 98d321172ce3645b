//! Logs cheating attempts while the match goes on.

use std::collections::BTreeMap;

use muse_biobot::Stage;
use muse_biobot::cheats::Offence;
use muse_wire::{Duration, Instant};

/// Counts how much of each player's conduct has been logged.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    logged: BTreeMap<(u64, &'static str), u32>,
    next: Instant,
}

impl Monitor {
    /// Looks once a second, and logs what is new: the first of its kind, and then each time that there is twice as much.
    pub(crate) fn look(&mut self, now: Instant, stage: &Stage) {
        if now < self.next {
            return;
        }
        self.next = now + LOOK_EVERY;
        for player in stage.report().players {
            for offence in Offence::ALL {
                let count = player.conduct.count(offence);
                let known = self.logged.entry((player.id, offence.name())).or_default();
                if count > 2 * *known {
                    *known = count;
                    tracing::warn!(
                        player = player.id,
                        slot = player.slot,
                        offence = offence.name(),
                        count,
                        "refused"
                    );
                }
            }
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
