//! The preferences of a player for a match.
//!
//! Hard preferences are the number of players and free choices such as mode or difficulty: a missing one matches anything, and
//! a match takes whatever any of its players asked for. Measured latency to regions is soft: the master widens what it
//! accepts with waiting time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The preferences of a player for a match.
///
/// ```
/// use muse_master_client::Preferences;
/// let anything = Preferences::default();
/// let hard = Preferences::default().players(2).choice("difficulty", "hard");
/// let easy = Preferences::default().choice("difficulty", "easy");
/// assert_eq!(anything.merged(&hard), Some(hard.clone()));
/// assert_eq!(hard.merged(&easy), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Preferences {
    /// Players in the match, bots included; none for any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 64))]
    pub players: Option<u8>,
    /// Free choices by name, such as `mode`; at most 8 of at most 32 bytes each. A missing one is for anything.
    pub choices: BTreeMap<String, String>,
    /// Measured round trips to regions in milliseconds, at most 16. A missing region is not played in, none at all is for any.
    pub latency_ms: BTreeMap<String, u16>,
    /// True if bots may fill the match after the queue's wait.
    pub bots: bool,
}

impl Preferences {
    /// Asks for a match of a named queue: players of other queues are never met. It is the choice `queue`.
    pub fn queue(name: &str) -> Self {
        Self::default().choice("queue", name)
    }

    /// The queue that is asked for, if one is.
    pub fn queue_name(&self) -> Option<&str> {
        self.choices.get("queue").map(String::as_str)
    }

    /// Asks for a number of players.
    pub fn players(mut self, players: u8) -> Self {
        self.players = Some(players);
        self
    }

    /// Asks for a choice, such as a mode.
    pub fn choice(mut self, name: &str, value: &str) -> Self {
        self.choices.insert(name.to_owned(), value.to_owned());
        self
    }

    /// States the measured round trip to a region.
    pub fn latency(mut self, region: &str, round_trip_ms: u16) -> Self {
        self.latency_ms.insert(region.to_owned(), round_trip_ms);
        self
    }

    /// Accepts bots after the queue's wait.
    pub fn accept_bots(mut self) -> Self {
        self.bots = true;
        self
    }

    /// Returns the preferences of a match of both: whatever either one asked for, none if they contradict each other. Latencies are the worse of
    /// the two where both have one.
    pub fn merged(&self, other: &Self) -> Option<Self> {
        let players = match (self.players, other.players) {
            (Some(mine), Some(theirs)) if mine != theirs => return None,
            (mine, theirs) => mine.or(theirs),
        };
        let mut choices = self.choices.clone();
        for (name, value) in &other.choices {
            let agreed = choices.entry(name.clone()).or_insert_with(|| value.clone());
            if agreed != value {
                return None;
            }
        }
        Some(Self {
            players,
            choices,
            latency_ms: worse_latencies(&self.latency_ms, &other.latency_ms),
            bots: self.bots && other.bots,
        })
    }

    /// Checks that these stay within the limits.
    pub fn check(&self) -> Result<(), PreferencesError> {
        if self.players.is_some_and(|n| n == 0 || n > PLAYERS_MAX) {
            return Err(PreferencesError::Players);
        }
        if self.choices.len() > CHOICES_MAX || self.latency_ms.len() > REGIONS_MAX {
            return Err(PreferencesError::TooMany);
        }
        let words = self.choices.iter().flat_map(|(name, value)| [name, value]);
        let fits = |word: &String| (1..=TEXT_LEN_MAX).contains(&word.len());
        if !words.chain(self.latency_ms.keys()).all(fits) {
            return Err(PreferencesError::Text);
        }
        Ok(())
    }
}

/// Preferences go beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PreferencesError {
    /// No match has so many players, or none.
    #[error("a match has 1 to {PLAYERS_MAX} players")]
    Players,
    /// Too many choices or regions.
    #[error("at most {CHOICES_MAX} choices and {REGIONS_MAX} regions")]
    TooMany,
    /// A name or value is empty or too long.
    #[error("names and values have 1 to {TEXT_LEN_MAX} bytes")]
    Text,
}

fn worse_latencies(
    mine: &BTreeMap<String, u16>,
    theirs: &BTreeMap<String, u16>,
) -> BTreeMap<String, u16> {
    if mine.is_empty() || theirs.is_empty() {
        return if mine.is_empty() { theirs } else { mine }.clone();
    }
    let both = mine.iter().filter_map(|(region, &latency)| {
        let other = *theirs.get(region)?;
        Some((region.clone(), latency.max(other)))
    });
    both.collect()
}

/// Most free choices.
pub const CHOICES_MAX: usize = 8;
/// Most regions.
pub const REGIONS_MAX: usize = 16;
/// Longest name or value of a choice, and longest name of a region, in bytes.
pub const TEXT_LEN_MAX: usize = 32;
/// Most players of a match.
const PLAYERS_MAX: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_preference_matches_anything_and_the_match_takes_what_either_asked_for() {
        let one = Preferences::default().players(2).choice("mode", "race");
        let other = Preferences::default().choice("difficulty", "hard");
        let both = one.merged(&other).expect("compatible");
        assert_eq!(both.players, Some(2));
        assert_eq!(both.choices.len(), 2);
        assert_eq!(other.merged(&one), Some(both));
    }

    #[test]
    fn contradictions_do_not_merge() {
        let two = Preferences::default().players(2);
        assert_eq!(two.merged(&Preferences::default().players(3)), None);
    }

    #[test]
    fn regions_must_be_shared_and_count_at_their_worst() {
        let one = Preferences::default().latency("eu", 20).latency("us", 110);
        let other = Preferences::default().latency("eu", 45).latency("asia", 10);
        let both = one.merged(&other).expect("no contradiction");
        assert_eq!(both.latency_ms, BTreeMap::from([("eu".to_owned(), 45)]));
        assert_eq!(
            one.merged(&Preferences::default()).expect("any").latency_ms,
            one.latency_ms
        );
    }

    #[test]
    fn limits_hold() {
        assert_eq!(Preferences::default().check(), Ok(()));
        let none = Preferences::default().players(0);
        assert_eq!(none.check(), Err(PreferencesError::Players));
        let long = Preferences::default().choice("mode", &"x".repeat(33));
        assert_eq!(long.check(), Err(PreferencesError::Text));
        let many = (0..9).fold(Preferences::default(), |all, n| {
            all.choice(&format!("c{n}"), "x")
        });
        assert_eq!(many.check(), Err(PreferencesError::TooMany));
    }
}
