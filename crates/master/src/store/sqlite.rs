//! The store on one machine: SQLite in WAL mode, through `rusqlite`.
//!
//! One thread owns the connection and does all that waits as one commit, so that thousands of transactions a second share the disk's
//! few hundred. Each transaction stands in a savepoint of its own: one that fails takes nothing else with it. `rusqlite` and not
//! `sqlx`, because SQLite has no other threads or sockets to wait for, and the batches need one connection and plain calls.

mod accounts;
mod leading;
mod queue;
mod social;

use std::path::Path;
use std::sync::mpsc;

use muse_master_client::api::{FriendView, Progress, RankingLine, RoomView};
use muse_master_client::messages::ChatLine;
use muse_master_client::{AccountId, MatchId, Preferences, ServerId, TicketId};
use muse_wire::Instant;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    Answer, ChatTarget, Created, Fill, FriendStep, Played, Said, Standing, Store, StoreError,
    StoredAccount, StoredSeat, migrations,
};
use crate::director::{Ending, NewMatch, StoredMatch};
use crate::lease::Lease;
use crate::ticket::Ticket;

/// The store in one file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    jobs: mpsc::SyncSender<Job>,
}

/// Runs in a transaction; what it returns answers the caller, once it is known whether the commit held.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

impl SqliteStore {
    /// Opens the file, or makes it, and brings its tables up to date.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // FULL: what is answered is on the disk, even if the machine loses power.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        connection.set_prepared_statement_cache_capacity(128);
        migrate(&connection)?;
        let (jobs, waiting) = mpsc::sync_channel(JOBS_MAX);
        std::thread::Builder::new()
            .name("muse-store".to_owned())
            .spawn(move || work(&connection, &waiting))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { jobs })
    }

    fn call<T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let outcome = connection.and_then(|connection| in_savepoint(connection, transaction));
            Box::new(move |committed| {
                let outcome = committed.and(outcome);
                // The caller may have gone away; the transaction holds all the same.
                let _ = answer.send(outcome);
            })
        });
        let sent = self.jobs.try_send(job).map_err(|_| {
            StoreError::Unavailable("more transactions wait than it can do".to_owned())
        });
        Box::pin(async move {
            sent?;
            let gone = |_| StoreError::Unavailable("it has stopped".to_owned());
            answered.await.map_err(gone)?
        })
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    transaction: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.execute_batch("SAVEPOINT one")?;
    let outcome = transaction(connection);
    if outcome.is_err() {
        connection.execute_batch("ROLLBACK TO one")?;
    }
    connection.execute_batch("RELEASE one")?;
    outcome
}

/// The thread: takes what waits, does it in one commit, answers.
fn work(connection: &Connection, waiting: &mpsc::Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter().take(BATCH_MAX - 1));
        metrics::histogram!("muse_store_batch").record(jobs.len() as f64);
        let begun = connection.execute_batch("BEGIN IMMEDIATE");
        if let Err(error) = begun.map_err(StoreError::from) {
            for job in jobs {
                job(Err(error.clone()))(Err(error.clone()));
            }
            continue;
        }
        let replies: Vec<Reply> = jobs.into_iter().map(|job| job(Ok(connection))).collect();
        let committed = connection.execute_batch("COMMIT").map_err(StoreError::from);
        if let Err(error) = &committed {
            tracing::error!(%error, "a commit failed");
            if !connection.is_autocommit() {
                let _ = connection.execute_batch("ROLLBACK");
            }
        }
        for reply in replies {
            reply(committed.clone());
        }
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

macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $answer:ty => $module:ident;)*) => {
        impl Store for SqliteStore {
            $(fn $name(&self, $($argument: $kind),*) -> Answer<$answer> {
                self.call(move |connection| $module::$name(connection, $($argument),*))
            })*
        }
    };
}

forward! {
    fn secret(name: &'static str, fresh: String) -> String => leading;
    fn lease(queue: String, holder: u64, now: Instant) -> Option<Lease> => leading;
    fn restore(epoch: u64) -> (Vec<Ticket>, Vec<StoredMatch>) => leading;
    fn create_match(epoch: u64, new: NewMatch, now: Instant) -> Created => leading;
    fn fill_seats(epoch: u64, match_id: MatchId, ticket: TicketId) -> Fill => leading;
    fn record_server(epoch: u64, match_id: MatchId, server: ServerId) -> () => leading;
    fn record_running(epoch: u64, match_id: MatchId) -> () => leading;
    fn free_seat(epoch: u64, match_id: MatchId, account: AccountId) -> () => leading;
    fn end_match(epoch: u64, ending: Ending, now: Instant) -> Option<Vec<Ticket>> => leading;
    fn end_ticket(epoch: u64, ticket: TicketId) -> () => leading;
    fn play(account: AccountId, preferences: Preferences, insists: bool, now: Instant) -> Played => queue;
    fn leave_queue(account: AccountId) -> Option<Ticket> => queue;
    fn standing(account: AccountId) -> Standing => queue;
    fn register_server(server: ServerId, address: String, public_key: String, now: Instant) -> () => queue;
    fn match_seat(match_id: MatchId) -> Option<StoredSeat> => queue;
    fn guest(device: String, now: Instant) -> AccountId => accounts;
    fn set_password(account: AccountId, name: String, password: String) -> () => accounts;
    fn password(name: String) -> Option<(AccountId, String)> => accounts;
    fn account(account: AccountId) -> StoredAccount => accounts;
    fn add_refresh(account: AccountId, token: String, expires: Instant, now: Instant) -> () => accounts;
    fn rotate_refresh(old: String, fresh: String, expires: Instant, now: Instant) -> AccountId => accounts;
    fn sign_out_everywhere(account: AccountId) -> () => accounts;
    fn export(account: AccountId) -> serde_json::Value => accounts;
    fn delete(account: AccountId) -> () => accounts;
    fn befriend(account: AccountId, other: AccountId, step: FriendStep) -> bool => social;
    fn friends(account: AccountId) -> Vec<FriendView> => social;
    fn open_room(account: AccountId, code: String, now: Instant) -> RoomView => social;
    fn join_room(account: AccountId, code: String, now: Instant) -> RoomView => social;
    fn leave_room(account: AccountId) -> Vec<AccountId> => social;
    fn room(account: AccountId) -> Option<RoomView> => social;
    fn say(from: AccountId, target: ChatTarget, text: String, now: Instant) -> Said => social;
    fn history(account: AccountId, target: ChatTarget) -> Vec<ChatLine> => social;
    fn progress(account: AccountId, game: String) -> Progress => accounts;
    fn save_progress(account: AccountId, game: String, based_on: u64, document: String) -> u64 => accounts;
    fn ranking(from_place: u64) -> Vec<RankingLine> => accounts;
}

/// A number as the database keeps it.
fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number from the database.
fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

fn instant(column: i64) -> Instant {
    Instant::from_micros(number(column))
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// A fresh name for something.
fn fresh_id() -> Result<u64, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    // Below 2^53, and never 0.
    Ok((u64::from_le_bytes(bytes) >> 11).max(1))
}

/// How long another process may hold the file.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// Transactions that may wait; more are refused at once.
const JOBS_MAX: usize = 8_192;
/// Transactions of one commit.
const BATCH_MAX: usize = 512;
