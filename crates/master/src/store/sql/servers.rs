//! Game servers: who has registered, who is gone, and which match a server may speak for.

use muse_master_client::{MatchId, ServerId};
use muse_wire::{Duration, Instant};

use super::leading::open_match;
use super::{Result, Sql, values};
use crate::director::StoredMatch;
use crate::hosts::{Registration, ServerStanding};

pub(in crate::store) fn server_standing(
    sql: &mut dyn Sql,
    server: ServerId,
) -> Result<ServerStanding> {
    let row = sql.row(
        "SELECT gone_us FROM servers WHERE server = ?1",
        values![server],
    )?;
    Ok(match row {
        None => ServerStanding::Unknown,
        Some(row) => match row.optional_instant(0)? {
            Some(since) => ServerStanding::Gone { since },
            None => ServerStanding::Known,
        },
    })
}

pub(in crate::store) fn register_server(
    sql: &mut dyn Sql,
    server: ServerId,
    address: String,
    public_key: String,
    now: Instant,
) -> Result<Registration> {
    let row = sql.row(
        "SELECT public_key, over_us FROM servers WHERE server = ?1 AND gone_us IS NULL",
        values![server],
    )?;
    let is_over = match row {
        Some(row) if row.text(0)? != public_key => return Ok(Registration::OtherKey),
        Some(row) => row.optional_integer(1)?.is_some(),
        None => false,
    };
    // Servers live for a match; what registered a day ago and has no match is history.
    let day_ago = now.as_micros().saturating_sub(DAY.as_micros());
    sql.execute_all(&[
        (
            "DELETE FROM servers WHERE server = ?1 AND gone_us IS NOT NULL",
            values![server].into(),
        ),
        (
            "INSERT INTO servers (server, address, public_key, seen_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (server) DO UPDATE SET address = ?2, seen_us = ?4",
            values![server, address, public_key, now].into(),
        ),
        (
            "DELETE FROM servers WHERE seen_us < ?1
             AND server NOT IN (SELECT server FROM matches WHERE ended_us IS NULL AND server IS NOT NULL)",
            values![day_ago].into(),
        ),
    ])?;
    Ok(match is_over {
        true => Registration::Over,
        false => Registration::Registered,
    })
}

pub(in crate::store) fn server_seen(
    sql: &mut dyn Sql,
    server: ServerId,
    now: Instant,
) -> Result<()> {
    sql.execute(
        "UPDATE servers SET seen_us = ?2 WHERE server = ?1",
        values![server, now],
    )?;
    Ok(())
}

pub(in crate::store) fn end_server(
    sql: &mut dyn Sql,
    server: ServerId,
    now: Instant,
) -> Result<()> {
    sql.execute(
        "UPDATE servers SET gone_us = ?2 WHERE server = ?1 AND gone_us IS NULL",
        values![server, now],
    )?;
    Ok(())
}

pub(in crate::store) fn held(
    sql: &mut dyn Sql,
    server: ServerId,
    match_id: MatchId,
) -> Result<Option<StoredMatch>> {
    let found = open_match(sql, match_id)?;
    Ok(found.filter(|found| found.server.is_none_or(|it| it == server)))
}

const DAY: Duration = Duration::from_secs(86_400);
