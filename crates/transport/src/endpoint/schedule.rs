//! The connections that have something to send, and the times at which the others must be looked at again.
//!
//! Time-outs stand in a heap and are corrected lazily: most of them only ever move later, so a connection that is busy
//! costs one heap entry per time-out, not one per packet.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use muse_wire::Instant;

/// The agenda of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    entries: Vec<Entry>,
    dirty: VecDeque<u32>,
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    dirty: bool,
    /// Time of the heap entry that counts.
    at: Instant,
}

const IDLE: Entry = Entry {
    dirty: false,
    at: Instant::FAR_FUTURE,
};

impl Schedule {
    /// Slot `index` may have something to send.
    pub(super) fn mark_dirty(&mut self, index: usize) {
        let entry = self.entry(index);
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push_back(index as u32);
        }
    }

    pub(super) fn first_dirty(&self) -> Option<usize> {
        self.dirty.front().map(|&index| index as usize)
    }

    /// The first dirty slot has nothing more to send.
    pub(super) fn clean_first(&mut self) {
        if let Some(index) = self.dirty.pop_front() {
            self.entry(index as usize).dirty = false;
        }
    }

    /// Slot `index` must be looked at by `at`.
    pub(super) fn set(&mut self, index: usize, at: Instant) {
        let entry = self.entry(index);
        // A later time is corrected when the earlier one comes.
        if at < entry.at {
            entry.at = at;
            self.heap.push(Reverse((at, index as u32)));
        }
    }

    /// Slot `index` is empty.
    pub(super) fn clear(&mut self, index: usize) {
        self.entry(index).at = Instant::FAR_FUTURE;
    }

    /// The next slot whose time has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        loop {
            let &Reverse((at, index)) = self.heap.peek()?;
            let index = index as usize;
            let counts = self.entry(index).at == at;
            if counts && at > now {
                return None;
            }
            self.heap.pop();
            if counts {
                self.entry(index).at = Instant::FAR_FUTURE;
                return Some(index);
            }
        }
    }

    /// Returns the time at which the next slot is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        loop {
            let &Reverse((at, index)) = self.heap.peek()?;
            if self.entry(index as usize).at == at {
                return Some(at);
            }
            self.heap.pop();
        }
    }

    fn entry(&mut self, index: usize) -> &mut Entry {
        if self.entries.len() <= index {
            self.entries.resize(index + 1, IDLE);
        }
        &mut self.entries[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_time_of_each_slot_counts() {
        let mut schedule = Schedule::default();
        schedule.set(0, Instant::from_millis(10));
        schedule.set(1, Instant::from_millis(5));
        schedule.set(0, Instant::from_millis(20));
        schedule.set(1, Instant::from_millis(2));
        assert_eq!(schedule.next(), Some(Instant::from_millis(2)));
        assert_eq!(schedule.pop_due(Instant::from_millis(1)), None);
        assert_eq!(schedule.pop_due(Instant::from_millis(7)), Some(1));
        assert_eq!(
            schedule.pop_due(Instant::from_millis(7)),
            None,
            "its other entry is stale"
        );
        assert_eq!(schedule.next(), Some(Instant::from_millis(10)));
        schedule.clear(0);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_slot_is_dirty_once() {
        let mut schedule = Schedule::default();
        schedule.mark_dirty(3);
        schedule.mark_dirty(3);
        assert_eq!(schedule.first_dirty(), Some(3));
        schedule.clean_first();
        assert_eq!(schedule.first_dirty(), None);
    }
}
