//! The pictures in `docs/pictures` are those that the shipped code gives, and the pages show all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use muse_lab::figures::ALL;

#[test]
fn the_pictures_are_up_to_date() {
    let mut outdated = Vec::new();
    for (name, plot) in ALL {
        let path = folder().join(format!("{name}.svg"));
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        if let Err(difference) = compare(&kept, &plot().svg()) {
            outdated.push(format!("{name}: {difference}"));
        }
    }
    assert!(
        outdated.is_empty(),
        "what the code does has changed. Run `muse lab figures`, look at the pictures, and see that their sentences still hold:\n  {}",
        outdated.join("\n  ")
    );
}

#[test]
fn a_picture_has_the_same_bytes_every_time() {
    for name in ["prediction", "events", "rewind"] {
        let (_, plot) = ALL
            .iter()
            .find(|(known, _)| *known == name)
            .expect("it is made");
        assert_eq!(plot().svg(), plot().svg(), "{name}");
    }
}

#[test]
fn the_pages_show_every_picture_and_no_other() {
    let pages = PAGES.map(|page| {
        std::fs::read_to_string(folder().join("..").join(page)).expect("the page is there")
    });
    let pages = pages.concat();
    let shown: BTreeSet<&str> = pages
        .split("pictures/")
        .skip(1)
        .filter_map(|rest| rest.split_once(".svg)").map(|(name, _)| name))
        .collect();
    let made: BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(shown, made);
    let files = std::fs::read_dir(folder()).expect("the folder is there");
    let kept: BTreeSet<PathBuf> = files
        .map(|file| PathBuf::from(file.expect("it can be read").file_name()))
        .filter(|name| name.extension().is_some_and(|ending| ending == "svg"))
        .collect();
    let names = made.iter().map(|name| PathBuf::from(format!("{name}.svg")));
    assert_eq!(kept, names.collect());
}

#[test]
fn every_picture_can_be_read() {
    for (name, _) in ALL {
        let path = folder().join(format!("{name}.svg"));
        let svg = std::fs::read_to_string(path).expect("it is there");
        let sentence = svg
            .split_once("<desc>")
            .and_then(|(_, rest)| rest.split_once("</desc>"));
        assert!(
            sentence.is_some_and(|(text, _)| text.len() > 80),
            "{name}: no sentence"
        );
        assert!(
            svg.contains("prefers-color-scheme: dark"),
            "{name}: unreadable at night"
        );
        let words = svg.matches("<text ").count();
        // A title, a sentence, labels and numbers on both axes, and names in the legend.
        assert!(words > 12, "{name}: {words} words");
        assert!(svg.len() < 150_000, "{name}: {} bytes", svg.len());
    }
}

/// Alike but for numbers that differ by a pixel: mathematics of another platform may round otherwise.
fn compare(kept: &str, made: &str) -> Result<(), String> {
    let (kept, made) = (words(kept), words(made));
    if kept.len() != made.len() {
        return Err(format!("{} words instead of {}", made.len(), kept.len()));
    }
    let differs = kept.iter().zip(&made).find(|(kept, made)| {
        let numbers = kept.parse::<f64>().ok().zip(made.parse::<f64>().ok());
        kept != made && numbers.is_none_or(|(kept, made)| (kept - made).abs() > 1.0)
    });
    match differs {
        Some((kept, made)) => Err(format!("{made} instead of {kept}")),
        None => Ok(()),
    }
}

fn words(svg: &str) -> Vec<&str> {
    svg.split(|sign: char| !(sign.is_alphanumeric() || sign == '.' || sign == '-'))
        .collect()
}

/// The pages that show pictures.
const PAGES: [&str; 4] = [
    "netcode.md",
    "deterministic.md",
    "guide/delivery.md",
    "congestion.md",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}
