//! Tickets, and what is going on with a player.

use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::{Duration, Instant};

use super::{Result, Row, Sql, Write, fresh_id, json, values};
use crate::store::{Played, Standing, StoreError, StoredSeat};
use crate::ticket::{Member, Play, Ticket};

/// A ticket with its party.
pub(super) fn ticket(sql: &mut dyn Sql, id: TicketId) -> Result<Option<Ticket>> {
    // One statement, because with a database at a distance each costs a round trip.
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account, m.rating
         FROM tickets t JOIN ticket_members m ON m.ticket = t.ticket
         WHERE t.ticket = ?1 ORDER BY m.place",
        values![id],
    )?;
    Ok(tickets(&rows)?.pop())
}

/// Tickets from their number, preferences, time and attempts, with a row for each player: his number and rating.
pub(super) fn tickets(rows: &[Row]) -> Result<Vec<Ticket>> {
    let mut tickets: Vec<Ticket> = Vec::new();
    for row in rows {
        let id = TicketId(row.number(0)?);
        let member = Member {
            account: AccountId(row.number(4)?),
            rating: row.real(5)?,
        };
        match tickets.last_mut().filter(|ticket| ticket.id == id) {
            Some(ticket) => ticket.party.push(member),
            None => tickets.push(Ticket {
                id,
                party: vec![member],
                preferences: row.parsed(1)?,
                since: row.instant(2)?,
                attempts: row.small(3)?,
            }),
        }
    }
    Ok(tickets)
}

fn ticket_of(sql: &mut dyn Sql, account: AccountId) -> Result<Option<Ticket>> {
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account, m.rating
         FROM ticket_members own JOIN tickets t ON t.ticket = own.ticket
         JOIN ticket_members m ON m.ticket = t.ticket
         WHERE own.account = ?1 ORDER BY m.place",
        values![account],
    )?;
    Ok(tickets(&rows)?.pop())
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
    store_ticket(sql, ticket)?;
    Ok(true)
}

/// Stores a ticket of players of whom it is known that they have neither another one nor a seat.
fn store_ticket(sql: &mut dyn Sql, ticket: &Ticket) -> Result<()> {
    let preferences = json(&ticket.preferences)?;
    let mut writes: Vec<Write> = vec![(
        "INSERT INTO tickets (ticket, preferences, since_us, attempts) VALUES (?1, ?2, ?3, ?4)",
        values![ticket.id, preferences, ticket.since, ticket.attempts].into(),
    )];
    for (place, member) in ticket.party.iter().enumerate() {
        writes.push((
            "INSERT INTO ticket_members (account, ticket, place, rating) VALUES (?1, ?2, ?3, ?4)",
            values![member.account, ticket.id, place as u64, member.rating].into(),
        ));
    }
    sql.execute_later(writes)
}

pub(super) fn remove_ticket(sql: &mut dyn Sql, id: TicketId) -> Result<()> {
    sql.execute_later(removal(id).into())
}

/// What removes a ticket.
pub(super) fn removal(id: TicketId) -> [Write; 2] {
    [
        "DELETE FROM ticket_members WHERE ticket = ?1",
        "DELETE FROM tickets WHERE ticket = ?1",
    ]
    .map(|statement| (statement, values![id].into()))
}

pub(in crate::store) fn play(
    sql: &mut dyn Sql,
    account: AccountId,
    preferences: Preferences,
    insists: bool,
    now: Instant,
) -> Result<Played> {
    let player = player(sql, account)?;
    let asked = player.ticket.as_ref().map(|ticket| &ticket.preferences);
    let play = Play::pressed(asked, &preferences, insists);
    let ticket = match player.ticket {
        None => {
            let (party, is_busy) = match player.room {
                None => (vec![player.member], player.is_seated),
                Some(code) => room_party(sql, account, &code)?,
            };
            enter(sql, party, is_busy, preferences, now)?
        }
        Some(ticket) if play == Play::Leave => {
            remove_ticket(sql, ticket.id)?;
            ticket
        }
        Some(mut ticket) => {
            sql.execute_later(vec![(
                "UPDATE tickets SET preferences = ?2 WHERE ticket = ?1",
                values![ticket.id, json(&preferences)?].into(),
            )])?;
            ticket.preferences = preferences;
            ticket
        }
    };
    Ok(Played { play, ticket })
}

