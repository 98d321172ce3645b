//! Tells losses that a smaller window avoids from those that it does not.
//!
//! Radio links lose packets at random, and a game must not slow down for that. Random loss is there in every round, whatever
//! the window; a queue that overflows loses less once the window is smaller, and loses while it is full. So the share lost is
//! compared with that of earlier rounds, and when the window was cut and it did not help, the cut is taken back.

/// Counts what was lost and delivered, a batch of rounds at a time.
#[derive(Debug)]
pub(super) struct Losses {
    acked: u32,
    lost: u32,
    lost_high: u32,
    /// The share lost in each of the last batches.
    shares: [f32; BATCHES],
    /// Batches since the window was last blamed.
    since_blame: u8,
    /// The share for which it was, until the next batch tells whether that was right. And whether its first round is over:
    /// that one still tells of packets sent before.
    blamed: Option<f32>,
    settled: bool,
    /// Batches for which nothing is blamed on the window, because it turned out innocent.
    acquitted: u8,
}

/// The conclusion from the losses of a batch about the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, or that it does not matter.
    Innocent,
    /// It may be too large: try whether less helps.
    Trial,
    /// It is too large.
    Overflow,
    /// The last cut did not help.
    Mistaken,
}

impl Losses {
    pub(super) fn new() -> Self {
        Self {
            acked: 0,
            lost: 0,
            lost_high: 0,
            // The first batch has nothing to be compared with.
            shares: [1.0; BATCHES],
            since_blame: 0,
            blamed: None,
            settled: true,
            acquitted: 0,
        }
    }

    pub(super) fn acked(&mut self) {
        self.acked = self.acked.saturating_add(1);
    }

    /// `queue_high`: the queue was more than half full then.
    pub(super) fn lost(&mut self, queue_high: bool) {
        self.lost = self.lost.saturating_add(1);
        self.lost_high = self.lost_high.saturating_add(u32::from(queue_high));
    }

    /// Ends a round; says what the losses mean, once enough packets are counted.
    pub(super) fn next_round(&mut self) -> Option<Verdict> {
        // The round after a cut still has losses of the window before it.
        if !self.settled {
            self.settled = true;
            (self.acked, self.lost, self.lost_high) = (0, 0, 0);
            return None;
        }
        let total = self.acked.saturating_add(self.lost);
        if total < BATCH_PACKETS && self.lost < BATCH_LOSSES {
            return None;
        }
        let share = self.lost as f32 / total as f32;
        let high = if self.lost < HIGH_LOSSES {
            0.5
        } else {
            self.lost_high as f32 / self.lost as f32
        };
        (self.acked, self.lost, self.lost_high) = (0, 0, 0);
        Some(self.judge(share, high))
    }

    /// `high` is the share of the losses that fell into a high queue.
    fn judge(&mut self, share: f32, high: f32) -> Verdict {
        let least = self.shares.iter().copied().fold(share, f32::min);
        self.shares.rotate_right(1);
        self.shares[0] = share;
        self.since_blame = self.since_blame.saturating_add(1);
        self.acquitted = self.acquitted.saturating_sub(1);
        let before = self.blamed.take();
        if share <= SHARE_TOLERATED {
            return Verdict::Innocent;
        }
        // The last batch was blamed on the window, and less of it did not help.
        if high < MIXED_SHARE && before.is_some_and(|before| share > HELPED * before) {
            self.acquitted = ACQUITTED_BATCHES;
            return Verdict::Mistaken;
        }
        // Losses in every batch may come from a queue that is always full: try a smaller window now and then.
        let trial = usize::from(self.since_blame) > BATCHES;
        let more_than_usual = share > SHARE_TOLERATED + 2.0 * least;
        let overflow = high > HIGH_SHARE || (more_than_usual && self.acquitted == 0);
        if !overflow && (!trial || self.acquitted > 0) {
            return Verdict::Innocent;
        }
        self.since_blame = 0;
        self.blamed = Some(share);
        self.settled = false;
        if overflow {
            Verdict::Overflow
        } else {
            Verdict::Trial
        }
    }
}

/// Fewer packets and losses say too little about a share.
const BATCH_PACKETS: u32 = 100;
const BATCH_LOSSES: u32 = 10;
/// Batches to compare with.
const BATCHES: usize = 8;
/// Share of packets that may be lost on top of what is usual.
const SHARE_TOLERATED: f32 = 0.05;
/// Losses, at least so many, of which more than this share fell into a high queue are an overflow; of which less than that share
/// did are none if a smaller window does not help.
const HIGH_LOSSES: u32 = 5;
const HIGH_SHARE: f32 = 0.9;
const MIXED_SHARE: f32 = 0.3;
/// A cut helped if no more than this part of the share is left.
const HELPED: f32 = 0.8;
/// The number of batches for which a mistake is remembered.
const ACQUITTED_BATCHES: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of a hundred packets.
    fn round(losses: &mut Losses, lost: u32, high: bool) -> Option<Verdict> {
        (0..100 - lost).for_each(|_| losses.acked());
        (0..lost).for_each(|_| losses.lost(high));
        losses.next_round()
    }

    #[test]
    fn a_few_losses_are_tolerated() {
        let mut losses = Losses::new();
        for _ in 0..50 {
            assert_eq!(round(&mut losses, 4, false), Some(Verdict::Innocent));
        }
    }

    #[test]
    fn losses_in_a_full_queue_are_an_overflow() {
        let mut losses = Losses::new();
        assert_eq!(round(&mut losses, 20, true), Some(Verdict::Overflow));
    }

    #[test]
    fn more_losses_than_usual_are_an_overflow() {
        let mut losses = Losses::new();
        assert_eq!(round(&mut losses, 0, false), Some(Verdict::Innocent));
        assert_eq!(round(&mut losses, 20, false), Some(Verdict::Overflow));
    }

    #[test]
    fn losses_that_a_smaller_window_does_not_avoid_are_forgiven() {
        let mut losses = Losses::new();
        let mut verdicts = Vec::new();
        for _ in 0..30 {
            verdicts.extend(round(&mut losses, 20, false));
        }
        let trial = verdicts
            .iter()
            .position(|verdict| *verdict == Verdict::Trial);
        let trial = trial.expect("a smaller window was tried");
        assert_eq!(verdicts[trial + 1], Verdict::Mistaken);
        assert!(
            verdicts[trial + 2..]
                .iter()
                .take(14)
                .all(|verdict| *verdict == Verdict::Innocent)
        );
    }
}
