//! No healthy match is aborted.
//!
//! A match is healthy while its game server's process runs and the server can reach masters that reach the database. A server that loses one master
//! has time to find another one; if two of three are in trouble within that time, nothing is promised.

use std::collections::BTreeMap;

use super::trouble::{Stretch, masters_in_trouble, stretches};
use super::{Promise, Violation};
use crate::history::{Change, Entry, Event};
use crate::plan::Fault;

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let stretches = stretches(history);
    let mut placed: BTreeMap<u64, (u64, Option<&str>)> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in history {
        match &entry.event {
            Event::Stored {
                change: Change::MatchPlaced { match_id, address },
            } => {
                placed.insert(*match_id, (entry.at_ms, address.as_deref()));
            }
            Event::Stored {
                change: Change::MatchEnded { match_id, outcome },
            } if outcome == "aborted" => {
                let at_ms = entry.at_ms;
                let since = placed.get(match_id);
                let hurt = since.is_some_and(|(since_ms, address)| {
                    stretches
                        .iter()
                        .any(|one| hurts(one, *address, *since_ms, at_ms))
                });
                let from_ms = at_ms.saturating_sub(MOVE_MS);
                if !hurt && masters_in_trouble(&stretches, from_ms, at_ms) < 2 {
                    let what = format!("match {match_id} at {since:?} was healthy");
                    found.push(Promise::NoHealthyMatchAborted.broken(at_ms, what));
                }
            }
            _ => {}
        }
    }
    found
}

/// True if a fault stopped the game server at this address for too long, or killed it.
fn hurts(one: &Stretch<'_>, address: Option<&str>, since_ms: u64, until_ms: u64) -> bool {
    let is_its = one.address.is_some() && one.address == address;
    let before_ms = since_ms.saturating_sub(NOTICED_MS);
    match one.fault {
        // It counts as there until its silence is noticed.
        Fault::KillGame { .. } => is_its && one.overlaps(before_ms, until_ms),
        Fault::PauseGame { .. } => {
            is_its && one.overlaps(before_ms, until_ms) && one.length_ms() >= PAUSED_MS
        }
        _ => false,
    }
}

/// Time that a game server may take to find another master, and a little more.
const MOVE_MS: u64 = 13_000;
/// A process that is killed may get a match for so long.
const NOTICED_MS: u64 = 12_000;
/// A game server that is stopped for less must survive it: it may be silent for 10 seconds, of which others need some.
const PAUSED_MS: u64 = 5_000;
