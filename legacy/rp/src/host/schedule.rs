//! The connections of a host in the order of their next time-outs.

use std::collections::{BTreeMap, BTreeSet};

use muse_wire::Instant;

use crate::ConnectionId;

/// One time-out per connection.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    by_time: BTreeSet<(Instant, ConnectionId)>,
    by_id: BTreeMap<ConnectionId, Instant>,
}

impl Schedule {
    pub(super) fn set(&mut self, id: ConnectionId, at: Instant) {
        match self.by_id.insert(id, at) {
            Some(before) if before == at => return,
            Some(before) => self.by_time.remove(&(before, id)),
            None => false,
        };
        self.by_time.insert((at, id));
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(at) = self.by_id.remove(&id) {
            self.by_time.remove(&(at, id));
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// A connection whose time has come. It has none until it is set again.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<ConnectionId> {
        let &(at, id) = self.by_time.first()?;
        if at > now {
            return None;
        }
        self.remove(id);
        Some(id)
    }
}
