//! The corner of the grid is what is kept in `lab/grids`, says what it should, and is the same every time.

use std::path::{Path, PathBuf};

use muse_lab::compare::Comparison;
use muse_lab::grid::{Plan, Run, findings};
use muse_lab::recording::Recording;
use muse_lab::report;
use muse_program::parallel::in_parallel;

#[test]
fn the_corner_is_what_is_kept() {
    let kept = kept("quick.json");
    let now = Run::make(&Plan::quick(), &Recording::shipped(), kept.about.seed, 2);
    let comparison =
        Comparison::new(&kept, &now.clone().brief()).named("lab/grids/quick.json", "now");
    assert!(
        !comparison.differs() && kept == now.brief(),
        "what the netcode does has changed. Run `muse lab grids --bless`, and look at the difference:\n{}",
        comparison.text()
    );
}

#[test]
fn the_findings_hold() {
    for name in ["quick.json", "whole.json"] {
        let found = findings(&kept(name));
        assert_eq!(found.len(), 4, "{name}");
        for finding in found {
            assert!(finding.holds, "{name}: {}: {}", finding.title, finding.says);
        }
    }
}

#[test]
fn a_case_is_the_same_every_time() {
    let (cases, recordings) = (Plan::quick().cases(), Recording::shipped());
    // A bad network draws on all of the randomness.
    let case = cases[cases.len() - 5];
    let runs = in_parallel(2, 2, |_| case.run(&recordings, 9, 4));
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], case.run(&recordings, 10, 4));
}

#[test]
fn a_run_survives_its_file() {
    let kept = kept("quick.json");
    assert_eq!(Run::parse(&kept.emit()).expect("it is a run"), kept);
    assert!(Run::parse("{}").is_err());
    let other = kept.emit().replacen("\"format\":1", "\"format\":2", 1);
    let error = Run::parse(&other).expect_err("another format");
    assert!(error.to_string().contains("format 2"), "{error}");
}

#[test]
fn the_report_is_whole_by_itself() {
    let run = kept("whole.json");
    let html = report::html(&run, None);
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("<tr><td>").count(), run.cases.len());
    assert!(html.matches("<figure>").count() >= 13);
    assert!(html.contains("prefers-color-scheme: dark"));
    for plot in html.split("<figure>").skip(1) {
        let plot = plot.split("</figure>").next().unwrap_or_default();
        let sentence = plot.split("<desc>").nth(1).unwrap_or_default();
        let sentence = sentence.split("</desc>").next().unwrap_or_default();
        assert!(
            sentence.len() > 80,
            "a sentence says what to see: {sentence}"
        );
        assert!(plot.matches("<text ").count() > 12, "{sentence}");
    }
}

#[test]
fn a_comparison_tells_better_from_worse() {
    let before = kept("quick.json");
    let mut after = before.clone();
    after.cases[0].figures.distance_m *= 0.5;
    after.cases[1].figures.hits_agreed_percent -= 10.0;
    after.cases.pop();
    let comparison = Comparison::new(&before, &after);
    assert_eq!((comparison.changes().len(), comparison.worse()), (2, 1));
    let text = comparison.text();
    assert!(
        text.contains("1 cases only in A") && text.contains("(worse)"),
        "{text}"
    );
    assert!(comparison.html().contains("class=\"better\""));
}

fn kept(name: &str) -> Run {
    let text = std::fs::read_to_string(folder().join(name)).expect("the grid is kept");
    Run::parse(&text).expect("it is a run")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/grids")
}
