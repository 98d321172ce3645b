//! A leader's transactions.

use muse_master_client::messages::Outcome;
use muse_master_client::{AccountId, MatchId, ServerId, TicketId};
use muse_wire::Instant;

use super::queue::{self, insert_ticket, removal, ticket};
use super::{Result, Row, Sql, Write, json, values};
use crate::director::{Ending, NewMatch, StoredMatch};
use crate::hosts::Seats;
use crate::lease::Lease;
use crate::rating::{Entry, Rating, rated};
use crate::store::{Created, Fill, StoreError};
use crate::ticket::{Member, Ticket};

pub(in crate::store) fn secret(
    sql: &mut dyn Sql,
    name: &'static str,
    fresh: String,
) -> Result<String> {
    sql.execute(
        "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING",
        values![name, fresh],
    )?;
    let row = sql.row("SELECT value FROM secrets WHERE name = ?1", values![name])?;
    row.ok_or(StoreError::NotFound("secret"))?.text(0)
}

/// Replaces a secret, unless somebody else did. What it is now.
pub(in crate::store) fn exchange_secret(
    sql: &mut dyn Sql,
    name: &'static str,
    old: String,
    fresh: String,
) -> Result<String> {
    sql.execute(
        "UPDATE secrets SET value = ?3 WHERE name = ?1 AND value = ?2",
        values![name, &old, fresh],
    )?;
    secret(sql, name, old)
}

pub(in crate::store) fn lease(
    sql: &mut dyn Sql,
    queue: String,
    holder: u64,
    now: Instant,
) -> Result<Option<Lease>> {
    let row = sql.row(
        "SELECT holder, epoch, until_us FROM leases WHERE queue = ?1",
        values![&queue],
    )?;
    let current = match row {
        Some(row) => Some(Lease {
            holder: row.number(0)?,
            epoch: row.number(1)?,
            until: row.instant(2)?,
        }),
        None => None,
    };
    let Some(lease) = Lease::asked(current.as_ref(), holder, now) else {
        return Ok(None);
    };
    sql.execute(
        "INSERT INTO leases (queue, holder, epoch, until_us) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (queue) DO UPDATE SET holder = ?2, epoch = ?3, until_us = ?4",
        values![queue, lease.holder, lease.epoch, lease.until],
    )?;
    Ok(Some(lease))
}

/// Gives the lease of a queue back, so that the next one who asks has it at once.
pub(in crate::store) fn release_lease(sql: &mut dyn Sql, queue: String, holder: u64) -> Result<()> {
    sql.execute(
        "UPDATE leases SET until_us = 0 WHERE queue = ?1 AND holder = ?2",
        values![queue, holder],
    )?;
    Ok(())
}

/// Refuses everything of a leader that is not the newest.
pub(super) fn check(sql: &mut dyn Sql, epoch: u64) -> Result<()> {
    let newest = sql.row("SELECT max(epoch) FROM leases", &[])?;
    let newest = newest.map_or(Ok(None), |row| row.optional_integer(0))?;
    if newest.and_then(|newest| u64::try_from(newest).ok()) == Some(epoch) {
        Ok(())
    } else {
        Err(StoreError::OldEpoch)
    }
}

pub(in crate::store) fn restore(
    sql: &mut dyn Sql,
    epoch: u64,
) -> Result<(Vec<Ticket>, Vec<StoredMatch>)> {
    let tickets = tickets(sql, epoch)?;
    let rows = sql.rows(
        "SELECT match_id, preferences, bots, server, running FROM matches WHERE ended_us IS NULL ORDER BY match_id",
        &[],
    )?;
    let matches = rows.iter().map(|row| stored_match(sql, row));
    Ok((tickets, matches.collect::<Result<_>>()?))
}

/// A match that is not over.
pub(super) fn open_match(sql: &mut dyn Sql, match_id: MatchId) -> Result<Option<StoredMatch>> {
    let row = sql.row(
        "SELECT match_id, preferences, bots, server, running FROM matches WHERE match_id = ?1 AND ended_us IS NULL",
        values![match_id],
    )?;
    row.map(|row| stored_match(sql, &row)).transpose()
}

/// A match from its number, preferences, bots, server and whether it runs.
fn stored_match(sql: &mut dyn Sql, row: &Row) -> Result<StoredMatch> {
    let match_id = MatchId(row.number(0)?);
    let server = row.optional_integer(3)?;
    Ok(StoredMatch {
        match_id,
        preferences: row.parsed(1)?,
        bots: row.small(2)?,
        players: players(sql, match_id)?,
        left: left(sql, match_id)?,
        server: server.and_then(|server| u64::try_from(server).ok().map(ServerId)),
        running: row.integer(4)? != 0,
    })
}

