//! The place of the built page.

use std::path::{Path, PathBuf};

use anyhow::bail;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_there_says_how_to_build_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = find(Some(&directory.path().join("nowhere"))).expect_err("no page");
        assert!(error.to_string().contains("make page"), "{error}");
        std::fs::write(directory.path().join("index.html"), "<p>").expect("written");
        assert!(find(Some(directory.path())).is_ok());
    }
}
