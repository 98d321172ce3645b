//! One result for a match, of those who had a seat in it, and the one that players were told.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, Violation, accounts};
use crate::history::{Change, Entry, Event, News, Wish};

#[derive(Default)]
struct Played {
    outcome: Option<String>,
    /// Everybody who ever had a seat.
    seated: BTreeSet<u64>,
    /// Those who have one.
    present: BTreeSet<u64>,
    /// Those who had one when it ended.
    last: BTreeSet<u64>,
    results: BTreeSet<u64>,
    ended_ms: u64,
}

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut matches: BTreeMap<u64, Played> = BTreeMap::new();
    for entry in history {
        let Event::Stored { change } = &entry.event else {
            continue;
        };
        let wrong = apply(&mut matches, change, entry.at_ms);
        found.extend(wrong.map(|what| Promise::OneResult.broken(entry.at_ms, what)));
    }
    let leavers = leavers(history);
    for (match_id, played) in &matches {
        if played.outcome.as_deref() != Some("finished") {
            continue;
        }
        let missing = played.last.difference(&played.results);
        for account in missing.filter(|account| !leavers.contains(account)) {
            let what = format!("match {match_id} has no result of account {account}");
            found.push(Promise::OneResult.broken(played.ended_ms, what));
        }
    }
    for entry in history {
        if let Event::Told {
            player,
            news: News::Over { match_id, outcome },
        } = &entry.event
        {
            let stored = matches
                .get(match_id)
                .and_then(|played| played.outcome.clone());
            if outcome != "unknown" && stored.as_ref() != Some(outcome) {
                let what = format!(
                    "player {player} was told that match {match_id} is {outcome}, and stored is {stored:?}"
                );
                found.push(Promise::OneResult.broken(entry.at_ms, what));
            }
        }
    }
    found
}

/// Applies a change. Returns what is wrong with it.
fn apply(matches: &mut BTreeMap<u64, Played>, change: &Change, at_ms: u64) -> Option<String> {
    match change {
        Change::SeatIn { account, match_id } => {
            let played = matches.entry(*match_id).or_default();
            played.seated.insert(*account);
            played.present.insert(*account);
            None
        }
        Change::SeatOut { account, match_id } => {
            matches
                .entry(*match_id)
                .or_default()
                .present
                .remove(account);
            None
        }
        Change::MatchEnded { match_id, outcome } => {
            let played = matches.entry(*match_id).or_default();
            played.last.clone_from(&played.present);
            played.ended_ms = at_ms;
            let before = played.outcome.replace(outcome.clone());
            before.map(|before| format!("match {match_id} is {before} and then {outcome}"))
        }
        Change::Result {
            match_id, account, ..
        } => {
            let played = matches.entry(*match_id).or_default();
            if !played.results.insert(*account) {
                return Some(format!(
                    "match {match_id} has two results of account {account}"
                ));
            }
            if played.outcome.as_deref() != Some("finished") {
                let outcome = &played.outcome;
                return Some(format!("match {match_id} has a result and is {outcome:?}"));
            }
            let is_stranger = !played.seated.contains(account);
            is_stranger.then(|| {
                format!("match {match_id} has a result of account {account}, who had no seat")
            })
        }
        Change::Rewritten { match_id } => {
            Some(format!("match {match_id} was changed after its end"))
        }
        _ => None,
    }
}

/// Accounts that asked to leave a match at any time: a game server may know that before the database does.
fn leavers(history: &[Entry]) -> BTreeSet<u64> {
    let accounts = accounts(history);
    let wishes = history.iter().filter_map(|entry| match entry.event {
        Event::Wished {
            player,
            wish: Wish::LeaveMatch,
        } => accounts.get(&player).copied(),
        _ => None,
    });
    wishes.collect()
}
