//! What a leader writes.

use muse_master_client::messages::Outcome;
use muse_master_client::{AccountId, MatchId, ServerId, TicketId};
use muse_wire::Instant;
use rusqlite::{Connection, OptionalExtension, params};

use super::queue::{insert_ticket, remove_ticket, ticket};
use super::{column, instant, number, parsed, text};
use crate::director::{Ending, NewMatch, StoredMatch};
use crate::lease::Lease;
use crate::rating::{Entry, Rating, rated};
use crate::store::{Created, Fill, StoreError};
use crate::ticket::Ticket;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn secret(connection: &Connection, name: &str, fresh: String) -> Result<String> {
    let sql = "INSERT INTO secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
    connection
        .prepare_cached(sql)?
        .execute(params![name, fresh])?;
    let sql = "SELECT value FROM secrets WHERE name = ?1";
    Ok(connection.query_row(sql, [name], |row| row.get(0))?)
}

pub(super) fn lease(
    connection: &Connection,
    queue: String,
    holder: u64,
    now: Instant,
) -> Result<Option<Lease>> {
    let sql = "SELECT holder, epoch, until_us FROM leases WHERE queue = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Lease {
            holder: number(row.get(0)?),
            epoch: number(row.get(1)?),
            until: instant(row.get(2)?),
        })
    };
    let current = connection.query_row(sql, [&queue], read).optional()?;
    let Some(lease) = Lease::asked(current.as_ref(), holder, now) else {
        return Ok(None);
    };
    connection
        .prepare_cached(
            "INSERT INTO leases (queue, holder, epoch, until_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (queue) DO UPDATE SET holder = ?2, epoch = ?3, until_us = ?4",
        )?
        .execute(params![
            queue,
            column(lease.holder),
            column(lease.epoch),
            column(lease.until.as_micros()),
        ])?;
    Ok(Some(lease))
}

/// Refuses everything of a leader that is not the newest.
fn check(connection: &Connection, epoch: u64) -> Result<()> {
    let sql = "SELECT max(epoch) FROM leases";
    let newest: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))?;
    if newest.map(number) == Some(epoch) {
        Ok(())
    } else {
        Err(StoreError::OldEpoch)
    }
}

pub(super) fn restore(
    connection: &Connection,
    epoch: u64,
) -> Result<(Vec<Ticket>, Vec<StoredMatch>)> {
    check(connection, epoch)?;
    let mut statement =
        connection.prepare("SELECT ticket FROM tickets ORDER BY since_us, ticket")?;
    let ids: Vec<i64> = statement
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let tickets = ids
        .into_iter()
        .filter_map(|id| ticket(connection, TicketId(number(id))).transpose())
        .collect::<Result<_>>()?;
    let mut statement = connection.prepare(
        "SELECT match_id, preferences, bots, server, running FROM matches WHERE ended_us IS NULL",
    )?;
    let rows: Vec<(i64, String, u8, Option<i64>, bool)> = statement
        .query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut matches = Vec::with_capacity(rows.len());
    for (id, preferences, bots, server, running) in rows {
        let match_id = MatchId(number(id));
        matches.push(StoredMatch {
            match_id,
            preferences: parsed(&preferences)?,
            bots,
            players: players(connection, match_id)?,
            server: server.map(|server| ServerId(number(server))),
            running,
        });
    }
    Ok((tickets, matches))
}

