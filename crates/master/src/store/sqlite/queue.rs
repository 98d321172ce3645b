//! Tickets, and what is going on with a player.

use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use rusqlite::{Connection, OptionalExtension, params};

use super::social::room;
use super::{column, fresh_id, instant, number, parsed, text};
use crate::store::{Played, Standing, StoreError, StoredSeat};
use crate::ticket::{Member, Play, Ticket};

type Result<T> = std::result::Result<T, StoreError>;

/// A ticket with its party.
pub(super) fn ticket(connection: &Connection, id: TicketId) -> Result<Option<Ticket>> {
    let sql = "SELECT preferences, since_us, attempts FROM tickets WHERE ticket = ?1";
    let row: Option<(String, i64, u8)> = connection
        .prepare_cached(sql)?
        .query_row([column(id.0)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((preferences, since_us, attempts)) = row else {
        return Ok(None);
    };
    let sql = "SELECT account, rating FROM ticket_members WHERE ticket = ?1 ORDER BY place";
    let mut statement = connection.prepare_cached(sql)?;
    let members = statement.query_map([column(id.0)], |row| {
        Ok(Member {
            account: AccountId(number(row.get(0)?)),
            rating: row.get(1)?,
        })
    })?;
    Ok(Some(Ticket {
        id,
        party: members.collect::<rusqlite::Result<_>>()?,
        preferences: parsed(&preferences)?,
        since: instant(since_us),
        attempts,
    }))
}

fn ticket_of(connection: &Connection, account: AccountId) -> Result<Option<Ticket>> {
    let sql = "SELECT ticket FROM ticket_members WHERE account = ?1";
    let id: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([column(account.0)], |row| row.get(0))
        .optional()?;
    match id {
        Some(id) => ticket(connection, TicketId(number(id))),
        None => Ok(None),
    }
}

/// Stores a ticket, unless one of its players has another one or a seat.
pub(super) fn insert_ticket(connection: &Connection, ticket: &Ticket) -> Result<bool> {
    for member in &ticket.party {
        let sql = "SELECT 1 FROM ticket_members WHERE account = ?1
                   UNION ALL SELECT 1 FROM seats WHERE account = ?1";
        if connection
            .prepare_cached(sql)?
            .exists([column(member.account.0)])?
        {
            return Ok(false);
        }
    }
    let sql =
        "INSERT INTO tickets (ticket, preferences, since_us, attempts) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![
        column(ticket.id.0),
        text(&ticket.preferences)?,
        column(ticket.since.as_micros()),
        ticket.attempts,
    ])?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO ticket_members (account, ticket, place, rating) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (place, member) in ticket.party.iter().enumerate() {
        let place = column(place as u64);
        let (account, id) = (column(member.account.0), column(ticket.id.0));
        statement.execute(params![account, id, place, member.rating])?;
    }
    Ok(true)
}

pub(super) fn remove_ticket(connection: &Connection, id: TicketId) -> Result<()> {
    for sql in [
        "DELETE FROM ticket_members WHERE ticket = ?1",
        "DELETE FROM tickets WHERE ticket = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([column(id.0)])?;
    }
    Ok(())
}

pub(super) fn play(
    connection: &Connection,
    account: AccountId,
    preferences: Preferences,
    insists: bool,
    now: Instant,
) -> Result<Played> {
    let current = ticket_of(connection, account)?;
    let asked = current.as_ref().map(|ticket| &ticket.preferences);
    let play = Play::pressed(asked, &preferences, insists);
    let ticket = match current {
        None => enter(connection, account, preferences, now)?,
        Some(ticket) if play == Play::Leave => {
            remove_ticket(connection, ticket.id)?;
            ticket
        }
        Some(mut ticket) => {
            let sql = "UPDATE tickets SET preferences = ?2 WHERE ticket = ?1";
            let row = params![column(ticket.id.0), text(&preferences)?];
            connection.prepare_cached(sql)?.execute(row)?;
            ticket.preferences = preferences;
            ticket
        }
    };
    Ok(Played { play, ticket })
}

fn enter(
    connection: &Connection,
    account: AccountId,
    preferences: Preferences,
    now: Instant,
) -> Result<Ticket> {
    let members = match room(connection, account)? {
        None => vec![account],
        Some(room) if room.members.first() == Some(&account) => room.members,
        Some(_) => return Err(StoreError::Conflict("only the leader of the room can play")),
    };
    if preferences
        .players
        .is_some_and(|players| members.len() > usize::from(players))
    {
        return Err(StoreError::Conflict(
            "the room has more players than the match",
        ));
    }
    let sql = "SELECT rating FROM accounts WHERE account = ?1";
    let mut party = Vec::with_capacity(members.len());
    for account in members {
        let rating = connection
            .prepare_cached(sql)?
            .query_row([column(account.0)], |row| row.get(0))
            .optional()?
            .ok_or(StoreError::NotFound("account"))?;
        party.push(Member { account, rating });
    }
    let ticket = Ticket {
        id: TicketId(fresh_id()?),
        party,
        preferences,
        since: now,
        attempts: 0,
    };
    if !insert_ticket(connection, &ticket)? {
        return Err(StoreError::Conflict(
            "someone of the party is in a match or another queue",
        ));
    }
    Ok(ticket)
}

pub(super) fn leave_queue(connection: &Connection, account: AccountId) -> Result<Option<Ticket>> {
    let ticket = ticket_of(connection, account)?;
    if let Some(ticket) = &ticket {
        remove_ticket(connection, ticket.id)?;
    }
    Ok(ticket)
}

pub(super) fn standing(connection: &Connection, account: AccountId) -> Result<Standing> {
    let sql = "SELECT match_id FROM seats WHERE account = ?1";
    let seat: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([column(account.0)], |row| row.get(0))
        .optional()?;
    let match_id = seat.map(|id| MatchId(number(id)));
    Ok(Standing {
        ticket: ticket_of(connection, account)?,
        match_id,
        seat: match match_id {
            Some(match_id) => match_seat(connection, match_id)?,
            None => None,
        },
    })
}

pub(super) fn register_server(
    connection: &Connection,
    server: ServerId,
    address: String,
    public_key: String,
    now: Instant,
) -> Result<()> {
    let now = column(now.as_micros());
    connection
        .prepare_cached(
            "INSERT INTO servers (server, address, public_key, seen_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (server) DO UPDATE SET address = ?2, public_key = ?3, seen_us = ?4",
        )?
        .execute(params![column(server.0), address, public_key, now])?;
    // Servers live for a match; what registered a day ago and has no match is history.
    let sql = "DELETE FROM servers WHERE seen_us < ?1
               AND server NOT IN (SELECT server FROM matches WHERE ended_us IS NULL AND server IS NOT NULL)";
    connection.prepare_cached(sql)?.execute([now - DAY_US])?;
    Ok(())
}

pub(super) fn match_seat(connection: &Connection, match_id: MatchId) -> Result<Option<StoredSeat>> {
    let sql = "SELECT m.server, s.address, s.public_key, m.preferences
               FROM matches m JOIN servers s ON s.server = m.server
               WHERE m.match_id = ?1 AND m.ended_us IS NULL";
    let row: Option<(i64, String, String, String)> = connection
        .prepare_cached(sql)?
        .query_row([column(match_id.0)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .optional()?;
    let Some((server, address, public_key, preferences)) = row else {
        return Ok(None);
    };
    Ok(Some(StoredSeat {
        match_id,
        server: ServerId(number(server)),
        address,
        public_key,
        preferences: parsed(&preferences)?,
    }))
}

const DAY_US: i64 = 86_400_000_000;
