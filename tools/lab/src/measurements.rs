//! `docs/measurements.md`, the whole page: written from the sheets in `bench/results`, one for each thing that was measured, and from the
//! grid that is kept for review. Nobody writes on the page itself; a test holds it to what it is made from.

mod grid;
mod sheet;

pub use sheet::{Sheet, SheetError, Table};

use crate::grid::Run;
use crate::report::write_to;

/// The page of these sheets, in the order of their numbers, with the grid after them.
///
/// ```
/// use muse_lab::grid::{About, Run};
/// use muse_lab::measurements::{Sheet, page};
/// let about = About { seed: 1, seconds: 60, recordings: vec![], over: None };
/// let run = Run { format: 1, about, cases: vec![] };
/// let text = r#"{"order": 1, "title": "Echoes", "commands": ["muse bench echo"], "made": "2026-01-31", "machine": "a laptop",
///     "results": {"echo_us": 12.5}}"#;
/// let page = page(&[Sheet::parse(text).expect("a sheet")], &run);
/// assert!(page.contains("## Echoes") && page.contains("| echo us | 12.5 |"));
/// ```
pub fn page(sheets: &[Sheet], run: &Run) -> String {
    let mut sheets: Vec<&Sheet> = sheets.iter().collect();
    sheets.sort_by(|a, b| (a.order, &a.title).cmp(&(b.order, &b.title)));
    let mut text = INTRODUCTION.to_owned();
    for sheet in sheets {
        write_to(&mut text, format_args!("\n{}", sheet.markdown()));
    }
    write_to(&mut text, format_args!("\n{}", grid::part(run)));
    text
}

const INTRODUCTION: &str = "# Measurements

<!-- Written by `muse lab measurements` from bench/results and lab/grids; changes here are lost. -->

Every figure, the machine it is from, and the command that gives it again. Encryption is on in every row of Muse. Figures in virtual time are the same on
every machine; figures of CPU time are not, and ratios between rows of one run move less than the figures.

A new figure: run the command with `--json out.json`, then `muse lab measurements --add NAME=out.json`, where NAME is the sheet's name in `bench/results`.
";
