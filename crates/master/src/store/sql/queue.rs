//! Tickets, and what is going on with a player.

use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::{Result, Row, Sql, Write, each, fresh_id, json, values};
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

/// Tickets from their number, preferences, time and attempts, with a row for each player: number and rating.
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
    sql.execute_later(insertion(&[ticket])?.into())?;
    Ok(true)
}

/// Returns the writes that store tickets of players of whom it is known that they have neither others nor seats.
fn insertion(tickets: &[&Ticket]) -> Result<[Write; 2]> {
    let ticket = |ticket: &&Ticket| {
        let preferences = json(&ticket.preferences)?;
        Ok(json!({
            "ticket": ticket.id,
            "preferences": preferences,
            "since_us": ticket.since.as_micros(),
            "attempts": ticket.attempts,
        }))
    };
    let member = |ticket: TicketId, place: usize, member: &Member| {
        json!({
            "account": member.account,
            "ticket": ticket,
            "place": place,
            "rating": member.rating,
        })
    };
    let rows: Vec<Json> = tickets.iter().map(ticket).collect::<Result<_>>()?;
    let members = tickets.iter().flat_map(|ticket| {
        let party = ticket.party.iter().enumerate();
        party.map(|(place, one)| member(ticket.id, place, one))
    });
    let members: Vec<Json> = members.collect();
    Ok([
        (
            "INSERT INTO tickets (ticket, preferences, since_us, attempts)
             SELECT CAST(value ->> 'ticket' AS BIGINT), value ->> 'preferences',
                 CAST(value ->> 'since_us' AS BIGINT), CAST(value ->> 'attempts' AS BIGINT)
             FROM json_each(?1)",
            values![json(&rows)?].into(),
        ),
        (
            "INSERT INTO ticket_members (account, ticket, place, rating)
             SELECT CAST(value ->> 'account' AS BIGINT), CAST(value ->> 'ticket' AS BIGINT),
                 CAST(value ->> 'place' AS BIGINT), CAST(value ->> 'rating' AS DOUBLE PRECISION)
             FROM json_each(?1)",
            values![json(&members)?].into(),
        ),
    ])
}

/// Returns the writes that give tickets other preferences.
fn change(tickets: &[&Ticket]) -> Result<Write> {
    let row = |ticket: &&Ticket| {
        let preferences = json(&ticket.preferences)?;
        Ok(json!({ "ticket": ticket.id, "preferences": preferences }))
    };
    let rows: Vec<Json> = tickets.iter().map(row).collect::<Result<_>>()?;
    Ok((
        "UPDATE tickets SET preferences = value ->> 'preferences' FROM json_each(?1)
         WHERE ticket = CAST(value ->> 'ticket' AS BIGINT)",
        values![json(&rows)?].into(),
    ))
}

/// Returns the writes that remove tickets.
pub(super) fn removal(tickets: impl Iterator<Item = TicketId>) -> Result<[Write; 2]> {
    let tickets = each(tickets.map(|ticket| ticket.0))?;
    let statements = [
        "DELETE FROM ticket_members WHERE ticket IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        "DELETE FROM tickets WHERE ticket IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
    ];
    Ok(statements.map(|statement| (statement, vec![tickets.clone()])))
}

/// A press of *play*: by whom, with which preferences, true if they insist on being in the queue, and when.
pub(in crate::store) type Pressed = (AccountId, Preferences, bool, Instant);

/// Handles *play* for everybody who pressed it, in a few statements no matter how many they are.
pub(in crate::store) fn play(
    sql: &mut dyn Sql,
    pressed: &[Pressed],
) -> Result<Vec<Result<Played>>> {
    let mut players = players(sql, pressed.iter().map(|(account, ..)| *account))?;
    let decided: Vec<Option<Result<Played>>> = pressed
        .iter()
        .map(|pressed| {
            let player = players.remove(&pressed.0)?;
            let party = vec![player.member];
            let is_busy = player.is_seated;
            player
                .is_single()
                .then(|| decide(player.ticket, party, is_busy, pressed))
        })
        .collect();
    write(sql, decided.iter().flatten().flatten())?;
    // Players in a party and those who pressed twice come after the others, one by one.
    let pairs = pressed.iter().zip(decided);
    pairs
        .map(|(pressed, decided)| decided.map_or_else(|| play_alone(sql, pressed), Ok))
        .collect()
}

fn play_alone(sql: &mut dyn Sql, pressed: &Pressed) -> Result<Result<Played>> {
    let account = pressed.0;
    let Some(player) = players(sql, [account].into_iter())?.remove(&account) else {
        return Ok(Err(StoreError::NotFound("account")));
    };
    let (party, is_busy) = match (&player.ticket, player.room) {
        (None, Some(code)) => room_party(sql, &code)?,
        _ => (vec![player.member], player.is_seated),
    };
    let played = decide(player.ticket, party, is_busy, pressed);
    write(sql, played.iter())?;
    Ok(played)
}

