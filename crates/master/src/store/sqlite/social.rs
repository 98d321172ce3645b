//! Friends, rooms and chat.

use muse_master_client::AccountId;
use muse_master_client::api::{FriendView, RoomView};
use muse_master_client::messages::ChatLine;
use muse_wire::Instant;
use rusqlite::{Connection, OptionalExtension, params};

use super::leading::players;
use super::queue::standing;
use super::{column, number};
use crate::store::{ChatTarget, FriendStep, Said, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

fn state(connection: &Connection, account: AccountId, other: AccountId) -> Result<Option<String>> {
    let sql = "SELECT state FROM friends WHERE account = ?1 AND other = ?2";
    let row = [column(account.0), column(other.0)];
    let found = connection
        .prepare_cached(sql)?
        .query_row(row, |row| row.get(0));
    Ok(found.optional()?)
}

fn set_state(
    connection: &Connection,
    account: AccountId,
    other: AccountId,
    state: &str,
) -> Result<()> {
    let sql = "INSERT INTO friends (account, other, state) VALUES (?1, ?2, ?3)
               ON CONFLICT (account, other) DO UPDATE SET state = ?3";
    let row = params![column(account.0), column(other.0), state];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

fn remove(connection: &Connection, account: AccountId, other: AccountId) -> Result<()> {
    let sql = "DELETE FROM friends WHERE account = ?1 AND other = ?2";
    let row = [column(account.0), column(other.0)];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

pub(super) fn befriend(
    connection: &Connection,
    account: AccountId,
    other: AccountId,
    step: FriendStep,
) -> Result<bool> {
    if account == other {
        return Err(StoreError::Conflict("that is yourself"));
    }
    let sql = "SELECT 1 FROM accounts WHERE account = ?1";
    if !connection.prepare_cached(sql)?.exists([column(other.0)])? {
        return Err(StoreError::NotFound("account"));
    }
    let theirs = state(connection, other, account)?;
    let blocked = theirs.as_deref() == Some("blocked");
    match step {
        FriendStep::Ask => {
            let sql = "SELECT count(*) FROM friends WHERE account = ?1";
            let known: i64 = connection
                .prepare_cached(sql)?
                .query_row([column(account.0)], |row| row.get(0))?;
            if known >= FRIENDS_MAX {
                return Err(StoreError::Conflict("an account has 500 friends at most"));
            }
            // Who is blocked is not told so: his request waits for ever.
            let accepted = matches!(theirs.as_deref(), Some("asked" | "friend"));
            set_state(
                connection,
                account,
                other,
                if accepted { "friend" } else { "asked" },
            )?;
            if accepted {
                set_state(connection, other, account, "friend")?;
            }
            Ok(accepted)
        }
        FriendStep::Remove => {
            remove(connection, account, other)?;
            if !blocked {
                remove(connection, other, account)?;
            }
            Ok(false)
        }
        FriendStep::Block => {
            set_state(connection, account, other, "blocked")?;
            if !blocked {
                remove(connection, other, account)?;
            }
            Ok(false)
        }
    }
}

pub(super) fn friends(connection: &Connection, account: AccountId) -> Result<Vec<FriendView>> {
    let sql = "SELECT f.other, a.name, f.state FROM friends f JOIN accounts a ON a.account = f.other
               WHERE f.account = ?1
               UNION ALL
               SELECT f.account, a.name, 'asks' FROM friends f JOIN accounts a ON a.account = f.account
               WHERE f.other = ?1 AND f.state = 'asked'
               AND NOT EXISTS (SELECT 1 FROM friends b WHERE b.account = ?1 AND b.other = f.account)
               LIMIT 1000";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([column(account.0)], |row| {
        Ok(FriendView {
            account: AccountId(number(row.get(0)?)),
            name: row.get(1)?,
            state: row.get(2)?,
            online: false,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn room(connection: &Connection, account: AccountId) -> Result<Option<RoomView>> {
    let sql = "SELECT code FROM room_members WHERE account = ?1";
    let code: Option<String> = connection
        .prepare_cached(sql)?
        .query_row([column(account.0)], |row| row.get(0))
        .optional()?;
    code.map(|code| view(connection, code)).transpose()
}

fn view(connection: &Connection, code: String) -> Result<RoomView> {
    let sql = "SELECT account FROM room_members WHERE code = ?1 ORDER BY joined_us, account";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([&code], |row| Ok(AccountId(number(row.get(0)?))))?;
    let members = rows.collect::<rusqlite::Result<_>>()?;
    Ok(RoomView { code, members })
}

pub(super) fn open_room(
    connection: &Connection,
    account: AccountId,
    code: String,
    now: Instant,
) -> Result<RoomView> {
    if !view(connection, code.clone())?.members.is_empty() {
        return Err(StoreError::Conflict("the code is taken"));
    }
    enter(connection, account, code, now)
}

pub(super) fn join_room(
    connection: &Connection,
    account: AccountId,
    code: String,
    now: Instant,
) -> Result<RoomView> {
    let members = view(connection, code.clone())?.members;
    if members.is_empty() {
        return Err(StoreError::NotFound("room"));
    }
    if members.len() >= ROOM_MAX && !members.contains(&account) {
        return Err(StoreError::Conflict("the room is full"));
    }
    enter(connection, account, code, now)
}

fn enter(
    connection: &Connection,
    account: AccountId,
    code: String,
    now: Instant,
) -> Result<RoomView> {
    let current = room(connection, account)?;
    if current.is_some_and(|current| current.code == code) {
        return view(connection, code);
    }
    let sql = "INSERT INTO room_members (account, code, joined_us) VALUES (?1, ?2, ?3)
               ON CONFLICT (account) DO UPDATE SET code = ?2, joined_us = ?3";
    let row = params![column(account.0), code, column(now.as_micros())];
    connection.prepare_cached(sql)?.execute(row)?;
    view(connection, code)
}

pub(super) fn leave_room(connection: &Connection, account: AccountId) -> Result<Vec<AccountId>> {
    let left = room(connection, account)?;
    let sql = "DELETE FROM room_members WHERE account = ?1";
    connection
        .prepare_cached(sql)?
        .execute([column(account.0)])?;
    let mut members = left.map_or_else(Vec::new, |room| room.members);
    members.retain(|member| *member != account);
    Ok(members)
}

/// The name of a channel, and who reads it.
fn channel(
    connection: &Connection,
    account: AccountId,
    target: ChatTarget,
) -> Result<(String, Vec<AccountId>)> {
    match target {
        ChatTarget::Direct(other) => {
            let (low, high) = (account.min(other), account.max(other));
            Ok((format!("direct:{low}:{high}"), vec![account, other]))
        }
        ChatTarget::Room => {
            let room = room(connection, account)?.ok_or(StoreError::NotFound("room"))?;
            Ok((format!("room:{}", room.code), room.members))
        }
        ChatTarget::Match => {
            let standing = standing(connection, account)?;
            let match_id = standing.match_id.ok_or(StoreError::NotFound("match"))?;
            Ok((format!("match:{match_id}"), players(connection, match_id)?))
        }
    }
}

pub(super) fn say(
    connection: &Connection,
    from: AccountId,
    target: ChatTarget,
    text: String,
    now: Instant,
) -> Result<Said> {
    if let ChatTarget::Direct(other) = target {
        let sql = "SELECT 1 FROM accounts WHERE account = ?1";
        if !connection.prepare_cached(sql)?.exists([column(other.0)])? {
            return Err(StoreError::NotFound("account"));
        }
    }
    let (channel, mut readers) = channel(connection, from, target)?;
    let now_us = column(now.as_micros());
    // The tenth newest line of the writer must be older than the window.
    let sql = "SELECT at_us FROM chat WHERE sender = ?1 ORDER BY line DESC LIMIT 1 OFFSET ?2";
    let earlier: Option<i64> = connection
        .prepare_cached(sql)?
        .query_row([column(from.0), LINES_PER_WINDOW - 1], |row| row.get(0))
        .optional()?;
    if earlier.is_some_and(|at_us| now_us - at_us < WINDOW_US) {
        return Err(StoreError::Conflict("too many lines, wait a little"));
    }
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(line) FROM chat")?
        .query_row([], |row| row.get(0))?;
    let line = newest.map_or(now_us, |newest| now_us.max(newest + 1));
    let sql = "INSERT INTO chat (line, channel, sender, text, at_us) VALUES (?1, ?2, ?3, ?4, ?5)";
    let row = params![line, channel, column(from.0), text, now_us];
    connection.prepare_cached(sql)?.execute(row)?;
    let mut heard = Vec::with_capacity(readers.len());
    for reader in readers.drain(..) {
        // Who has blocked the writer does not hear him.
        if state(connection, reader, from)?.as_deref() != Some("blocked") {
            heard.push(reader);
        }
    }
    Ok(Said {
        line: ChatLine {
            id: number(line),
            channel,
            from,
            text,
            at_ms: now.as_millis(),
        },
        readers: heard,
    })
}

pub(super) fn history(
    connection: &Connection,
    account: AccountId,
    target: ChatTarget,
) -> Result<Vec<ChatLine>> {
    let (channel, _) = channel(connection, account, target)?;
    let sql = "SELECT line, sender, text, at_us FROM chat WHERE channel = ?1 ORDER BY line DESC LIMIT 100";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([&channel], |row| {
        Ok(ChatLine {
            id: number(row.get(0)?),
            channel: channel.clone(),
            from: AccountId(number(row.get(1)?)),
            text: row.get(2)?,
            at_ms: number(row.get(3)?) / 1_000,
        })
    })?;
    let mut lines: Vec<ChatLine> = rows.collect::<rusqlite::Result<_>>()?;
    lines.reverse();
    Ok(lines)
}

const FRIENDS_MAX: i64 = 500;
/// Players in one room.
const ROOM_MAX: usize = 16;
/// Lines that one player may write in ten seconds.
const LINES_PER_WINDOW: i64 = 10;
const WINDOW_US: i64 = 10_000_000;
