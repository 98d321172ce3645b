//! PostgreSQL, through `tokio-postgres`: the store of several masters (decision 0012).
//!
//! A transaction takes an advisory lock first, so that masters write one after the other, exactly as they would in one file; what is lost by that
//! is won back by shared commits. A master that is stopped inside a transaction loses it after 3 seconds, so that the others go on. When the
//! database is away, everything is answered with an error at once, and the next transaction after it is back succeeds.

mod tls;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::{join3, try_join_all};
use rustc_hash::FxHashMap;
use tokio::runtime::Runtime;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error, NoTls, Socket, Statement};

use super::sql::{Row, Sql, Value, Write};
use super::worker::{Database, SqlStore};
use super::{StoreError, migrations};
use tls::Rustls;

impl SqlStore {
    /// Connects to a database such as `postgres://muse@db.internal/muse` and brings its tables up to date. With `authorities`, a PEM file, the
    /// connection is encrypted and the server's certificate and name are checked; without it, it is not encrypted, unless the URL asks for that by
    /// `sslmode=require` or `sslmode=verify-full`, which is an error then.
    pub fn postgres(url: &str, authorities: Option<&Path>) -> Result<Self, StoreError> {
        let mut config: Config = required(url).parse().map_err(unavailable)?;
        let tls = authorities.map(Rustls::trusting).transpose()?;
        match tls {
            Some(_) => {
                config.ssl_mode(SslMode::Require);
            }
            None if config.get_ssl_mode() == SslMode::Require => {
                return Err(StoreError::Unavailable(
                    "PostgreSQL: this sslmode needs a file of certificate authorities".to_owned(),
                ));
            }
            None => {}
        }
        // On a thread of its own, because it waits, and callers may be in a runtime already.
        let connecting = std::thread::spawn(move || {
            let mut database = Postgres::new(config.clone(), tls.clone(), false)?;
            database.migrate()?;
            let reader = Postgres::new(config, tls, true)?;
            Ok::<_, StoreError>((database, reader))
        });
        let gone = |_| StoreError::Unavailable("the thread ended".to_owned());
        let (database, reader) = connecting.join().map_err(gone)??;
        Self::start(database, reader)
    }
}

/// The URL with `sslmode=require` for `sslmode=verify-full`, which the library does not know: what it requires here is always verified in full.
fn required(url: &str) -> String {
    match url.split_once('?') {
        Some((place, options)) => {
            let option = |option: &str| match option {
                "sslmode=verify-full" => "sslmode=require".to_owned(),
                other => other.to_owned(),
            };
            let options: Vec<String> = options.split('&').map(option).collect();
            format!("{place}?{}", options.join("&"))
        }
        None => url.to_owned(),
    }
}

struct Postgres {
    runtime: Runtime,
    config: Config,
    tls: Option<Rustls>,
    client: Option<Client>,
    statements: FxHashMap<&'static str, Statement>,
    /// True if it reads beside the other connection: each statement stands alone, waits for nobody, and can be asked again.
    reads_only: bool,
    /// True if what reads may connect again: once for all that is asked together, so that nobody waits for the others' attempts.
    may_reconnect: bool,
    /// Time for which an answer is waited for.
    patience: Duration,
    /// True if a savepoint is due: it goes with the first statement after it, which saves a round trip.
    due: bool,
    /// True if a savepoint of an earlier transaction is still open: it is released with the next one.
    kept: bool,
    /// Writes that go with the next statement, no matter for whom it is, which saves a statement of their own.
    later: Vec<(Statement, Vec<Value>)>,
    /// The reason why the transaction cannot be committed any more, although the connection holds. PostgreSQL would answer the commit as if it had happened.
    broken: Option<StoreError>,
}

/// The reason why there is no answer.
enum Failed {
    /// The statement was refused; the connection holds.
    Refused(StoreError),
    /// The connection is gone.
    Closed(StoreError),
    /// Nothing came for too long; the connection is given up.
    Silent,
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(error) | Failed::Closed(error) => error,
            Failed::Silent => Self::Unavailable("PostgreSQL does not answer".to_owned()),
        }
    }
}

