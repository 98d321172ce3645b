//! Tells losses that a smaller window would avoid from those that it would not.
//!
//! Radio links lose packets at random, and a game must not slow down for that. Random loss is there in every round, whatever
//! the window; a queue that overflows loses nothing once the window is smaller. So the share lost is compared with the
//! least share of the last rounds.

/// Counts what was lost and delivered, a batch of rounds at a time.
#[derive(Debug, Default)]
pub(super) struct Losses {
    acked: u32,
    lost: u32,
    /// The share lost in each of the last batches.
    shares: [f32; BATCHES],
    /// Batches since the window was last blamed.
    since_cut: u8,
}

impl Losses {
    pub(super) fn acked(&mut self) {
        self.acked = self.acked.saturating_add(1);
    }

    pub(super) fn lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// Ends a round; true if it lost so much more than others that the window must be to blame.
    pub(super) fn next_round(&mut self) -> bool {
        let total = self.acked.saturating_add(self.lost);
        if total < BATCH_PACKETS {
            return false;
        }
        let share = self.lost as f32 / total as f32;
        let least = self.shares.iter().copied().fold(share, f32::min);
        self.shares.rotate_right(1);
        self.shares[0] = share;
        (self.acked, self.lost) = (0, 0);
        self.since_cut = self.since_cut.saturating_add(1);
        // What is lost in every batch may be lost to a queue that is always full: now and then try a smaller window.
        let trial = usize::from(self.since_cut) > BATCHES && share > SHARE_TOLERATED;
        let blame = trial || share > SHARE_TOLERATED + 2.0 * least;
        if blame {
            self.since_cut = 0;
        }
        blame
    }
}

/// Fewer packets say too little about a share.
const BATCH_PACKETS: u32 = 40;
/// Batches to compare with.
const BATCHES: usize = 8;
/// Share of packets that may be lost on top of what is usual.
const SHARE_TOLERATED: f32 = 0.05;
