//! Deletion of what has been kept for long enough, a few rows at a time.
//!
//! Each batch is a transaction like any other: it finds what is too old by an index, touches a bounded number of rows and lets the others go on. What one batch leaves, the next
//! one finds.

use muse_wire::Instant;

use super::{Result, Sql, Value, each, values};
use crate::store::{Cutoffs, PRUNE_ROWS_MAX, Pruned};

pub(in crate::store) fn prune(sql: &mut dyn Sql, before: Cutoffs, now: Instant) -> Result<Pruned> {
    let mut batch = Batch::default();
    let expired = "DELETE FROM refresh_tokens WHERE token IN
        (SELECT token FROM refresh_tokens WHERE expires_us <= ?1 ORDER BY expires_us LIMIT ?2)";
    batch.delete(sql, expired, now.into())?;
    if let Some(before) = before.chat {
        // A line's number is the time at which it was written, or a little later.
        let old = "DELETE FROM chat WHERE line IN
            (SELECT line FROM chat WHERE line < ?1 ORDER BY line LIMIT ?2)";
        batch.delete(sql, old, before.into())?;
    }
    if let Some(before) = before.audit {
        let old = "DELETE FROM audit WHERE entry IN
            (SELECT entry FROM audit WHERE at_us < ?1 ORDER BY at_us LIMIT ?2)";
        batch.delete(sql, old, before.into())?;
    }
    if let Some(before) = before.matches {
        matches(sql, &mut batch, before)?;
    }
    if let Some(before) = before.guests {
        guests(sql, &mut batch, before, now)?;
    }
    Ok(batch.pruned)
}

/// The rows that a batch has touched so far.
#[derive(Default)]
struct Batch {
    pruned: Pruned,
}

impl Batch {
    fn left(&self) -> u64 {
        PRUNE_ROWS_MAX.saturating_sub(self.pruned.rows)
    }

    /// Deletes rows by a statement whose second value is how many at most. False if there may be more.
    fn delete(&mut self, sql: &mut dyn Sql, statement: &'static str, key: Value) -> Result<bool> {
        let left = self.left();
        if left > 0 {
            self.pruned.rows += sql.execute(statement, &[key, left.into()])? as u64;
        }
        let is_done = self.left() > 0;
        self.pruned.more |= !is_done;
        Ok(is_done)
    }
}

/// Matches that ended before then, with their results.
fn matches(sql: &mut dyn Sql, batch: &mut Batch, before: Instant) -> Result<()> {
    let rows = sql.rows(
        "SELECT match_id FROM matches WHERE ended_us < ?1 ORDER BY ended_us LIMIT ?2",
        values![before, AT_ONCE.min(batch.left())],
    )?;
    let ids = rows.iter().map(|row| row.number(0));
    let ids = each(ids.collect::<Result<Vec<_>>>()?.into_iter())?;
    if rows.is_empty() {
        return Ok(());
    }
    let is_done =
        batch.delete(sql, OLD_RESULTS, ids.clone())? && batch.delete(sql, OLD_MATCHES, ids)?;
    batch.pruned.more |= !is_done || rows.len() as u64 == AT_ONCE;
    Ok(())
}

/// Guests that have not been used since then. Those whom a sanction keeps out stay, or they would come back as somebody else.
fn guests(sql: &mut dyn Sql, batch: &mut Batch, before: Instant, now: Instant) -> Result<()> {
    let rows = sql.rows(
        "SELECT account, used_us FROM accounts WHERE password IS NULL AND used_us < ?1 ORDER BY used_us LIMIT ?2",
        values![before, AT_ONCE.min(batch.left())],
    )?;
    if rows.is_empty() {
        return Ok(());
    }
    let accounts = rows.iter().map(|row| row.number(0));
    let needed = needed(sql, accounts.collect::<Result<_>>()?, now)?;
    let (mut unused, mut kept) = (Vec::new(), Vec::new());
    for row in &rows {
        let account = row.number(0)?;
        match row.number(1)? == 0 || needed.contains(&account) {
            true => kept.push(account),
            false => unused.push(account),
        }
    }
    // They are looked at again after as long a time.
    batch.pruned.rows += kept.len() as u64;
    sql.execute(
        "UPDATE accounts SET used_us = ?2 WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        &[each(kept.into_iter())?, now.into()],
    )?;
    let unused = each(unused.into_iter())?;
    for statement in OF_A_GUEST {
        if !batch.delete(sql, statement, unused.clone())? {
            return Ok(());
        }
    }
    batch.pruned.more |= rows.len() as u64 == AT_ONCE;
    Ok(())
}

/// Those of these guests who must not be deleted now.
fn needed(sql: &mut dyn Sql, accounts: Vec<u64>, now: Instant) -> Result<Vec<u64>> {
    let rows = sql.rows(
        "SELECT account FROM sanctions WHERE until_us > ?2 AND account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
         UNION ALL SELECT account FROM seats WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))
         UNION ALL SELECT account FROM ticket_members WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1))",
        &[each(accounts.into_iter())?, now.into()],
    )?;
    rows.iter().map(|row| row.number(0)).collect()
}

/// Accounts or matches that one batch looks at.
const AT_ONCE: u64 = 50;
const OLD_RESULTS: &str =
    "DELETE FROM results WHERE (match_id, account) IN (SELECT match_id, account FROM results
    WHERE match_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)";
const OLD_MATCHES: &str = "DELETE FROM matches WHERE match_id IN (SELECT match_id FROM matches
    WHERE match_id IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)";
/// Everything that is kept about guests, the accounts last.
const OF_A_GUEST: [&str; 10] = [
    "DELETE FROM refresh_tokens WHERE token IN (SELECT token FROM refresh_tokens
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM progress WHERE (account, game) IN (SELECT account, game FROM progress
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM results WHERE (match_id, account) IN (SELECT match_id, account FROM results
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM friends WHERE (account, other) IN (SELECT account, other FROM friends
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM friends WHERE (account, other) IN (SELECT account, other FROM friends
     WHERE other IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM chat WHERE line IN (SELECT line FROM chat
     WHERE sender IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM sanctions WHERE (account, kind) IN (SELECT account, kind FROM sanctions
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM presence WHERE account IN (SELECT account FROM presence
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM room_members WHERE account IN (SELECT account FROM room_members
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
    "DELETE FROM accounts WHERE account IN (SELECT account FROM accounts
     WHERE account IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) LIMIT ?2)",
];
