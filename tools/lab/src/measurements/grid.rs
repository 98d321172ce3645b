//! The laboratory's part of the page, from the grid that is kept for review.

use crate::arena::Switches;
use crate::grid::{CaseResult, Figures, Run, SWITCHES, findings};
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
    text.push_str("\n| |");
    for round_trip in &round_trips {
        write_to(&mut text, format_args!(" {round_trip} ms |"));
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(round_trips.len()));
    text.push('\n');
    for (name, switches, value) in ROWS {
        write_to(&mut text, format_args!("| {name} |"));
        for round_trip in &round_trips {
            let mean = mean(run.with(switches), *round_trip, value);
            write_to(&mut text, format_args!(" {} |", number(mean)));
        }
        text.push('\n');
    }
    text
}

fn mean<'a>(
    cases: impl Iterator<Item = &'a CaseResult>,
    round_trip_ms: u32,
    value: fn(&Figures) -> Option<f64>,
) -> Option<f64> {
    let figures: Vec<f64> = cases
        .filter(|result| result.case.cell.round_trip_ms == round_trip_ms)
        .filter_map(|result| value(&result.figures))
        .collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

type Row = (&'static str, Switches, fn(&Figures) -> Option<f64>);

const ROWS: [Row; 14] = [
    (
        "distance of others from the server's present, m",
        Switches::ALL,
        |f| Some(f.distance_m),
    ),
    ("the same without interpolation", SWITCHES[1].0, |f| {
        Some(f.distance_m)
    }),
    ("jumps of a shown player a minute", Switches::ALL, |f| {
        Some(f.jumps_per_minute)
    }),
    ("the same without interpolation", SWITCHES[1].0, |f| {
        Some(f.jumps_per_minute)
    }),
    ("underruns, % of frames", Switches::ALL, |f| {
        f.underruns_percent
    }),
    ("mispredicted, % of answers", Switches::ALL, |f| {
        f.mispredicted_percent
    }),
    ("inputs in time, %", Switches::ALL, |f| {
        Some(f.inputs_in_time_percent)
    }),
    ("from a key to the own screen, ms", Switches::ALL, |f| {
        Some(f.key_to_own_ms)
    }),
    ("the same without prediction", SWITCHES[2].0, |f| {
        Some(f.key_to_own_ms)
    }),
    ("from a key to another's screen, ms", Switches::ALL, |f| {
        Some(f.key_to_other_ms)
    }),
    ("shots judged as seen, %", Switches::ALL, |f| {
        Some(f.hits_agreed_percent)
    }),
    ("the same without lag compensation", SWITCHES[3].0, |f| {
        Some(f.hits_agreed_percent)
    }),
    ("to each client, kbit/s", Switches::ALL, |f| {
        Some(f.down_kbit_s)
    }),
    ("from each client, kbit/s", Switches::ALL, |f| {
        Some(f.up_kbit_s)
    }),
];
