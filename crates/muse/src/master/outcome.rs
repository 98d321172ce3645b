//! The result of a match, as a game server hands it in.

use std::collections::BTreeMap;

use muse_master_client::AccountId;
use muse_master_client::messages::{MatchResult, Outcome, PlayerResult};

use super::MatchPlan;

/// The result of a match: how it ended, and what each player scored.
///
/// ```
/// use muse::master::{AccountId, MatchOutcome};
/// let outcome = MatchOutcome::points([(AccountId(7), 120), (AccountId(8), 90)]);
/// let together = MatchOutcome::points([(AccountId(7), 40), (AccountId(8), 40)]).together();
/// assert_ne!(outcome, together);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchOutcome {
    ending: Outcome,
    points: BTreeMap<AccountId, i64>,
    teams: BTreeMap<AccountId, u8>,
    is_together: bool,
}

impl MatchOutcome {
    /// Reports a match that was played to its end, with the points of each player. Players who are missing here have none.
    pub fn points(points: impl IntoIterator<Item = (AccountId, i64)>) -> Self {
        Self {
            points: points.into_iter().collect(),
            ..Self::ended(Outcome::Finished)
        }
    }

    /// Reports a match that was called off before it began.
    pub fn cancelled() -> Self {
        Self::ended(Outcome::Cancelled)
    }

    /// Reports a match of which nothing counts.
    pub fn aborted() -> Self {
        Self::ended(Outcome::Aborted)
    }

    /// Puts all players into one team: a co-operative match, which gives points but no rating.
    pub fn together(mut self) -> Self {
        self.is_together = true;
        self
    }

    /// Puts players into teams, which are rated as such. By default everybody plays for themselves.
    pub fn teams(mut self, teams: impl IntoIterator<Item = (AccountId, u8)>) -> Self {
        self.teams = teams.into_iter().collect();
        self
    }

    /// Returns the message to the master: a line for each player that ever had a seat.
    pub(super) fn result(&self, plan: &MatchPlan, invited: &[AccountId]) -> MatchResult {
        let player = |account: &AccountId| PlayerResult {
            account: *account,
            points: self.points.get(account).copied().unwrap_or(0),
            team: match self.is_together {
                true => Some(0),
                false => self.teams.get(account).copied(),
            },
        };
        MatchResult {
            match_id: plan.match_id,
            outcome: self.ending,
            players: invited.iter().map(player).collect(),
        }
    }

    fn ended(ending: Outcome) -> Self {
        Self {
            ending,
            points: BTreeMap::new(),
            teams: BTreeMap::new(),
            is_together: false,
        }
    }
}
