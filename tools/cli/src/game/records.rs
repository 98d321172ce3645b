//! Records of a match: the recording, the report on its players, and why the program crashed if it did.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::host::Host;

/// The directory of records, if there is one.
pub(crate) struct Records {
    directory: Option<PathBuf>,
}

impl Records {
    /// Creates the directory, and has a crash of this program recorded there.
    pub(crate) fn open(directory: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(directory) = directory {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            record_crashes(directory.join(format!("crash-{}.txt", std::process::id())));
        }
        Ok(Self {
            directory: directory.map(Path::to_owned),
        })
    }

    /// Writes the report of the match.
    pub(crate) fn write(&self, host: &Host) -> anyhow::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let mut text = String::new();
        let how = host.figures().outcome.unwrap_or("not played to its end");
        writeln!(text, "{how}")?;
        write!(text, "{}", host.report())?;
        writeln!(text, "{}", host.lateness())?;
        let name = match_name(host.match_number());
        let file = directory.join(format!("{name}.txt"));
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }
}

/// Writes the recording of a match to a file. If that fails the match goes on without one.
pub(crate) struct Tape {
    /// A file, or the directory of one that is named after the match.
    place: PathBuf,
    named: bool,
    file: Option<File>,
}

impl Tape {
    /// A tape to this file, or to one in the directory; none without either.
    pub(crate) fn new(replay: Option<&Path>, directory: Option<&Path>) -> Option<Self> {
        let place = replay.or(directory)?.to_owned();
        Some(Self {
            place,
            named: replay.is_some(),
            file: None,
        })
    }

    /// Opens the file when the match begins. Returns true if it is recorded.
    pub(crate) fn begin(&mut self, number: Option<u64>) -> bool {
        let path = match self.named {
            true => self.place.clone(),
            false => self.place.join(format!("{}.muserply", match_name(number))),
        };
        self.file = File::create(&path)
            .inspect_err(|error| tracing::error!("cannot record to {}: {error}", path.display()))
            .ok();
        self.file.is_some()
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else {
            return;
        };
        if let Err(error) = file.write_all(bytes) {
            tracing::error!("the recording ends here: {error}");
            self.file = None;
        }
    }
}

fn match_name(number: Option<u64>) -> String {
    number.map_or("match".to_owned(), |number| format!("match-{number}"))
}

/// Writes the message of a panic to the file, and passes it on to the previous hook.
fn record_crashes(file: PathBuf) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |crash| {
        // If the file cannot be written, the previous hook still reports the panic.
        let _ = fs::write(&file, format!("{crash}\n"));
        before(crash);
    }));
}
