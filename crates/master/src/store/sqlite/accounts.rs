//! Accounts, their tokens, their progress and the ranking.

use muse_master_client::AccountId;
use muse_master_client::api::{AccountView, Progress, RankingLine};
use muse_wire::Instant;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};

use super::queue::{leave_queue, standing};
use super::social::leave_room;
use super::{column, fresh_id, number, parsed};
use crate::rating::Rating;
use crate::store::{StoreError, StoredAccount};

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn guest(connection: &Connection, device: String, now: Instant) -> Result<AccountId> {
    let sql = "SELECT account FROM accounts WHERE device = ?1";
    let known: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([&device], |row| row.get(0))
        .optional()?;
    if let Some(account) = known {
        return Ok(AccountId(number(account)));
    }
    let account = fresh_id()?;
    let rating = Rating::default();
    connection
        .prepare_cached(
            "INSERT INTO accounts (account, device, rating, uncertainty, created_us)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            column(account),
            device,
            rating.value,
            rating.uncertainty,
            column(now.as_micros()),
        ])?;
    Ok(AccountId(account))
}

pub(super) fn set_password(
    connection: &Connection,
    account: AccountId,
    name: String,
    password: String,
) -> Result<()> {
    let sql = "SELECT 1 FROM accounts WHERE name = ?1 AND account <> ?2";
    if connection
        .prepare_cached(sql)?
        .exists(params![name, column(account.0)])?
    {
        return Err(StoreError::Conflict("the name is taken"));
    }
    let sql = "UPDATE accounts SET name = ?2, password = ?3 WHERE account = ?1";
    let row = params![column(account.0), name, password];
    found(connection.prepare_cached(sql)?.execute(row)?)
}

pub(super) fn password(
    connection: &Connection,
    name: String,
) -> Result<Option<(AccountId, String)>> {
    let sql = "SELECT account, password FROM accounts WHERE name = ?1 AND password IS NOT NULL";
    let read = |row: &rusqlite::Row<'_>| Ok((AccountId(number(row.get(0)?)), row.get(1)?));
    Ok(connection
        .prepare_cached(sql)?
        .query_row([name], read)
        .optional()?)
}

pub(super) fn account(connection: &Connection, account: AccountId) -> Result<StoredAccount> {
    let sql =
        "SELECT name, rating, uncertainty, points, generation FROM accounts WHERE account = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(StoredAccount {
            view: AccountView {
                account,
                name: row.get(0)?,
                rating: row.get(1)?,
                uncertainty: row.get(2)?,
                points: row.get(3)?,
            },
            generation: number(row.get(4)?),
        })
    };
    let row = connection
        .prepare_cached(sql)?
        .query_row([column(account.0)], read);
    row.optional()?.ok_or(StoreError::NotFound("account"))
}

