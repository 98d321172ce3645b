//! The lease of a queue, with a growing epoch.
//!
//! A master leads a queue while its lease holds. Each change of holder raises the epoch, and every write of a leader names its
//! epoch: a master that was stopped and woke up with an old one is refused by the store, whatever its clock says.

use muse_wire::{Duration, Instant};

/// The lease of one queue, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The term that leads.
    pub holder: u64,
    /// Grows with every change of holder.
    pub epoch: u64,
    /// The end of the lease, by the store's clock.
    pub until: Instant,
}

impl Lease {
    /// The lease after `holder` asked for it at `now`: renewed, taken over because it ran out, or none if another one holds it.
    ///
    /// ```
    /// use muse_master::lease::Lease;
    /// use muse_wire::Instant;
    /// let first = Lease::asked(None, 1, Instant::ZERO).expect("nobody has it");
    /// assert_eq!(Lease::asked(Some(&first), 2, Instant::from_secs(1)), None);
    /// let second = Lease::asked(Some(&first), 2, Instant::from_secs(60)).expect("it ran out");
    /// assert!(second.epoch > first.epoch);
    /// ```
    pub fn asked(current: Option<&Self>, holder: u64, now: Instant) -> Option<Self> {
        let until = now + LEASE;
        match current {
            None => Some(Self {
                holder,
                epoch: 1,
                until,
            }),
            // Even the old holder gets a new epoch if its lease ran out: another one may have led in between.
            Some(lease) if lease.until <= now => Some(Self {
                holder,
                epoch: lease.epoch + 1,
                until,
            }),
            Some(lease) if lease.holder == holder => Some(Self {
                until,
                ..lease.clone()
            }),
            Some(_) => None,
        }
    }
}

/// Time for which a lease holds without being renewed.
pub const LEASE: Duration = Duration::from_secs(6);
/// Time between two renewals.
pub const RENEW_EVERY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewing_keeps_the_epoch_and_coming_late_does_not() {
        let first = Lease::asked(None, 1, Instant::ZERO).expect("free");
        let renewed = Lease::asked(Some(&first), 1, Instant::from_secs(5)).expect("held");
        assert_eq!(renewed.epoch, first.epoch);
        assert_eq!(renewed.until, Instant::from_secs(5) + LEASE);
        let late = Lease::asked(Some(&renewed), 1, renewed.until).expect("free again");
        assert_eq!(late.epoch, first.epoch + 1);
    }
}
