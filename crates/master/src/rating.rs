//! Ratings of players: Weng-Lin, through the crate `skillratings`, because it rates any number of teams of any size.
//!
//! The scale is shifted so that a new player stands at 1,500: `1500 + 60 * (weng_lin - 25)`, and one standard deviation
//! of the start is 500.

use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};

/// A player's strength, and the uncertainty about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Strength; 1,500 at the start.
    pub value: f64,
    /// One standard deviation; 500 at the start, smaller with every match.
    pub uncertainty: f64,
}

impl Default for Rating {
    fn default() -> Self {
        Self {
            value: START,
            uncertainty: START_WENG_LIN / 3.0 * SCALE,
        }
    }
}

/// One player's part in a finished match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Before the match.
    pub rating: Rating,
    /// The team; players of the same number play together.
    pub team: u32,
    /// The points scored; a team's points are the sum.
    pub points: i64,
}

/// The ratings after a match, in the order of `entries`. With fewer than two teams, as in a co-operative match, nothing changes.
///
/// ```
/// use muse_master::rating::{Entry, Rating, rated};
/// let entry = |team, points| Entry { rating: Rating::default(), team, points };
/// let after = rated(&[entry(1, 10), entry(2, 30)]);
/// assert!(after[1].value > 1_500.0 && after[0].value < 1_500.0);
/// ```
pub fn rated(entries: &[Entry]) -> Vec<Rating> {
    let mut teams: Vec<u32> = entries.iter().map(|entry| entry.team).collect();
    teams.sort_unstable();
    teams.dedup();
    let unchanged = || entries.iter().map(|entry| entry.rating).collect();
    if teams.len() < 2 {
        return unchanged();
    }
    let members = |team: u32| entries.iter().filter(move |entry| entry.team == team);
    let score =
        |team: u32| members(team).fold(0_i64, |sum, entry| sum.saturating_add(entry.points));
    let scores: Vec<i64> = teams.iter().map(|&team| score(team)).collect();
    let before: Vec<Vec<WengLinRating>> = teams
        .iter()
        .map(|&team| members(team).map(|entry| inward(entry.rating)).collect())
        .collect();
    let ranks = scores.iter().map(|mine| {
        let better = scores.iter().filter(|other| *other > mine).count();
        MultiTeamOutcome::new(better + 1)
    });
    let groups: Vec<(&[WengLinRating], MultiTeamOutcome)> =
        before.iter().map(Vec::as_slice).zip(ranks).collect();
    let after = weng_lin_multi_team(&groups, &WengLinConfig::new());
    let mut positions: Vec<_> = after.into_iter().map(Vec::into_iter).collect();
    let result: Option<Vec<Rating>> = entries
        .iter()
        .map(|entry| {
            let team = teams.binary_search(&entry.team).ok()?;
            positions.get_mut(team)?.next().map(outward)
        })
        .collect();
    result.unwrap_or_else(unchanged)
}

fn inward(rating: Rating) -> WengLinRating {
    WengLinRating {
        rating: START_WENG_LIN + (rating.value - START) / SCALE,
        uncertainty: rating.uncertainty / SCALE,
    }
}

fn outward(rating: WengLinRating) -> Rating {
    Rating {
        value: START + (rating.rating - START_WENG_LIN) * SCALE,
        uncertainty: rating.uncertainty * SCALE,
    }
}

/// Our ratings start at 1,500, the library's at 25.
const START: f64 = 1_500.0;
const START_WENG_LIN: f64 = 25.0;
/// Our points for one of the library's: 25 of them span the 1,500 from 0 to the start.
const SCALE: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(team: u32, points: i64) -> Entry {
        Entry {
            rating: Rating::default(),
            team,
            points,
        }
    }

    #[test]
    fn winners_rise_losers_fall_and_everyone_becomes_surer() {
        let after = rated(&[entry(7, 1), entry(3, 5), entry(5, 3)]);
        assert!(after[1].value > after[2].value && after[2].value > after[0].value);
        for rating in &after {
            assert!(rating.uncertainty < Rating::default().uncertainty);
        }
    }

    #[test]
    fn a_draw_between_equals_changes_no_strength() {
        let after = rated(&[entry(1, 5), entry(2, 5)]);
        assert!((after[0].value - 1_500.0).abs() < 1e-6, "{after:?}");
    }

    #[test]
    fn teams_are_rated_together_and_a_cooperative_match_not_at_all() {
        let after = rated(&[entry(1, 0), entry(2, 3), entry(1, 0), entry(2, 0)]);
        assert_eq!(after[0], after[2]);
        assert!(after[3].value > 1_500.0);
        let cooperative = [entry(1, 9), entry(1, 0)];
        assert_eq!(rated(&cooperative), [Rating::default(); 2]);
        assert_eq!(rated(&[]), []);
    }

    #[test]
    fn extreme_points_do_not_overflow() {
        let after = rated(&[entry(1, i64::MAX), entry(1, i64::MAX), entry(2, i64::MIN)]);
        assert!(after[0].value > 1_500.0);
    }
}
