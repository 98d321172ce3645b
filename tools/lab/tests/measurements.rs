//! `docs/measurements.md` is what the results in `bench/results` and the kept grid make of it, and nothing that somebody wrote on it.

use std::path::{Path, PathBuf};

use muse_lab::grid::Run;
use muse_lab::measurements::{Sheet, page};

#[test]
fn the_page_is_what_the_results_say() {
    let grid = read(&root().join("lab/grids/whole.json"));
    let run = Run::parse(&grid).expect("it is a run");
    let written = read(&root().join("docs/measurements.md"));
    assert!(
        page(&sheets(), &run) == written,
        "run `muse lab measurements`: docs/measurements.md is written from bench/results and lab/grids, not by hand"
    );
}

#[test]
fn every_sheet_says_how_when_and_where() {
    let sheets = sheets();
    assert!(sheets.len() >= 10);
    for sheet in sheets {
        let Sheet {
            title,
            commands,
            made,
            machine,
            says,
            tables,
            results,
            ..
        } = sheet;
        assert!(!commands.is_empty() && !machine.is_empty(), "{title}");
        assert!(
            made.starts_with("20") && made.len() == 10,
            "{title}: {made}"
        );
        let is_empty = says.is_empty() && tables.is_empty() && results.is_null();
        assert!(!is_empty, "{title} has no figures");
    }
}

fn sheets() -> Vec<Sheet> {
    let files = std::fs::read_dir(root().join("bench/results")).expect("the folder is there");
    let paths = files.map(|file| file.expect("it can be read").path());
    let sheets = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    sheets
        .map(|path| {
            println!("{}", path.display());
            Sheet::parse(&read(&path)).expect("a sheet")
        })
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it is there")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
