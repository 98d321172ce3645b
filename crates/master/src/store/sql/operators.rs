//! Operators: who they are, what they impose, what they did, and what they look at.

use muse_master_client::messages::ChatLine;
use muse_master_client::{AccountId, MatchId, ServerId, TicketId};
use muse_wire::Instant;

use super::leading::players;
use super::social::{chat_line, known};
use super::{Result, Row, Sql, values};
use crate::operators::{AuditLine, MatchLine, PlayerLine, Sentence, StoredOperator, TicketLine};
use crate::store::StoreError;

pub(in crate::store) fn set_operator(
    sql: &mut dyn Sql,
    name: String,
    password: String,
    now: Instant,
) -> Result<()> {
    sql.execute(
        "INSERT INTO operators (name, password, created_us) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE SET password = ?2, generation = operators.generation + 1",
        values![name, password, now],
    )?;
    Ok(())
}

pub(in crate::store) fn operator(
    sql: &mut dyn Sql,
    name: String,
) -> Result<Option<StoredOperator>> {
    let row = sql.row(
        "SELECT password, generation FROM operators WHERE name = ?1",
        values![name],
    )?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(StoredOperator {
        password: row.text(0)?,
        generation: row.number(1)?,
    }))
}

pub(in crate::store) fn operators(sql: &mut dyn Sql) -> Result<Vec<String>> {
    let rows = sql.rows("SELECT name FROM operators ORDER BY name LIMIT 1000", &[])?;
    rows.iter().map(|row| row.text(0)).collect()
}

pub(in crate::store) fn remove_operator(sql: &mut dyn Sql, name: String) -> Result<()> {
    let removed = sql.execute("DELETE FROM operators WHERE name = ?1", values![name])?;
    if removed == 0 {
        return Err(StoreError::NotFound("operator"));
    }
    if operators(sql)?.is_empty() {
        return Err(StoreError::Conflict("the last operator stays"));
    }
    Ok(())
}

pub(in crate::store) fn audit(sql: &mut dyn Sql, line: AuditLine) -> Result<()> {
    let newest = sql.row("SELECT max(entry) FROM audit", &[])?;
    let newest = newest.map_or(Ok(None), |row| row.optional_integer(0))?;
    sql.execute(
        "INSERT INTO audit (entry, at_us, operator, action, subject, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        values![
            newest.unwrap_or(0) + 1,
            line.at_ms * 1_000,
            line.operator,
            line.action,
            line.subject,
            line.detail
        ],
    )?;
    Ok(())
}

pub(in crate::store) fn audits(sql: &mut dyn Sql) -> Result<Vec<AuditLine>> {
    let rows = sql.rows(
        "SELECT at_us, operator, action, subject, detail FROM audit ORDER BY entry DESC LIMIT 200",
        &[],
    )?;
    let line = |row: &Row| {
        Ok(AuditLine {
            at_ms: row.number(0)? / 1_000,
            operator: row.text(1)?,
            action: row.text(2)?,
            subject: row.text(3)?,
            detail: row.text(4)?,
        })
    };
    rows.iter().map(line).collect()
}

/// Imposed and written down, or neither.
pub(in crate::store) fn sanction(
    sql: &mut dyn Sql,
    operator: String,
    sentence: Sentence,
    now: Instant,
) -> Result<()> {
    let Sentence {
        account,
        sanction,
        until,
        reason,
    } = sentence;
    known(sql, account)?;
    let kind = sanction.name();
    let action = match until {
        Some(until) => {
            sql.execute(
                "INSERT INTO sanctions (account, kind, until_us, reason, operator) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (account, kind) DO UPDATE SET until_us = ?3, reason = ?4, operator = ?5",
                values![account, kind, until, &reason, &operator],
            )?;
            kind.to_owned()
        }
        None => {
            sql.execute(
                "DELETE FROM sanctions WHERE account = ?1 AND kind = ?2",
                values![account, kind],
            )?;
            format!("un{kind}")
        }
    };
    let line = AuditLine {
        at_ms: now.as_millis(),
        operator,
        action,
        subject: account.to_string(),
        detail: reason,
    };
    audit(sql, line)
}

