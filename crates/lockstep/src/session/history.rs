//! The ring of saved states: what rollback returns to, and what the trace of a desynchronisation is made of.

use crate::frame::Frame;

/// States by frame. Saving copies into a slot that is there already, so it takes no memory once the ring is full.
#[derive(Debug)]
pub struct History<G> {
    every: u32,
    slots: Vec<(Frame, G)>,
    capacity: usize,
}

impl<G: Clone> History<G> {
    /// A ring for states of the last `frames` frames, of which every n-th is saved.
    pub fn new(frames: u32, every: u32) -> Self {
        let every = every.max(1);
        Self {
            every,
            slots: Vec::new(),
            capacity: frames.div_ceil(every).max(2) as usize,
        }
    }

    /// Saves the state before `frame` is run, if it is one that is saved.
    #[inline]
    pub fn save(&mut self, frame: Frame, state: &G) {
        if !frame.0.is_multiple_of(self.every) {
            return;
        }
        let index = self.index(frame);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.0 = frame;
            slot.1.clone_from(state);
        } else {
            self.fill(index, frame, state);
        }
    }

    /// The newest saved state that is not after `frame`.
    #[inline]
    pub fn at_or_before(&self, frame: Frame) -> Option<(Frame, &G)> {
        let mut wanted = frame.0 - frame.0 % self.every;
        for _ in 0..self.capacity {
            if let Some(state) = self.get(Frame(wanted)) {
                return Some((Frame(wanted), state));
            }
            wanted = wanted.checked_sub(self.every)?;
        }
        None
    }

    /// The saved state of exactly this frame.
    pub fn get(&self, frame: Frame) -> Option<&G> {
        let slot = self.slots.get(self.index(frame))?;
        (slot.0 == frame).then_some(&slot.1)
    }

    /// Forgets every state.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.0 = Frame::NEVER;
        }
    }

    /// Every saved state from `first` on that is before `end`, in order.
    pub fn range(&self, first: Frame, end: Frame) -> impl Iterator<Item = (Frame, &G)> {
        let first = first
            .0
            .max(end.0.saturating_sub(self.capacity as u32 * self.every));
        let first = first.next_multiple_of(self.every);
        let frames = (first..end.0).step_by(self.every as usize).map(Frame);
        frames.filter_map(|frame| Some((frame, self.get(frame)?)))
    }

    fn index(&self, frame: Frame) -> usize {
        (frame.0 / self.every) as usize % self.capacity
    }

    /// The first time round: slots in between are filled, too, with copies that belong to no frame.
    #[cold]
    fn fill(&mut self, index: usize, frame: Frame, state: &G) {
        while self.slots.len() <= index {
            self.slots.push((Frame::NEVER, state.clone()));
        }
        self.slots[index].0 = frame;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_state_before_a_frame_is_found() {
        let mut history = History::new(12, 3);
        for frame in 0..40 {
            history.save(Frame(frame), &frame);
        }
        assert_eq!(history.at_or_before(Frame(38)), Some((Frame(36), &36)));
        assert_eq!(history.at_or_before(Frame(30)), Some((Frame(30), &30)));
        assert_eq!(history.at_or_before(Frame(29)), None, "too long ago");
        assert_eq!(history.get(Frame(31)), None);
        let frames: Vec<u32> = history
            .range(Frame(0), Frame(37))
            .map(|(frame, _)| frame.0)
            .collect();
        assert_eq!(frames, [30, 33, 36]);
    }

    #[test]
    fn it_may_begin_anywhere() {
        let mut history = History::new(8, 1);
        history.save(Frame(1_005), &7);
        assert_eq!(history.at_or_before(Frame(1_010)), Some((Frame(1_005), &7)));
        assert_eq!(history.get(Frame(1_004)), None);
    }
}
