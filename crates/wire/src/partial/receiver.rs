//! The receiving side: what to do with each slot that arrives (thesis, Algorithm 4).

use super::slots::Slots;
use Verdict::{Buffer, Deliver, Drop};

use super::Promise;

/// Keeps a [`Promise`] at the receiver.
///
/// Call [`receive`](Self::receive) for each slot that arrives; after [`Verdict::Deliver`] call
/// [`pop_ready`](Self::pop_ready) until it returns `None`. Delivery is in ascending order, and each aligned window,
/// counted from the first slot, skips at most [`Promise::losses_allowed`] slots, whatever arrives.
///
/// At most a window of slots is ever buffered, and nothing is allocated after the start.
#[derive(Clone, Debug)]
pub struct PartialReceiver {
    promise: Promise,
    losses_max: u32,
    next_expected: u64,
    /// Slots of the current window that are settled, delivered or skipped; always below the window.
    counted: u32,
    /// Slots of the current window that were skipped.
    skipped: u32,
    buffered: Slots,
    /// The lowest buffered slot.
    lowest: Option<u64>,
}

/// The treatment of a slot that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Give it to the application now, then call [`PartialReceiver::pop_ready`].
    Deliver {
        /// The number of slots just before it that are lost for good.
        skipped: u32,
    },
    /// Keep it until [`PartialReceiver::pop_ready`] names it.
    Buffer,
    /// Forget it: a duplicate, already skipped, or further ahead than a window.
    Drop,
}

/// A buffered slot whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The slot to give to the application.
    pub slot: u64,
    /// The number of slots just before it that are lost for good.
    pub skipped: u32,
}

impl PartialReceiver {
    /// A receiver whose first window starts at `first_slot`.
    pub fn new(promise: Promise, first_slot: u64) -> Self {
        Self {
            promise,
            losses_max: promise.losses_allowed(),
            next_expected: first_slot,
            counted: 0,
            skipped: 0,
            buffered: Slots::new(promise.window()),
            lowest: None,
        }
    }

    /// The promise being kept.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// The slot after the last one delivered. Everything below is settled: delivered, or lost for good.
    pub const fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// Slots of the current window that are settled (`C` of the algorithm).
    pub const fn counted_in_window(&self) -> u32 {
        self.counted
    }

    /// Slots of the current window that were skipped (`F` of the algorithm). A sender that gives up slots has to be
    /// told; see [`PartialSender::handle_progress`](super::PartialSender::handle_progress).
    pub const fn skipped_in_window(&self) -> u32 {
        self.skipped
    }

    /// Returns the number of slots that wait in the caller's buffer.
    pub const fn buffered_len(&self) -> u32 {
        self.buffered.len()
    }

    /// True if `slot` waits in the caller's buffer.
    pub fn is_buffered(&self, slot: u64) -> bool {
        self.in_reach(slot) && self.buffered.contains(slot)
    }

    /// `slot` arrived.
    pub fn receive(&mut self, slot: u64) -> Verdict {
        if !self.in_reach(slot) {
            return Drop;
        }
        // A lower slot that waits bars this one: what cannot be skipped for the lower cannot be for the higher.
        let barred = self.lowest.is_some_and(|lowest| lowest <= slot);
        if !barred && let Some(skipped) = self.accept(slot) {
            return Deliver { skipped };
        }
        if !self.buffered.insert(slot) {
            return Drop;
        }
        self.lowest = Some(self.lowest.map_or(slot, |lowest| lowest.min(slot)));
        Buffer
    }

    /// The lowest buffered slot, if it may be delivered now; it leaves the buffer.
    pub fn pop_ready(&mut self) -> Option<Ready> {
        let slot = self.lowest?;
        let skipped = self.accept(slot)?;
        self.buffered.remove(slot);
        self.lowest = self.buffered.first_in(self.next_expected, self.reach_end());
        Some(Ready { slot, skipped })
    }

    /// Settles everything up to `slot` and says how much was skipped, if the promise permits.
    fn accept(&mut self, slot: u64) -> Option<u32> {
        let window = self.promise.window();
        // Below the window's length, by `in_reach`.
        let distance = (slot - self.next_expected) as u32;
        let to_window_end = window - self.counted;
        if distance < to_window_end {
            if self.skipped + distance > self.losses_max {
                return None;
            }
            self.counted += distance + 1;
            self.skipped += distance;
        } else {
            let beyond = distance - to_window_end;
            if self.skipped + to_window_end > self.losses_max || beyond > self.losses_max {
                return None;
            }
            self.counted = beyond + 1;
            self.skipped = beyond;
        }
        if self.counted == window {
            self.counted = 0;
            self.skipped = 0;
        }
        self.next_expected = slot + 1;
        Some(distance)
    }

    /// True if `slot` is at least the expected one and less than a window beyond it. The very last number is never
    /// in reach, so that there is always a next one.
    fn in_reach(&self, slot: u64) -> bool {
        slot >= self.next_expected && slot < self.reach_end()
    }

    fn reach_end(&self) -> u64 {
        self.next_expected
            .saturating_add(u64::from(self.promise.window()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(window: u32, percent: u8) -> PartialReceiver {
        PartialReceiver::new(Promise::new(window, percent).expect("a valid promise"), 1)
    }

    #[test]
    fn the_worked_example_of_the_thesis() {
        let mut receiver = receiver(10, 50);
        let arrivals = [1, 8, 6, 10, 11, 12, 9, 13, 14, 15, 20, 25];
        let acks = arrivals.map(|slot| {
            receiver.receive(slot);
            while receiver.pop_ready().is_some() {}
            receiver.next_expected() - 1
        });
        assert_eq!(acks, [1, 1, 8, 8, 8, 8, 12, 13, 14, 15, 20, 25]);
    }

    #[test]
    fn a_window_of_one_never_skips() {
        let mut receiver = receiver(1, 0);
        assert_eq!(receiver.receive(2), Drop);
        assert_eq!(receiver.receive(1), Deliver { skipped: 0 });
        assert_eq!(receiver.receive(1), Drop);
        assert_eq!(receiver.receive(2), Deliver { skipped: 0 });
    }

    #[test]
    fn forgetting_to_pop_breaks_neither_order_nor_promise() {
        let mut receiver = receiver(10, 80);
        assert_eq!(receiver.receive(4), Buffer);
        assert_eq!(receiver.receive(2), Deliver { skipped: 1 });
        // Slot 4 is ready now, but nobody asked; slot 5 must not overtake it.
        assert_eq!(receiver.receive(5), Buffer);
        assert_eq!(receiver.receive(5), Drop);
        assert!(receiver.is_buffered(4) && receiver.is_buffered(5));
        assert_eq!(
            receiver.pop_ready(),
            Some(Ready {
                slot: 4,
                skipped: 1
            })
        );
        assert_eq!(
            receiver.pop_ready(),
            Some(Ready {
                slot: 5,
                skipped: 0
            })
        );
        assert_eq!((receiver.pop_ready(), receiver.buffered_len()), (None, 0));
    }

    #[test]
    fn the_end_of_the_number_space_drops_instead_of_overflowing() {
        let promise = Promise::new(10, 50).expect("a valid promise");
        let mut receiver = PartialReceiver::new(promise, u64::MAX - 2);
        assert_eq!(receiver.receive(u64::MAX - 1), Deliver { skipped: 1 });
        assert_eq!(receiver.receive(u64::MAX), Drop);
    }
}