/// Stores what was decided about tickets.
fn write<'a>(sql: &mut dyn Sql, played: impl Iterator<Item = &'a Played>) -> Result<()> {
    let (mut entered, mut changed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for Played { play, ticket } in played {
        match play {
            Play::Enter => entered.push(ticket),
            Play::Update => changed.push(ticket),
            Play::Leave => left.push(ticket.id),
            Play::Stay => {}
        }
    }
    let mut writes = Vec::new();
    if !entered.is_empty() {
        writes.extend(insertion(&entered)?);
    }
    if !changed.is_empty() {
        writes.push(change(&changed)?);
    }
    if !left.is_empty() {
        writes.extend(removal(left.into_iter())?);
    }
    sql.execute_later(writes)
}

/// A player who presses *play*.
struct Player {
    member: Member,
    ticket: Option<Ticket>,
    /// The code of their room.
    room: Option<String>,
    is_seated: bool,
}

impl Player {
    /// True if what they do concerns nobody else.
    fn is_single(&self) -> bool {
        let party = self.ticket.as_ref().map_or(1, |ticket| ticket.party.len());
        self.room.is_none() && party == 1
    }
}

/// All that decides about most tickets, in one statement.
fn players(
    sql: &mut dyn Sql,
    accounts: impl Iterator<Item = AccountId>,
) -> Result<FxHashMap<AccountId, Player>> {
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account, m.rating,
             a.account, a.rating, r.code, s.match_id
         FROM accounts a LEFT JOIN room_members r ON r.account = a.account
         LEFT JOIN seats s ON s.account = a.account
         LEFT JOIN ticket_members own ON own.account = a.account
         LEFT JOIN tickets t ON t.ticket = own.ticket
         LEFT JOIN ticket_members m ON m.ticket = t.ticket
         WHERE a.account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
         ORDER BY a.account, m.place",
        &[each(accounts.map(|account| account.0))?],
    )?;
    let mut players = FxHashMap::default();
    for rows in rows.chunk_by(|one, next| one.0[6] == next.0[6]) {
        let (first, account) = (&rows[0], AccountId(rows[0].number(6)?));
        let ticket = match first.optional_integer(0)? {
            Some(_) => tickets(rows)?.pop(),
            None => None,
        };
        let rating = first.real(7)?;
        let player = Player {
            member: Member { account, rating },
            ticket,
            room: first.optional_text(8)?,
            is_seated: first.optional_integer(9)?.is_some(),
        };
        players.insert(account, player);
    }
    Ok(players)
}

/// The players of a room, who leads it first, and whether one of them has a ticket or a seat.
fn room_party(sql: &mut dyn Sql, code: &str) -> Result<(Vec<Member>, bool)> {
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
    Ok((party, is_busy))
}

/// Decides what becomes of a player's ticket, or what ticket they get with their party.
fn decide(
    ticket: Option<Ticket>,
    party: Vec<Member>,
    is_busy: bool,
    (account, preferences, insists, now): &Pressed,
) -> Result<Played> {
    let asked = ticket.as_ref().map(|ticket| &ticket.preferences);
    let play = Play::pressed(asked, preferences, *insists);
    let preferences = preferences.clone();
    let ticket = match ticket {
        Some(ticket) => Ticket {
            preferences,
            ..ticket
        },
        None if party.first().is_none_or(|first| first.account != *account) => {
            return Err(StoreError::Conflict("only the leader of the room can play"));
        }
        None if preferences
            .players
            .is_some_and(|players| party.len() > usize::from(players)) =>
        {
            return Err(StoreError::Conflict(
                "the room has more players than the match",
            ));
        }
        None if is_busy => {
            return Err(StoreError::Conflict(
                "someone of the party is in a match or another queue",
            ));
        }
        None => Ticket {
            id: TicketId(fresh_id()?),
            party,
            preferences,
            since: *now,
            attempts: 0,
        },
    };
    Ok(Played { play, ticket })
}

pub(in crate::store) fn leave_queue(
    sql: &mut dyn Sql,
    account: AccountId,
) -> Result<Option<Ticket>> {
    let ticket = ticket_of(sql, account)?;
    if let Some(ticket) = &ticket {
        sql.execute_later(removal([ticket.id].into_iter())?.into())?;
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

pub(in crate::store) fn queued(sql: &mut dyn Sql) -> Result<Vec<AccountId>> {
    let rows = sql.rows("SELECT account FROM ticket_members ORDER BY account", &[])?;
    rows.iter()
        .map(|row| row.number(0).map(AccountId))
        .collect()
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
