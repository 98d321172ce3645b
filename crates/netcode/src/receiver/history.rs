//! The states of one slot that the server may still name as a baseline.

use crate::world::kinds::COLUMNS_MAX;

/// Rows of one slot by tick, the oldest first, in a ring that grows up to a limit.
#[derive(Debug, Default)]
pub(super) struct History {
    ticks: Vec<u32>,
    rows: Vec<i32>,
    width: usize,
    /// The place of the oldest, and the number of entries.
    start: usize,
    len: usize,
}

impl History {
    /// Forgets everything; rows to come have this width.
    pub(crate) fn clear(&mut self, width: usize) {
        if self.width != width {
            self.ticks.clear();
            self.rows.clear();
        }
        self.width = width;
        self.start = 0;
        self.len = 0;
    }

    /// The newest.
    pub(crate) fn last(&self) -> Option<(u32, &[i32])> {
        let index = self.len.checked_sub(1)?;
        Some(self.at(index))
    }

    /// The row of a tick.
    #[inline]
    pub(crate) fn find(&self, tick: u32) -> Option<(u32, &[i32])> {
        // Ticks mostly follow each other: then the place is known.
        let newest = self.ticks[self.place(self.len.checked_sub(1)?)];
        let back = newest.checked_sub(tick)? as usize;
        let mut index = self.len.saturating_sub(back.saturating_add(1));
        while index < self.len {
            let (found, row) = self.at(index);
            if found >= tick {
                return (found == tick).then_some((found, row));
            }
            index += 1;
        }
        None
    }

    /// Adds a row, in order; one of a tick that is there already changes nothing. Forgets those that were followed by another
    /// more than `history` ticks before `now`. Says whether it was added.
    pub(crate) fn insert(&mut self, tick: u32, row: &[i32], now: u32, history: u32) -> bool {
        while self.len >= 2 && now.saturating_sub(self.at(1).0) > history {
            self.start = (self.start + 1) % self.ticks.len();
            self.len -= 1;
        }
        // One row a tick at most, and those that were followed too long ago are gone.
        if self.len > history as usize + 1 {
            return false;
        }
        let mut index = self.len;
        while index > 0 && self.at(index - 1).0 >= tick {
            index -= 1;
        }
        if index < self.len && self.at(index).0 == tick {
            return false;
        }
        if self.len == self.ticks.len() {
            self.grow();
        }
        // Late ones are rare: move what is newer.
        for later in (index..self.len).rev() {
            let (from, to) = (self.place(later), self.place(later + 1));
            self.ticks[to] = self.ticks[from];
            self.rows
                .copy_within(from * self.width..(from + 1) * self.width, to * self.width);
        }
        let place = self.place(index);
        self.ticks[place] = tick;
        self.rows[place * self.width..(place + 1) * self.width].copy_from_slice(row);
        self.len += 1;
        true
    }

    /// Adds a copy of the newest row of `tick` or before as that of `tick`. Returns whether it was added.
    pub(crate) fn hold(&mut self, tick: u32, now: u32, history: u32) -> bool {
        let Some(index) = (0..self.len).rev().find(|index| self.at(*index).0 <= tick) else {
            return false;
        };
        let mut copy = [0; COLUMNS_MAX];
        let copy = &mut copy[..self.width];
        copy.copy_from_slice(self.at(index).1);
        self.insert(tick, copy, now, history)
    }

    #[inline]
    fn at(&self, index: usize) -> (u32, &[i32]) {
        let place = self.place(index);
        let row = &self.rows[place * self.width..(place + 1) * self.width];
        (self.ticks[place], row)
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        let place = self.start + index;
        let capacity = self.ticks.len();
        if place >= capacity {
            place - capacity
        } else {
            place
        }
    }

    fn grow(&mut self) {
        self.ticks.rotate_left(self.start);
        self.rows.rotate_left(self.start * self.width);
        self.start = 0;
        let capacity = (self.ticks.len() * 2).max(4);
        self.ticks.resize(capacity, 0);
        self.rows.resize(capacity * self.width, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_as_long_as_promised() {
        let mut history = History::default();
        history.clear(1);
        for tick in (0..1_000).filter(|tick| tick % 3 != 0 || *tick == 999) {
            assert!(history.insert(tick, &[tick as i32], tick, 16));
            assert!(!history.insert(tick, &[-1], tick, 16));
            for older in tick.saturating_sub(16)..=tick {
                let expected = (older % 3 != 0 || older == 999).then_some(older as i32);
                assert_eq!(history.find(older).map(|(_, row)| row[0]), expected);
            }
            assert!(history.ticks.len() <= 32);
        }
    }

    #[test]
    fn what_did_not_change_is_held() {
        let mut history = History::default();
        history.clear(1);
        assert!(!history.hold(4, 4, 16), "there is nothing yet");
        history.insert(5, &[50], 5, 16);
        assert!(!history.hold(4, 5, 16), "nothing was known so early");
        assert!(!history.hold(5, 5, 16), "it is there already");
        history.insert(30, &[90], 30, 16);
        assert!(history.hold(28, 30, 16));
        let rows = [5, 28, 30].map(|tick| history.find(tick).map(|(_, row)| row[0]));
        assert_eq!(rows, [Some(50), Some(50), Some(90)]);
    }

    #[test]
    fn a_lone_row_stays_and_late_ones_find_their_place() {
        let mut history = History::default();
        history.clear(2);
        history.insert(5, &[5, 5], 5, 16);
        history.insert(900, &[9, 0], 900, 16);
        assert!(history.find(5).is_some(), "followed just now");
        for late in [897, 899, 898] {
            history.insert(late, &[late as i32, 0], 900, 16);
        }
        for tick in [897, 898, 899] {
            let found = history.find(tick).map(|(_, row)| row[0]);
            assert_eq!(found, Some(tick as i32));
        }
        assert_eq!(history.last().map(|(found, _)| found), Some(900));
        assert!(history.find(6).is_none());
    }
}