pub(in crate::store) fn delete_line(
    sql: &mut dyn Sql,
    operator: String,
    line: u64,
    now: Instant,
) -> Result<ChatLine> {
    let row = sql.row(
        "SELECT line, channel, sender, text, at_us FROM chat WHERE line = ?1",
        values![line],
    )?;
    let found = chat_line(&row.ok_or(StoreError::NotFound("line"))?)?;
    sql.execute("DELETE FROM chat WHERE line = ?1", values![line])?;
    let entry = AuditLine {
        at_ms: now.as_millis(),
        operator,
        action: "delete_line".to_owned(),
        subject: line.to_string(),
        detail: format!("{} by {}", found.channel, found.from),
    };
    audit(sql, entry)?;
    Ok(found)
}

pub(in crate::store) fn chat_lines(
    sql: &mut dyn Sql,
    account: Option<AccountId>,
) -> Result<Vec<ChatLine>> {
    let rows = match account {
        Some(account) => sql.rows(
            "SELECT line, channel, sender, text, at_us FROM chat WHERE sender = ?1 ORDER BY line DESC LIMIT 100",
            values![account],
        )?,
        None => sql.rows(
            "SELECT line, channel, sender, text, at_us FROM chat ORDER BY line DESC LIMIT 100",
            &[],
        )?,
    };
    rows.iter().map(chat_line).collect()
}

/// Players by the beginning of their name or by their number; without either, those that are named.
pub(in crate::store) fn player_lines(
    sql: &mut dyn Sql,
    search: String,
    online: Vec<AccountId>,
    now: Instant,
) -> Result<Vec<PlayerLine>> {
    let mut accounts = Vec::new();
    if search.is_empty() {
        accounts = online;
    } else {
        // Names are ASCII; the end of the range is the first text after all that begin so.
        let end = format!("{search}\u{7f}");
        let rows = sql.rows(
            "SELECT account FROM accounts WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT 100",
            values![&search, end],
        )?;
        for row in rows {
            accounts.push(AccountId(row.number(0)?));
        }
        accounts.extend(search.parse().map(AccountId));
    }
    accounts.truncate(PLAYERS_SHOWN);
    let mut lines = Vec::with_capacity(accounts.len());
    for account in accounts {
        lines.extend(player_line(sql, account, now)?);
    }
    Ok(lines)
}

fn player_line(sql: &mut dyn Sql, account: AccountId, now: Instant) -> Result<Option<PlayerLine>> {
    let row = sql.row(
        "SELECT a.name, a.rating, a.points, a.created_us, t.ticket, s.match_id
         FROM accounts a LEFT JOIN ticket_members t ON t.account = a.account
         LEFT JOIN seats s ON s.account = a.account WHERE a.account = ?1",
        values![account],
    )?;
    let Some(row) = row else { return Ok(None) };
    let number = |column| -> Result<Option<u64>> {
        Ok(row
            .optional_integer(column)?
            .and_then(|id| u64::try_from(id).ok()))
    };
    let mut line = PlayerLine {
        account,
        name: row.optional_text(0)?,
        rating: row.real(1)?,
        points: row.integer(2)?,
        created_ms: row.number(3)? / 1_000,
        online: false,
        ticket: number(4)?.map(TicketId),
        match_id: number(5)?.map(MatchId),
        banned_until_ms: None,
        muted_until_ms: None,
        reasons: Vec::new(),
    };
    let imposed = sql.rows(
        "SELECT kind, until_us, reason FROM sanctions WHERE account = ?1 AND until_us > ?2 ORDER BY kind",
        values![account, now],
    )?;
    for row in imposed {
        let until_ms = Some(row.number(1)? / 1_000);
        match row.text(0)?.as_str() {
            "ban" => line.banned_until_ms = until_ms,
            _ => line.muted_until_ms = until_ms,
        }
        line.reasons.push(row.text(2)?);
    }
    Ok(Some(line))
}

