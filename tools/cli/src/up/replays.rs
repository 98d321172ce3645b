//! Recorded matches, for the page's *Watch*: a list, and each by its name.

use std::fs;
use std::path::PathBuf;

use super::page::File;

/// A directory with recordings among other files.
#[derive(Debug)]
pub(super) struct Replays {
    directory: PathBuf,
}

impl Replays {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the file that a path names: `/replays` is the list, `/replays/NAME` a recording.
    pub(super) fn file(&self, path: &str) -> Option<File> {
        let rest = path.strip_prefix("/replays")?;
        let (kind, bytes) = match rest.strip_prefix('/') {
            None | Some("") if rest.len() <= 1 => {
                let list = serde_json::to_vec(&self.names()).ok()?;
                ("application/json", list)
            }
            Some(name) if is_name(name) => {
                let bytes = fs::read(self.directory.join(name)).ok()?;
                ("application/octet-stream", bytes)
            }
            _ => return None,
        };
        Some(File {
            kind,
            bytes,
            lasting: false,
        })
    }

    /// The newest first.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let changed = entry.metadata().ok()?.modified().ok()?;
                is_name(&name).then_some((changed, name))
            })
            .collect();
        found.sort();
        let newest = found.into_iter().rev().take(NAMES_MAX);
        newest.map(|(_, name)| name).collect()
    }
}

/// True if this can be a recording's name: no path leads out of the directory.
fn is_name(name: &str) -> bool {
    let stem = name.strip_suffix(ENDING);
    let letter = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
    stem.is_some_and(|stem| !stem.is_empty() && stem.bytes().all(letter))
}

/// The ending of recordings' names.
const ENDING: &str = ".muserply";
const NAMES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_listed_and_nothing_else_is_given_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str| fs::write(directory.path().join(name), name).expect("written");
        write("match-7.muserply");
        write("match-7.txt");
        let replays = Replays::new(directory.path().to_owned());
        let list = replays.file("/replays").expect("a list");
        assert_eq!(list.bytes, br#"["match-7.muserply"]"#);
        let replay = replays.file("/replays/match-7.muserply").expect("there");
        assert_eq!(replay.bytes, b"match-7.muserply");
        for path in [
            "/replays/match-7.txt",
            "/replays/../match-7.muserply",
            "/replays/.muserply",
            "/replaysmatch-7.muserply",
        ] {
            assert!(replays.file(path).is_none(), "{path}");
        }
    }
}
