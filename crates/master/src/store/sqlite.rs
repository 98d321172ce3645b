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
    /// Opens the file, or makes it, and brings its tables up to date. A new one is for its owner alone, because it holds the keys that sign tokens.
    pub fn sqlite(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // FULL: what is answered is on the disk, even if the machine loses power.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        connection.set_prepared_statement_cache_capacity(128);
        migrate(&connection)?;
        Self::start(Sqlite(connection))
    }
}

struct Sqlite(Connection);

impl Sql for Sqlite {
    fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<usize, StoreError> {
        let values = rusqlite::params_from_iter(values);
        Ok(self.0.prepare_cached(sql)?.execute(values)?)
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
        let mut statement = self.0.prepare_cached(sql)?;
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
        Ok(self.0.execute_batch("BEGIN IMMEDIATE")?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("COMMIT")?)
    }

    fn roll_back(&mut self) {
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("SAVEPOINT one")?)
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("RELEASE one")?)
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        Ok(self.0.execute_batch("ROLLBACK TO one; RELEASE one")?)
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

/// How long another process may hold the file.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
