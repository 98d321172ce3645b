//! The rows of one kind: those being written, and those of past ticks.

use crate::Tick;
use crate::world::{NEVER, NONE};

/// Rows of one width, one after the other, now and at each of the last ticks.
#[derive(Debug)]
pub(crate) struct Table {
    width: usize,
    current: Vec<i32>,
    /// The object of each row.
    objects: Vec<u32>,
    free: Vec<u32>,
    /// The table of tick t is at t modulo the length, a power of two because rows ask for many of them.
    past: Vec<Past>,
}

#[derive(Clone, Debug)]
struct Past {
    tick: u32,
    rows: Vec<i32>,
}

impl Table {
    pub(crate) fn new(width: usize, history: u32) -> Self {
        debug_assert!(history.is_power_of_two(), "kinds round it up");
        let past = Past {
            tick: NEVER,
            rows: Vec::new(),
        };
        Self {
            width,
            current: Vec::new(),
            objects: Vec::new(),
            free: Vec::new(),
            past: vec![past; history as usize],
        }
    }

    /// A row of zeros for this object.
    pub(crate) fn allocate(&mut self, object: u32) -> u32 {
        if let Some(row) = self.free.pop() {
            self.objects[row as usize] = object;
            self.current_mut(row).fill(0);
            return row;
        }
        self.objects.push(object);
        self.current.resize(self.objects.len() * self.width, 0);
        self.objects.len() as u32 - 1
    }

    pub(crate) fn free(&mut self, row: u32) {
        self.objects[row as usize] = NONE;
        self.free.push(row);
    }

    /// The objects that have a row.
    pub(crate) fn objects(&self) -> impl Iterator<Item = u32> + '_ {
        self.objects
            .iter()
            .copied()
            .filter(|object| *object != NONE)
    }

    pub(crate) fn current(&self, row: u32) -> &[i32] {
        let start = row as usize * self.width;
        &self.current[start..start + self.width]
    }

    pub(crate) fn current_mut(&mut self, row: u32) -> &mut [i32] {
        let start = row as usize * self.width;
        &mut self.current[start..start + self.width]
    }

    /// The row as it was, unless the tick is too long ago or was never committed.
    #[inline]
    pub(crate) fn past(&self, row: u32, tick: u32) -> Option<&[i32]> {
        let start = row as usize * self.width;
        self.rows(tick)?.get(start..start + self.width)
    }

    /// All rows as they were, unless the tick is too long ago or was never committed.
    #[inline]
    pub(crate) fn rows(&self, tick: u32) -> Option<&[i32]> {
        let past = &self.past[self.place(tick)];
        (past.tick == tick).then_some(&past.rows)
    }

    #[inline]
    fn place(&self, tick: u32) -> usize {
        tick as usize & (self.past.len() - 1)
    }

    /// Keeps the rows as those of `tick` and tells which objects' rows changed since `last`.
    pub(crate) fn commit(&mut self, tick: Tick, last: Option<Tick>, mut changed: impl FnMut(u32)) {
        let width = self.width.max(1);
        let before = last
            .map(|last| &self.past[self.place(last.0)].rows[..])
            .unwrap_or_default();
        let rows = self.current.chunks_exact(width);
        for ((row, object), index) in rows.zip(&self.objects).zip(0..) {
            let start: usize = index * width;
            let same = before.get(start..start + width) == Some(row);
            if !same && *object != NONE {
                changed(*object);
            }
        }
        let place = self.place(tick.0);
        let past = &mut self.past[place];
        past.tick = tick.0;
        past.rows.clear();
        past.rows.extend_from_slice(&self.current);
    }
}