pub(in crate::store) fn tickets(sql: &mut dyn Sql, epoch: u64) -> Result<Vec<Ticket>> {
    check(sql, epoch)?;
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account, m.rating
         FROM tickets t JOIN ticket_members m ON m.ticket = t.ticket
         ORDER BY t.since_us, t.ticket, m.place",
        &[],
    )?;
    queue::tickets(&rows)
}

/// Everybody with a seat in a match.
pub(super) fn players(sql: &mut dyn Sql, match_id: MatchId) -> Result<Vec<AccountId>> {
    let rows = sql.rows(
        "SELECT account FROM seats WHERE match_id = ?1 ORDER BY account",
        values![match_id],
    )?;
    rows.iter()
        .map(|row| row.number(0).map(AccountId))
        .collect()
}

/// Everybody who has given up a seat in a match.
fn left(sql: &mut dyn Sql, match_id: MatchId) -> Result<Vec<AccountId>> {
    let rows = sql.rows(
        "SELECT account FROM left_seats WHERE match_id = ?1 ORDER BY account",
        values![match_id],
    )?;
    rows.iter()
        .map(|row| row.number(0).map(AccountId))
        .collect()
}

pub(in crate::store) fn create_match(
    sql: &mut dyn Sql,
    epoch: u64,
    new: NewMatch,
    now: Instant,
) -> Result<Created> {
    check(sql, epoch)?;
    let mut gone = Vec::new();
    for asked in &new.tickets {
        // Changed preferences are another ticket as far as this match is concerned.
        let stored = ticket(sql, asked.id)?;
        if stored.is_none_or(|stored| stored.preferences != asked.preferences) {
            gone.push(asked.id);
        }
    }
    if !gone.is_empty() {
        return Ok(Created { gone });
    }
    let mut writes: Vec<Write> = vec![(
        "INSERT INTO matches (match_id, preferences, bots, created_us) VALUES (?1, ?2, ?3, ?4)",
        values![new.match_id, json(&new.preferences)?, new.bots, now].into(),
    )];
    writes.extend(seating(new.match_id, &new.tickets)?);
    sql.execute_all(&writes)?;
    Ok(Created { gone })
}

/// Returns the writes that make seats of tickets.
fn seating(match_id: MatchId, tickets: &[Ticket]) -> Result<impl Iterator<Item = Write>> {
    let seat = move |member: &Member| {
        (
            "INSERT INTO seats (account, match_id) VALUES (?1, ?2)",
            values![member.account, match_id].into(),
        )
    };
    let removal = removal(tickets.iter().map(|ticket| ticket.id))?;
    let members = tickets.iter().flat_map(|ticket| &ticket.party);
    Ok(removal.into_iter().chain(members.map(seat)))
}

pub(in crate::store) fn fill_seats(
    sql: &mut dyn Sql,
    epoch: u64,
    match_id: MatchId,
    id: TicketId,
) -> Result<Fill> {
    check(sql, epoch)?;
    let Some(ticket) = ticket(sql, id)? else {
        return Ok(Fill::TicketGone);
    };
    if !sql.exists(
        "SELECT 1 FROM matches WHERE match_id = ?1 AND ended_us IS NULL",
        values![match_id],
    )? {
        return Ok(Fill::MatchOver);
    }
    let writes: Vec<Write> = seating(match_id, &[ticket])?.collect();
    sql.execute_all(&writes)?;
    Ok(Fill::Filled)
}

pub(in crate::store) fn record_server(
    sql: &mut dyn Sql,
    epoch: u64,
    match_id: MatchId,
    server: ServerId,
) -> Result<()> {
    check(sql, epoch)?;
    sql.execute(
        "UPDATE matches SET server = ?2 WHERE match_id = ?1 AND ended_us IS NULL",
        values![match_id, server],
    )?;
    Ok(())
}

pub(in crate::store) fn record_running(
    sql: &mut dyn Sql,
    epoch: u64,
    match_id: MatchId,
) -> Result<()> {
    check(sql, epoch)?;
    sql.execute(
        "UPDATE matches SET running = 1 WHERE match_id = ?1 AND ended_us IS NULL",
        values![match_id],
    )?;
    Ok(())
}

pub(in crate::store) fn free_seat(
    sql: &mut dyn Sql,
    epoch: u64,
    match_id: MatchId,
    account: AccountId,
) -> Result<()> {
    check(sql, epoch)?;
    let freed = sql.execute(
        "DELETE FROM seats WHERE account = ?1 AND match_id = ?2",
        values![account, match_id],
    )?;
    if freed > 0 {
        sql.execute(
            "INSERT INTO left_seats (match_id, account) VALUES (?1, ?2)
             ON CONFLICT (match_id, account) DO NOTHING",
            values![match_id, account],
        )?;
    }
    Ok(())
}

