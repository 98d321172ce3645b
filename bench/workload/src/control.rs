//! The line protocol between a program under test and the harness that drives it.
//!
//! The program writes `ready PORT` (server) or `connected` (client), then `done` when its part of the workload is
//! over, and at last `result JSON`, a [`Report`](crate::Report); a proxy between the two answers `go` with `started`.
//! The harness writes `go` to the client, once it has read the counters that the run starts from, and `stop` to all,
//! once it has read them again. A program whose standard input ends before `stop` exits at once, so that none outlives
//! its harness.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The program's side of the line protocol.
#[derive(Debug)]
pub struct Control {
    phase: Arc<AtomicU8>,
}

impl Control {
    /// Begins to read standard input, in a thread of its own.
    pub fn start() -> Self {
        let phase = Arc::new(AtomicU8::new(WAITING));
        let reader = Arc::clone(&phase);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                match line.trim() {
                    "go" => reader.store(RUNNING, Ordering::Release),
                    "stop" => {
                        reader.store(STOPPED, Ordering::Release);
                        return;
                    }
                    _ => (),
                }
            }
            std::process::exit(1);
        });
        Self { phase }
    }

    /// Tells that the server listens on `port`.
    pub fn ready(&self, port: u16) {
        say(&format!("ready {port}"));
    }

    /// Tells that all clients are connected.
    pub fn connected(&self) {
        say("connected");
    }

    /// Tells that `go` was heard, for a role whose counting begins with it.
    pub fn started(&self) {
        say("started");
    }

    /// Tells that this role's part of the workload is over: the end mark.
    pub fn done(&self) {
        say("done");
    }

    /// Tells the outcome. The last line.
    pub fn result(&self, report: &impl serde::Serialize) {
        let json = serde_json::to_string(report).expect("a report has string keys only");
        say(&format!("result {json}"));
    }

    /// True if the run has begun.
    pub fn has_started(&self) -> bool {
        self.phase.load(Ordering::Acquire) != WAITING
    }

    /// True if the run is to end.
    pub fn has_stopped(&self) -> bool {
        self.phase.load(Ordering::Acquire) == STOPPED
    }
}

/// Reads the report from a line of a program's output, if it is the result line.
///
/// ```
/// use muse_bench_workload::{Report, control::parse_result};
/// let json = serde_json::to_string(&Report::default()).expect("a report is JSON");
/// assert_eq!(parse_result::<Report>(&format!("result {json}")), Some(Report::default()));
/// assert_eq!(parse_result::<Report>("done"), None);
/// ```
pub fn parse_result<T: serde::de::DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line.strip_prefix("result ")?).ok()
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A harness that has gone away ends this program through standard input.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const STOPPED: u8 = 2;
