//! Results of a case: one row for each library, and its figures.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::cases::Case;
use super::measure::Run;
use super::statistics::Figure;

/// All runs of one library in one case.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The library.
    pub(crate) library: String,
    /// Its figures, by column.
    pub(crate) figures: BTreeMap<&'static str, Figure>,
    /// Its runs.
    pub(crate) runs: Vec<Run>,
    /// Errors and warnings, if there were any.
    pub(crate) notes: Vec<String>,
}

impl Row {
    /// Works out the figures when all runs are there.
    pub(crate) fn summarise(&mut self, case: Case) {
        let figure = |(name, _, value): &Column<Run>| Some((*name, self.figure(*value)?));
        self.figures = columns(case).iter().filter_map(figure).collect();
    }

    /// A figure over the runs.
    pub(crate) fn figure(&self, value: fn(&Run) -> f64) -> Option<Figure> {
        Figure::of(self.runs.iter().map(value))
    }
}

/// A figure that is printed: its heading, its digits, and how it follows from a run.
pub(crate) type Column<R> = (&'static str, usize, fn(&R) -> f64);

/// The columns of a case; the first is what the case is about.
pub(crate) fn columns(case: Case) -> &'static [Column<Run>] {
    match case {
        Case::ManyClients => MANY_CLIENTS,
        Case::FatPipe => FAT_PIPE,
        Case::Loss5 | Case::Loss10 | Case::Bursts => BAD_NETWORK,
    }
}

/// The table of a case, as text. Ratios are those of the first row to each.
pub(crate) fn render(case: Case, rows: &[Row]) -> String {
    let (main, others) = columns(case)
        .split_first()
        .expect("a case is about a figure");
    let (name, digits, value) = *main;
    let reference = rows.iter().find(|row| !row.runs.is_empty());
    let reference_figure = reference.and_then(|row| row.figure(value));
    let ratio = reference.map_or(String::new(), |row| format!("{} / this", row.library));
    let mut heading = vec!["library", name, "min..max", &ratio];
    heading.extend(others.iter().map(|column| column.0));
    let mut cells = vec![heading.into_iter().map(str::to_owned).collect()];
    for row in rows {
        let mut line = vec![row.library.clone()];
        if let Some(figure) = row.figure(value) {
            let ratio = reference_figure.map(|reference| reference.median / figure.median);
            line.push(format!("{:.digits$}", figure.median));
            line.push(format!("{:.digits$}..{:.digits$}", figure.min, figure.max));
            line.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
            for (_, digits, value) in others {
                let median = row.figure(*value).map_or(0.0, |figure| figure.median);
                line.push(format!("{median:.digits$}"));
            }
        } else {
            line.push("not measured".to_owned());
        }
        cells.push(line);
    }
    let mut text = format!("{}\n{}", case.title(), aligned(&cells));
    for row in rows {
        for note in &row.notes {
            let _ = writeln!(text, "  {}: {note}", row.library);
        }
    }
    text
}

/// A table of medians over runs, each with the smallest and the largest value. Rows without runs are left out.
pub(crate) fn spreads<'a, R: 'a>(
    heading: &str,
    columns: &[Column<R>],
    rows: impl Iterator<Item = (&'a str, &'a [R])>,
) -> String {
    let rows = rows.filter(|(_, runs)| !runs.is_empty());
    let rows = rows.map(|(name, runs)| (name.to_owned(), runs));
    table(heading, columns, rows, |runs, (_, digits, value)| {
        let figure = Figure::of(runs.iter().map(value));
        figure.map_or(String::new(), |figure| figure.spread(*digits))
    })
}

/// A table of single values, a line for each row.
pub(crate) fn values<R>(
    heading: &str,
    columns: &[Column<R>],
    rows: impl Iterator<Item = (String, R)>,
) -> String {
    table(heading, columns, rows, |row, (_, digits, value)| {
        format!("{:.digits$}", value(row))
    })
}

