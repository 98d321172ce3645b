//! No ticket is lost: it becomes a seat, or its player leaves the queue or stays away.

use std::collections::BTreeMap;

use super::trouble::{Stretch, stretches};
use super::{Promise, Violation, accounts, calls};
use crate::history::{Answer, Change, Entry, Event, News, Operation, Wish};

pub(super) fn check(history: &[Entry]) -> Vec<Violation> {
    let accounts = accounts(history);
    let owners: BTreeMap<u64, u32> = accounts
        .iter()
        .map(|(player, account)| (*account, *player))
        .collect();
    let leaves = leaves(history);
    let links = links(history);
    let stretches = stretches(history);
    let stored: Vec<&Entry> = history
        .iter()
        .filter(|entry| matches!(entry.event, Event::Stored { .. }))
        .collect();
    let mut since: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for (index, entry) in stored.iter().enumerate() {
        let (account, ticket) = match entry.event {
            Event::Stored {
                change: Change::TicketIn { ticket, .. },
            } => {
                since.insert(ticket, entry.at_ms);
                continue;
            }
            Event::Stored {
                change: Change::TicketOut { account, ticket },
            } => (account, ticket),
            _ => continue,
        };
        let at_ms = entry.at_ms;
        let in_ms = since.get(&ticket).copied().unwrap_or(0);
        let Some(player) = owners.get(&account) else {
            continue;
        };
        let left = leaves.iter().any(|leave| {
            leave.player == *player && leave.from_ms <= at_ms && leave.to_ms + 50 >= at_ms
        });
        let mut own = links.iter().filter(|link| link.player == *player);
        let present = own.any(|link| is_seen(link, &stretches, at_ms));
        if !is_seated(&stored[index + 1..], account) && !left && present {
            let what =
                format!("ticket {ticket} of player {player} is gone, who waited since {in_ms} ms");
            found.push(Promise::NoTicketLost.broken(at_ms, what));
        }
    }
    found.extend(untold(history, &since));
    found
}

/// True if the next that is stored about a player is a seat.
fn is_seated(next: &[&Entry], account: u64) -> bool {
    let about = next.iter().find_map(|entry| match entry.event {
        Event::Stored {
            change: Change::SeatIn { account: it, .. },
        } if it == account => Some(true),
        Event::Stored {
            change: Change::TicketIn { account: it, .. },
        } if it == account => Some(false),
        _ => None,
    });
    about == Some(true)
}

/// A time in which a player may have left the queue.
struct Leave {
    player: u32,
    from_ms: u64,
    to_ms: u64,
}

fn leaves(history: &[Entry]) -> Vec<Leave> {
    let mut leaves = Vec::new();
    for call in calls(history) {
        if *call.operation != Operation::LeaveQueue || !call.may_be_done() {
            continue;
        }
        let to_ms = match call.answered {
            Some((at_ms, Answer::Left)) => at_ms,
            // A request whose answer was lost may still be on its way.
            _ => u64::MAX,
        };
        leaves.push(Leave {
            player: call.player,
            from_ms: call.asked_ms,
            to_ms: to_ms.min(call.asked_ms + LATE_MS),
        });
    }
    for entry in history {
        if let Event::Wished {
            player,
            wish: Wish::LeaveQueue,
        } = entry.event
        {
            leaves.push(Leave {
                player,
                from_ms: entry.at_ms,
                to_ms: entry.at_ms + LATE_MS,
            });
        }
    }
    leaves
}

/// A time in which a player was connected to a master.
struct Linked {
    player: u32,
    master: usize,
    from_ms: u64,
    to_ms: u64,
}

fn links(history: &[Entry]) -> Vec<Linked> {
    let end_ms = history.last().map_or(0, |entry| entry.at_ms);
    let mut open: BTreeMap<u32, Linked> = BTreeMap::new();
    let mut links = Vec::new();
    for entry in history {
        match entry.event {
            Event::Linked { player, master } => {
                let link = Linked {
                    player,
                    master,
                    from_ms: entry.at_ms,
                    to_ms: end_ms,
                };
                links.extend(open.insert(player, link));
            }
            Event::Unlinked { player, .. } => {
                let link = open.remove(&player);
                links.extend(link.map(|link| Linked {
                    to_ms: entry.at_ms,
                    ..link
                }));
            }
            _ => {}
        }
    }
    links.extend(open.into_values());
    links
}

/// True if a connection lasted long enough, within the time for which a ticket is kept, at a master that could say so.
fn is_seen(link: &Linked, stretches: &[Stretch<'_>], at_ms: u64) -> bool {
    let from_ms = link.from_ms.max(at_ms.saturating_sub(KEPT_MS));
    let to_ms = link.to_ms.min(at_ms.saturating_sub(1_000));
    let mut undisturbed_ms = from_ms;
    while undisturbed_ms + SEEN_MS <= to_ms {
        let until_ms = undisturbed_ms + SEEN_MS;
        let disturbed = stretches.iter().find(|one| {
            let counts = one.troubles(link.master) || one.stops_database();
            counts && one.overlaps(undisturbed_ms, until_ms)
        });
        match disturbed {
            Some(one) => undisturbed_ms = one.to_ms.max(undisturbed_ms + 1) + RECOVERY_MS,
            None => return true,
        }
    }
    false
}

/// Tickets of which a player was told and which were never stored.
fn untold<'a>(
    history: &'a [Entry],
    stored: &'a BTreeMap<u64, u64>,
) -> impl Iterator<Item = Violation> + 'a {
    let told = history.iter().filter_map(|entry| match &entry.event {
        Event::Told {
            player,
            news: News::Queued { ticket },
        } => Some((entry.at_ms, *player, *ticket)),
        _ => None,
    });
    told.filter(|(_, _, ticket)| !stored.contains_key(ticket))
        .map(|(at_ms, player, ticket)| {
            let what =
                format!("player {player} was told of ticket {ticket}, which was never stored");
            Promise::NoTicketLost.broken(at_ms, what)
        })
}

/// A request may be on its way for so long, held back by a cut link or a paused master.
const LATE_MS: u64 = 40_000;
/// A disconnected player keeps their place for 30 seconds.
const KEPT_MS: u64 = 28_000;
/// Time after which every master and the leader must have seen a connected player, by the database alone.
const SEEN_MS: u64 = 10_000;
/// Time that masters may need after a fault.
const RECOVERY_MS: u64 = 3_000;
