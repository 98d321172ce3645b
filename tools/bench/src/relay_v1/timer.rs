//! The control: a program that does nothing but wake every 50 ms, and how late it does.

use std::time::{Duration, Instant};

use muse_bench_workload::control::Control;

use super::Spread;

/// Wakes until told to stop.
pub(super) fn run() {
    let control = Control::start();
    control.connected();
    let mut due = Instant::now();
    let mut lateness = Vec::new();
    while !control.has_stopped() {
        due += TICK;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if control.has_started() {
            lateness.push(due.elapsed().as_secs_f64() * 1e3);
        }
    }
    control.result(&Spread::of(lateness));
}

const TICK: Duration = Duration::from_millis(50);
