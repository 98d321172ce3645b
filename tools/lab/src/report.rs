//! A run as a page: one file with findings, plots and a table, readable by day and by night, without anything from elsewhere.

mod charts;

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::grid::{CaseResult, Run, TABLE, findings, switches_name};

/// The machine time of a run. Not part of [`Run`], for it is never the same twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// From the beginning to the end.
    pub wall_seconds: f64,
    /// That ran at the same time.
    pub threads: usize,
    /// CPU time of each case, in the order of the run.
    pub cpu_seconds: Vec<f64>,
}

impl Machine {
    /// CPU time of all cases.
    pub fn cpu_seconds_in_all(&self) -> f64 {
        self.cpu_seconds.iter().sum()
    }

    /// CPU time of a case in milliseconds for each second of each player.
    fn cpu_ms(&self, run: &Run, number: usize) -> Option<f64> {
        let players = run.about.recordings.len().max(1) as f64;
        let seconds = f64::from(run.about.seconds + WARM_UP_SECONDS) * players;
        self.cpu_seconds.get(number).map(|cpu| cpu * 1e3 / seconds)
    }
}

/// The page.
pub fn html(run: &Run, machine: Option<&Machine>) -> String {
    let mut body = String::new();
    let about = &run.about;
    write_to(
        &mut body,
        format_args!(
            "<h1>Netcode under bad networks</h1>\n<p class=\"lead\">{} cases: {} players with recorded inputs ({}), {} s each at 50 ticks a second {}, seed {}. \
             Everything shown is what the shipped client and server did.</p>\n",
            run.cases.len(),
            about.recordings.len(),
            escaped(&about.recordings.join(", ")),
            about.seconds,
            escaped(about.over.as_deref().unwrap_or("in virtual time")),
            about.seed,
        ),
    );
    if let Some(machine) = machine {
        write_to(
            &mut body,
            format_args!(
                "<p class=\"lead\">The run took {:.0} s on {} threads, {:.0} s of CPU time in all. {}</p>\n",
                machine.wall_seconds,
                machine.threads,
                machine.cpu_seconds_in_all(),
                match about.over {
                    None => {
                        "All other numbers are the same on every machine and in every run."
                    }
                    Some(_) => "Numbers differ from run to run, for time and packets were real.",
                },
            ),
        );
    }
    add_findings(&mut body, run);
    body.push_str("<h2>Plots</h2>\n<div class=\"plots\">\n");
    for plot in charts::all(run) {
        write_to(&mut body, format_args!("<figure>{}</figure>\n", plot.svg()));
    }
    body.push_str("</div>\n");
    add_table(&mut body, run, machine);
    add_glossary(&mut body);
    page("Muse laboratory: a run of the grid", &body)
}

/// A page with this title and content, with style and script in it.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n<script>\n{}</script>\n</body>\n</html>\n",
        escaped(title),
        include_str!("report/page.css"),
        include_str!("report/page.js"),
    )
}

fn add_findings(body: &mut String, run: &Run) {
    body.push_str("<h2>Findings</h2>\n<ol class=\"findings\">\n");
    for finding in findings(run) {
        let (class, word) = match finding.holds {
            true => ("holds", "holds"),
            false => ("fails", "does not hold"),
        };
        write_to(
            body,
            format_args!(
                "<li class=\"{class}\"><strong>{}.</strong> <span class=\"verdict\">{word}</span><br>{}</li>\n",
                escaped(&finding.title),
                escaped(&finding.says),
            ),
        );
    }
    body.push_str("</ol>\n");
}

