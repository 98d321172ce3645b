//! The time that a rollback of twelve ticks takes, here and in WebAssembly.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use muse_biobot::table::Rollback;
use serde::{Deserialize, Serialize};

use super::super::statistics::{Figure, quantile};

/// The cost of rollbacks of twelve ticks with eight robots and the ball.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    pub(super) rollbacks: usize,
    pub(super) median_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

impl Cost {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self {
            rollbacks: times.len(),
            median_ms: Figure::median(times.iter().copied()),
            p99_ms: quantile(&times, 0.99),
        }
    }

    pub(super) fn line(&self, place: &str) -> String {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.3} ms"));
        format!(
            "rollback of {} ticks, 8 robots and the ball, {place}: median {}, p99 {} of {}",
            Rollback::TICKS,
            number(self.median_ms),
            number(self.p99_ms),
            self.rollbacks
        )
    }
}

/// In this program, in CPU time.
pub(super) fn here(quick: bool) -> Cost {
    let mut times = Vec::new();
    for seed in 1..=runs(quick) {
        let costs = Rollback::new(seed).measure(SECONDS, &mut thread_ms);
        let whole = costs.iter().filter(|cost| cost.is_whole());
        times.extend(whole.map(|cost| cost.time));
    }
    Cost::of(times)
}

/// In the engine of browsers, by node. `None` if there is no module.
pub(super) fn in_wasm(directory: Option<&Path>, quick: bool) -> anyhow::Result<Option<Cost>> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../game/web");
    let directory: PathBuf = match directory {
        Some(directory) => directory.to_owned(),
        None => web.join("src/wasm"),
    };
    if !directory.join("biobot_bg.wasm").is_file() {
        return Ok(None);
    }
    let output = Command::new("node")
        .arg(web.join("tests/rollback.mjs"))
        .arg(directory)
        .args([runs(quick).to_string(), SECONDS.to_string()])
        .output()
        .context("cannot run node")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "node failed: {problem}");
    let times: Vec<f64> = serde_json::from_slice(&output.stdout).context("what node printed")?;
    Ok(Some(Cost::of(times)))
}

const fn runs(quick: bool) -> u64 {
    if quick { 1 } else { 5 }
}

/// CPU time of this thread in milliseconds: a busy machine makes it wait, but does not count as its work.
fn thread_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Virtual seconds of each run.
const SECONDS: u32 = 20;
