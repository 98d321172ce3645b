//! The history of a run: every operation of a player and its answer, every fault, and the rows that the database kept, one JSON line each.
//!
//! The [checker](crate::checker) reads nothing else, so a history that was kept can be checked again.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::plan::Fault;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Milliseconds since the run began.
    pub(crate) at_ms: u64,
    pub(crate) event: Event,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A player asks over HTTP.
    Asked {
        number: u64,
        player: u32,
        operation: Operation,
    },
    /// The answer, or none that can be relied on.
    Answered { number: u64, answer: Answer },
    /// A player's connection to this master is open.
    Linked { player: u32, master: usize },
    /// It is gone.
    Unlinked { player: u32, why: String },
    /// A player asks over the connection.
    Wished { player: u32, wish: Wish },
    /// A player is told over the connection.
    Told { player: u32, news: News },
    /// A fault begins. A game server is named by its address.
    Broken {
        number: usize,
        fault: Fault,
        address: Option<String>,
    },
    /// It is over.
    Mended { number: usize },
    /// All faults are over; from now on everything must work.
    Healed,
    /// The database committed a change. These come in the order of its transactions.
    Stored { change: Change },
    /// The database at the end.
    Kept { row: Kept },
    /// Somebody did not play although everything was healed.
    Stuck { player: u32 },
}

/// A call over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum Operation {
    SignIn,
    /// Saves progress that is based on a version.
    Save {
        based_on: u64,
        document: u64,
    },
    /// Reads it.
    Load,
    /// Writes a line of chat; no text is written twice.
    Say {
        text: String,
    },
    LeaveQueue,
    /// Asks for ticket and match.
    State,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    SignedIn {
        account: u64,
    },
    Saved {
        version: u64,
    },
    Loaded {
        version: u64,
        document: Option<u64>,
    },
    Said,
    Left,
    Stands {
        ticket: Option<u64>,
        match_id: Option<u64>,
    },
    /// It was refused, and nothing was done.
    Refused {
        status: u16,
    },
    /// It may have been done or not, now or later.
    Unknown {
        why: String,
    },
}

/// Something that a player asks for over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    Queue,
    LeaveQueue,
    LeaveMatch,
}

/// Something that a player hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub(crate) enum News {
    Queued { ticket: u64 },
    LeftQueue,
    Found { match_id: u64 },
    Playing { match_id: u64 },
    SeatLost { match_id: u64, why: String },
    Cancelled { match_id: u64, waiting: bool },
    Over { match_id: u64, outcome: String },
    Refused { code: String },
}

/// A change that the database committed, as its witness wrote it down in the same transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum Change {
    TicketIn {
        account: u64,
        ticket: u64,
    },
    TicketOut {
        account: u64,
        ticket: u64,
    },
    SeatIn {
        account: u64,
        match_id: u64,
    },
    SeatOut {
        account: u64,
        match_id: u64,
    },
    MatchMade {
        match_id: u64,
    },
    /// A server at this address has the match.
    MatchPlaced {
        match_id: u64,
        address: Option<String>,
    },
    MatchEnded {
        match_id: u64,
        outcome: String,
    },
    Result {
        match_id: u64,
        account: u64,
        points: i64,
        rating: f64,
    },
    /// A match or a result was changed after it was final.
    Rewritten {
        match_id: u64,
    },
}

/// A row of the database at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case")]
pub(crate) enum Kept {
    Account {
        account: u64,
        points: i64,
        rating: f64,
    },
    Progress {
        account: u64,
        version: u64,
        document: u64,
    },
    Line {
        sender: u64,
        text: String,
    },
}

/// Writes the history while it happens, and keeps it for the checker.
#[derive(Clone)]
pub(crate) struct Recorder {
    inner: Arc<Mutex<Recording>>,
    started: Instant,
    started_us: u64,
}

struct Recording {
    file: BufWriter<File>,
    entries: Vec<Entry>,
    calls: u64,
}

impl Recorder {
    pub(crate) fn create(path: &Path) -> Self {
        let file = BufWriter::new(File::create(path).expect("a file for the history"));
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.expect("a clock after 1970").as_micros();
        Self {
            inner: Arc::new(Mutex::new(Recording {
                file,
                entries: Vec::new(),
                calls: 0,
            })),
            started: Instant::now(),
            started_us: u64::try_from(since).expect("before the year 500000"),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).expect("a short run")
    }

    /// The time of the run for a time of day of this machine.
    pub(crate) fn at_ms(&self, time_of_day_us: u64) -> u64 {
        time_of_day_us.saturating_sub(self.started_us) / 1_000
    }

    pub(crate) fn note(&self, event: Event) {
        let at_ms = self.now_ms();
        self.note_at(at_ms, event);
    }

    pub(crate) fn note_at(&self, at_ms: u64, event: Event) {
        let mut inner = self.inner.lock().expect("nobody panicked");
        let entry = Entry { at_ms, event };
        let line = serde_json::to_string(&entry).expect("an entry is JSON");
        writeln!(inner.file, "{line}").expect("written");
        inner.entries.push(entry);
    }

    /// Notes that a call begins, and returns its number.
    pub(crate) fn ask(&self, player: u32, operation: Operation) -> u64 {
        let number = {
            let mut inner = self.inner.lock().expect("nobody panicked");
            inner.calls += 1;
            inner.calls
        };
        self.note(Event::Asked {
            number,
            player,
            operation,
        });
        number
    }

    /// Everything so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut inner = self.inner.lock().expect("nobody panicked");
        inner.file.flush().expect("written");
        inner.entries.clone()
    }
}
