//! Tells losses that a smaller window would avoid from those that it would not.
//!
//! Radio links lose packets at random, and a game must not slow down for that. Random loss is there in every round, whatever
//! the window; a queue that overflows loses nothing once the window is smaller. So the share lost is compared with the
//! least share of the last rounds.

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
}

impl Losses {
    pub(super) fn new() -> Self {
        // The first batch has nothing to be compared with.
        Self {
            acked: 0,
            lost: 0,
            lost_high: 0,
            shares: [1.0; BATCHES],
            since_blame: 0,
        }
    }

    pub(super) fn acked(&mut self) {
        self.acked = self.acked.saturating_add(1);
    }

    /// `queue_high`: the queue was more than half full then.
    pub(super) fn lost(&mut self, queue_high: bool) {
        self.lost = self.lost.saturating_add(1);
        self.lost_high += u32::from(queue_high && self.lost_high < u32::MAX);
    }

    /// Ends a round; says what its losses mean, once enough packets are counted.
    pub(super) fn next_round(&mut self) -> Option<Verdict> {
        let total = self.acked.saturating_add(self.lost);
        if total < BATCH_PACKETS && self.lost < BATCH_LOSSES {
            return None;
        }
        let share = self.lost as f32 / total as f32;
        let at_high =
            self.lost_high > HIGH_LOSSES && self.lost_high as f32 > HIGH_SHARE * self.lost as f32;
        let least = self.shares.iter().copied().fold(share, f32::min);
        self.shares.rotate_right(1);
        self.shares[0] = share;
        (self.acked, self.lost, self.lost_high) = (0, 0, 0);
        self.since_blame = self.since_blame.saturating_add(1);
        // What is lost in every batch may be lost to a queue that is always full: now and then try a smaller window.
        let trial = usize::from(self.since_blame) > BATCHES;
        let overflow = at_high || share > SHARE_TOLERATED + 2.0 * least;
        if share <= SHARE_TOLERATED || !(overflow || trial) {
            return Some(Verdict::Innocent);
        }
        self.since_blame = 0;
        Some(if overflow {
            Verdict::Overflow
        } else {
            Verdict::Trial
        })
    }
}

/// What the losses of a batch say about the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, or that it does not matter.
    Innocent,
    /// It may be too large: try whether less helps.
    Trial,
    /// It is too large.
    Overflow,
}

/// Fewer packets and losses say too little about a share.
const BATCH_LOSSES: u32 = 10;
const BATCH_PACKETS: u32 = 100;
/// Batches to compare with.
const BATCHES: usize = 8;
/// Share of packets that may be lost on top of what is usual.
const SHARE_TOLERATED: f32 = 0.05;
/// Losses, more than so many, of which more than this share fell into a high queue are an overflow.
const HIGH_SHARE: f32 = 0.9;
const HIGH_LOSSES: u32 = 4;
