//! SQLite in WAL mode, through `rusqlite`: the store on one machine.
//!
//! `rusqlite` and not `sqlx`, because SQLite has no other threads or sockets to wait for, and shared commits need one connection and
//! plain calls (decision 0009).

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::sql::{Row, Sql, Value, Write};
use super::worker::{Database, SqlStore};
use super::{StoreError, migrations};

impl SqlStore {
    /// Opens the file, or makes it, and brings its tables up to date. A new one is for its owner alone, because it holds what players trust the master with.
    pub fn sqlite(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        let connection = open(path)?;
        // FULL: what is answered is on the disk, even if the machine loses power.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        migrate(&connection)?;
        let reader = open(path)?;
        reader.execute_batch("PRAGMA query_only = ON;")?;
        let writer = Sqlite {
            connection,
            begin: "BEGIN IMMEDIATE",
        };
        // In WAL mode it waits for no writer, and none for it.
        let reader = Sqlite {
            connection: reader,
            begin: "BEGIN",
        };
        Self::start(writer, reader)
    }
}

struct Sqlite {
    connection: Connection,
    /// The statement that begins a transaction.
    begin: &'static str,
}

impl Sql for Sqlite {
    fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<usize, StoreError> {
        let values = rusqlite::params_from_iter(values);
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    fn execute_all(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        for (sql, values) in writes {
            self.execute(sql, values)?;
        }
        Ok(())
    }

    fn execute_later(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.execute_all(&writes)
    }

    fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(rusqlite::params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let mut read = Vec::with_capacity(columns);
            for column in 0..columns {
                read.push(value(row.get_ref(column)?));
            }
            found.push(Row(read));
        }
        Ok(found)
    }
}

impl Database for Sqlite {
    fn begin(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch(self.begin)?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn roll_back(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("SAVEPOINT one")?)
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("RELEASE one")?)
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        Ok(self
            .connection
            .execute_batch("ROLLBACK TO one; RELEASE one")?)
    }

    fn sql(&mut self) -> &mut dyn Sql {
        self
    }
}

fn value(found: ValueRef<'_>) -> Value {
    match found {
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// Makes an empty file that nobody else may read, unless there is one. SQLite gives the files beside it the same permissions.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(StoreError::Unavailable(
            format!("cannot make {}: {error}", path.display()),
        )),
        _ => Ok(()),
    }
}

