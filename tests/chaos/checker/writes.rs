//! No acknowledged write is gone: accounts, progress and chat.

use std::collections::{BTreeMap, BTreeSet};

use super::{Call, Promise, Violation, accounts, calls};
use crate::history::{Answer, Entry, Event, Kept, Operation};

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let calls = calls(history);
    let accounts = accounts(history);
    let mut found = check_accounts(history, &calls);
    for (player, account) in &accounts {
        let own: Vec<&Call> = calls.iter().filter(|call| call.player == *player).collect();
        found.extend(check_progress(history, *account, &own));
    }
    found.extend(check_lines(history, &calls));
    found
}

/// A device has one account, for ever.
fn check_accounts(history: &[Entry], calls: &[Call<'_>]) -> Vec<Violation> {
    let kept: BTreeSet<u64> = kept(history)
        .filter_map(|row| match row {
            Kept::Account { account, .. } => Some(*account),
            _ => None,
        })
        .collect();
    let mut known: BTreeMap<u32, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for call in calls {
        let Some((at_ms, Answer::SignedIn { account })) = call.answered else {
            continue;
        };
        let first = *known.entry(call.player).or_insert(*account);
        if first != *account || !kept.contains(account) {
            let player = call.player;
            let what =
                format!("player {player} was account {first} and then {account}, or it is gone");
            found.push(Promise::NoWriteGone.broken(at_ms, what));
        }
    }
    found
}

/// Only its player writes progress, and each version is based on the one before: what was confirmed is there, until it is replaced.
fn check_progress(history: &[Entry], account: u64, calls: &[&Call<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    // Versions that were confirmed, and with what.
    let mut confirmed: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls {
        if let (Operation::Save { document, .. }, Some((at_ms, Answer::Saved { version }))) =
            (call.operation, call.answered)
            && let Some(other) = confirmed.insert(*version, *document)
        {
            let what = format!("version {version} of account {account} is {other} and {document}");
            found.push(Promise::NoWriteGone.broken(at_ms, what));
        }
    }
    let possible = |version: u64, document: Option<u64>| match confirmed.get(&version) {
        Some(confirmed) => document == Some(*confirmed),
        None if version == 0 => true,
        None => calls.iter().any(|call| {
            let saved = match call.operation {
                Operation::Save { based_on, document } => Some((based_on + 1, Some(*document))),
                _ => None,
            };
            call.may_be_done() && saved == Some((version, document))
        }),
    };
    let mut see = |at_ms: u64, before_ms: u64, version: u64, document: Option<u64>| {
        let newest = calls.iter().filter_map(|call| match call.answered {
            Some((at_ms, Answer::Saved { version })) if at_ms <= before_ms => Some(*version),
            _ => None,
        });
        let newest = newest.max().unwrap_or(0);
        if version < newest || !possible(version, document) {
            let what = format!(
                "account {account} has version {version} with {document:?}, confirmed was version {newest}"
            );
            found.push(Promise::NoWriteGone.broken(at_ms, what));
        }
    };
    for call in calls {
        if let Some((at_ms, Answer::Loaded { version, document })) = call.answered {
            see(at_ms, call.asked_ms, *version, *document);
        }
    }
    let end_ms = history.last().map_or(0, |entry| entry.at_ms);
    let last = kept(history).find_map(|row| match row {
        Kept::Progress {
            account: it,
            version,
            document,
        } if *it == account => Some((*version, Some(*document))),
        _ => None,
    });
    if kept(history).next().is_some() {
        let (version, document) = last.unwrap_or((0, None));
        see(end_ms, end_ms, version, document);
    }
    found
}

fn check_lines(history: &[Entry], calls: &[Call<'_>]) -> Vec<Violation> {
    let kept: BTreeSet<&str> = kept(history)
        .filter_map(|row| match row {
            Kept::Line { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let said = calls
        .iter()
        .filter_map(|call| match (call.operation, call.answered) {
            (Operation::Say { text }, Some((at_ms, Answer::Said))) => Some((at_ms, text.as_str())),
            _ => None,
        });
    let gone = said.filter(|(_, text)| !kept.contains(text));
    gone.map(|(at_ms, text)| {
        let what = format!("the line {text:?} is gone");
        Promise::NoWriteGone.broken(at_ms, what)
    })
    .collect()
}

fn kept(history: &[Entry]) -> impl Iterator<Item = &Kept> {
    history.iter().filter_map(|entry| match &entry.event {
        Event::Kept { row } => Some(row),
        _ => None,
    })
}