pub(in crate::store) fn ticket_lines(sql: &mut dyn Sql, now: Instant) -> Result<Vec<TicketLine>> {
    let rows = sql.rows(
        "SELECT t.ticket, t.preferences, t.since_us, t.attempts, m.account FROM tickets t
         JOIN ticket_members m ON m.ticket = t.ticket ORDER BY t.since_us, t.ticket, m.place LIMIT 500",
        &[],
    )?;
    let mut lines: Vec<TicketLine> = Vec::new();
    for row in rows {
        let ticket = TicketId(row.number(0)?);
        let account = AccountId(row.number(4)?);
        match lines.last_mut().filter(|line| line.ticket == ticket) {
            Some(line) => line.party.push(account),
            None => lines.push(TicketLine {
                ticket,
                party: vec![account],
                waited_ms: (now - row.instant(2)?).as_millis(),
                preferences: row.parsed(1)?,
                attempts: row.small(3)?,
            }),
        }
    }
    Ok(lines)
}

/// Tickets that wait, and since when the oldest does.
pub(in crate::store) fn waiting(sql: &mut dyn Sql) -> Result<(u64, Option<Instant>)> {
    let row = sql.row("SELECT count(*), min(since_us) FROM tickets", &[])?;
    match row {
        Some(row) => Ok((row.number(0)?, row.optional_instant(1)?)),
        None => Ok((0, None)),
    }
}

pub(in crate::store) fn match_lines(sql: &mut dyn Sql) -> Result<Vec<MatchLine>> {
    let mut rows = sql.rows(
        "SELECT m.match_id, m.preferences, m.bots, m.server, s.address, m.running, m.created_us, m.ended_us, m.outcome
         FROM matches m LEFT JOIN servers s ON s.server = m.server
         WHERE m.ended_us IS NULL ORDER BY m.created_us DESC LIMIT 200",
        &[],
    )?;
    rows.extend(sql.rows(
        "SELECT m.match_id, m.preferences, m.bots, m.server, s.address, m.running, m.created_us, m.ended_us, m.outcome
         FROM matches m LEFT JOIN servers s ON s.server = m.server
         WHERE m.ended_us > 0 ORDER BY m.ended_us DESC LIMIT 50",
        &[],
    )?);
    rows.iter().map(|row| match_line_of(sql, row)).collect()
}

pub(in crate::store) fn match_line(sql: &mut dyn Sql, match_id: MatchId) -> Result<MatchLine> {
    let row = sql.row(
        "SELECT m.match_id, m.preferences, m.bots, m.server, s.address, m.running, m.created_us, m.ended_us, m.outcome
         FROM matches m LEFT JOIN servers s ON s.server = m.server WHERE m.match_id = ?1",
        values![match_id],
    )?;
    match_line_of(sql, &row.ok_or(StoreError::NotFound("match"))?)
}

fn match_line_of(sql: &mut dyn Sql, row: &Row) -> Result<MatchLine> {
    let match_id = MatchId(row.number(0)?);
    let ended = row.optional_instant(7)?;
    let server = row.optional_integer(3)?;
    let players = match ended {
        None => players(sql, match_id)?,
        Some(_) => {
            let rows = sql.rows(
                "SELECT account FROM results WHERE match_id = ?1 ORDER BY account",
                values![match_id],
            )?;
            rows.iter()
                .map(|row| row.number(0).map(AccountId))
                .collect::<Result<_>>()?
        }
    };
    Ok(MatchLine {
        match_id,
        preferences: row.parsed(1)?,
        bots: row.small(2)?,
        server: server.and_then(|server| u64::try_from(server).ok().map(ServerId)),
        address: row.optional_text(4)?,
        players,
        running: row.integer(5)? != 0,
        created_ms: row.number(6)? / 1_000,
        ended_ms: ended.map(Instant::as_millis),
        outcome: row.optional_text(8)?,
    })
}

/// Players of one answer.
const PLAYERS_SHOWN: usize = 100;
