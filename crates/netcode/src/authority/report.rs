//! Counts of the rules that a client broke, so that an operator sees cheats.

use core::fmt;

use muse_wire::Instant;

muse_wire::named! {
    /// The reason for which a proposal was refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Violation {
        /// The client never joined; not counted anywhere.
        Stranger = "unknown client",
        /// Nobody chose an authority for it, or a property without a beginning.
        Undeclared = "not declared",
        /// A number that is none, or beyond a billion.
        NotANumber = "not a number",
        /// An entity of somebody else.
        NotTheOwner = "not the owner",
        /// More subjects than are remembered.
        TooMany = "too many subjects",
        /// Too often.
        Rate = "too often",
        /// Too far away.
        Distance = "too far away",
        /// Too fast.
        Speed = "too fast",
        /// Outside its range.
        Range = "out of range",
        /// A second time, where once is allowed.
        Again = "once more",
        /// Too large.
        Size = "too large",
    }
}

/// Counts of a client's proposals, and of those that were refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RefereeReport {
    allowed: u64,
    refused: [u64; Violation::ALL.len()],
    worst: [f32; Violation::ALL.len()],
    last: Option<(Instant, Violation)>,
}

impl RefereeReport {
    /// Everything that was judged.
    pub fn proposals(&self) -> u64 {
        self.allowed + self.refused()
    }

    /// Returns the number of proposals that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// The same as a share of all, 0 when there was nothing.
    pub fn share_refused(&self) -> f64 {
        self.refused() as f64 / self.proposals().max(1) as f64
    }

    /// Returns the number of refusals for one reason.
    pub fn count_of(&self, violation: Violation) -> u64 {
        self.refused[violation as usize]
    }

    /// The worst for one reason: how many times the limit. 0 when there was none.
    pub fn worst(&self, violation: Violation) -> f32 {
        self.worst[violation as usize]
    }

    /// Returns the time of the last refusal and its reason.
    pub fn last(&self) -> Option<(Instant, Violation)> {
        self.last
    }

    pub(super) fn count_allowed(&mut self) {
        self.allowed += 1;
    }

    pub(super) fn count(&mut self, now: Instant, violation: Violation, excess: f32) {
        let at = violation as usize;
        self.refused[at] += 1;
        self.worst[at] = self.worst[at].max(excess);
        self.last = Some((now, violation));
    }
}

impl fmt::Display for RefereeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} refused", self.refused(), self.proposals())?;
        for violation in Violation::ALL {
            let count = self.count_of(violation);
            if count > 0 {
                let (name, worst) = (violation.name(), self.worst(violation));
                write!(f, "; {name} {count} (worst {worst:.1} times)")?;
            }
        }
        Ok(())
    }
}
