//! Friends, rooms and chat.

use muse_master_client::AccountId;
use muse_master_client::api::{FriendView, RoomView};
use muse_master_client::messages::ChatLine;
use muse_wire::Instant;

use super::leading::players;
use super::queue::standing;
use super::several::is_there;
use super::{Result, Row, Sql, values};
use crate::store::{ChatTarget, FriendStep, Said, StoreError};

fn state(sql: &mut dyn Sql, account: AccountId, other: AccountId) -> Result<Option<String>> {
    let row = sql.row(
        "SELECT state FROM friends WHERE account = ?1 AND other = ?2",
        values![account, other],
    )?;
    row.map(|row| row.text(0)).transpose()
}

fn set_state(sql: &mut dyn Sql, account: AccountId, other: AccountId, state: &str) -> Result<()> {
    sql.execute(
        "INSERT INTO friends (account, other, state) VALUES (?1, ?2, ?3)
         ON CONFLICT (account, other) DO UPDATE SET state = ?3",
        values![account, other, state],
    )?;
    Ok(())
}

fn remove(sql: &mut dyn Sql, account: AccountId, other: AccountId) -> Result<()> {
    sql.execute(
        "DELETE FROM friends WHERE account = ?1 AND other = ?2",
        values![account, other],
    )?;
    Ok(())
}

/// There must be such an account.
pub(super) fn known(sql: &mut dyn Sql, account: AccountId) -> Result<()> {
    match sql.exists(
        "SELECT 1 FROM accounts WHERE account = ?1",
        values![account],
    )? {
        true => Ok(()),
        false => Err(StoreError::NotFound("account")),
    }
}

pub(in crate::store) fn befriend(
    sql: &mut dyn Sql,
    account: AccountId,
    other: AccountId,
    step: FriendStep,
) -> Result<bool> {
    if account == other {
        return Err(StoreError::Conflict("that is yourself"));
    }
    known(sql, other)?;
    let theirs = state(sql, other, account)?;
    let blocked = theirs.as_deref() == Some("blocked");
    match step {
        FriendStep::Ask => {
            let row = sql.row(
                "SELECT count(*) FROM friends WHERE account = ?1",
                values![account],
            )?;
            if row.map_or(Ok(0), |row| row.integer(0))? >= FRIENDS_MAX {
                return Err(StoreError::Conflict("an account has 500 friends at most"));
            }
            // A player who is blocked is not told so: their request waits for ever.
            let accepted = matches!(theirs.as_deref(), Some("asked" | "friend"));
            let mine = if accepted { "friend" } else { "asked" };
            set_state(sql, account, other, mine)?;
            if accepted {
                set_state(sql, other, account, "friend")?;
            }
            return Ok(accepted);
        }
        FriendStep::Remove => remove(sql, account, other)?,
        FriendStep::Block => set_state(sql, account, other, "blocked")?,
    }
    if !blocked {
        remove(sql, other, account)?;
    }
    Ok(false)
}

pub(in crate::store) fn friends(
    sql: &mut dyn Sql,
    account: AccountId,
    now: Instant,
) -> Result<Vec<FriendView>> {
    let rows = sql.rows(
        "SELECT f.other, a.name, f.state, m.seen_us FROM friends f JOIN accounts a ON a.account = f.other
         LEFT JOIN presence p ON p.account = f.other LEFT JOIN masters m ON m.master = p.master
         WHERE f.account = ?1
         UNION ALL
         SELECT f.account, a.name, 'asks', NULL FROM friends f JOIN accounts a ON a.account = f.account
         WHERE f.other = ?1 AND f.state = 'asked'
         AND NOT EXISTS (SELECT 1 FROM friends b WHERE b.account = ?1 AND b.other = f.account)
         LIMIT 1000",
        values![account],
    )?;
    let friend = |row: &Row| {
        let state = row.text(2)?;
        Ok(FriendView {
            account: AccountId(row.number(0)?),
            name: row.optional_text(1)?,
            online: state == "friend" && is_there(row.optional_instant(3)?, now),
            state,
        })
    };
    rows.iter().map(friend).collect()
}

pub(in crate::store) fn room(sql: &mut dyn Sql, account: AccountId) -> Result<Option<RoomView>> {
    let row = sql.row(
        "SELECT code FROM room_members WHERE account = ?1",
        values![account],
    )?;
    match row {
        Some(row) => view(sql, row.text(0)?).map(Some),
        None => Ok(None),
    }
}

fn view(sql: &mut dyn Sql, code: String) -> Result<RoomView> {
    let rows = sql.rows(
        "SELECT account FROM room_members WHERE code = ?1 ORDER BY joined_us, account",
        values![&code],
    )?;
    let members = rows.iter().map(|row| row.number(0).map(AccountId));
    let members = members.collect::<Result<_>>()?;
    Ok(RoomView { code, members })
}

pub(in crate::store) fn open_room(
    sql: &mut dyn Sql,
    account: AccountId,
    code: String,
    now: Instant,
) -> Result<RoomView> {
    if !view(sql, code.clone())?.members.is_empty() {
        return Err(StoreError::Conflict("the code is taken"));
    }
    enter(sql, account, code, now)
}

pub(in crate::store) fn join_room(
    sql: &mut dyn Sql,
    account: AccountId,
    code: String,
    now: Instant,
) -> Result<RoomView> {
    let members = view(sql, code.clone())?.members;
    if members.is_empty() {
        return Err(StoreError::NotFound("room"));
    }
    if members.len() >= ROOM_MAX && !members.contains(&account) {
        return Err(StoreError::Conflict("the room is full"));
    }
    enter(sql, account, code, now)
}

