//! One seat for a player at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::{Promise, Violation};
use crate::history::{Change, Entry, Event};

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seats: BTreeMap<u64, u64> = BTreeMap::new();
    let mut tickets: BTreeMap<u64, u64> = BTreeMap::new();
    let mut open: BTreeSet<u64> = BTreeSet::new();
    for entry in history {
        let Event::Stored { change } = &entry.event else {
            continue;
        };
        let wrong = match *change {
            Change::MatchMade { match_id } => {
                open.insert(match_id);
                None
            }
            Change::MatchEnded { match_id, .. } => {
                open.remove(&match_id);
                None
            }
            Change::SeatIn { account, match_id } => {
                let other = seats.insert(account, match_id);
                match (other, tickets.get(&account)) {
                    (Some(other), _) => Some(format!(
                        "account {account} has seats in match {other} and in match {match_id}"
                    )),
                    (_, Some(ticket)) => Some(format!(
                        "account {account} has ticket {ticket} and a seat in match {match_id}"
                    )),
                    _ if !open.contains(&match_id) => Some(format!(
                        "account {account} has a seat in match {match_id}, which is over"
                    )),
                    _ => None,
                }
            }
            Change::SeatOut { account, .. } => {
                seats.remove(&account);
                None
            }
            Change::TicketIn { account, ticket } => {
                let other = tickets.insert(account, ticket);
                match (other, seats.get(&account)) {
                    (Some(other), _) => Some(format!(
                        "account {account} has tickets {other} and {ticket}"
                    )),
                    (_, Some(match_id)) => Some(format!(
                        "account {account} has a seat in match {match_id} and ticket {ticket}"
                    )),
                    _ => None,
                }
            }
            Change::TicketOut { account, .. } => {
                tickets.remove(&account);
                None
            }
            _ => None,
        };
        found.extend(wrong.map(|what| Promise::OneSeat.broken(entry.at_ms, what)));
    }
    found
}