pub(super) fn add_refresh(
    connection: &Connection,
    account: AccountId,
    token: String,
    expires: Instant,
    now: Instant,
) -> Result<()> {
    let sql = "DELETE FROM refresh_tokens WHERE account = ?1 AND expires_us <= ?2";
    let row = [column(account.0), column(now.as_micros())];
    connection.prepare_cached(sql)?.execute(row)?;
    let sql = "INSERT INTO refresh_tokens (token, account, expires_us) VALUES (?1, ?2, ?3)";
    let row = params![token, column(account.0), column(expires.as_micros())];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// A second use is answered by voiding every token of the account, which must hold although it is answered with an error: so it is
/// told apart here by account 0.
pub(super) fn rotate_refresh(
    connection: &Connection,
    old: String,
    fresh: String,
    expires: Instant,
    now: Instant,
) -> Result<AccountId> {
    let sql = "SELECT account, expires_us, used FROM refresh_tokens WHERE token = ?1";
    let row: Option<(i64, i64, bool)> = connection
        .prepare_cached(sql)?
        .query_row([&old], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let known = row.filter(|(_, expires_us, _)| *expires_us > column(now.as_micros()));
    let Some((owner, _, used)) = known else {
        return Err(StoreError::NotFound("token"));
    };
    let owner = AccountId(number(owner));
    if used {
        sign_out_everywhere(connection, owner)?;
        return Ok(AccountId(0));
    }
    let sql = "UPDATE refresh_tokens SET used = 1 WHERE token = ?1";
    connection.prepare_cached(sql)?.execute([&old])?;
    add_refresh(connection, owner, fresh, expires, now)?;
    Ok(owner)
}

pub(super) fn sign_out_everywhere(connection: &Connection, account: AccountId) -> Result<()> {
    let id = column(account.0);
    let sql = "DELETE FROM refresh_tokens WHERE account = ?1";
    connection.prepare_cached(sql)?.execute([id])?;
    let sql = "UPDATE accounts SET generation = generation + 1 WHERE account = ?1";
    found(connection.prepare_cached(sql)?.execute([id])?)
}

pub(super) fn export(connection: &Connection, id: AccountId) -> Result<Value> {
    let kept = account(connection, id)?;
    let list = |sql: &str, names: &[&str]| -> Result<Vec<Value>> {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([column(id.0)], |row| {
            let mut object = serde_json::Map::new();
            for (index, name) in names.iter().enumerate() {
                let value: rusqlite::types::Value = row.get(index)?;
                object.insert((*name).to_owned(), as_json(value));
            }
            Ok(Value::Object(object))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    Ok(json!({
        "account": kept.view,
        "progress": list("SELECT game, version, document FROM progress WHERE account = ?1", &["game", "version", "document"])?,
        "results": list("SELECT match_id, points, rating FROM results WHERE account = ?1", &["match", "points", "rating"])?,
        "friends": list("SELECT other, state FROM friends WHERE account = ?1", &["account", "state"])?,
        "chat": list("SELECT line, channel, text, at_us FROM chat WHERE sender = ?1 ORDER BY line", &["id", "channel", "text", "at_us"])?,
    }))
}

fn as_json(value: rusqlite::types::Value) -> Value {
    match value {
        rusqlite::types::Value::Integer(number) => json!(number),
        rusqlite::types::Value::Real(number) => json!(number),
        rusqlite::types::Value::Text(text) => json!(text),
        _ => Value::Null,
    }
}

pub(super) fn delete(connection: &Connection, account: AccountId) -> Result<()> {
    if standing(connection, account)?.match_id.is_some() {
        return Err(StoreError::Conflict("the account is in a match"));
    }
    leave_queue(connection, account)?;
    leave_room(connection, account)?;
    let id = column(account.0);
    for sql in [
        "DELETE FROM refresh_tokens WHERE account = ?1",
        "DELETE FROM progress WHERE account = ?1",
        "DELETE FROM results WHERE account = ?1",
        "DELETE FROM friends WHERE account = ?1 OR other = ?1",
        "DELETE FROM chat WHERE sender = ?1",
    ] {
        connection.execute(sql, [id])?;
    }
    found(connection.execute("DELETE FROM accounts WHERE account = ?1", [id])?)
}

pub(super) fn progress(
    connection: &Connection,
    account: AccountId,
    game: String,
) -> Result<Progress> {
    let sql = "SELECT version, document FROM progress WHERE account = ?1 AND game = ?2";
    let row: Option<(i64, String)> = connection
        .prepare_cached(sql)?
        .query_row(params![column(account.0), game], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(match row {
        Some((version, document)) => Progress {
            version: number(version),
            document: parsed(&document)?,
        },
        None => Progress {
            version: 0,
            document: Value::Null,
        },
    })
}

pub(super) fn save_progress(
    connection: &Connection,
    account: AccountId,
    game: String,
    based_on: u64,
    document: String,
) -> Result<u64> {
    let id = column(account.0);
    let sql = "SELECT count(*) FROM progress WHERE account = ?1 AND game <> ?2";
    let games: i64 = connection
        .prepare_cached(sql)?
        .query_row(params![id, game], |row| row.get(0))?;
    if games >= GAMES_MAX {
        return Err(StoreError::Conflict(
            "an account has progress in 16 games at most",
        ));
    }
    let changed = if based_on == 0 {
        let sql = "INSERT INTO progress (account, game, version, document) VALUES (?1, ?2, 1, ?3)
                   ON CONFLICT (account, game) DO NOTHING";
        connection
            .prepare_cached(sql)?
            .execute(params![id, game, document])?
    } else {
        let sql = "UPDATE progress SET version = version + 1, document = ?4
                   WHERE account = ?1 AND game = ?2 AND version = ?3";
        let row = params![id, game, column(based_on), document];
        connection.prepare_cached(sql)?.execute(row)?
    };
    if changed == 0 {
        return Err(StoreError::Conflict("the progress was changed elsewhere"));
    }
    Ok(based_on + 1)
}

pub(super) fn ranking(connection: &Connection, from_place: u64) -> Result<Vec<RankingLine>> {
    let skipped = from_place.max(1) - 1;
    let sql = "SELECT account, name, points, rating FROM accounts
               ORDER BY points DESC, account LIMIT 100 OFFSET ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut place = skipped;
    let rows = statement.query_map([column(skipped)], |row| {
        place += 1;
        Ok(RankingLine {
            place,
            account: AccountId(number(row.get(0)?)),
            name: row.get(1)?,
            points: row.get(2)?,
            rating: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn found(rows: usize) -> Result<()> {
    if rows == 0 {
        Err(StoreError::NotFound("account"))
    } else {
        Ok(())
    }
}

/// Games for which one account keeps progress.
const GAMES_MAX: i64 = 16;