fn enter(sql: &mut dyn Sql, account: AccountId, code: String, now: Instant) -> Result<RoomView> {
    let current = room(sql, account)?;
    if current.is_none_or(|current| current.code != code) {
        sql.execute(
            "INSERT INTO room_members (account, code, joined_us) VALUES (?1, ?2, ?3)
             ON CONFLICT (account) DO UPDATE SET code = ?2, joined_us = ?3",
            values![account, &code, now],
        )?;
    }
    view(sql, code)
}

pub(in crate::store) fn leave_room(
    sql: &mut dyn Sql,
    account: AccountId,
) -> Result<Vec<AccountId>> {
    let left = room(sql, account)?;
    sql.execute(
        "DELETE FROM room_members WHERE account = ?1",
        values![account],
    )?;
    let mut members = left.map_or_else(Vec::new, |room| room.members);
    members.retain(|member| *member != account);
    Ok(members)
}

/// The name of a channel, and who reads it.
fn channel(
    sql: &mut dyn Sql,
    account: AccountId,
    target: ChatTarget,
) -> Result<(String, Vec<AccountId>)> {
    match target {
        ChatTarget::Direct(other) => {
            let (low, high) = (account.min(other), account.max(other));
            Ok((format!("direct:{low}:{high}"), vec![account, other]))
        }
        ChatTarget::Room => {
            let room = room(sql, account)?.ok_or(StoreError::NotFound("room"))?;
            Ok((format!("room:{}", room.code), room.members))
        }
        ChatTarget::Match => {
            let standing = standing(sql, account)?;
            let match_id = standing.match_id.ok_or(StoreError::NotFound("match"))?;
            Ok((format!("match:{match_id}"), players(sql, match_id)?))
        }
    }
}

pub(in crate::store) fn say(
    sql: &mut dyn Sql,
    from: AccountId,
    target: ChatTarget,
    text: String,
    now: Instant,
) -> Result<Said> {
    if let ChatTarget::Direct(other) = target {
        known(sql, other)?;
    }
    let (channel, readers) = channel(sql, from, target)?;
    if sql.exists(
        "SELECT 1 FROM sanctions WHERE account = ?1 AND kind = 'mute' AND until_us > ?2",
        values![from, now],
    )? {
        return Err(StoreError::Forbidden("an operator has muted this account"));
    }
    // The tenth newest line of the writer must be older than the window.
    let earlier = sql.row(
        "SELECT at_us FROM chat WHERE sender = ?1 ORDER BY line DESC LIMIT 1 OFFSET ?2",
        values![from, LINES_PER_WINDOW - 1],
    )?;
    let now_us = now.as_micros();
    if let Some(row) = earlier
        && now_us.saturating_sub(row.number(0)?) < WINDOW_US
    {
        return Err(StoreError::Conflict("too many lines, wait a little"));
    }
    let newest = sql.row("SELECT max(line) FROM chat", &[])?;
    let newest = newest.map_or(Ok(None), |row| row.optional_integer(0))?;
    let newest = newest.and_then(|newest| u64::try_from(newest).ok());
    let line = newest.map_or(now_us, |newest| now_us.max(newest + 1));
    sql.execute(
        "INSERT INTO chat (line, channel, sender, text, at_us) VALUES (?1, ?2, ?3, ?4, ?5)",
        values![line, &channel, from, &text, now],
    )?;
    let mut heard = Vec::with_capacity(readers.len());
    for reader in readers {
        // A player who has blocked the writer does not hear them.
        if state(sql, reader, from)?.as_deref() != Some("blocked") {
            heard.push(reader);
        }
    }
    Ok(Said {
        line: ChatLine {
            id: line,
            channel,
            from,
            text,
            at_ms: now.as_millis(),
        },
        readers: heard,
    })
}

pub(in crate::store) fn history(
    sql: &mut dyn Sql,
    account: AccountId,
    target: ChatTarget,
) -> Result<Vec<ChatLine>> {
    let (channel, _) = channel(sql, account, target)?;
    // A writer who is blocked may have written any number of lines: so many are looked at, and no more.
    let rows = sql.rows(
        "SELECT line, channel, sender, text, at_us FROM
         (SELECT line, channel, sender, text, at_us FROM chat WHERE channel = ?1 ORDER BY line DESC LIMIT 500) newest
         WHERE NOT EXISTS (SELECT 1 FROM friends f WHERE f.account = ?2 AND f.other = newest.sender AND f.state = 'blocked')
         ORDER BY line DESC LIMIT 100",
        values![channel, account],
    )?;
    rows.iter().rev().map(chat_line).collect()
}

/// A line from its number, channel, writer, text and time.
pub(super) fn chat_line(row: &Row) -> Result<ChatLine> {
    Ok(ChatLine {
        id: row.number(0)?,
        channel: row.text(1)?,
        from: AccountId(row.number(2)?),
        text: row.text(3)?,
        at_ms: row.number(4)? / 1_000,
    })
}

const FRIENDS_MAX: i64 = 500;
/// Players in one room.
const ROOM_MAX: usize = 16;
/// Lines that one player may write in ten seconds.
const LINES_PER_WINDOW: i64 = 10;
const WINDOW_US: u64 = 10_000_000;
