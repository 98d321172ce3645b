//! The thread that owns a connection to a database and does all that waits as one commit.
//!
//! Thousands of transactions a second share the disk's few hundred syncs. Each stands in a savepoint of its own: one that fails takes
//! nothing else with it. They are begun in the order in which they were asked for, and answered when the commit holds.

use std::sync::mpsc;

use tokio::sync::oneshot;

use super::sql::Sql;
use super::{Answer, StoreError};

/// A store in a database that speaks SQL: [`SqlStore::sqlite`], or `SqlStore::postgres` with the feature of that name.
#[derive(Clone, Debug)]
pub struct SqlStore {
    jobs: mpsc::SyncSender<Job>,
    /// For what every request asks and nothing depends on: beside the transactions, if the database can do both at once.
    reads: mpsc::SyncSender<Job>,
}

/// Runs in a transaction; what it returns answers the caller, once it is known whether the commit held.
type Job = Box<dyn FnOnce(Result<&mut dyn Database, StoreError>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What the worker needs of a database.
pub(super) trait Database: Sql {
    /// Begins a transaction that nobody else writes beside, also in other processes.
    fn begin(&mut self) -> Result<(), StoreError>;
    /// Makes it durable.
    fn commit(&mut self) -> Result<(), StoreError>;
    /// Forgets it, after whatever went wrong.
    fn roll_back(&mut self);
    /// Begins one of several inside it.
    fn savepoint(&mut self) -> Result<(), StoreError>;
    /// Keeps it.
    fn keep(&mut self) -> Result<(), StoreError>;
    /// Forgets what was done since the savepoint.
    fn undo(&mut self) -> Result<(), StoreError>;
    /// As the trait of statements alone.
    fn sql(&mut self) -> &mut dyn Sql;
}

impl SqlStore {
    /// Starts the thread.
    pub(super) fn start(database: impl Database + Send + 'static) -> Result<Self, StoreError> {
        let jobs = spawn("muse-store", database)?;
        let reads = jobs.clone();
        Ok(Self { jobs, reads })
    }

    /// Starts another thread besides, for what only reads.
    #[cfg(feature = "postgres")]
    pub(super) fn with_reader(
        mut self,
        reader: impl Database + Send + 'static,
    ) -> Result<Self, StoreError> {
        self.reads = spawn("muse-store-reads", reader)?;
        Ok(self)
    }

    /// A transaction, after all that were asked for before.
    pub(super) fn call<T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        ask(&self.jobs, transaction)
    }

    /// What reads alone. It sees every transaction that has been answered.
    pub(super) fn read<T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        ask(&self.reads, transaction)
    }
}

fn spawn(
    name: &str,
    mut database: impl Database + Send + 'static,
) -> Result<mpsc::SyncSender<Job>, StoreError> {
    let (jobs, waiting) = mpsc::sync_channel(JOBS_MAX);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&mut database, &waiting))
        .map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(jobs)
}

fn ask<T: Send + 'static>(
    jobs: &mpsc::SyncSender<Job>,
    transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
) -> Answer<T> {
    let (answer, answered) = oneshot::channel();
    let job: Job = Box::new(move |database| {
        let outcome = database.and_then(|database| in_savepoint(database, transaction));
        Box::new(move |committed| {
            let outcome = committed.and(outcome);
            // The caller may have gone away; the transaction holds all the same.
            let _ = answer.send(outcome);
        })
    });
    let sent = jobs
        .try_send(job)
        .map_err(|_| StoreError::Unavailable("more transactions wait than it can do".to_owned()));
    Box::pin(async move {
        sent?;
        let gone = |_| StoreError::Unavailable("it has stopped".to_owned());
        answered.await.map_err(gone)?
    })
}

fn in_savepoint<T>(
    database: &mut dyn Database,
    transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    database.savepoint()?;
    let outcome = transaction(database.sql());
    match outcome {
        Ok(_) => database.keep()?,
        Err(_) => database.undo()?,
    }
    outcome
}

/// The thread: takes what waits, does it in one commit, answers.
fn work(database: &mut dyn Database, waiting: &mpsc::Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter().take(BATCH_MAX - 1));
        metrics::histogram!("muse_store_batch").record(jobs.len() as f64);
        if let Err(error) = database.begin() {
            tracing::error!(%error, "cannot begin a transaction");
            for job in jobs {
                job(Err(error.clone()))(Err(error.clone()));
            }
            continue;
        }
        let run = |job: Job| job(Ok(&mut *database));
        let replies: Vec<Reply> = jobs.into_iter().map(run).collect();
        let committed = database.commit();
        if let Err(error) = &committed {
            tracing::error!(%error, "a commit failed");
            database.roll_back();
        }
        for reply in replies {
            reply(committed.clone());
        }
    }
}

/// Transactions that may wait; more are refused at once.
const JOBS_MAX: usize = 8_192;
/// Transactions of one commit.
const BATCH_MAX: usize = 512;
