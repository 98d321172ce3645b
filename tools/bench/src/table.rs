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
        let figure = |column: &Column| Some((column.name, self.figure(column.value)?));
        self.figures = columns(case).iter().filter_map(figure).collect();
    }

    /// A figure over the runs.
    pub(crate) fn figure(&self, value: fn(&Run) -> f64) -> Option<Figure> {
        Figure::of(self.runs.iter().map(value))
    }
}

/// A figure that is printed.
pub(crate) struct Column {
    /// Its heading.
    pub(crate) name: &'static str,
    digits: usize,
    /// Computes it from a run.
    pub(crate) value: fn(&Run) -> f64,
}

/// The columns of a case; the first is what the case is about.
pub(crate) fn columns(case: Case) -> &'static [Column] {
    match case {
        Case::ManyClients => MANY_CLIENTS,
        Case::FatPipe => FAT_PIPE,
        Case::Loss5 | Case::Loss10 | Case::Bursts => BAD_NETWORK,
    }
}

/// The table of a case, as text. Ratios are those of the first row to each.
pub(crate) fn render(case: Case, rows: &[Row]) -> String {
    let columns = columns(case);
    let main = &columns[0];
    let reference = rows.iter().find(|row| !row.runs.is_empty());
    let reference_figure = reference.and_then(|row| row.figure(main.value));
    let mut cells = vec![vec![
        "library".to_owned(),
        main.name.to_owned(),
        "min..max".to_owned(),
    ]];
    cells[0].push(reference.map_or(String::new(), |row| format!("{} / this", row.library)));
    cells[0].extend(columns[1..].iter().map(|column| column.name.to_owned()));
    for row in rows {
        let mut line = vec![row.library.clone()];
        if let Some(figure) = row.figure(main.value) {
            line.push(format!("{:.*}", main.digits, figure.median));
            line.push(format!(
                "{:.*}..{:.*}",
                main.digits, figure.min, main.digits, figure.max
            ));
            let ratio = reference_figure.map(|reference| reference.median / figure.median);
            line.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
            for column in &columns[1..] {
                let median = row.figure(column.value).map_or(0.0, |figure| figure.median);
                line.push(format!("{median:.*}", column.digits));
            }
        } else {
            line.push("not measured".to_owned());
        }
        cells.push(line);
    }
    let mut text = format!("{}\n", case.title());
    write_aligned(&mut text, &cells);
    for row in rows {
        for note in &row.notes {
            let _ = writeln!(text, "  {}: {note}", row.library);
        }
    }
    text
}

/// Writes cells in columns, the first to the left, the others to the right.
pub(crate) fn write_aligned(text: &mut String, cells: &[Vec<String>]) {
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
}

const MANY_CLIENTS: &[Column] = &[
    Column {
        name: "CPU-s/M echoes",
        digits: 2,
        value: |run| run.server_cpu_seconds * 1e6 / run.echoes() as f64,
    },
    Column {
        name: "echoes %",
        digits: 2,
        value: |run| {
            100.0 * run.echoes() as f64
                / (run.client.unreliable_sent + run.client.reliable_sent) as f64
        },
    },
    Column {
        name: "RTT p50 ms",
        digits: 1,
        value: |run| f64::from(run.client.latency_ms.p50),
    },
    Column {
        name: "p99",
        digits: 1,
        value: |run| f64::from(run.client.latency_ms.p99),
    },
    Column {
        name: "datagrams/message",
        digits: 2,
        value: |run| run.traffic.datagrams as f64 / messages_both_ways(run),
    },
    Column {
        name: "IP bytes/message",
        digits: 1,
        value: |run| run.traffic.ip_bytes as f64 / messages_both_ways(run),
    },
    Column {
        name: "server MB",
        digits: 1,
        value: |run| run.server_memory_bytes as f64 / 1e6,
    },
    Column {
        name: "RcvbufErrors",
        digits: 0,
        value: |run| run.traffic.receive_buffer_errors as f64,
    },
];

const FAT_PIPE: &[Column] = &[
    Column {
        name: "CPU-s/GB",
        digits: 2,
        value: |run| (run.server_cpu_seconds + run.client_cpu_seconds) / gigabytes_sent(run),
    },
    Column {
        name: "sender",
        digits: 2,
        value: |run| run.client_cpu_seconds / gigabytes_sent(run),
    },
    Column {
        name: "receiver",
        digits: 2,
        value: |run| run.server_cpu_seconds / gigabytes_sent(run),
    },
    Column {
        name: "MB/s",
        digits: 0,
        value: |run| run.server.reliable_received as f64 / 1e3 / run.server.seconds,
    },
    Column {
        name: "delivered %",
        digits: 2,
        value: delivered_percent,
    },
    Column {
        name: "disordered",
        digits: 0,
        value: |run| run.server.disordered as f64,
    },
    Column {
        name: "IP bytes/message",
        digits: 1,
        value: |run| run.traffic.ip_bytes as f64 / run.client.reliable_sent as f64,
    },
    Column {
        name: "server MB",
        digits: 1,
        value: |run| run.server_memory_bytes as f64 / 1e6,
    },
    Column {
        name: "RcvbufErrors",
        digits: 0,
        value: |run| run.traffic.receive_buffer_errors as f64,
    },
];

const BAD_NETWORK: &[Column] = &[
    Column {
        name: "p99 ms",
        digits: 0,
        value: |run| f64::from(run.server.latency_ms.p99),
    },
    Column {
        name: "p50 ms",
        digits: 0,
        value: |run| f64::from(run.server.latency_ms.p50),
    },
    Column {
        name: "p95 ms",
        digits: 0,
        value: |run| f64::from(run.server.latency_ms.p95),
    },
    Column {
        name: "max ms",
        digits: 0,
        value: |run| f64::from(run.server.latency_ms.max),
    },
    Column {
        name: "IP kB",
        digits: 0,
        value: |run| {
            run.network
                .map_or(0.0, |network| network.ip_bytes() as f64 / 1e3)
        },
    },
    Column {
        name: "datagrams",
        digits: 0,
        value: |run| {
            run.network
                .map_or(0.0, |network| network.datagrams() as f64)
        },
    },
    Column {
        name: "delivered %",
        digits: 2,
        value: delivered_percent,
    },
    Column {
        name: "disordered",
        digits: 0,
        value: |run| run.server.disordered as f64,
    },
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
