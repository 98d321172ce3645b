//! The laboratory's part of the page, from the grid that is kept for review.

use crate::arena::Switches;
use crate::grid::{CaseResult, Run, findings};
use crate::report::{number, write_to};

pub(super) fn part(run: &Run) -> String {
    let mut text = format!(
        "## Netcode under bad networks\n\n    muse lab run --out report\n    muse lab grids --bless\n    muse lab measurements\n\n{} cases of {} s, {} players with recorded inputs, seed {}, in virtual time: the same numbers on every machine. \
         Means over jitters and losses of 0 to 8 %; [laboratory.md](laboratory.md) says what each figure is.\n\n",
        run.cases.len(),
        run.about.seconds,
        run.about.recordings.len(),
        run.about.seed,
    );
    for finding in findings(run) {
        write_to(
            &mut text,
            format_args!(
                "- {}{}. {}\n",
                finding.title,
                if finding.holds {
                    ""
                } else {
                    " (not borne out)"
                },
                finding.says
            ),
        );
    }
    let mut round_trips: Vec<u32> = run
        .cases
        .iter()
        .map(|case| case.case.cell.round_trip_ms)
        .collect();
    round_trips.dedup();
    let heads = round_trips
        .iter()
        .map(|round_trip| format!(" {round_trip} ms |"));
    let heads: String = heads.collect();
    let rule = " --- |".repeat(round_trips.len());
    write_to(&mut text, format_args!("\n| |{heads}\n| --- |{rule}\n"));
    for (name, switches, key) in ROWS {
        let mean = |round_trip: &u32| number(mean(run.with(switches), *round_trip, key));
        let means: Vec<String> = round_trips.iter().map(mean).collect();
        write_to(
            &mut text,
            format_args!("| {name} | {} |\n", means.join(" | ")),
        );
    }
    text
}

fn mean<'a>(
    cases: impl Iterator<Item = &'a CaseResult>,
    round_trip_ms: u32,
    key: &str,
) -> Option<f64> {
    let figures: Vec<f64> = cases
        .filter(|result| result.case.cell.round_trip_ms == round_trip_ms)
        .filter_map(|result| result.figures.value(key))
        .collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

const ALL: Switches = Switches::ALL;
const NO_INTERPOLATION: Switches = Switches::NO_INTERPOLATION;
const NO_PREDICTION: Switches = Switches::NO_PREDICTION;
const NO_LAG_COMPENSATION: Switches = Switches::NO_LAG_COMPENSATION;

/// The rows: name, mechanisms, and the figure's name in JSON.
const ROWS: [(&str, Switches, &str); 14] = [
    (
        "distance of others from the server's present, m",
        ALL,
        "distance_m",
    ),
    (
        "the same without interpolation",
        NO_INTERPOLATION,
        "distance_m",
    ),
    ("jumps of a shown player a minute", ALL, "jumps_per_minute"),
    (
        "the same without interpolation",
        NO_INTERPOLATION,
        "jumps_per_minute",
    ),
    ("underruns, % of frames", ALL, "underruns_percent"),
    ("mispredicted, % of answers", ALL, "mispredicted_percent"),
    ("inputs in time, %", ALL, "inputs_in_time_percent"),
    ("from a key to the own screen, ms", ALL, "key_to_own_ms"),
    (
        "the same without prediction",
        NO_PREDICTION,
        "key_to_own_ms",
    ),
    ("from a key to another's screen, ms", ALL, "key_to_other_ms"),
    ("shots judged as seen, %", ALL, "hits_agreed_percent"),
    (
        "the same without lag compensation",
        NO_LAG_COMPENSATION,
        "hits_agreed_percent",
    ),
    ("to each client, kbit/s", ALL, "down_kbit_s"),
    ("from each client, kbit/s", ALL, "up_kbit_s"),
];
