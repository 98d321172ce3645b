//! Reads the repository as text, for the tests that keep the house style (`tests/`).
//!
//! A tidy rule is only worth having if nobody has to remember it. The rules are those that a compiler or clippy cannot
//! check: which crate may use which, how long files and functions may be, what no file may contain.

mod code;

use std::path::{Path, PathBuf};

pub use code::{Function, code_only, functions};

/// A file of the repository.
///
/// ```
/// let files = muse_tidy::repository_files();
/// assert!(files.iter().any(|file| file.path == "tools/tidy/src/lib.rs"));
/// ```
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the repository's root, with slashes.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl File {
    /// True for a Rust file.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The name of the folder under `crates/`, `legacy/` or `tools/` that it belongs to, if any.
    pub fn crate_folder(&self) -> Option<&str> {
        let (room, rest) = self.path.split_once('/')?;
        let is_room = ["crates", "legacy", "tools"].contains(&room);
        is_room.then_some(rest)?.split('/').next()
    }
}

/// The repository's root.
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("this crate stands two folders below the root")
        .to_path_buf()
}

/// Every text file of the repository, in order of path; build products and dependencies left out.
///
/// # Panics
/// When the repository cannot be read.
pub fn repository_files() -> Vec<File> {
    let root = repository_root();
    let mut files = Vec::new();
    collect(&root, &root, &mut files);
    files.sort_by(|one, two| one.path.cmp(&two.path));
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) {
    let entries = std::fs::read_dir(folder).expect("a folder of the repository can be read");
    for entry in entries {
        let path = entry.expect("an entry of it, too").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || SKIPPED.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let relative = path
                .strip_prefix(root)
                .expect("found below the root")
                .to_string_lossy()
                .replace('\\', "/");
            files.push(File {
                path: relative,
                text,
            });
        }
    }
}

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 7] = [
    ".git",
    "target",
    "node_modules",
    "corpus",
    "artifacts",
    "__pycache__",
    ".venv",
];
