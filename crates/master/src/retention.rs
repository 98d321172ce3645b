//! Terms after which a master deletes what nobody asks for any more.

use std::sync::Arc;
use std::time::Duration;

use muse_wire::Instant;

use crate::clock;
use crate::secrets::REFRESH_LIFE;
use crate::shared::Shared;
use crate::store::Cutoffs;

/// Days after which something is deleted; 0 keeps it for ever.
///
/// ```
/// use muse_master::Retention;
/// let retention = Retention::default().chat_days(7).audit_days(0);
/// assert_ne!(retention, Retention::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    guests_days: u32,
    chat_days: u32,
    matches_days: u32,
    audit_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            guests_days: 90,
            chat_days: 30,
            matches_days: 400,
            audit_days: 400,
        }
    }
}

muse_wire::setters! { Retention:
    /// Guests without a name that have not signed in or refreshed a token for so long, 90 by default. Fewer days than a refresh token lives, 30, count as those.
    guests_days: u32,

    /// Lines of chat, 30 by default.
    chat_days: u32,

    /// Matches since their end, and their results, 400 by default. Points and ratings stay.
    matches_days: u32,

    /// Entries of what operators did, 400 by default.
    audit_days: u32,
}

impl Retention {
    /// Everything from before these times is too old now.
    pub(crate) fn cutoffs(&self, now: Instant) -> Cutoffs {
        let before = |days: u32| {
            let kept = muse_wire::Duration::from_secs(u64::from(days) * 86_400);
            (days > 0).then(|| now - kept)
        };
        // Who is connected for weeks refreshes nothing meanwhile.
        let used = before(self.guests_days).map(|before| before.min(now - REFRESH_LIFE));
        Cutoffs {
            guests: used,
            chat: before(self.chat_days),
            matches: before(self.matches_days),
            audit: before(self.audit_days),
        }
    }
}

/// Deletes what is too old, one batch a second while there is any, and never two at once: the master that leads does it for all.
pub(crate) async fn keep_up(shared: Arc<Shared>, retention: Retention) {
    loop {
        let mut wait = LOOK_EVERY;
        if shared.status.is_leading() {
            let now = clock::now();
            match shared.store.prune(retention.cutoffs(now), now).await {
                Ok(pruned) => {
                    metrics::counter!("muse_rows_pruned").increment(pruned.rows);
                    if pruned.more {
                        wait = BATCH_EVERY;
                    }
                }
                Err(error) => tracing::warn!(%error, "what is too old is not deleted"),
            }
        }
        tokio::time::sleep(wait).await;
    }
}

/// Time between two batches while there is something to delete.
const BATCH_EVERY: Duration = Duration::from_secs(1);
/// Time between two looks when there is not.
const LOOK_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_too_old_without_a_limit_and_guests_outlive_their_tokens() {
        let now = Instant::from_secs(1_000 * 86_400);
        let day = |day: u64| Some(Instant::from_secs(day * 86_400));
        let cutoffs = Retention::default().cutoffs(now);
        assert_eq!((cutoffs.guests, cutoffs.chat), (day(910), day(970)));
        assert_eq!((cutoffs.matches, cutoffs.audit), (day(600), day(600)));
        let short = Retention::default().guests_days(1).chat_days(1);
        let cutoffs = short.matches_days(0).audit_days(0).cutoffs(now);
        assert_eq!((cutoffs.guests, cutoffs.chat), (day(970), day(999)));
        assert_eq!((cutoffs.matches, cutoffs.audit), (None, None));
        assert_eq!(
            Retention::default().guests_days(0).cutoffs(now).guests,
            None
        );
    }
}
