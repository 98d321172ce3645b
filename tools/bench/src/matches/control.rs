//! An idle timer with a server's tick: how late this machine wakes a program that has nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muse_program::lateness::{Late, Lateness};

/// A timer on a thread of its own.
pub(super) struct Control {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

impl Control {
    pub(super) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut lateness = Lateness::default();
            let mut due = Instant::now() + TICK;
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                lateness.note(due.elapsed().into());
                due += TICK;
            }
            lateness
        });
        Self { stop, thread }
    }

    pub(super) fn finish(self) -> Late {
        self.stop.store(true, Ordering::Relaxed);
        let lateness = self.thread.join().unwrap_or_default();
        lateness.figures()
    }
}

/// A server's.
const TICK: Duration = Duration::from_millis(20);
