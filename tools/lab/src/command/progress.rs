//! Cases on all cores, with a bar that shows how far they are and a clock around each.

use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar for so many jobs. It is drawn on the standard error, and nowhere when that is no terminal.
pub(super) fn bar(jobs: usize, what: &'static str) -> anyhow::Result<ProgressBar> {
    let template = "{msg} [{bar:40}] {pos}/{len}, {elapsed} of about {duration}";
    let style = ProgressStyle::with_template(template).context("the bar's own template")?;
    let bar = ProgressBar::new(jobs as u64).with_style(style.progress_chars("=> "));
    bar.set_message(what);
    Ok(bar)
}

/// As many threads as there are cores, or as asked for.
pub(super) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from))
}

/// CPU time that this thread has used.
#[cfg(target_os = "linux")]
pub(super) fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time that this thread has used; not known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn thread_cpu() -> Duration {
    Duration::ZERO
}
