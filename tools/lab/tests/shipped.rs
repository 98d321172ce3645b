//! The laboratory shows what ships: it calls the netcode, and has none of its own.

use std::path::{Path, PathBuf};

#[test]
fn nothing_here_predicts_interpolates_or_rewinds() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("//") {
                continue;
            }
            let names = code.contains("fn ") && MECHANISMS.iter().any(|name| names(code, name));
            let computes = ARITHMETIC.iter().any(|call| code.contains(call));
            if names || computes {
                wrong.push(format!("{}:{}: {code}", path.display(), number + 1));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "call it in muse_netcode instead:\n  {}",
        wrong.join("\n  ")
    );
}

#[test]
fn every_picture_is_of_the_shipped_mechanism() {
    let sources = sources();
    for (figure, calls) in CALLS {
        let path = format!("figures/{figure}.rs");
        let found = sources.iter().find(|(known, _)| known.ends_with(&path));
        let (_, text) = found.expect("there is a file for each figure");
        for call in calls {
            assert!(text.contains(call), "{figure} does not call {call}");
        }
    }
}

#[test]
fn what_is_measured_is_what_ships() {
    let sources = sources();
    for (file, calls) in MEASURES {
        let found = sources.iter().find(|(known, _)| known.ends_with(file));
        let (_, text) = found.expect("the file is there");
        for call in calls {
            assert!(text.contains(call), "{file} does not call {call}");
        }
    }
}

/// True if a line declares a function with this in its name.
fn names(code: &str, word: &str) -> bool {
    let name = code.split("fn ").nth(1).unwrap_or_default();
    let name = name.split(['(', '<']).next().unwrap_or_default();
    name.contains(word)
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).expect("the folder is there") {
            let path = file.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).expect("it can be read");
                sources.push((path, text));
            }
        }
    }
    sources
}

/// Words that no function here may have in its name.
const MECHANISMS: [&str; 10] = [
    "interpol", "extrapol", "predict", "reconcil", "smooth", "rewind", "blend", "dilat", "quantis",
    "delta",
];

/// Calls that such functions would make.
const ARITHMETIC: [&str; 6] = [
    "lerp(",
    ".exp(",
    ".powf(",
    "Predictor<",
    "impl Predicted",
    "impl State ",
];

/// The calls that each figure gets its data from.
const CALLS: [(&str, &[&str]); 15] = [
    ("state", &["World::new", "ClientView::new", "Receiver::new"]),
    ("snapshots", &["LabStage::new", ".receiver()"]),
    ("interest", &["Interest::new", ".update("]),
    ("priority", &[".bytes_per_snapshot(", ".set_interest("]),
    ("events", &[".emit(", ".events()"]),
    ("inputs", &[".input_counters("]),
    ("clock", &[".clock()", ".play_time()", ".server_time()"]),
    ("prediction", &[".predicted()", ".shown_player()"]),
    ("interpolation", &[".show()", ".shown_time()"]),
    ("extrapolation", &["Extrapolator::new", "derive_motion("]),
    ("shots", &["Rewind::new", ".admit(", ".hitscan("]),
    ("rewind", &["shots::run("]),
    ("fairness", &["shots::run("]),
    ("authority", &["Referee::new", ".judge("]),
    ("quality", &[".quality()"]),
];

/// The types that the measured match is made of.
const MEASURES: [(&str, &[&str]); 6] = [
    (
        "meet/trial.rs",
        &[
            "Relay::danger_open(",
            "Link::open(",
            ".give_key(",
            "Link::join(",
            ".take_key(",
            ".listen(",
        ],
    ),
    (
        "meet/player.rs",
        &["Relayed::new(", "Endpoint::new(", "Connect::key_follows()"],
    ),
    (
        "sides.rs",
        &[
            "GameServerSession::new",
            "ServerSession::new",
            ".send_snapshots(",
            ".tick(",
            "GameClientSession::new",
            "ClientSession::new",
            "Remotes::new",
        ],
    ),
    (
        "arena.rs",
        &["ServerSide::new", "Hits::new", ".admit(", ".hitscan("],
    ),
    (
        "arena/player.rs",
        &[
            "ClientSide::new",
            ".shown_player()",
            ".show(",
            ".shown_time()",
        ],
    ),
    (
        "arena/views.rs",
        &[
            "Remotes::new",
            "Interpolated::new",
            "Extrapolator::new",
            "derive_motion(",
        ],
    ),
];
