//! A run as a page: one file with findings, plots and a table, readable by day and by night, without anything from elsewhere.

mod charts;

use std::fmt::{Display, Write};

use serde::{Deserialize, Serialize};

use crate::grid::{Case, Run, TABLE, findings, switches_name};

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
    body.push_str(include_str!("report/glossary.html"));
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
    body.push_str("</select></label> <span id=\"rows\"></span></p>\n");
    let heads = [
        ("RTT", "ms"),
        ("jitter", "%"),
        ("loss", "%"),
        ("mechanisms", ""),
    ];
    let heads = heads.into_iter();
    let heads = heads.chain(TABLE.iter().map(|column| (column.name, column.unit)));
    let heads = heads.chain(machine.map(|_| ("CPU", "ms / player s")));
    let heads: Vec<String> = heads
        .map(|(name, unit)| match unit {
            "" => name.to_owned(),
            unit => format!("{name}<br><small>{unit}</small>"),
        })
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows = run.cases.iter().enumerate().map(|(index, result)| {
        let mut cells = case_cells(result.case);
        let figures = TABLE.iter().map(|column| column.value(&result.figures));
        cells.extend(figures.map(|figure| cell(number(figure))));
        cells.extend(machine.map(|machine| cell(number(machine.cpu_ms(run, index)))));
        cells
    });
    body.push_str(&table(" id=\"cases\"", &heads, rows));
}

/// A table that can be sorted by its headings; rows are cells.
pub(crate) fn table(
    attributes: &str,
    heads: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let heads = heads
        .iter()
        .map(|head| format!("<th scope=\"col\"><button type=\"button\">{head}</button></th>"));
    let rows = rows.map(|cells| format!("<tr>{}</tr>\n", cells.concat()));
    format!(
        "<div class=\"scroll\"><table{attributes}>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        heads.collect::<String>(),
        rows.collect::<String>()
    )
}

/// A cell of a table.
pub(crate) fn cell(content: impl Display) -> String {
    format!("<td>{content}</td>")
}

/// A cell with words rather than a number.
pub(crate) fn word(content: impl Display) -> String {
    format!("<td class=\"word\">{content}</td>")
}

/// The cells that say which case a row is of.
pub(crate) fn case_cells(case: Case) -> Vec<String> {
    let network = case.cell;
    vec![
        cell(network.round_trip_ms),
        cell(network.jitter_percent),
        cell(network.loss_percent),
        word(switches_name(case.switches)),
    ]
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
