//! The file with the rules of named queues, read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::matching::QueueRules;
use crate::shared::Shared;

/// Reads the file.
///
/// # Errors
/// It cannot be read, or is no file of rules.
pub(crate) fn read(file: &Path) -> Result<QueueRules, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let len = std::fs::metadata(file).map_err(|error| told(&error))?.len();
    if len > FILE_BYTES_MAX {
        return Err(told(&format!(
            "{len} bytes; at most {FILE_BYTES_MAX} are read"
        )));
    }
    let text = std::fs::read_to_string(file).map_err(|error| told(&error))?;
    QueueRules::parse(&text).map_err(|error| told(&error))
}

/// Hands changed rules to whoever leads. A file with a mistake changes nothing, and what is wrong with it is logged once.
pub(crate) async fn keep_up(shared: Arc<Shared>, file: PathBuf) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    let mut complained = None;
    loop {
        look.tick().await;
        let file = file.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || read(&file)).await else {
            return;
        };
        match found {
            Ok(rules) => {
                complained = None;
                let changed = shared.queues.send_if_modified(|known| {
                    let differs = *known != rules;
                    *known = rules;
                    differs
                });
                if changed {
                    tracing::info!("the rules of the queues have changed");
                }
            }
            Err(error) if complained.as_ref() != Some(&error) => {
                tracing::error!("the rules of the queues stay as they were: {error}");
                complained = Some(error);
            }
            Err(_) => {}
        }
    }
}

const LOOK_EVERY: Duration = Duration::from_secs(1);
const FILE_BYTES_MAX: u64 = 1 << 20;