/// A player who presses *play*.
struct Player {
    member: Member,
    ticket: Option<Ticket>,
    /// The code of his room.
    room: Option<String>,
    is_seated: bool,
}

/// All that decides about most tickets, in one statement, because with a database at a distance each costs a round trip.
fn player(sql: &mut dyn Sql, account: AccountId) -> Result<Player> {
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account, m.rating, a.rating, r.code, s.match_id
         FROM accounts a LEFT JOIN room_members r ON r.account = a.account
         LEFT JOIN seats s ON s.account = a.account
         LEFT JOIN ticket_members own ON own.account = a.account
         LEFT JOIN tickets t ON t.ticket = own.ticket
         LEFT JOIN ticket_members m ON m.ticket = t.ticket
         WHERE a.account = ?1 ORDER BY m.place",
        values![account],
    )?;
    let first = rows.first().ok_or(StoreError::NotFound("account"))?;
    Ok(Player {
        member: Member {
            account,
            rating: first.real(6)?,
        },
        ticket: match first.optional_integer(0)? {
            Some(_) => tickets(&rows)?.pop(),
            None => None,
        },
        room: first.optional_text(7)?,
        is_seated: first.optional_integer(8)?.is_some(),
    })
}

/// The players of a room, for its leader, and whether one of them has a ticket or a seat.
fn room_party(sql: &mut dyn Sql, leader: AccountId, code: &str) -> Result<(Vec<Member>, bool)> {
    let rows = sql.rows(
        "SELECT a.account, a.rating, coalesce(s.match_id, t.ticket)
         FROM room_members r JOIN accounts a ON a.account = r.account
         LEFT JOIN seats s ON s.account = r.account
         LEFT JOIN ticket_members t ON t.account = r.account
         WHERE r.code = ?1 ORDER BY r.joined_us, r.account",
        values![code],
    )?;
    let (mut party, mut is_busy) = (Vec::with_capacity(rows.len()), false);
    for row in &rows {
        party.push(Member {
            account: AccountId(row.number(0)?),
            rating: row.real(1)?,
        });
        is_busy |= row.optional_integer(2)?.is_some();
    }
    match party.first().is_some_and(|first| first.account == leader) {
        true => Ok((party, is_busy)),
        false => Err(StoreError::Conflict("only the leader of the room can play")),
    }
}

fn enter(
    sql: &mut dyn Sql,
    party: Vec<Member>,
    is_busy: bool,
    preferences: Preferences,
    now: Instant,
) -> Result<Ticket> {
    if preferences
        .players
        .is_some_and(|players| party.len() > usize::from(players))
    {
        return Err(StoreError::Conflict(
            "the room has more players than the match",
        ));
    }
    if is_busy {
        return Err(StoreError::Conflict(
            "someone of the party is in a match or another queue",
        ));
    }
    let ticket = Ticket {
        id: TicketId(fresh_id()?),
        party,
        preferences,
        since: now,
        attempts: 0,
    };
    store_ticket(sql, &ticket)?;
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
    // Servers live for a match; what registered a day ago and has no match is history.
    let day_ago = now.as_micros().saturating_sub(DAY.as_micros());
    sql.execute_all(&[
        (
            "INSERT INTO servers (server, address, public_key, seen_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (server) DO UPDATE SET address = ?2, public_key = ?3, seen_us = ?4",
            values![server, address, public_key, now].into(),
        ),
        (
            "DELETE FROM servers WHERE seen_us < ?1
             AND server NOT IN (SELECT server FROM matches WHERE ended_us IS NULL AND server IS NOT NULL)",
            values![day_ago].into(),
        ),
    ])
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
