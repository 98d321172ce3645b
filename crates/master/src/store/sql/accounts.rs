//! Accounts, their tokens, their progress and the ranking.

use muse_master_client::AccountId;
use muse_master_client::api::{AccountView, Progress, RankingLine};
use muse_wire::{Duration, Instant};
use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use super::queue::{leave_queue, standing};
use super::social::leave_room;
use super::{Result, Sql, Value, each, fresh_id, values};
use crate::rating::Rating;
use crate::secrets::SignInId;
use crate::store::{
    NewPassword, RANKING_PAGE, RankingCursor, Refreshed, StoreError, StoredAccount, Successor,
};

pub(in crate::store) fn guest(
    sql: &mut dyn Sql,
    device: String,
    now: Instant,
) -> Result<AccountId> {
    let known = sql.row(
        "SELECT account FROM accounts WHERE device = ?1",
        values![&device],
    )?;
    if let Some(row) = known {
        return Ok(AccountId(row.number(0)?));
    }
    let account = AccountId(fresh_id()?);
    let rating = Rating::default();
    sql.execute(
        "INSERT INTO accounts (account, device, rating, uncertainty, created_us, used_us) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        values![account, device, rating.value, rating.uncertainty, now],
    )?;
    Ok(account)
}

pub(in crate::store) fn set_password(
    sql: &mut dyn Sql,
    account: AccountId,
    named: NewPassword,
    keeps: SignInId,
) -> Result<()> {
    let NewPassword {
        name,
        hash,
        replaces,
    } = named;
    if sql.exists(
        "SELECT 1 FROM accounts WHERE name = ?1 AND account <> ?2",
        values![&name, account],
    )? {
        return Err(StoreError::Conflict("the name is taken"));
    }
    let current = password_of(sql, account)?.map(|(_, hash)| hash);
    if current != replaces {
        return Err(StoreError::Conflict("the password was changed meanwhile"));
    }
    sql.execute(
        "DELETE FROM refresh_tokens WHERE account = ?1 AND sign_in <> ?2",
        values![account, keeps.0],
    )?;
    found(sql.execute(
        "UPDATE accounts SET name = ?2, password = ?3, generation = generation + 1, kept_sign_in = ?4
         WHERE account = ?1",
        values![account, name, hash, keeps.0],
    )?)
}

pub(in crate::store) fn password_of(
    sql: &mut dyn Sql,
    account: AccountId,
) -> Result<Option<(String, String)>> {
    let row = sql.row(
        "SELECT name, password FROM accounts WHERE account = ?1 AND name IS NOT NULL AND password IS NOT NULL",
        values![account],
    )?;
    row.map(|row| Ok((row.text(0)?, row.text(1)?))).transpose()
}

pub(in crate::store) fn password(
    sql: &mut dyn Sql,
    name: String,
) -> Result<Option<(AccountId, String)>> {
    let row = sql.row(
        "SELECT account, password FROM accounts WHERE name = ?1 AND password IS NOT NULL",
        values![name],
    )?;
    match row {
        Some(row) => Ok(Some((AccountId(row.number(0)?), row.text(1)?))),
        None => Ok(None),
    }
}

/// Reads these accounts.
pub(in crate::store) fn known(
    sql: &mut dyn Sql,
    accounts: &[AccountId],
) -> Result<Vec<Result<StoredAccount>>> {
    let rows = sql.rows(
        "SELECT a.account, a.name, a.rating, a.uncertainty, a.points, a.generation, s.until_us, a.kept_sign_in
         FROM accounts a LEFT JOIN sanctions s ON s.account = a.account AND s.kind = 'ban'
         WHERE a.account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        &[each(accounts.iter().map(|account| account.0))?],
    )?;
    let mut known = FxHashMap::default();
    for row in &rows {
        let account = AccountId(row.number(0)?);
        let stored = StoredAccount {
            view: AccountView {
                account,
                name: row.optional_text(1)?,
                rating: row.real(2)?,
                uncertainty: row.real(3)?,
                points: row.integer(4)?,
            },
            generation: row.number(5)?,
            banned_until: row.optional_instant(6)?,
            kept_sign_in: SignInId(row.number(7)?),
        };
        known.insert(account, stored);
    }
    let missing = StoreError::NotFound("account");
    let answer = |account| known.get(account).cloned().ok_or_else(|| missing.clone());
    Ok(accounts.iter().map(answer).collect())
}

pub(in crate::store) fn add_refresh(
    sql: &mut dyn Sql,
    account: AccountId,
    sign_in: SignInId,
    token: String,
    expires: Instant,
    now: Instant,
) -> Result<()> {
    let salt = String::new();
    let fresh = Successor {
        salt,
        token,
        expires,
    };
    store_refresh(sql, account, sign_in, fresh, now)
}