fn table<R, T>(
    heading: &str,
    columns: &[Column<R>],
    rows: impl Iterator<Item = (String, T)>,
    cell: impl Fn(&T, &Column<R>) -> String,
) -> String {
    let names = columns.iter().map(|column| column.0.to_owned());
    let mut cells = vec![[heading.to_owned()].into_iter().chain(names).collect()];
    cells.extend(rows.map(|(name, row)| {
        let figures = columns.iter().map(|column| cell(&row, column));
        [name].into_iter().chain(figures).collect()
    }));
    aligned(&cells)
}

/// Writes cells in columns, the first to the left, the others to the right.
pub(crate) fn aligned(cells: &[Vec<String>]) -> String {
    let mut text = String::new();
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let lines = cells.iter().filter_map(|line| line.get(column));
            lines.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for line in cells {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

const MANY_CLIENTS: &[Column<Run>] = &[
    ("CPU-s/M echoes", 2, |run| {
        run.server_cpu_seconds * 1e6 / run.echoes() as f64
    }),
    ("echoes %", 2, |run| {
        100.0 * run.echoes() as f64 / (run.client.unreliable_sent + run.client.reliable_sent) as f64
    }),
    ("RTT p50 ms", 1, |run| f64::from(run.client.latency_ms.p50)),
    ("p99", 1, |run| f64::from(run.client.latency_ms.p99)),
    ("datagrams/message", 2, |run| {
        run.traffic.datagrams as f64 / messages_both_ways(run)
    }),
    ("IP bytes/message", 1, |run| {
        run.traffic.ip_bytes as f64 / messages_both_ways(run)
    }),
    ("server MB", 1, |run| run.server_memory_bytes as f64 / 1e6),
    ("RcvbufErrors", 0, |run| {
        run.traffic.receive_buffer_errors as f64
    }),
];

const FAT_PIPE: &[Column<Run>] = &[
    ("CPU-s/GB", 2, |run| {
        (run.server_cpu_seconds + run.client_cpu_seconds) / gigabytes_sent(run)
    }),
    ("sender", 2, |run| {
        run.client_cpu_seconds / gigabytes_sent(run)
    }),
    ("receiver", 2, |run| {
        run.server_cpu_seconds / gigabytes_sent(run)
    }),
    ("MB/s", 0, |run| {
        run.server.reliable_received as f64 / 1e3 / run.server.seconds
    }),
    ("delivered %", 2, delivered_percent),
    ("disordered", 0, |run| run.server.disordered as f64),
    ("IP bytes/message", 1, |run| {
        run.traffic.ip_bytes as f64 / run.client.reliable_sent as f64
    }),
    ("server MB", 1, |run| run.server_memory_bytes as f64 / 1e6),
    ("RcvbufErrors", 0, |run| {
        run.traffic.receive_buffer_errors as f64
    }),
];

const BAD_NETWORK: &[Column<Run>] = &[
    ("p99 ms", 0, |run| f64::from(run.server.latency_ms.p99)),
    ("p50 ms", 0, |run| f64::from(run.server.latency_ms.p50)),
    ("p95 ms", 0, |run| f64::from(run.server.latency_ms.p95)),
    ("max ms", 0, |run| f64::from(run.server.latency_ms.max)),
    ("IP kB", 0, |run| {
        run.network
            .map_or(0.0, |network| network.ip_bytes() as f64 / 1e3)
    }),
    ("datagrams", 0, |run| {
        run.network
            .map_or(0.0, |network| network.datagrams() as f64)
    }),
    ("delivered %", 2, delivered_percent),
    ("disordered", 0, |run| run.server.disordered as f64),
];

fn messages_both_ways(run: &Run) -> f64 {
    (run.client.unreliable_sent + run.client.reliable_sent + run.echoes()) as f64
}

fn gigabytes_sent(run: &Run) -> f64 {
    run.client.reliable_sent as f64 / 1e6
}

fn delivered_percent(run: &Run) -> f64 {
    100.0 * run.server.reliable_received as f64 / run.client.reliable_sent as f64
}
