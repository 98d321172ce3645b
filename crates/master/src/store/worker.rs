//! The thread that owns a connection to a database and does all that waits as one commit.
//!
//! Thousands of transactions a second share the disk's few hundred syncs. Each stands in a savepoint of its own: one that fails takes
//! nothing else with it. They are begun in the order in which they were asked for, and answered when the commit holds. What comes in crowds,
//! *play* and who somebody is, is also asked together: a few statements for all of them, because with a database at a distance
//! statements cost more than rows.

use std::sync::mpsc;

use muse_master_client::AccountId;
use tokio::sync::oneshot;

use super::sql::queue::Pressed;
use super::sql::{Sql, accounts, queue};
use super::{Answer, Played, StoreError, StoredAccount};

/// A store in a database that speaks SQL: [`SqlStore::sqlite`], or `SqlStore::postgres` with the feature of that name.
#[derive(Clone, Debug)]
pub struct SqlStore {
    jobs: mpsc::SyncSender<Job>,
    /// For what only reads: beside the transactions, which it never keeps waiting.
    reads: mpsc::SyncSender<Job>,
}

/// A job for the thread. Neighbours of a kind that comes in crowds become one job, which costs about as much as one of them.
pub(super) enum Job {
    Alone(Transaction),
    Plays(Vec<Asked<Pressed, Played>>),
    Accounts(Vec<Asked<AccountId, StoredAccount>>),
}

/// Runs in a transaction; what it returns answers the caller, once it is known whether the commit held.
type Transaction = Box<dyn FnOnce(Result<&mut dyn Database, StoreError>) -> Reply + Send>;
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// A question, and where the answer goes.
type Asked<Q, A> = (Q, oneshot::Sender<Result<A, StoreError>>);
/// Answers many requests at once: they share an error, but each has its own result.
type Together<Q, A> = fn(&mut dyn Sql, &[Q]) -> Result<Vec<Result<A, StoreError>>, StoreError>;

impl Job {
    pub(super) fn play(asked: Asked<Pressed, Played>) -> Self {
        Self::Plays(vec![asked])
    }

    pub(super) fn account(asked: Asked<AccountId, StoredAccount>) -> Self {
        Self::Accounts(vec![asked])
    }

    /// Appends it, or makes it one with the last.
    fn join(self, jobs: &mut Vec<Self>) {
        match (jobs.last_mut(), self) {
            (Some(Self::Plays(asked)), Self::Plays(more)) => asked.extend(more),
            (Some(Self::Accounts(asked)), Self::Accounts(more)) => asked.extend(more),
            (_, job) => jobs.push(job),
        }
    }

    fn run(self, database: Result<&mut dyn Database, StoreError>) -> Vec<Reply> {
        match self {
            Self::Alone(transaction) => vec![transaction(database)],
            Self::Plays(asked) => together(database, asked, queue::play),
            Self::Accounts(asked) => together(database, asked, accounts::known),
        }
    }
}

/// The part of a database that the worker needs.
pub(super) trait Database: Sql {
    /// Begins a transaction that nobody else writes beside, also in other processes.
    fn begin(&mut self) -> Result<(), StoreError>;
    /// Makes it durable.
    fn commit(&mut self) -> Result<(), StoreError>;
    /// Forgets it after an error.
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
    /// Starts two threads: one for transactions, and one with a connection of its own for what only reads.
    pub(super) fn start(
        database: impl Database + Send + 'static,
        reader: impl Database + Send + 'static,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            jobs: spawn("muse-store", database)?,
            reads: spawn("muse-store-reads", reader)?,
        })
    }

    /// A transaction, after all that were asked for before.
    pub(super) fn call<T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        ask(&self.jobs, alone(transaction), ())
    }

    /// A connection that reads alone, beside the transactions. It sees every one that has been answered.
    pub(super) fn look<T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        ask(&self.reads, alone(transaction), ())
    }

    /// The same, together with its neighbours of the same kind.
    pub(super) fn together<Q, A: Send + 'static>(
        &self,
        job: fn(Asked<Q, A>) -> Job,
        question: Q,
    ) -> Answer<A> {
        ask(&self.jobs, job, question)
    }

    /// As [`look`](Self::look), together with its neighbours of the same kind.
    pub(super) fn read<Q, A: Send + 'static>(
        &self,
        job: fn(Asked<Q, A>) -> Job,
        question: Q,
    ) -> Answer<A> {
        ask(&self.reads, job, question)
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

fn ask<Q, A: Send + 'static>(
    jobs: &mpsc::SyncSender<Job>,
    job: impl FnOnce(Asked<Q, A>) -> Job,
    question: Q,
) -> Answer<A> {
    let (answer, answered) = oneshot::channel();
    let sent = jobs
        .try_send(job((question, answer)))
        .map_err(|_| StoreError::Unavailable("more transactions wait than it can do".to_owned()));
    Box::pin(async move {
        sent?;
        let gone = |_| StoreError::Unavailable("it has stopped".to_owned());
        answered.await.map_err(gone)?
    })
}

/// A job that has nothing in common with its neighbours.
fn alone<T: Send + 'static>(
    transaction: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError> + Send + 'static,
) -> impl FnOnce(Asked<(), T>) -> Job {
    move |((), answer)| {
        Job::Alone(Box::new(move |database| {
            let outcome = database.and_then(|database| in_savepoint(database, transaction));
            reply(answer, outcome)
        }))
    }
}

/// Answers with this, if the commit holds.
fn reply<A: Send + 'static>(
    answer: oneshot::Sender<Result<A, StoreError>>,
    outcome: Result<A, StoreError>,
) -> Reply {
    Box::new(move |committed| {
        // The caller may have gone away; the transaction holds nevertheless.
        let _ = answer.send(committed.and(outcome));
    })
}

/// Asks everything at once. If that fails, one after the other, so that nobody suffers for another's question.
fn together<Q, A: Send + 'static>(
    database: Result<&mut dyn Database, StoreError>,
    asked: Vec<Asked<Q, A>>,
    all: Together<Q, A>,
) -> Vec<Reply> {
    let (questions, answers): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
    let outcomes: Vec<_> = match database {
        Err(error) => questions.iter().map(|_| Err(error.clone())).collect(),
        Ok(database) => match in_savepoint(database, |sql| all(sql, &questions)) {
            Ok(outcomes) => outcomes,
            Err(error) if questions.len() == 1 => vec![Err(error)],
            Err(_) => questions
                .chunks(1)
                .map(|one| in_savepoint(database, |sql| all(sql, one)))
                .flat_map(|outcome| outcome.unwrap_or_else(|error| vec![Err(error)]))
                .collect(),
        },
    };
    let pairs = answers.into_iter().zip(outcomes);
    pairs
        .map(|(answer, outcome)| reply(answer, outcome))
        .collect()
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
        let (mut jobs, mut count) = (vec![first], 1);
        for job in waiting.try_iter().take(BATCH_MAX - 1) {
            job.join(&mut jobs);
            count += 1;
        }
        metrics::histogram!("muse_store_batch").record(f64::from(count));
        if let Err(error) = database.begin() {
            tracing::error!(%error, "cannot begin a transaction");
            for reply in jobs.into_iter().flat_map(|job| job.run(Err(error.clone()))) {
                reply(Err(error.clone()));
            }
            continue;
        }
        let run = |job: Job| job.run(Ok(&mut *database));
        let replies: Vec<Reply> = jobs.into_iter().flat_map(run).collect();
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
