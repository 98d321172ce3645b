//! Requirements: their ids stand on one page, and every test that the page names exists.

use std::collections::BTreeSet;

use muse_tidy::{File, repository_files, repository_root};

/// The only file that may name a requirement by its id.
const PAGE: &str = "docs/requirements.md";
/// The documents that the ids are named after.
const DOCUMENTS: [&str; 5] = ["NC", "RP", "VC", "RL", "OA"];
/// The words of a row that no test proves.
const UNPROVEN: &str = "none yet";

fn page() -> String {
    std::fs::read_to_string(repository_root().join(PAGE)).expect("the page is there")
}

/// The cells of every row that begins with an id.
fn rows(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .filter(|cells: &Vec<&str>| !ids(cells[0]).is_empty())
        .collect()
}

/// The requirement ids in a line: a document, a hyphen and a number, not in the middle of a word.
fn ids(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for document in DOCUMENTS {
        for (at, _) in line.match_indices(document) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
                continue;
            }
            let rest = &line[at + document.len()..];
            let digits = rest.strip_prefix('-').map_or(0, |number| {
                number.bytes().take_while(u8::is_ascii_digit).count()
            });
            if digits > 0 {
                found.push(&line[at..at + document.len() + 1 + digits]);
            }
        }
    }
    found
}

/// The paths between backticks, with the function behind `::` if one is named. What has no slash is no path.
fn references(text: &str) -> Vec<(&str, Option<&str>)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|quoted| quoted.contains('/'));
    let parts = paths.map(|path| match path.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (path, None),
    });
    parts.collect()
}

/// Returns why a reference leads nowhere, if it does.
fn broken((path, function): (&str, Option<&str>)) -> Option<String> {
    let place = repository_root().join(path);
    if !place.exists() {
        return Some(format!("{path} does not exist"));
    }
    let function = function?;
    let keyword = match path.ends_with(".py") {
        true => "def",
        false => "fn",
    };
    let text = std::fs::read_to_string(place).unwrap_or_default();
    let missing = !text.contains(&format!("{keyword} {function}("));
    missing.then(|| format!("{path} has no test {function}"))
}

#[test]
fn ids_stand_on_their_page_only() {
    // What a bundler wrote is not ours, and calls its variables what it likes.
    let is_ours = |file: &&File| file.path != PAGE && !file.path.contains("/dist/");
    let mut found = Vec::new();
    for file in repository_files().iter().filter(is_ours) {
        for (index, line) in file.text.lines().enumerate() {
            let places = ids(line).into_iter();
            found.extend(places.map(|id| format!("{}:{}: {id}", file.path, index + 1)));
        }
    }
    assert!(
        found.is_empty(),
        "say in words what these ids mean:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn every_named_test_exists() {
    let page = page();
    let found: Vec<String> = references(&page).into_iter().filter_map(broken).collect();
    assert!(
        found.is_empty(),
        "{PAGE} names what is not there:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn every_requirement_has_one_row_and_a_test_or_none_yet() {
    let page = page();
    let rows = rows(&page);
    let numbers: BTreeSet<&str> = rows.iter().map(|cells| cells[0]).collect();
    assert_eq!(numbers.len(), rows.len(), "an id has two rows");
    assert_eq!(rows.len(), 93);
    for cells in rows {
        assert_eq!(cells.len(), 4, "{}: four columns", cells[0]);
        let proven = references(cells[3]).iter().any(|(path, function)| {
            // A suite in another language may be named as a whole.
            function.is_some() || !path.ends_with(".rs")
        });
        assert!(
            proven || cells[3].contains(UNPROVEN),
            "{} has neither a test nor `{UNPROVEN}`",
            cells[0]
        );
    }
}