fn migrate(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(done).unwrap_or(0);
    if done > migrations::ALL.len() {
        connection.execute_batch("ROLLBACK")?;
        return Err(StoreError::Unavailable(
            "the file is of a newer version of Muse".to_owned(),
        ));
    }
    for migration in &migrations::ALL[done..] {
        connection.execute_batch(migration)?;
    }
    connection.execute_batch(&format!("PRAGMA user_version = {}", migrations::ALL.len()))?;
    connection.execute_batch("COMMIT")?;
    Ok(())
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// Time for which another process may hold the file.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use muse_master_client::AccountId;
    use rusqlite::StatementStatus;

    use muse_wire::Instant;

    use super::super::sql::accounts::{ranking, ready};
    use super::super::sql::retention::prune;
    use super::*;
    use crate::store::{Cutoffs, PRUNE_ROWS_MAX, RankingCursor};

    /// Counts the steps of SQLite's virtual machine, which do not depend on how busy this one is.
    struct Counted {
        connection: Connection,
        steps: i32,
        plans: Vec<String>,
    }

    impl Counted {
        /// A store with so many accounts, nearly all of them without points.
        fn with_accounts(accounts: u64) -> Result<Self, StoreError> {
            let connection = Connection::open_in_memory()?;
            migrate(&connection)?;
            let insert = "INSERT INTO accounts (account, rating, uncertainty, points, created_us)
                 WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
                 SELECT n, 1500, 350, max(0, 10 - n), 0 FROM n";
            connection.execute(insert, [i64::try_from(accounts).unwrap_or(i64::MAX)])?;
            Ok(Self {
                connection,
                steps: 0,
                plans: Vec::new(),
            })
        }
    }

    impl Counted {
        fn explain(&mut self, sql: &str, values: &[Value]) -> Result<(), StoreError> {
            let mut plan = self
                .connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let values = rusqlite::params_from_iter(values);
            let plan = plan.query_map(values, |row| row.get("detail"))?;
            self.plans.extend(plan.collect::<Result<Vec<String>, _>>()?);
            Ok(())
        }
    }

    impl Sql for Counted {
        fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<usize, StoreError> {
            self.explain(sql, values)?;
            let mut statement = self.connection.prepare(sql)?;
            let changed = statement.execute(rusqlite::params_from_iter(values))?;
            self.steps += statement.get_status(StatementStatus::VmStep);
            Ok(changed)
        }

        fn execute_all(&mut self, _: &[Write]) -> Result<(), StoreError> {
            unreachable!("it only reads")
        }

        fn execute_later(&mut self, _: Vec<Write>) -> Result<(), StoreError> {
            unreachable!("it only reads")
        }

        fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
            self.explain(sql, values)?;
            let mut statement = self.connection.prepare(sql)?;
            let columns = statement.column_count();
            let read = |row: &rusqlite::Row<'_>| {
                let read = (0..columns).map(|column| row.get_ref(column).map(value));
                read.collect::<Result<Vec<_>, _>>().map(Row)
            };
            let rows = statement.query_map(rusqlite::params_from_iter(values), read)?;
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            self.steps += statement.get_status(StatementStatus::VmStep);
            Ok(rows)
        }
    }

    /// Steps for readiness, the first page of the ranking, and one deep among those without points.
    fn steps(accounts: u64) -> Result<[i32; 3], StoreError> {
        let mut store = Counted::with_accounts(accounts)?;
        let mut steps = [0; 3];
        ready(&mut store)?;
        steps[0] = std::mem::take(&mut store.steps);
        let first = ranking(&mut store, None)?;
        assert_eq!((first.len(), first[0].points), (100, 9));
        steps[1] = std::mem::take(&mut store.steps);
        let after = RankingCursor {
            points: 0,
            account: AccountId(accounts - 150),
            place: accounts - 150,
        };
        let deep = ranking(&mut store, Some(after))?;
        assert_eq!((deep.len(), deep[0].place), (100, accounts - 149));
        steps[2] = std::mem::take(&mut store.steps);
        for plan in &store.plans {
            assert!(!plan.contains("TEMP B-TREE"), "{plan}");
            assert!(
                !plan.contains("SCAN") || plan.contains("USING INDEX") || plan.contains("leases"),
                "{plan}"
            );
        }
        Ok(steps)
    }

    #[test]
    fn readiness_and_the_ranking_cost_the_same_however_many_accounts_there_are()
    -> Result<(), StoreError> {
        assert_eq!(steps(300)?, steps(30_000)?);
        Ok(())
    }

    /// Fills the tables with so much that is old, and so much chat.
    fn with_old_rows(rows: u64, lines: u64) -> Result<Counted, StoreError> {
        let store = Counted::with_accounts(rows)?;
        let numbers =
            "WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ?1)";
        for (insert, rows) in [
            (
                "INSERT INTO chat (line, channel, sender, text, at_us)",
                lines,
            ),
            (
                "INSERT INTO refresh_tokens (token, account, expires_us)",
                rows,
            ),
            (
                "INSERT INTO audit (entry, at_us, operator, action, subject, detail)",
                rows,
            ),
            (
                "INSERT INTO matches (match_id, preferences, bots, created_us, ended_us)",
                rows,
            ),
            (
                "INSERT INTO results (match_id, account, points, rating)",
                rows,
            ),
        ] {
            let columns = match insert.matches(',').count() {
                2 => "n, n, n",
                3 => "n, n, n, n",
                4 => "n, n, n, n, n",
                _ => "n, n, n, n, n, n",
            };
            let rows = i64::try_from(rows).unwrap_or(i64::MAX);
            let insert = format!("{insert} {numbers} SELECT {columns} FROM n");
            store.connection.execute(&insert, [rows])?;
        }
        store
            .connection
            .execute("UPDATE accounts SET used_us = 1", [])?;
        Ok(store)
    }

    /// Rows that one batch touches and its steps, for each kind of what is old.
    fn batches(rows: u64, lines: u64) -> Result<Vec<(u64, u64, i32)>, StoreError> {
        let mut store = with_old_rows(rows, lines)?;
        let late = Instant::from_secs(1_000_000);
        let before = Some(late);
        let mut costs = Vec::new();
        for cutoffs in [
            Cutoffs {
                chat: before,
                ..Cutoffs::default()
            },
            Cutoffs {
                audit: before,
                ..Cutoffs::default()
            },
            Cutoffs {
                matches: before,
                ..Cutoffs::default()
            },
            Cutoffs {
                guests: before,
                ..Cutoffs::default()
            },
            Cutoffs::default(),
        ] {
            // Tokens run out in any case, but not yet.
            let now = match cutoffs == Cutoffs::default() {
                true => late,
                false => Instant::ZERO,
            };
            let (changed, steps) = (store.connection.total_changes(), store.steps);
            let pruned = prune(&mut store, cutoffs, now)?;
            assert!(pruned.more && pruned.rows <= PRUNE_ROWS_MAX, "{pruned:?}");
            let changed = store.connection.total_changes() - changed;
            costs.push((pruned.rows, changed, store.steps - steps));
        }
        for plan in &store.plans {
            let scans = plan.contains("SCAN") && !plan.contains("json_each");
            assert!(!scans && !plan.contains("TEMP B-TREE"), "{plan}");
        }
        Ok(costs)
    }

    #[test]
    fn a_batch_of_deletions_touches_as_many_rows_however_many_are_old() -> Result<(), StoreError> {
        let costs = batches(30_000, 1_000_000)?;
        assert_eq!(costs, batches(1_000, 1_000)?);
        for (rows, changed, _) in costs {
            assert!(rows > 0 && rows == changed, "{rows} {changed}");
        }
        Ok(())
    }
}
