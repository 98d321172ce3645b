//! The place of the built page: inside of this program, or a directory.

use std::path::{Path, PathBuf};

use anyhow::bail;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::inside::Files;

/// The page to serve.
pub(super) enum Page {
    /// The one that was put into this program when it was built.
    Inside(Files),
    /// The one of a directory, read at each request.
    Directory(PathBuf),
}

/// Finds the page, or says how to build it. A directory that is named counts more than the page inside of the program, which counts more than what
/// `make page` has built.
pub(super) fn find(wanted: Option<&Path>) -> anyhow::Result<Page> {
    let inside = match wanted {
        Some(_) => None,
        None => Files::find(),
    };
    if let Some(files) = inside {
        return Ok(Page::Inside(files));
    }
    let usual = ["game/web/dist"]
        .into_iter()
        .chain(option_env!("MUSE_PAGE_BUILT"));
    let places = match wanted {
        Some(directory) => vec![directory.to_owned()],
        None => usual.map(PathBuf::from).collect(),
    };
    let found = places
        .iter()
        .find(|place| place.join("index.html").is_file());
    match found {
        Some(place) => Ok(Page::Directory(place.clone())),
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
        let nowhere = directory.path().join("nowhere");
        let error = find(Some(&nowhere)).err().expect("no page");
        assert!(error.to_string().contains("make page"), "{error}");
        std::fs::write(directory.path().join("index.html"), "<p>").expect("written");
        assert!(find(Some(directory.path())).is_ok());
    }
}
