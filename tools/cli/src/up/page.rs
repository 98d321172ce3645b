//! The files of the page, held in memory: nothing outside of its directory can be asked for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The files by their paths, with a leading slash.
#[derive(Debug, Default)]
pub(super) struct Page {
    files: BTreeMap<String, File>,
}

/// One file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
    /// True if its name changes with its content.
    pub(super) lasting: bool,
}

impl Page {
    /// Reads everything below a directory.
    pub(super) fn load(directory: &Path) -> anyhow::Result<Self> {
        let mut page = Self::default();
        let mut bytes = 0;
        page.read(directory, "", 0, &mut bytes)
            .with_context(|| format!("cannot read the page at {}", directory.display()))?;
        Ok(page)
    }

    /// The file that a path names; a directory is its `index.html`.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        match path.ends_with('/') {
            true => self.files.get(&format!("{path}index.html")),
            false => self.files.get(path),
        }
    }

    fn read(
        &mut self,
        directory: &Path,
        prefix: &str,
        depth: usize,
        total: &mut u64,
    ) -> anyhow::Result<()> {
        if depth > DEPTH_MAX {
            bail!("more than {DEPTH_MAX} levels of directories: not a page");
        }
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let path = format!("{prefix}/{name}");
            let kind = entry.metadata()?;
            if kind.is_dir() {
                self.read(&entry.path(), &path, depth + 1, total)?;
                continue;
            }
            *total += kind.len();
            if *total > BYTES_MAX {
                bail!("more than {BYTES_MAX} bytes: not a page");
            }
            let file = File {
                kind: media_type(name),
                bytes: fs::read(entry.path())?,
                lasting: path.starts_with("/assets/"),
            };
            self.files.insert(path, file);
        }
        Ok(())
    }
}

/// Finds the page, or says how to build it.
pub(super) fn find(wanted: Option<&Path>) -> anyhow::Result<PathBuf> {
    let usual = [
        PathBuf::from("game/web/dist"),
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../game/web/dist"),
    ];
    let places = match wanted {
        Some(directory) => vec![directory.to_owned()],
        None => usual.to_vec(),
    };
    let found = places
        .iter()
        .find(|place| place.join("index.html").is_file());
    match found {
        Some(place) => Ok(place.clone()),
        None => bail!(
            "there is no page at {}. Build it with `make page` (it needs node and npm), name another directory with --page, or \
             leave it out with --no-page",
            places[0].display()
        ),
    }
}

/// Returns a program's first line of output; empty if it ends before it has written one.
pub(super) async fn first_line(output: impl AsyncRead + Unpin) -> String {
    let mut line = String::new();
    // An error counts as no output: the caller reports which program did not start.
    let _ = BufReader::new(output).read_line(&mut line).await;
    line.trim_end().to_owned()
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

const DEPTH_MAX: usize = 8;
/// Largest page: it is held in memory.
const BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_paths_and_nothing_else_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("assets")).expect("made");
        fs::write(at("index.html"), "<p>").expect("written");
        fs::write(at("assets/a-1.wasm"), [0]).expect("written");
        fs::write(at(".secret"), [0]).expect("written");
        let page = Page::load(directory.path()).expect("readable");
        assert_eq!(
            page.file("/").map(|file| file.kind),
            Some("text/html; charset=utf-8")
        );
        let module = page.file("/assets/a-1.wasm").expect("there");
        assert!(module.lasting && module.kind == "application/wasm");
        for path in ["/.secret", "/../index.html", "index.html", "/assets", ""] {
            assert!(page.file(path).is_none(), "{path}");
        }
        let error = find(Some(&at("nowhere"))).expect_err("no page");
        assert!(error.to_string().contains("make page"), "{error}");
    }
}