fn store_refresh(
    sql: &mut dyn Sql,
    account: AccountId,
    sign_in: SignInId,
    fresh: Successor,
    now: Instant,
) -> Result<()> {
    let Successor {
        salt,
        token,
        expires,
    } = fresh;
    sql.execute_all(&[
        (
            "DELETE FROM refresh_tokens WHERE account = ?1 AND expires_us <= ?2",
            values![account, now].into(),
        ),
        (
            "INSERT INTO refresh_tokens (token, account, sign_in, salt, expires_us) VALUES (?1, ?2, ?3, ?4, ?5)",
            values![token, account, sign_in.0, salt, expires].into(),
        ),
        (
            "UPDATE accounts SET used_us = ?2 WHERE account = ?1 AND used_us < ?3",
            values![account, now, now - USED_TO].into(),
        ),
    ])
}

/// A second use is answered by voiding every token of the account, which must hold although the client is answered with an error: so it is
/// no error here.
pub(in crate::store) fn rotate_refresh(
    sql: &mut dyn Sql,
    old: String,
    fresh: Successor,
    now: Instant,
) -> Result<Refreshed> {
    let row = sql.row(
        "SELECT account, sign_in, used FROM refresh_tokens WHERE token = ?1 AND expires_us > ?2",
        values![&old, now],
    )?;
    let row = row.ok_or(StoreError::NotFound("token"))?;
    let account = AccountId(row.number(0)?);
    // Tokens from before sign-ins were told apart begin one.
    let sign_in = match row.number(1)? {
        0 => SignInId(fresh_id()?),
        known => SignInId(known),
    };
    let exchanged = |salt| Refreshed::Exchanged {
        account,
        sign_in,
        salt,
    };
    if row.integer(2)? != 0 {
        return match repeat(sql, &old, now)? {
            Some(salt) => Ok(exchanged(salt)),
            None => {
                sign_out_everywhere(sql, account)?;
                Ok(Refreshed::Stolen(account))
            }
        };
    }
    sql.execute(
        "UPDATE refresh_tokens SET used = 1, used_us = ?2, successor = ?3, salt = '' WHERE token = ?1",
        values![old, now, &fresh.token],
    )?;
    let salt = fresh.salt.clone();
    store_refresh(sql, account, sign_in, fresh, now)?;
    Ok(exchanged(salt))
}

/// The salt of an exchange whose answer may have been lost. It is told once, soon after, and not if the token that was exchanged for has been used:
/// then the answer did arrive. That one cannot be repeated in its turn, so that a thief who uses each token right after its owner is found
/// at the next one.
fn repeat(sql: &mut dyn Sql, old: &str, now: Instant) -> Result<Option<String>> {
    let row = sql.row(
        "SELECT n.token, n.salt, o.used_us FROM refresh_tokens o JOIN refresh_tokens n ON n.token = o.successor
         WHERE o.token = ?1 AND o.repeats > 0 AND n.used = 0",
        values![old],
    )?;
    let Some(row) = row else { return Ok(None) };
    let salt = row.text(1)?;
    if salt.is_empty() || now - row.instant(2)? > REPEAT_WITHIN {
        return Ok(None);
    }
    sql.execute(
        "UPDATE refresh_tokens SET repeats = 0 WHERE token = ?1 OR token = ?2",
        values![old, row.text(0)?],
    )?;
    Ok(Some(salt))
}

pub(in crate::store) fn sign_out_everywhere(sql: &mut dyn Sql, account: AccountId) -> Result<()> {
    sql.execute(
        "DELETE FROM refresh_tokens WHERE account = ?1",
        values![account],
    )?;
    found(sql.execute(
        "UPDATE accounts SET generation = generation + 1, kept_sign_in = 0 WHERE account = ?1",
        values![account],
    )?)
}

pub(in crate::store) fn export(sql: &mut dyn Sql, id: AccountId) -> Result<Json> {
    let kept = known(sql, &[id])?.pop();
    let kept = kept.unwrap_or(Err(StoreError::NotFound("account")))?;
    let mut list = |statement: &'static str, names: &[&str]| -> Result<Vec<Json>> {
        let rows = sql.rows(statement, values![id])?;
        let object = |row: super::Row| {
            let fields = names.iter().zip(row.0);
            let fields = fields.map(|(name, value)| ((*name).to_owned(), as_json(value)));
            Json::Object(fields.collect())
        };
        Ok(rows.into_iter().map(object).collect())
    };
    Ok(json!({
        "account": kept.view,
        "progress": list("SELECT game, version, document FROM progress WHERE account = ?1 ORDER BY game", &["game", "version", "document"])?,
        "results": list("SELECT match_id, points, rating FROM results WHERE account = ?1 ORDER BY match_id", &["match", "points", "rating"])?,
        "friends": list("SELECT other, state FROM friends WHERE account = ?1 ORDER BY other", &["account", "state"])?,
        "chat": list("SELECT line, channel, text, at_us FROM chat WHERE sender = ?1 ORDER BY line", &["id", "channel", "text", "at_us"])?,
        "sanctions": list("SELECT kind, until_us, reason FROM sanctions WHERE account = ?1 ORDER BY kind", &["kind", "until_us", "reason"])?,
    }))
}

