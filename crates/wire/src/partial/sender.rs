//! The sending side: which lost slots need not be sent again.

use super::Promise;
use super::slots::Slots;

/// Says which slots a sender may give up without breaking its [`Promise`], so that it saves their retransmission.
///
/// When a slot seems lost, ask [`give_up`](Self::give_up); on `true` do not send it again *for now*, but keep it until
/// it is settled. Tell [`handle_progress`](Self::handle_progress) what the receiver reports
/// ([`next_expected`](super::PartialReceiver::next_expected) and
/// [`skipped_in_window`](super::PartialReceiver::skipped_in_window)), then send again each slot that
/// [`poll_revoked`](Self::poll_revoked) names.
///
/// A slot given up may have to be sent after all because the receiver skips by itself, too: a slot that is merely
/// late counts as lost there, and the share of the window that the sender counted on is then spent. A sender that
/// obeys never leaves the receiver waiting for a slot that does not come, provided that it sends nothing further
/// ahead than [`may_send`](Self::may_send) allows.
///
/// ```
/// use muse_wire::partial::{PartialSender, Promise};
/// let mut sender = PartialSender::new(Promise::new(10, 80)?, 1);
/// assert!(sender.give_up(3) && sender.give_up(7));
/// assert!(!sender.give_up(8), "two of ten may be lost");
/// // The receiver skipped slots 1 and 2 by itself, so slots 3 and 7 have to arrive.
/// sender.handle_progress(3, 2);
/// assert_eq!(sender.poll_revoked(), Some(3));
/// assert_eq!(sender.poll_revoked(), Some(7));
/// assert_eq!(sender.poll_revoked(), None);
/// assert!(sender.give_up(11), "the next window has its own share");
/// # Ok::<(), muse_wire::partial::PromiseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartialSender {
    promise: Promise,
    losses_max: u32,
    next_expected: u64,
    /// The first slot of the window after the one that `next_expected` is in.
    window_end: u64,
    /// The number of slots that the receiver has skipped of the window that `next_expected` is in.
    skipped: u32,
    /// Slots given up at or after `next_expected`, all less than a window beyond it.
    given_up: Slots,
    /// The number of them that are in the same window as `next_expected`; the others are in the one after.
    given_up_in_window: u32,
}

impl PartialSender {
    /// A sender whose first window starts at `first_slot`, as the receiver's does.
    pub fn new(promise: Promise, first_slot: u64) -> Self {
        Self {
            promise,
            losses_max: promise.losses_allowed(),
            next_expected: first_slot,
            window_end: first_slot.saturating_add(u64::from(promise.window())),
            skipped: 0,
            given_up: Slots::new(promise.window()),
            given_up_in_window: 0,
        }
    }

    /// The promise being kept.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// The slot that the receiver expects, as far as is known. Everything below is settled.
    pub const fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// True if `slot` is less than a window ahead of what the receiver expects. It would drop any other.
    pub fn may_send(&self, slot: u64) -> bool {
        slot >= self.next_expected && slot < self.reach_end()
    }

    /// True if `slot` has been given up and the receiver is not known to be past it.
    pub fn is_given_up(&self, slot: u64) -> bool {
        self.may_send(slot) && self.given_up.contains(slot)
    }

    /// True if [`give_up`](Self::give_up) would say yes: `slot` may be sent, its window has losses left, and it is not
    /// the last slot in reach that the receiver could still move on with.
    pub fn may_give_up(&self, slot: u64) -> bool {
        if !self.may_send(slot) {
            return false;
        }
        if self.given_up.contains(slot) {
            return true;
        }
        let used = if slot < self.window_end {
            self.skipped.saturating_add(self.given_up_in_window)
        } else {
            self.given_up.len() - self.given_up_in_window
        };
        used < self.losses_max && self.given_up.len() + 1 < self.promise.window()
    }

    /// Gives `slot` up if the promise does not need it, and says whether it did.
    pub fn give_up(&mut self, slot: u64) -> bool {
        let permitted = self.may_give_up(slot);
        if permitted && self.given_up.insert(slot) && slot < self.window_end {
            self.given_up_in_window += 1;
        }
        permitted
    }

    /// The receiver reports the slot it expects and how many it has skipped in that slot's window. Reports may come
    /// late or twice; that the receiver is not ahead of what was sent is for the caller to check.
    pub fn handle_progress(&mut self, next_expected: u64, skipped_in_window: u32) {
        if next_expected <= self.next_expected {
            return;
        }
        if next_expected >= self.reach_end() {
            self.given_up.clear();
        }
        while let Some(slot) = self.given_up.first_in(self.next_expected, next_expected) {
            self.given_up.remove(slot);
        }
        self.next_expected = next_expected;
        if next_expected >= self.window_end {
            let window = u64::from(self.promise.window());
            let whole_windows = (next_expected - self.window_end) / window + 1;
            self.window_end = self
                .window_end
                .saturating_add(whole_windows.saturating_mul(window));
        }
        self.skipped = skipped_in_window;
        let in_window = self.window_end.min(self.reach_end());
        self.given_up_in_window = self.given_up.count_in(next_expected, in_window);
    }

    /// A slot that was given up and has to be sent after all, lowest first; call it until it returns `None`.
    pub fn poll_revoked(&mut self) -> Option<u64> {
        let used = self.skipped.saturating_add(self.given_up_in_window);
        if used <= self.losses_max {
            return None;
        }
        let slot = self
            .given_up
            .first_in(self.next_expected, self.window_end)?;
        self.given_up.remove(slot);
        self.given_up_in_window -= 1;
        Some(slot)
    }

    fn reach_end(&self) -> u64 {
        self.next_expected
            .saturating_add(u64::from(self.promise.window()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(window: u32, percent: u8) -> PartialSender {
        PartialSender::new(Promise::new(window, percent).expect("a valid promise"), 1)
    }

    #[test]
    fn each_aligned_window_has_its_own_share() {
        let mut sender = sender(5, 60);
        let given_up: Vec<u64> = (1..=5).filter(|&slot| sender.give_up(slot)).collect();
        assert_eq!(given_up, [1, 2]);
        assert!(
            sender.give_up(2) && sender.is_given_up(2),
            "asking twice changes nothing"
        );
        assert!(
            !sender.give_up(6),
            "further ahead than a window of what the receiver expects"
        );
        sender.handle_progress(4, 2);
        assert_eq!(sender.poll_revoked(), None);
        let given_up: Vec<u64> = (1..=8).filter(|&slot| sender.give_up(slot)).collect();
        assert_eq!(given_up, [6, 7]);
        sender.handle_progress(6, 0);
        assert!(!sender.may_give_up(8) && sender.is_given_up(7) && !sender.is_given_up(2));
    }

    #[test]
    fn the_receiver_is_always_left_something_to_move_on_with() {
        let mut sender = sender(4, 0);
        let given_up: Vec<u64> = (1..=4).filter(|&slot| sender.give_up(slot)).collect();
        assert_eq!(given_up, [1, 2, 3]);
        assert!(sender.may_send(4) && !sender.may_send(5));
    }

    #[test]
    fn reports_from_the_past_and_from_nowhere_do_no_harm() {
        let mut sender = sender(10, 50);
        assert!(sender.give_up(2));
        sender.handle_progress(1, 9);
        assert_eq!(sender.poll_revoked(), None);
        sender.handle_progress(u64::MAX, u32::MAX);
        assert!(!sender.give_up(2) && !sender.give_up(u64::MAX));
        assert_eq!(sender.poll_revoked(), None);
    }
}