fn add_table(body: &mut String, run: &Run, machine: Option<&Machine>) {
    body.push_str(
        "<h2>Every case</h2>\n<p>Click a heading to sort by it, twice to turn the order around.</p>\n<p class=\"filters\"><label>Mechanisms \
         <select id=\"switches\"><option value=\"\">every set</option>",
    );
    for (_, name) in crate::grid::SWITCHES {
        write_to(body, format_args!("<option>{name}</option>"));
    }
    body.push_str("</select></label> <span id=\"rows\"></span></p>\n<div class=\"scroll\"><table id=\"cases\">\n<thead><tr>");
    let head = |body: &mut String, name: &str, unit: &str| {
        let unit = match unit {
            "" => String::new(),
            unit => format!("<br><small>{unit}</small>"),
        };
        write_to(
            body,
            format_args!("<th scope=\"col\"><button type=\"button\">{name}{unit}</button></th>"),
        );
    };
    for (name, unit) in [
        ("RTT", "ms"),
        ("jitter", "%"),
        ("loss", "%"),
        ("mechanisms", ""),
    ] {
        head(body, name, unit);
    }
    for column in &TABLE {
        head(body, column.name, column.unit);
    }
    if machine.is_some() {
        head(body, "CPU", "ms / player s");
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for (number, result) in run.cases.iter().enumerate() {
        let cpu = machine.and_then(|machine| machine.cpu_ms(run, number));
        add_row(body, result, machine.is_some().then_some(cpu));
    }
    body.push_str("</tbody></table></div>\n");
}

fn add_row(body: &mut String, result: &CaseResult, cpu: Option<Option<f64>>) {
    let cell = result.case.cell;
    let name = switches_name(result.case.switches);
    write_to(
        body,
        format_args!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"word\">{name}</td>",
            cell.round_trip_ms, cell.jitter_percent, cell.loss_percent
        ),
    );
    for value in TABLE.iter().map(|column| (column.value)(&result.figures)) {
        write_to(body, format_args!("<td>{}</td>", number(value)));
    }
    if let Some(cpu) = cpu {
        write_to(body, format_args!("<td>{}</td>", number(cpu)));
    }
    body.push_str("</tr>\n");
}

fn add_glossary(body: &mut String) {
    body.push_str("<h2>What is measured</h2>\n<dl>\n");
    for (term, meaning) in GLOSSARY {
        write_to(body, format_args!("<dt>{term}</dt><dd>{meaning}</dd>\n"));
    }
    body.push_str("</dl>\n");
}

/// As few digits as tell enough.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(0.0) => "0".to_owned(),
        Some(value) if value.abs() >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

pub(crate) fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments)
        .expect("a string takes everything");
}

const WARM_UP_SECONDS: u32 = 4;
const GLOSSARY: [(&str, &str); 13] = [
    (
        "jitter",
        "Standard deviation of the round trip, as a share of it; delays are normally distributed, so packets overtake each other.",
    ),
    (
        "loss",
        "Share of packets lost, each by itself, on each way.",
    ),
    (
        "distance",
        "From where a client shows another player to where the server has that player at the same instant, 50 times a second: the mean, what 95 of 100 stay below, and the most.",
    ),
    (
        "shown late",
        "How much older what is shown is than the newest state that has arrived.",
    ),
    (
        "jumps",
        "Frames (60 a second) in which a shown player moves more than twice as far as it really moved in any frame of the last second; for each shown player and minute.",
    ),
    (
        "jerk",
        "Root of the mean square of the third derivative of shown places, over frames.",
    ),
    (
        "underruns",
        "Share of frames in which there was no next state to interpolate to.",
    ),
    (
        "mispredicted, depth",
        "Share of the server's answers that the client had not foreseen; ticks it then simulated again.",
    ),
    (
        "own error",
        "From where the client foresaw its own player in a tick to where the server had it in that tick.",
    ),
    (
        "key to own screen",
        "From the tick in which a key is pressed to the first frame that shows it: the median.",
    ),
    (
        "key to other's screen",
        "The same on another player's screen: the end-to-end or peeker's latency.",
    ),
    (
        "hits agreed",
        "Shots that the server judged as their shooter saw them. Half of all shots are aimed to miss narrowly. Shots at what is older than 250 ms are judged in the present and count as the rest do.",
    ),
    (
        "down, up",
        "Of each client, with the headers of transport, UDP and IP.",
    ),
];