pub(in crate::store) fn end_match(
    sql: &mut dyn Sql,
    epoch: u64,
    ending: Ending,
    now: Instant,
) -> Result<Option<Vec<Ticket>>> {
    check(sql, epoch)?;
    let outcome = match ending.outcome {
        Outcome::Finished => "finished",
        Outcome::Cancelled => "cancelled",
        Outcome::Aborted => "aborted",
    };
    check_result(sql, &ending)?;
    let ended = sql.execute(
        "UPDATE matches SET ended_us = ?2, outcome = ?3 WHERE match_id = ?1 AND ended_us IS NULL",
        values![ending.match_id, now, outcome],
    )?;
    if ended == 0 {
        return Ok(None);
    }
    let mut writes: Vec<Write> = vec![
        (
            "DELETE FROM seats WHERE match_id = ?1",
            values![ending.match_id].into(),
        ),
        (
            "DELETE FROM left_seats WHERE match_id = ?1",
            values![ending.match_id].into(),
        ),
        (
            "DELETE FROM reports WHERE match_id = ?1",
            values![ending.match_id].into(),
        ),
        (
            "UPDATE servers SET over_us = ?2
             WHERE server = (SELECT server FROM matches WHERE match_id = ?1)",
            values![ending.match_id, now].into(),
        ),
    ];
    if ending.outcome == Outcome::Finished {
        writes.extend(result_writes(sql, &ending)?);
    }
    sql.execute_all(&writes)?;
    let mut requeued = Vec::new();
    for ticket in ending.requeue {
        // A player who did something else meanwhile stays with that.
        if insert_ticket(sql, &ticket)? {
            requeued.push(ticket);
        }
    }
    Ok(Some(requeued))
}

/// Refuses the result of a match that is not over if it names somebody twice, or somebody who never had a seat.
fn check_result(sql: &mut dyn Sql, ending: &Ending) -> Result<()> {
    let Some(result) = &ending.result else {
        return Ok(());
    };
    let Some(found) = open_match(sql, ending.match_id)? else {
        return Ok(());
    };
    let seats = Seats {
        players: &found.players,
        left: &found.left,
    };
    seats
        .check_result(ending.match_id, result)
        .map_err(|_| StoreError::Forbidden("a result names somebody who has no seat"))
}

/// Returns the writes that store points and ratings of a finished match; the primary key of the results lets it happen once.
fn result_writes(sql: &mut dyn Sql, ending: &Ending) -> Result<Vec<Write>> {
    let Some(result) = &ending.result else {
        return Ok(Vec::new());
    };
    let mut players = Vec::new();
    let mut entries = Vec::new();
    for (index, player) in result.players.iter().enumerate() {
        let row = sql.row(
            "SELECT rating, uncertainty, points FROM accounts WHERE account = ?1",
            values![player.account],
        )?;
        // A player who has deleted their account meanwhile has no rating.
        let Some(row) = row else { continue };
        let rating = Rating {
            value: row.real(0)?,
            uncertainty: row.real(1)?,
        };
        // Players without a team are teams of their own, beyond the numbers of real ones.
        let alone = 256 + u32::try_from(index).unwrap_or(u32::MAX - 256);
        players.push((player, row.integer(2)?));
        entries.push(Entry {
            rating,
            team: player.team.map_or(alone, u32::from),
            points: player.points,
        });
    }
    let mut writes: Vec<Write> = Vec::with_capacity(2 * players.len());
    for ((player, before), rating) in players.into_iter().zip(rated(&entries)) {
        let points = player.points.clamp(-POINTS_MAX, POINTS_MAX);
        writes.push((
            "INSERT INTO results (match_id, account, points, rating) VALUES (?1, ?2, ?3, ?4)",
            values![ending.match_id, player.account, points, rating.value].into(),
        ));
        let sum = before.saturating_add(points).clamp(-SUM_MAX, SUM_MAX);
        writes.push((
            "UPDATE accounts SET rating = ?2, uncertainty = ?3, points = ?4 WHERE account = ?1",
            values![player.account, rating.value, rating.uncertainty, sum].into(),
        ));
    }
    Ok(writes)
}

pub(in crate::store) fn end_ticket(sql: &mut dyn Sql, epoch: u64, ticket: TicketId) -> Result<()> {
    check(sql, epoch)?;
    sql.execute_later(removal([ticket].into_iter())?.into())
}

/// Most points of one match, so that sums stay exact.
const POINTS_MAX: i64 = 1_000_000_000;
/// Most points of a season: what JavaScript still reads exactly.
const SUM_MAX: i64 = 9_000_000_000_000;