impl Postgres {
    fn new(mut config: Config, tls: Option<Rustls>, reads_only: bool) -> Result<Self, StoreError> {
        config
            .connect_timeout(CONNECT_MAX)
            .keepalives_idle(Duration::from_secs(10))
            .application_name("muse-master");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(unavailable)?;
        let mut database = Self {
            runtime,
            config,
            tls,
            client: None,
            statements: FxHashMap::default(),
            reads_only,
            may_reconnect: false,
            patience: ANSWER_MAX,
            due: false,
            kept: false,
            later: Vec::new(),
            broken: None,
        };
        database.connect()?;
        Ok(database)
    }

    fn connect(&mut self) -> Result<(), StoreError> {
        self.client = None;
        self.statements.clear();
        let connecting = async {
            match self.tls.clone() {
                Some(tls) => open(&self.config, tls).await,
                None => open(&self.config, NoTls).await,
            }
        };
        let (client, connection) = self.runtime.block_on(connecting)?;
        self.runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "the connection to PostgreSQL is lost");
            }
        });
        self.client = Some(client);
        self.batch(SESSION)?;
        if self.reads_only {
            self.batch("SET default_transaction_read_only = on")?;
        }
        Ok(())
    }

    /// Waits for an answer, but not for ever: a connection that does not answer is given up. Writes that
    /// were put off go ahead of what is asked, then a savepoint that is due.
    fn wait<T>(
        &mut self,
        asked: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Failed> {
        let Some(client) = &self.client else {
            let why = StoreError::Unavailable("PostgreSQL is not connected".to_owned());
            return Err(Failed::Closed(why));
        };
        let savepoint =
            std::mem::take(&mut self.due).then(|| match std::mem::take(&mut self.kept) {
                true => "RELEASE SAVEPOINT one; SAVEPOINT one",
                false => "SAVEPOINT one",
            });
        let later = std::mem::take(&mut self.later);
        let all = async {
            let written = later.iter().map(async |(statement, values)| {
                let values = parameters(statement, values);
                client.execute_raw(statement, values).await
            });
            let saved = async {
                match savepoint {
                    Some(sql) => client.batch_execute(sql).await,
                    None => Ok(()),
                }
            };
            // They are sent in this order, and none waits for another's answer.
            join3(try_join_all(written), saved, asked(client)).await
        };
        let answer = self
            .runtime
            .block_on(async { tokio::time::timeout(self.patience, all).await });
        let answer = answer.map(|(written, saved, answer)| match written.and(saved) {
            Ok(()) => answer,
            Err(error) => {
                self.broken = Some(unavailable(&error));
                Err(error)
            }
        });
        let failed = match answer {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if client.is_closed() || is_fatal(&error) => {
                Failed::Closed(unavailable(error))
            }
            Ok(Err(error)) => return Err(Failed::Refused(unavailable(error))),
            Err(_) => Failed::Silent,
        };
        self.client = None;
        Err(failed)
    }

    fn batch(&mut self, sql: &str) -> Result<(), Failed> {
        self.wait(async |client| client.batch_execute(sql).await)
    }

    /// A statement without which the transaction is lost as a whole.
    fn vital(&mut self, sql: &str) -> Result<(), StoreError> {
        self.batch(sql).map_err(|failed| {
            let error = StoreError::from(failed);
            self.broken.get_or_insert(error.clone());
            error
        })
    }

    fn statement(&mut self, sql: &'static str) -> Result<Statement, Failed> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let text = dialect(sql);
        let statement = self.wait(async |client| client.prepare(&text).await)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    fn read(
        &mut self,
        sql: &'static str,
        values: &[Value],
    ) -> Result<Vec<tokio_postgres::Row>, Failed> {
        let statement = self.statement(sql)?;
        let owned = parameters(&statement, values);
        let values: Vec<_> = owned.iter().map(|value| &**value).collect();
        self.wait(async |client| client.query(&statement, &values).await)
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        self.begin()?;
        // A large database may take its time.
        self.patience = MIGRATION_MAX;
        self.batch("SET LOCAL statement_timeout = 0")?;
        self.batch("CREATE TABLE IF NOT EXISTS muse_version (version BIGINT NOT NULL)")?;
        let rows = self.rows("SELECT max(version) FROM muse_version", &[])?;
        let done = rows
            .first()
            .map_or(Ok(None), |row| row.optional_integer(0))?;
        let done = usize::try_from(done.unwrap_or(0)).unwrap_or(0);
        if done > migrations::ALL.len() {
            return Err(StoreError::Unavailable(
                "the database is of a newer version of Muse".to_owned(),
            ));
        }
        for migration in &migrations::ALL[done..] {
            // Texts are compared byte by byte, as in SQLite, whatever language the database was made for.
            self.batch(&migration.replace(" TEXT", " TEXT COLLATE \"C\""))?;
        }
        if done < migrations::ALL.len() {
            let version = migrations::ALL.len() as u64;
            self.execute(
                "INSERT INTO muse_version (version) VALUES (?1)",
                &[version.into()],
            )?;
        }
        self.commit()?;
        self.patience = ANSWER_MAX;
        Ok(())
    }
}

impl Sql for Postgres {
    fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<usize, StoreError> {
        let statement = self.statement(sql)?;
        let values = parameters(&statement, values);
        let changed = self.wait(async |client| client.execute_raw(&statement, values).await)?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn execute_all(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        for some in writes.chunks(WRITES_AT_ONCE) {
            let mut prepared = Vec::with_capacity(some.len());
            for (sql, values) in some {
                let statement = self.statement(sql)?;
                let values = parameters(&statement, values);
                prepared.push((statement, values));
            }
            self.wait(async |client| {
                let sent = prepared
                    .into_iter()
                    .map(async |(statement, values)| client.execute_raw(&statement, values).await);
                try_join_all(sent).await
            })?;
        }
        Ok(())
    }

    fn execute_later(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        // Only after a savepoint, so that they can be taken back.
        if self.due || self.later.len() + writes.len() > WRITES_AT_ONCE {
            return self.execute_all(&writes);
        }
        let mut prepared = Vec::with_capacity(writes.len());
        for (sql, values) in writes {
            prepared.push((self.statement(sql)?, values));
        }
        self.later.extend(prepared);
        Ok(())
    }

    fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
        let mut found = self.read(sql, values);
        if matches!(found, Err(Failed::Closed(_))) && std::mem::take(&mut self.may_reconnect) {
            // It broke while nobody used it.
            self.connect()?;
            found = self.read(sql, values);
        }
        found?.iter().map(row).collect()
    }
}

impl Database for Postgres {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.due = false;
        self.kept = false;
        self.later.clear();
        self.broken = None;
        self.may_reconnect = self.reads_only;
        if self.reads_only {
            return match self.client {
                Some(_) => Ok(()),
                None => self.connect(),
            };
        }
        if self.client.is_some() {
            match self.batch(BEGIN) {
                Ok(()) => return Ok(()),
                // It broke while nobody used it.
                Err(Failed::Closed(_)) => {}
                Err(failed) => {
                    self.client = None;
                    return Err(failed.into());
                }
            }
        }
        self.connect()?;
        Ok(self.batch(BEGIN)?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        match self.broken.take() {
            Some(error) => Err(error),
            None if self.reads_only => Ok(()),
            None => Ok(self.batch("COMMIT")?),
        }
    }

    fn roll_back(&mut self) {
        self.later.clear();
        if self.batch("ROLLBACK").is_err() {
            self.client = None;
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.due = !self.reads_only;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        // One that is still due was never made: nothing was asked since.
        if !std::mem::take(&mut self.due) && !self.reads_only {
            self.kept = true;
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<(), StoreError> {
        match std::mem::take(&mut self.due) || self.reads_only {
            true => Ok(()),
            false => self.vital("ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one"),
        }
    }

    fn sql(&mut self) -> &mut dyn Sql {
        self
    }
}

/// Carries a connection's bytes, until it ends.
type Carrier = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

async fn open<T>(config: &Config, tls: T) -> Result<(Client, Carrier), StoreError>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let connected = tokio::time::timeout(CONNECT_MAX, config.connect(tls)).await;
    let connected = connected.map_err(|_| StoreError::from(Failed::Silent))?;
    let (client, connection) = connected.map_err(unavailable)?;
    Ok((client, Box::pin(connection)))
}

/// A statement in PostgreSQL's words.
fn dialect(sql: &str) -> String {
    sql.replace(
        "json_each(?1)",
        "jsonb_array_elements(CAST(CAST($1 AS TEXT) AS JSONB))",
    )
    .replace('?', "$")
}

/// The values as the statement wants them.
fn parameters<'a>(statement: &Statement, values: &'a [Value]) -> Vec<Box<dyn ToSql + Sync + 'a>> {
    let kinds = statement.params().iter();
    let parameter = |(value, kind): (&'a Value, &Type)| -> Box<dyn ToSql + Sync + 'a> {
        match value {
            Value::Null if *kind == Type::INT8 => Box::new(None::<i64>),
            Value::Null if *kind == Type::FLOAT8 => Box::new(None::<f64>),
            Value::Null => Box::new(None::<&str>),
            Value::Integer(number) => Box::new(*number),
            Value::Real(number) => Box::new(*number),
            // PostgreSQL's texts hold everything but this.
            Value::Text(text) if text.contains('\0') => Box::new(text.replace('\0', "\u{fffd}")),
            Value::Text(text) => Box::new(text.as_str()),
        }
    };
    values.iter().zip(kinds).map(parameter).collect()
}

fn row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let mut values = Vec::with_capacity(row.len());
    for (index, column) in row.columns().iter().enumerate() {
        let value = match *column.type_() {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(index)
                .map(|found| found.map(Value::Integer)),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)
                .map(|found| found.map(|number| Value::Integer(i64::from(number)))),
            Type::FLOAT8 => row
                .try_get::<_, Option<f64>>(index)
                .map(|found| found.map(Value::Real)),
            _ => row
                .try_get::<_, Option<String>>(index)
                .map(|found| found.map(Value::Text)),
        };
        values.push(value.map_err(unavailable)?.unwrap_or(Value::Null));
    }
    Ok(Row(values))
}

