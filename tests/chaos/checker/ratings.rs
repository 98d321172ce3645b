//! Ratings and points follow from the results.

use std::collections::BTreeMap;

use muse_master::rating::{Entry as Part, Rating, rated};

use super::{Promise, Violation};
use crate::history::{Change, Entry, Event, Kept};

/// One result as it was stored.
struct Stored {
    at_ms: u64,
    account: u64,
    points: i64,
    rating: f64,
}

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut ratings: BTreeMap<u64, Rating> = BTreeMap::new();
    let mut points: BTreeMap<u64, i64> = BTreeMap::new();
    for (match_id, results) in by_match(history) {
        let parts = results.iter().zip(0_u32..).map(|(result, team)| Part {
            rating: ratings.get(&result.account).copied().unwrap_or_default(),
            team,
            points: result.points,
        });
        let parts: Vec<Part> = parts.collect();
        for (result, after) in results.iter().zip(rated(&parts)) {
            if (after.value - result.rating).abs() > TOLERANCE {
                let what = format!(
                    "after match {match_id} account {} has {} and not {}",
                    result.account, result.rating, after.value
                );
                found.push(Promise::RatingsAddUp.broken(result.at_ms, what));
            }
            ratings.insert(result.account, after);
            *points.entry(result.account).or_default() += result.points;
        }
    }
    for entry in history {
        if let Event::Kept {
            row:
                Kept::Account {
                    account,
                    points: kept,
                    rating,
                },
        } = entry.event
        {
            let sum = points.get(&account).copied().unwrap_or(0);
            let last = ratings.get(&account).copied().unwrap_or_default().value;
            if kept != sum || (rating - last).abs() > TOLERANCE {
                let what = format!(
                    "account {account} has {kept} points and {rating}, by its results {sum} and {last}"
                );
                found.push(Promise::RatingsAddUp.broken(entry.at_ms, what));
            }
        }
    }
    found
}

/// The results of each match, in the order in which matches were stored.
fn by_match(history: &[Entry]) -> Vec<(u64, Vec<Stored>)> {
    let mut matches: Vec<(u64, Vec<Stored>)> = Vec::new();
    for entry in history {
        if let Event::Stored {
            change:
                Change::Result {
                    match_id,
                    account,
                    points,
                    rating,
                },
        } = entry.event
        {
            let stored = Stored {
                at_ms: entry.at_ms,
                account,
                points,
                rating,
            };
            match matches.iter_mut().find(|(it, _)| *it == match_id) {
                Some((_, results)) => results.push(stored),
                None => matches.push((match_id, vec![stored])),
            }
        }
    }
    matches
}

/// Ratings are written and read as decimal numbers.
const TOLERANCE: f64 = 1e-6;
