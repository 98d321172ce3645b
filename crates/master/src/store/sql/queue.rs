//! Tickets, and what is going on with a player.

use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

use super::social::room;
use super::{Result, Row, Sql, fresh_id, json, values};
use crate::store::{Played, Standing, StoreError, StoredSeat};
use crate::ticket::{Member, Play, Ticket};

/// A ticket with its party.
pub(super) fn ticket(sql: &mut dyn Sql, id: TicketId) -> Result<Option<Ticket>> {
    // One statement, because with a database at a distance each costs a round trip.
    let rows = sql.rows(
        "SELECT t.preferences, t.since_us, t.attempts, m.account, m.rating
         FROM tickets t JOIN ticket_members m ON m.ticket = t.ticket
         WHERE t.ticket = ?1 ORDER BY m.place",
        values![id],
    )?;
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let mut party = Vec::with_capacity(rows.len());
    for row in &rows {
        party.push(Member {
            account: AccountId(row.number(3)?),
            rating: row.real(4)?,
        });
    }
    Ok(Some(Ticket {
        id,
        party,
        preferences: first.parsed(0)?,
        since: first.instant(1)?,
        attempts: first.small(2)?,
    }))
}

fn ticket_of(sql: &mut dyn Sql, account: AccountId) -> Result<Option<Ticket>> {
    let row = sql.row(
        "SELECT ticket FROM ticket_members WHERE account = ?1",
        values![account],
    )?;
    match row {
        Some(row) => ticket(sql, TicketId(row.number(0)?)),
        None => Ok(None),
    }
}

/// Stores a ticket, unless one of its players has another one or a seat.
pub(super) fn insert_ticket(sql: &mut dyn Sql, ticket: &Ticket) -> Result<bool> {
    for member in &ticket.party {
        if sql.exists(
            "SELECT 1 FROM ticket_members WHERE account = ?1
             UNION ALL SELECT 1 FROM seats WHERE account = ?1",
            values![member.account],
        )? {
            return Ok(false);
        }
    }
    sql.execute(
        "INSERT INTO tickets (ticket, preferences, since_us, attempts) VALUES (?1, ?2, ?3, ?4)",
        values![
            ticket.id,
            json(&ticket.preferences)?,
            ticket.since,
            ticket.attempts
        ],
    )?;
    for (place, member) in ticket.party.iter().enumerate() {
        sql.execute(
            "INSERT INTO ticket_members (account, ticket, place, rating) VALUES (?1, ?2, ?3, ?4)",
            values![member.account, ticket.id, place as u64, member.rating],
        )?;
    }
    Ok(true)
}

pub(super) fn remove_ticket(sql: &mut dyn Sql, id: TicketId) -> Result<()> {
    sql.execute("DELETE FROM ticket_members WHERE ticket = ?1", values![id])?;
    sql.execute("DELETE FROM tickets WHERE ticket = ?1", values![id])?;
    Ok(())
}

pub(in crate::store) fn play(
    sql: &mut dyn Sql,
    account: AccountId,
    preferences: Preferences,
    insists: bool,
    now: Instant,
) -> Result<Played> {
    let current = ticket_of(sql, account)?;
    let asked = current.as_ref().map(|ticket| &ticket.preferences);
    let play = Play::pressed(asked, &preferences, insists);
    let ticket = match current {
        None => enter(sql, account, preferences, now)?,
        Some(ticket) if play == Play::Leave => {
            remove_ticket(sql, ticket.id)?;
            ticket
        }
        Some(mut ticket) => {
            sql.execute(
                "UPDATE tickets SET preferences = ?2 WHERE ticket = ?1",
                values![ticket.id, json(&preferences)?],
            )?;
            ticket.preferences = preferences;
            ticket
        }
    };
    Ok(Played { play, ticket })
}

fn enter(
    sql: &mut dyn Sql,
    account: AccountId,
    preferences: Preferences,
    now: Instant,
) -> Result<Ticket> {
    let members = match room(sql, account)? {
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
    let mut party = Vec::with_capacity(members.len());
    for account in members {
        let row = sql.row(
            "SELECT rating FROM accounts WHERE account = ?1",
            values![account],
        )?;
        let rating = row.ok_or(StoreError::NotFound("account"))?.real(0)?;
        party.push(Member { account, rating });
    }
    let ticket = Ticket {
        id: TicketId(fresh_id()?),
        party,
        preferences,
        since: now,
        attempts: 0,
    };
    if !insert_ticket(sql, &ticket)? {
        return Err(StoreError::Conflict(
            "someone of the party is in a match or another queue",
        ));
    }
    Ok(ticket)
}

pub(in crate::store) fn leave_queue(
    sql: &mut dyn Sql,
    account: AccountId,
) -> Result<Option<Ticket>> {
    let ticket = ticket_of(sql, account)?;
    if let Some(ticket) = &ticket {
        remove_ticket(sql, ticket.id)?;
    }
    Ok(ticket)
}

pub(in crate::store) fn standing(sql: &mut dyn Sql, account: AccountId) -> Result<Standing> {
    let row = sql.row(
        "SELECT match_id FROM seats WHERE account = ?1",
        values![account],
    )?;
    let match_id = match row {
        Some(row) => Some(MatchId(row.number(0)?)),
        None => None,
    };
    Ok(Standing {
        ticket: ticket_of(sql, account)?,
        match_id,
        seat: match match_id {
            Some(match_id) => match_seat(sql, match_id)?,
            None => None,
        },
    })
}

pub(in crate::store) fn seated(sql: &mut dyn Sql) -> Result<Vec<(AccountId, MatchId)>> {
    let rows = sql.rows(
        "SELECT s.account, s.match_id FROM seats s JOIN matches m ON m.match_id = s.match_id
         WHERE m.server IS NOT NULL AND m.ended_us IS NULL ORDER BY s.account",
        &[],
    )?;
    let seat = |row: &Row| Ok((AccountId(row.number(0)?), MatchId(row.number(1)?)));
    rows.iter().map(seat).collect()
}

pub(in crate::store) fn register_server(
    sql: &mut dyn Sql,
    server: ServerId,
    address: String,
    public_key: String,
    now: Instant,
) -> Result<()> {
    sql.execute(
        "INSERT INTO servers (server, address, public_key, seen_us) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (server) DO UPDATE SET address = ?2, public_key = ?3, seen_us = ?4",
        values![server, address, public_key, now],
    )?;
    // Servers live for a match; what registered a day ago and has no match is history.
    let day_ago = now.as_micros().saturating_sub(DAY.as_micros());
    sql.execute(
        "DELETE FROM servers WHERE seen_us < ?1
         AND server NOT IN (SELECT server FROM matches WHERE ended_us IS NULL AND server IS NOT NULL)",
        values![day_ago],
    )?;
    Ok(())
}

pub(in crate::store) fn match_seat(
    sql: &mut dyn Sql,
    match_id: MatchId,
) -> Result<Option<StoredSeat>> {
    let row = sql.row(
        "SELECT m.server, s.address, s.public_key, m.preferences
         FROM matches m JOIN servers s ON s.server = m.server
         WHERE m.match_id = ?1 AND m.ended_us IS NULL",
        values![match_id],
    )?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(StoredSeat {
        match_id,
        server: ServerId(row.number(0)?),
        address: row.text(1)?,
        public_key: row.text(2)?,
        preferences: row.parsed(3)?,
    }))
}

const DAY: Duration = Duration::from_secs(86_400);