fn as_json(value: Value) -> Json {
    match value {
        Value::Integer(number) => json!(number),
        Value::Real(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Null => Json::Null,
    }
}

pub(in crate::store) fn delete(sql: &mut dyn Sql, account: AccountId) -> Result<()> {
    if standing(sql, account)?.match_id.is_some() {
        return Err(StoreError::Conflict("the account is in a match"));
    }
    leave_queue(sql, account)?;
    leave_room(sql, account)?;
    let writes = [
        "DELETE FROM refresh_tokens WHERE account = ?1",
        "DELETE FROM progress WHERE account = ?1",
        "DELETE FROM results WHERE account = ?1",
        "DELETE FROM friends WHERE account = ?1 OR other = ?1",
        "DELETE FROM chat WHERE sender = ?1",
        "DELETE FROM sanctions WHERE account = ?1",
        "DELETE FROM presence WHERE account = ?1",
    ]
    .map(|statement| (statement, values![account].into()));
    sql.execute_all(&writes)?;
    found(sql.execute("DELETE FROM accounts WHERE account = ?1", values![account])?)
}

pub(in crate::store) fn progress(
    sql: &mut dyn Sql,
    account: AccountId,
    game: String,
) -> Result<Progress> {
    let row = sql.row(
        "SELECT version, document FROM progress WHERE account = ?1 AND game = ?2",
        values![account, game],
    )?;
    Ok(match row {
        Some(row) => Progress {
            version: row.number(0)?,
            document: row.parsed(1)?,
        },
        None => Progress {
            version: 0,
            document: Json::Null,
        },
    })
}

pub(in crate::store) fn save_progress(
    sql: &mut dyn Sql,
    account: AccountId,
    game: String,
    based_on: u64,
    document: String,
) -> Result<u64> {
    let games = sql.row(
        "SELECT count(*) FROM progress WHERE account = ?1 AND game <> ?2",
        values![account, &game],
    )?;
    if games.map_or(Ok(0), |row| row.integer(0))? >= GAMES_MAX {
        return Err(StoreError::Conflict(
            "an account has progress in 16 games at most",
        ));
    }
    let changed = if based_on == 0 {
        sql.execute(
            "INSERT INTO progress (account, game, version, document) VALUES (?1, ?2, 1, ?3)
             ON CONFLICT (account, game) DO NOTHING",
            values![account, game, document],
        )?
    } else {
        sql.execute(
            "UPDATE progress SET version = version + 1, document = ?4
             WHERE account = ?1 AND game = ?2 AND version = ?3",
            values![account, game, based_on, document],
        )?
    };
    if changed == 0 {
        return Err(StoreError::Conflict("the progress was changed elsewhere"));
    }
    Ok(based_on + 1)
}

/// Checks that the database answers: reads one row at most.
pub(in crate::store) fn ready(sql: &mut dyn Sql) -> Result<()> {
    sql.rows("SELECT epoch FROM leases LIMIT 1", &[]).map(drop)
}

/// Two ranges of one index, because it runs down by points and up by account: who has as many points as the cursor, then who has fewer. A
/// place is counted on from the cursor's, so that nobody ahead is visited.
pub(in crate::store) fn ranking(
    sql: &mut dyn Sql,
    after: Option<RankingCursor>,
) -> Result<Vec<RankingLine>> {
    let mut rows = Vec::new();
    if let Some(after) = after {
        rows = sql.rows(
            "SELECT account, name, points, rating FROM accounts
             WHERE points = ?1 AND account > ?2 ORDER BY account LIMIT ?3",
            values![after.points, after.account, RANKING_PAGE as u64],
        )?;
    }
    let missing = RANKING_PAGE.saturating_sub(rows.len()) as u64;
    if missing > 0 {
        let points = after.map_or(i64::MAX, |after| after.points);
        rows.extend(sql.rows(
            "SELECT account, name, points, rating FROM accounts
             WHERE points < ?1 ORDER BY points DESC, account LIMIT ?2",
            values![points, missing],
        )?);
    }
    let place = after.map_or(0, |after| after.place);
    let line = |(row, place): (&super::Row, u64)| {
        Ok(RankingLine {
            place,
            account: AccountId(row.number(0)?),
            name: row.optional_text(1)?,
            points: row.integer(2)?,
            rating: row.real(3)?,
        })
    };
    rows.iter().zip(place + 1..).map(line).collect()
}

fn found(rows: usize) -> Result<()> {
    if rows == 0 {
        Err(StoreError::NotFound("account"))
    } else {
        Ok(())
    }
}

/// Time in which a refresh token is exchanged once more: a client's timeout, and a few attempts to connect.
const REPEAT_WITHIN: Duration = Duration::from_secs(60);
/// The last use of an account is known to this: it is written once a day.
const USED_TO: Duration = Duration::from_secs(86_400);
/// Games for which one account keeps progress.
const GAMES_MAX: i64 = 16;
