//! Reads the history of a run and says what must not have happened. It is a pure function: nothing here asks a program, a clock or a database.
//!
//! | promise | broken if |
//! | --- | --- |
//! | one seat | a player has two seats, or a seat and a ticket, or a seat in a match that is over |
//! | one result | a match ends twice, its result is stored twice or changed, or names somebody without a seat |
//! | no healthy match aborted | a match is aborted although its game server was never stopped or killed, and at most one master was in trouble |
//! | no ticket lost | a ticket vanishes although its player neither got a seat, nor left, nor was away |
//! | ratings add up | points are not the sum of the results, or ratings do not follow from them |
//! | no acknowledged write gone | something that was confirmed is not there afterwards |

mod aborted;
mod ratings;
mod results;
mod seats;
mod tickets;
mod trouble;
mod writes;

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Answer, Entry, Event, Operation};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) promise: Promise,
    pub(crate) at_ms: u64,
    pub(crate) what: String,
}

/// A promise of several masters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    OneSeat,
    OneResult,
    NoHealthyMatchAborted,
    NoTicketLost,
    RatingsAddUp,
    NoWriteGone,
    /// Once everything is healed, everybody plays again.
    Recovers,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} ms: {}", self.promise, self.at_ms, self.what)
    }
}

/// Everything in a history that breaks a promise.
pub(crate) fn check(history: &[Entry]) -> Vec<Violation> {
    let mut found = Vec::new();
    found.extend(seats::check(history));
    found.extend(results::check(history));
    found.extend(aborted::check(history));
    found.extend(tickets::check(history));
    found.extend(ratings::check(history));
    found.extend(writes::check(history));
    for entry in history {
        if let Event::Stuck { player } = entry.event {
            let what = format!("player {player} does not play again");
            found.push(Promise::Recovers.broken(entry.at_ms, what));
        }
    }
    found
}

impl Promise {
    fn broken(self, at_ms: u64, what: String) -> Violation {
        Violation {
            promise: self,
            at_ms,
            what,
        }
    }
}

/// A call, and what became of it.
struct Call<'a> {
    player: u32,
    operation: &'a Operation,
    asked_ms: u64,
    /// None if the run ended before the answer.
    answered: Option<(u64, &'a Answer)>,
}

impl Call<'_> {
    /// False if it was certainly not done.
    fn may_be_done(&self) -> bool {
        !matches!(self.answered, Some((_, Answer::Refused { .. })))
    }
}

/// All calls, in the order in which they were made.
fn calls(history: &[Entry]) -> Vec<Call<'_>> {
    let mut calls = BTreeMap::new();
    for entry in history {
        match &entry.event {
            Event::Asked {
                number,
                player,
                operation,
            } => {
                let call = Call {
                    player: *player,
                    operation,
                    asked_ms: entry.at_ms,
                    answered: None,
                };
                calls.insert(*number, call);
            }
            Event::Answered { number, answer } => {
                if let Some(call) = calls.get_mut(number) {
                    call.answered = Some((entry.at_ms, answer));
                }
            }
            _ => {}
        }
    }
    calls.into_values().collect()
}

/// The account of each player, by the first answer that names it.
fn accounts(history: &[Entry]) -> BTreeMap<u32, u64> {
    let mut accounts = BTreeMap::new();
    for call in calls(history) {
        if let Some((_, Answer::SignedIn { account })) = call.answered {
            accounts.entry(call.player).or_insert(*account);
        }
    }
    accounts
}

#[cfg(test)]
mod tests;
