//! Faults as stretches of time, and whom they touch.

use std::collections::BTreeMap;

use crate::history::{Entry, Event};
use crate::plan::{Fault, Link, MASTERS};

/// A fault from its beginning to its end.
pub(super) struct Stretch<'a> {
    pub(super) fault: Fault,
    pub(super) address: Option<&'a str>,
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

impl Stretch<'_> {
    pub(super) fn overlaps(&self, from_ms: u64, to_ms: u64) -> bool {
        self.from_ms < to_ms && self.to_ms > from_ms
    }

    pub(super) fn length_ms(&self) -> u64 {
        self.to_ms - self.from_ms
    }

    /// True if this master cannot be used, neither by the game servers of any master nor for what is in the database. A clock that was set and a bus
    /// that is lost are no excuse.
    pub(super) fn troubles(&self, master: usize) -> bool {
        match self.fault {
            Fault::PauseMaster { master: it }
            | Fault::KillMaster { master: it }
            | Fault::IsolateMaster { master: it }
            | Fault::Cut {
                link: Link::Database { master: it } | Link::Games { at: it, .. },
                ..
            } => it == master,
            _ => false,
        }
    }

    /// True if the database does not answer anybody.
    pub(super) fn stops_database(&self) -> bool {
        matches!(
            self.fault,
            Fault::PausePrimary
                | Fault::KillPrimary
                | Fault::FailOver
                | Fault::FillDisk
                | Fault::Cut {
                    link: Link::Replication,
                    ..
                }
        )
    }
}

/// All faults of a history. One that was not mended lasts until its end.
pub(super) fn stretches(history: &[Entry]) -> Vec<Stretch<'_>> {
    let end_ms = history.last().map_or(0, |entry| entry.at_ms);
    let mut mended = BTreeMap::new();
    for entry in history {
        if let Event::Mended { number } = entry.event {
            mended.insert(number, entry.at_ms);
        }
    }
    let begun = history.iter().filter_map(|entry| match &entry.event {
        Event::Broken {
            number,
            fault,
            address,
        } => Some(Stretch {
            fault: *fault,
            address: address.as_deref(),
            from_ms: entry.at_ms,
            to_ms: *mended.get(number).unwrap_or(&end_ms),
        }),
        _ => None,
    });
    begun.collect()
}

/// Returns the number of masters that could not be used at some time between these.
pub(super) fn masters_in_trouble(stretches: &[Stretch<'_>], from_ms: u64, to_ms: u64) -> usize {
    let troubled = |master: &usize| {
        let mut during = stretches.iter().filter(|one| one.overlaps(from_ms, to_ms));
        during.any(|one| one.troubles(*master))
    };
    (0..MASTERS).filter(troubled).count()
}
