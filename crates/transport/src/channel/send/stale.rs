//! Drops what congestion has held back for too long.
//!
//! A message that need not arrive is worth little when it is late, and while it waits it delays those behind it. So a queue that
//! the path does not carry is cut from its old end.

use muse_wire::Instant;

use super::{Outgoing, Pieces, SendChannel};
use crate::config::{Delivery, Priority};
use crate::event::{Outcome, Receipt};

impl SendChannel {
    /// Drops messages that are too old, of those that waited already when congestion held this connection back last, at
    /// `held_at`. Returns their number, and the time at which the next one is too old.
    pub(crate) fn drop_stale(
        &mut self,
        now: Instant,
        held_at: Instant,
        receipts: &mut impl FnMut(Receipt),
    ) -> (u64, Instant) {
        let mut next = Instant::FAR_FUTURE;
        if self.delivery.is_reliable() {
            return (0, next);
        }
        let before = self.stats.messages_stale;
        for queue in 0..Priority::COUNT {
            while let Some(number) = self.oldest_unsent(queue) {
                let Some(message) = self.message_mut(number) else {
                    break;
                };
                let (queued_at, receipt) = (message.queued_at, message.receipt);
                let stale_at = queued_at + self.queue_age;
                // It came after congestion was last felt, and may leave yet.
                if queued_at > held_at {
                    break;
                }
                if stale_at > now {
                    next = next.min(stale_at);
                    break;
                }
                self.drop_unsent(number);
                self.stats.messages_stale += 1;
                if receipt {
                    receipts(Receipt::new(self.id, number, Outcome::Expired));
                }
            }
        }
        let dropped = self.stats.messages_stale - before;
        if dropped > 0 {
            self.free_done();
        }
        (dropped, next)
    }

    /// The oldest message of a queue that may be dropped: nothing of it has been sent, and on a sequenced channel it is not the
    /// newest.
    fn oldest_unsent(&self, queue: usize) -> Option<u64> {
        let queue = &self.pending[queue];
        // Only the first of a queue can have begun to leave. It is finished: messages in many pieces would never arrive if each
        // gave way to the next.
        let begun = queue
            .front()
            .and_then(|&number| self.message(number))
            .is_some_and(Outgoing::is_begun);
        let kept_last = usize::from(self.delivery == Delivery::Sequenced);
        let first = usize::from(begun);
        (first + kept_last < queue.len()).then(|| queue[first])
    }

    fn drop_unsent(&mut self, number: u64) {
        self.stop_waiting(number);
        if let Some(message) = self.message_mut(number) {
            message.done = true;
        }
    }
}

impl Outgoing {
    /// Some of its pieces have been sent.
    fn is_begun(&self) -> bool {
        match &self.pieces {
            Pieces::Whole(copies) => *copies > 0,
            Pieces::Many(fragments) => fragments.sent > 0,
        }
    }
}
