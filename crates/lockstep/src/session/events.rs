//! Events of the game: predicted ones, which may be taken back, and confirmed ones, which may not.

use std::collections::VecDeque;

use crate::frame::Frame;

/// Something that happened in the game, and how sure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GameEvent<E> {
    /// It happened as far as this machine knows: for what must be heard at once.
    Predicted(Frame, E),
    /// It did not happen after all: a guess was wrong.
    Cancelled(Frame, E),
    /// It happened, for certain, on all machines: for scores and everything that cannot be taken back.
    Confirmed(Frame, E),
}

/// Events by frame, until they are final.
#[derive(Debug)]
pub(crate) struct Events<E> {
    frames: Vec<Vec<E>>,
    /// Buffer that a step writes its events to.
    pub(crate) scratch: Vec<E>,
    out: VecDeque<GameEvent<E>>,
}

impl<E: Clone + PartialEq> Events<E> {
    pub(crate) fn new(frames: u32) -> Self {
        Self {
            frames: vec![Vec::new(); frames.next_power_of_two() as usize],
            scratch: Vec::new(),
            out: VecDeque::new(),
        }
    }

    /// The frame was run for the first time: what it wrote is news.
    pub(crate) fn first_run(&mut self, frame: Frame) {
        let slot = frame.0 as usize % self.frames.len();
        for index in 0..self.scratch.len() {
            push(
                &mut self.out,
                GameEvent::Predicted(frame, self.scratch[index].clone()),
            );
        }
        self.frames[slot].clear();
        std::mem::swap(&mut self.frames[slot], &mut self.scratch);
    }

    /// The frame was run again: only what differs is news, and nothing of a frame that was told as final.
    #[inline]
    pub(crate) fn run_again(&mut self, frame: Frame, is_final: bool) {
        if is_final {
            return self.scratch.clear();
        }
        let slot = frame.0 as usize % self.frames.len();
        let before = &mut self.frames[slot];
        if before.is_empty() && self.scratch.is_empty() {
            return;
        }
        if *before != self.scratch {
            for event in before.iter().filter(|event| !self.scratch.contains(event)) {
                push(&mut self.out, GameEvent::Cancelled(frame, event.clone()));
            }
            for event in self.scratch.iter().filter(|event| !before.contains(event)) {
                push(&mut self.out, GameEvent::Predicted(frame, event.clone()));
            }
        }
        std::mem::swap(before, &mut self.scratch);
        self.scratch.clear();
    }

    /// The frame will not be run again.
    pub(crate) fn finalize(&mut self, frame: Frame) {
        let slot = frame.0 as usize % self.frames.len();
        for event in self.frames[slot].drain(..) {
            push(&mut self.out, GameEvent::Confirmed(frame, event));
        }
    }

    pub(crate) fn poll(&mut self) -> Option<GameEvent<E>> {
        self.out.pop_front()
    }
}

fn push<E>(out: &mut VecDeque<GameEvent<E>>, event: GameEvent<E>) {
    if out.len() >= GAME_EVENTS_MAX {
        out.pop_front();
    }
    out.push_back(event);
}

/// Events of the game that wait to be polled; then the oldest are lost.
pub const GAME_EVENTS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_second_run_changes_is_told() {
        let mut events = Events::new(8);
        let frame = Frame(3);
        events.scratch.extend(["hit", "shout"]);
        events.first_run(frame);
        events.scratch.extend(["shout", "parry"]);
        events.run_again(frame, false);
        events.scratch.extend(["shout", "parry"]);
        events.run_again(frame, false);
        events.finalize(frame);
        let told: Vec<GameEvent<&str>> = std::iter::from_fn(|| events.poll()).collect();
        let expected = [
            GameEvent::Predicted(frame, "hit"),
            GameEvent::Predicted(frame, "shout"),
            GameEvent::Cancelled(frame, "hit"),
            GameEvent::Predicted(frame, "parry"),
            GameEvent::Confirmed(frame, "shout"),
            GameEvent::Confirmed(frame, "parry"),
        ];
        assert_eq!(told, expected);
    }
}
