//! Messages from other threads to the proxy's: standard input and the page send requests, the proxy answers between two turns.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use mio::Waker;
use serde_json::Value;

/// A request to the proxy's thread.
pub(super) enum Request {
    /// Execute this command line.
    Command(String, Sender<Result<String, String>>),
    /// Report the present state.
    State(Sender<Value>),
}

/// The sending half, for threads that ask.
#[derive(Clone)]
pub(super) struct Asker {
    requests: SyncSender<Request>,
    waker: Arc<Waker>,
}

/// Makes both halves of the queue of requests.
pub(super) fn asker(waker: Arc<Waker>) -> (Asker, Receiver<Request>) {
    let (requests, receiver) = sync_channel(REQUESTS_MAX);
    (Asker { requests, waker }, receiver)
}

impl Asker {
    pub(super) fn command(&self, line: String) -> Option<Result<String, String>> {
        self.ask(|reply| Request::Command(line, reply))
    }

    pub(super) fn state(&self) -> Option<Value> {
        self.ask(Request::State)
    }

    fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Option<T> {
        let (sender, reply) = channel();
        self.requests.try_send(request(sender)).ok()?;
        self.waker.wake().ok()?;
        reply.recv_timeout(PATIENCE).ok()
    }
}

/// Executes commands from standard input, line by line, until it ends.
pub(super) fn read_lines(asker: Asker) {
    // On a terminal the live counters have the line above the one that is typed on.
    let gap = if std::io::stdout().is_terminal() {
        "\n"
    } else {
        ""
    };
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let said = match asker.command(line) {
                Some(Ok(text)) if text.is_empty() => continue,
                Some(Ok(text)) => text,
                Some(Err(error)) => format!("error: {error}"),
                // The proxy has ended.
                None => return,
            };
            // Nobody may be reading.
            let _ = writeln!(std::io::stdout(), "{said}{gap}");
        }
    });
}

/// Most requests that wait.
const REQUESTS_MAX: usize = 16;
/// The proxy answers between two turns.
const PATIENCE: Duration = Duration::from_secs(2);