/// True if these are a connection's last words.
fn is_fatal(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

fn unavailable(error: impl std::error::Error) -> StoreError {
    // The server's message is one level down in the chain of errors.
    let source = error
        .source()
        .map_or_else(String::new, |source| format!(": {source}"));
    StoreError::Unavailable(format!("PostgreSQL: {error}{source}"))
}

/// The lock that makes writers wait for their turn; the number is only its name.
const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(5570193)";
/// Nobody keeps the others waiting: not a master that was stopped inside a transaction, nor a statement without an end. All of it is less than
/// a lease. Tickets and seats come and go, so that their tables are mostly what is gone and look small to the planner: everything is found by an
/// index that has one.
const SESSION: &str = "SET synchronous_commit = on; SET idle_in_transaction_session_timeout = '3s'; \
     SET statement_timeout = '5s'; SET client_min_messages = 'warning'; SET enable_seqscan = off";
/// Writes that are on their way at once.
const WRITES_AT_ONCE: usize = 16;
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A migration of a large table takes as long as it takes.
const MIGRATION_MAX: Duration = Duration::from_secs(3_600);
/// A little longer than `statement_timeout`, so that a slow statement ends with PostgreSQL's error and keeps the connection; still less than a
/// lease.
const ANSWER_MAX: Duration = Duration::from_millis(5_500);
