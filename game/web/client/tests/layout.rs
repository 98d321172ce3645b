//! The page reads frames by the same numbers as they are written by.

use std::collections::BTreeMap;

use muse_biobot_web::frame::{LAYOUT_VERSION, SECTIONS};

const TYPESCRIPT: &str = include_str!("../../src/frame.ts");
const RUST: &str = include_str!("../src/frame/layout.rs");

#[test]
fn typescript_and_rust_have_the_same_layout() {
    let typescript = typescript_numbers();
    let rust = rust_numbers();
    assert!(rust.len() > 100, "{} numbers were found", rust.len());
    for (name, number) in &rust {
        assert_eq!(typescript.get(name), Some(number), "{name}");
    }
    assert_eq!(typescript.len(), rust.len());
    assert!(TYPESCRIPT.contains(&format!("export const LAYOUT_VERSION = {LAYOUT_VERSION};")));
}

#[test]
fn typescript_and_rust_have_the_same_sections() {
    for (index, (name, stride)) in SECTIONS.iter().enumerate() {
        let line = format!("  {name}: {{ index: {index}, stride: {stride} }},");
        assert!(TYPESCRIPT.contains(&line), "{line}");
    }
}

#[test]
fn every_field_has_a_place_of_its_own_within_its_record() {
    let rust = rust_numbers();
    let mut places = BTreeMap::new();
    for (name, number) in &rust {
        let (record, _) = name.split_once('.').expect("a record and a field");
        assert!(
            places.insert((record, number), name).is_none(),
            "{name} shares its place"
        );
    }
}

/// `ROBOT.X` to 2, of `export const ROBOT = { ... X: 2, ... }`.
fn typescript_numbers() -> BTreeMap<String, u32> {
    let mut numbers = BTreeMap::new();
    let mut record = None;
    for line in TYPESCRIPT.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("export const ") {
            record = rest.strip_suffix(" = {").map(str::to_owned);
        } else if line.starts_with('}') {
            record = None;
        } else if let (Some(record), Some((name, value))) = (&record, line.split_once(": "))
            && let Ok(value) = value.trim_end_matches(',').parse()
        {
            numbers.insert(format!("{record}.{name}"), value);
        }
    }
    numbers
}

/// The same, of `pub mod robot { pub const X: usize = 2; ... }`.
fn rust_numbers() -> BTreeMap<String, u32> {
    let mut numbers = BTreeMap::new();
    let mut record = String::new();
    for line in RUST.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("pub mod ") {
            record = name.trim_end_matches(" {").to_uppercase();
        } else if let Some(rest) = line.strip_prefix("pub const ")
            && let Some((name, value)) = rest.split_once(": ")
            && let Some((_, value)) = value.split_once(" = ")
            && name != "STRIDE"
            && !record.is_empty()
            && let Ok(value) = value.trim_end_matches(';').parse()
        {
            numbers.insert(format!("{record}.{name}"), value);
        }
    }
    numbers
}
