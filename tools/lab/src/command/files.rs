//! Files that commands read and write, with errors that name them.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Reads a text.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a text.
pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a text into a folder, and says so.
pub(super) fn write_into(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    create(folder)?;
    let path = folder.join(name);
    write(&path, text)?;
    println!("{}", path.display());
    Ok(())
}

/// Writes results as JSON, if there is a file for them.
pub(super) fn write_json(
    path: Option<&PathBuf>,
    results: &impl serde::Serialize,
) -> anyhow::Result<()> {
    match path {
        Some(path) => write(path, serde_json::to_string_pretty(results)? + "\n"),
        None => Ok(()),
    }
}

/// Creates a folder, if it is not there.
pub(super) fn create(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// The files of a folder whose names have this ending, in order.
pub(super) fn list(folder: &Path, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut paths = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|found| found == ending) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