/// Everybody with a seat in a match.
pub(super) fn players(connection: &Connection, match_id: MatchId) -> Result<Vec<AccountId>> {
    let sql = "SELECT account FROM seats WHERE match_id = ?1 ORDER BY account";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([column(match_id.0)], |row| {
        Ok(AccountId(number(row.get(0)?)))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn create_match(
    connection: &Connection,
    epoch: u64,
    new: NewMatch,
    now: Instant,
) -> Result<Created> {
    check(connection, epoch)?;
    let mut gone = Vec::new();
    for asked in &new.tickets {
        // Changed preferences are another ticket as far as this match is concerned.
        let stored = ticket(connection, asked.id)?;
        if stored.is_none_or(|stored| stored.preferences != asked.preferences) {
            gone.push(asked.id);
        }
    }
    if !gone.is_empty() {
        return Ok(Created { gone });
    }
    let sql =
        "INSERT INTO matches (match_id, preferences, bots, created_us) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![
        column(new.match_id.0),
        text(&new.preferences)?,
        new.bots,
        column(now.as_micros()),
    ])?;
    for ticket in &new.tickets {
        seat_ticket(connection, new.match_id, ticket)?;
    }
    Ok(Created { gone })
}

/// Makes seats of a ticket.
fn seat_ticket(connection: &Connection, match_id: MatchId, ticket: &Ticket) -> Result<()> {
    remove_ticket(connection, ticket.id)?;
    let mut statement =
        connection.prepare_cached("INSERT INTO seats (account, match_id) VALUES (?1, ?2)")?;
    for member in &ticket.party {
        statement.execute([column(member.account.0), column(match_id.0)])?;
    }
    Ok(())
}

pub(super) fn fill_seats(
    connection: &Connection,
    epoch: u64,
    match_id: MatchId,
    id: TicketId,
) -> Result<Fill> {
    check(connection, epoch)?;
    let Some(ticket) = ticket(connection, id)? else {
        return Ok(Fill::TicketGone);
    };
    let sql = "SELECT 1 FROM matches WHERE match_id = ?1 AND ended_us IS NULL";
    if !connection
        .prepare_cached(sql)?
        .exists([column(match_id.0)])?
    {
        return Ok(Fill::MatchOver);
    }
    seat_ticket(connection, match_id, &ticket)?;
    Ok(Fill::Filled)
}

pub(super) fn record_server(
    connection: &Connection,
    epoch: u64,
    match_id: MatchId,
    server: ServerId,
) -> Result<()> {
    check(connection, epoch)?;
    let sql = "UPDATE matches SET server = ?2 WHERE match_id = ?1 AND ended_us IS NULL";
    let row = [column(match_id.0), column(server.0)];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

pub(super) fn record_running(connection: &Connection, epoch: u64, match_id: MatchId) -> Result<()> {
    check(connection, epoch)?;
    let sql = "UPDATE matches SET running = 1 WHERE match_id = ?1 AND ended_us IS NULL";
    connection
        .prepare_cached(sql)?
        .execute([column(match_id.0)])?;
    Ok(())
}

pub(super) fn free_seat(
    connection: &Connection,
    epoch: u64,
    match_id: MatchId,
    account: AccountId,
) -> Result<()> {
    check(connection, epoch)?;
    let sql = "DELETE FROM seats WHERE account = ?1 AND match_id = ?2";
    let row = [column(account.0), column(match_id.0)];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

pub(super) fn end_match(
    connection: &Connection,
    epoch: u64,
    ending: Ending,
    now: Instant,
) -> Result<Option<Vec<Ticket>>> {
    check(connection, epoch)?;
    let sql =
        "UPDATE matches SET ended_us = ?2, outcome = ?3 WHERE match_id = ?1 AND ended_us IS NULL";
    let outcome = match ending.outcome {
        Outcome::Finished => "finished",
        Outcome::Cancelled => "cancelled",
        Outcome::Aborted => "aborted",
    };
    let id = column(ending.match_id.0);
    let row = params![id, column(now.as_micros()), outcome];
    if connection.prepare_cached(sql)?.execute(row)? == 0 {
        return Ok(None);
    }
    let sql = "DELETE FROM seats WHERE match_id = ?1";
    connection.prepare_cached(sql)?.execute([id])?;
    if ending.outcome == Outcome::Finished {
        apply_result(connection, &ending)?;
    }
    let mut requeued = Vec::new();
    for ticket in ending.requeue {
        // Whoever did something else meanwhile stays with that.
        if insert_ticket(connection, &ticket)? {
            requeued.push(ticket);
        }
    }
    Ok(Some(requeued))
}

/// Points and ratings of a finished match; the primary key of the results lets it happen once.
fn apply_result(connection: &Connection, ending: &Ending) -> Result<()> {
    let Some(result) = &ending.result else {
        return Ok(());
    };
    let sql = "SELECT rating, uncertainty FROM accounts WHERE account = ?1";
    let mut read = connection.prepare_cached(sql)?;
    let mut players = Vec::new();
    let mut entries = Vec::new();
    for (index, player) in result.players.iter().enumerate() {
        let rating = read.query_row([column(player.account.0)], |row| {
            Ok(Rating {
                value: row.get(0)?,
                uncertainty: row.get(1)?,
            })
        });
        // Who has deleted his account meanwhile has no rating.
        let Some(rating) = rating.optional()? else {
            continue;
        };
        // Players without a team are teams of their own, beyond the numbers of real ones.
        let alone = 256 + u32::try_from(index).unwrap_or(u32::MAX - 256);
        players.push(player);
        entries.push(Entry {
            rating,
            team: player.team.map_or(alone, u32::from),
            points: player.points,
        });
    }
    let mut store_result = connection.prepare_cached(
        "INSERT INTO results (match_id, account, points, rating) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut store_rating = connection.prepare_cached(
        "UPDATE accounts SET rating = ?2, uncertainty = ?3,
         points = max(-9000000000000, min(9000000000000, points + ?4)) WHERE account = ?1",
    )?;
    for (player, rating) in players.into_iter().zip(rated(&entries)) {
        let account = column(player.account.0);
        let points = player.points.clamp(-POINTS_MAX, POINTS_MAX);
        store_result.execute(params![
            column(ending.match_id.0),
            account,
            points,
            rating.value
        ])?;
        store_rating.execute(params![account, rating.value, rating.uncertainty, points])?;
    }
    Ok(())
}

pub(super) fn end_ticket(connection: &Connection, epoch: u64, ticket: TicketId) -> Result<()> {
    check(connection, epoch)?;
    remove_ticket(connection, ticket)
}

/// Most points of one match, so that sums stay exact.
const POINTS_MAX: i64 = 1_000_000_000;
