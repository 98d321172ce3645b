//! Knowledge that several masters need of each other when a note between them is lost: who is where, and how matches go.

use muse_master_client::messages::{MatchResult, Report};
use muse_master_client::{AccountId, MatchId, ServerId};
use muse_wire::{Duration, Instant};

use super::leading::{check, open_match};
use super::{Result, Sql, json, values};
use crate::director::StoredMatch;
use crate::store::StoredReport;

pub(in crate::store) fn master_seen(sql: &mut dyn Sql, master: u64, now: Instant) -> Result<bool> {
    let known = sql.execute(
        "UPDATE masters SET seen_us = ?2 WHERE master = ?1",
        values![master, now],
    )?;
    if known == 0 {
        sql.execute(
            "INSERT INTO masters (master, seen_us) VALUES (?1, ?2)",
            values![master, now],
        )?;
    }
    let gone = now.as_micros().saturating_sub(FORGOTTEN.as_micros());
    sql.execute("DELETE FROM masters WHERE seen_us < ?1", values![gone])?;
    sql.execute(
        "DELETE FROM presence WHERE master NOT IN (SELECT master FROM masters)",
        &[],
    )?;
    Ok(known > 0)
}

pub(in crate::store) fn arrived(sql: &mut dyn Sql, master: u64, account: AccountId) -> Result<()> {
    sql.execute(
        "INSERT INTO presence (account, master) VALUES (?1, ?2)
         ON CONFLICT (account) DO UPDATE SET master = ?2",
        values![account, master],
    )?;
    Ok(())
}

pub(in crate::store) fn whereabouts(sql: &mut dyn Sql, account: AccountId) -> Result<Option<u64>> {
    let row = sql.row(
        "SELECT master FROM presence WHERE account = ?1",
        values![account],
    )?;
    row.map(|row| row.number(0)).transpose()
}

pub(in crate::store) fn departed(
    sql: &mut dyn Sql,
    master: u64,
    account: AccountId,
) -> Result<bool> {
    let removed = sql.execute(
        "DELETE FROM presence WHERE account = ?1 AND master = ?2",
        values![account, master],
    )?;
    let elsewhere = removed == 0
        && sql.exists(
            "SELECT 1 FROM presence WHERE account = ?1",
            values![account],
        )?;
    Ok(!elsewhere)
}

pub(in crate::store) fn all_departed(sql: &mut dyn Sql, master: u64) -> Result<()> {
    sql.execute("DELETE FROM presence WHERE master = ?1", values![master])?;
    Ok(())
}

pub(in crate::store) fn queued_here(
    sql: &mut dyn Sql,
    epoch: u64,
    now: Instant,
) -> Result<Vec<AccountId>> {
    check(sql, epoch)?;
    let rows = sql.rows(
        "SELECT t.account, m.seen_us FROM ticket_members t JOIN presence p ON p.account = t.account
         JOIN masters m ON m.master = p.master ORDER BY t.account",
        &[],
    )?;
    let mut accounts = Vec::with_capacity(rows.len());
    for row in rows {
        if is_there(row.optional_instant(1)?, now) {
            accounts.push(AccountId(row.number(0)?));
        }
    }
    Ok(accounts)
}

/// True if a master that was seen then still counts as there.
pub(super) fn is_there(seen: Option<Instant>, now: Instant) -> bool {
    seen.is_some_and(|seen| seen + AWAY > now)
}

pub(in crate::store) fn record_report(
    sql: &mut dyn Sql,
    server: ServerId,
    report: Report,
    now: Instant,
) -> Result<bool> {
    let Some(match_id) = report.match_id else {
        return Ok(true);
    };
    if open_match(sql, match_id)?.is_none_or(|found| found.server.is_some_and(|it| it != server)) {
        return Ok(false);
    }
    sql.execute(
        "INSERT INTO reports (match_id, server, at_us, report) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (match_id) DO UPDATE SET server = ?2, at_us = ?3, report = ?4",
        values![match_id, server, now, json(&report)?],
    )?;
    Ok(true)
}

pub(in crate::store) fn record_result(
    sql: &mut dyn Sql,
    server: ServerId,
    result: MatchResult,
    now: Instant,
) -> Result<bool> {
    let match_id = result.match_id;
    let found = open_match(sql, match_id)?;
    let Some(found) = found.filter(|found| found.server.is_none_or(|it| it == server)) else {
        return Ok(false);
    };
    let report = Report {
        match_id: Some(match_id),
        seated: found.players,
        ..Report::default()
    };
    sql.execute(
        "INSERT INTO reports (match_id, server, at_us, report, result) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (match_id) DO UPDATE SET server = ?2, at_us = ?3, result = ?5",
        values![match_id, server, now, json(&report)?, json(&result)?],
    )?;
    Ok(true)
}

pub(in crate::store) fn reports(sql: &mut dyn Sql, epoch: u64) -> Result<Vec<StoredReport>> {
    check(sql, epoch)?;
    let rows = sql.rows(
        "SELECT match_id, server, at_us, report, result FROM reports ORDER BY match_id",
        &[],
    )?;
    let mut reports = Vec::with_capacity(rows.len());
    for row in rows {
        let result = match row.optional_text(4)? {
            Some(_) => Some(row.parsed(4)?),
            None => None,
        };
        reports.push(StoredReport {
            match_id: MatchId(row.number(0)?),
            server: ServerId(row.number(1)?),
            at: row.instant(2)?,
            report: row.parsed(3)?,
            result,
        });
    }
    Ok(reports)
}

pub(in crate::store) fn hosted(sql: &mut dyn Sql, server: ServerId) -> Result<Option<StoredMatch>> {
    let row = sql.row(
        "SELECT match_id FROM matches WHERE server = ?1 AND ended_us IS NULL",
        values![server],
    )?;
    match row {
        Some(row) => open_match(sql, MatchId(row.number(0)?)),
        None => Ok(None),
    }
}

/// Time after which a master that was not seen counts as away, and its players with it.
const AWAY: Duration = Duration::from_secs(15);
/// After this it is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
