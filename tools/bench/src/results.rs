//! Results as a file, for `--json`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// Writes `results` to `path`.
pub(crate) fn write_json(path: &Path, results: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
