//! The cases that run in virtual time: W3 at two losses, other streams over the same network, and W4, each with the three ways
//! to repair; and the bars that are judged there.
//!
//! Latency under loss is a matter of chance: one run of 3,600 messages has 36 beyond its 99th percentile. A hundred
//! seeds pooled give a figure that another machine gets to the last digit.

use indicatif::ProgressBar;
use muse_netem::Conditions;
use muse_transport::Repair;
use serde::Serialize;

use super::cases::WorkloadName;
use super::table::{Column, values};
use super::virtual_w3::{Pooled, Stream, run, w3_network, w4_network};
use muse_program::bars::Bar;

/// A stream over a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VirtualCase {
    /// W3 with 5 % loss each way.
    W3Loss5,
    /// W3 with 10 % loss each way.
    W3Loss10,
    /// Messages of 20 to 600 bytes, 5 % loss.
    SizesLoss5,
    /// Messages of 20 to 600 bytes, 10 % loss.
    SizesLoss10,
    /// Three channels in turn, 5 % loss.
    ChannelsLoss5,
    /// Three channels in turn, 10 % loss.
    ChannelsLoss10,
    /// W4.
    W4,
}

/// The figures of one case and one way to repair.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct VirtualRow {
    case: VirtualCase,
    mode: &'static str,
    seeds: u64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    ip_kb: f64,
    datagrams: f64,
    delivered_percent: f64,
}

impl VirtualCase {
    /// The cases that belong to a workload.
    pub(crate) fn of(workload: WorkloadName) -> &'static [Self] {
        match workload {
            WorkloadName::W1 | WorkloadName::W2 => &[],
            WorkloadName::W3 => &[
                Self::W3Loss5,
                Self::W3Loss10,
                Self::SizesLoss5,
                Self::SizesLoss10,
                Self::ChannelsLoss5,
                Self::ChannelsLoss10,
            ],
            WorkloadName::W4 => &[Self::W4],
        }
    }

    /// Number of simulations in a case.
    pub(crate) fn runs(seeds: u64) -> u64 {
        seeds * MODES.len() as u64
    }

    /// Runs the case with each way to repair.
    pub(crate) fn rows(self, seeds: u64, progress: &ProgressBar) -> Vec<VirtualRow> {
        let row = |&(mode, repair): &(&'static str, Repair)| {
            progress.set_message(format!("virtual {mode}"));
            let pooled = run(self.stream(repair), &self.network(), 0..seeds, || {
                progress.inc(1)
            });
            VirtualRow::new(self, mode, seeds, &pooled)
        };
        MODES.iter().map(row).collect()
    }

    fn stream(self, repair: Repair) -> Stream {
        let w3 = Stream::w3(repair);
        match self {
            Self::W3Loss5 | Self::W3Loss10 | Self::W4 => w3,
            Self::SizesLoss5 | Self::SizesLoss10 => Stream {
                size: (20, 600),
                ..w3
            },
            Self::ChannelsLoss5 | Self::ChannelsLoss10 => Stream { channels: 3, ..w3 },
        }
    }

    fn network(self) -> Conditions {
        match self {
            Self::W3Loss5 | Self::SizesLoss5 | Self::ChannelsLoss5 => w3_network(0.05),
            Self::W3Loss10 | Self::SizesLoss10 | Self::ChannelsLoss10 => w3_network(0.10),
            Self::W4 => w4_network(),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::W3Loss5 => "W3, 5 % loss",
            Self::W3Loss10 => "W3, 10 % loss",
            Self::SizesLoss5 => "W3 with messages of 20 to 600 bytes, 5 % loss",
            Self::SizesLoss10 => "W3 with messages of 20 to 600 bytes, 10 % loss",
            Self::ChannelsLoss5 => "W3 with three channels in turn, 5 % loss",
            Self::ChannelsLoss10 => "W3 with three channels in turn, 10 % loss",
            Self::W4 => "W4, 0..60 ms jitter, 5 % loss in bursts of 4",
        }
    }
}

impl VirtualRow {
    fn new(case: VirtualCase, mode: &'static str, seeds: u64, pooled: &Pooled) -> Self {
        Self {
            case,
            mode,
            seeds,
            p50_ms: pooled.percentile_ms(0.50),
            p95_ms: pooled.percentile_ms(0.95),
            p99_ms: pooled.percentile_ms(0.99),
            max_ms: pooled.percentile_ms(1.0),
            ip_kb: pooled.ip_kb(),
            datagrams: pooled.datagrams(),
            delivered_percent: 100.0 * pooled.delivered() as f64 / pooled.sent as f64,
        }
    }
}

/// The table of one case.
pub(crate) fn render(rows: &[VirtualRow]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let lines = rows.iter().map(|row| {
        let ratio = row.p99_ms / first.p99_ms;
        (row.mode.to_owned(), (row.clone(), ratio))
    });
    format!(
        "{}, in virtual time, {} seeds pooled\n{}",
        first.case.title(),
        first.seeds,
        values("mode", &COLUMNS, lines)
    )
}

/// The bars on latency and bytes of W3.
pub(crate) fn bars(rows: &[VirtualRow]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for &(case, name, mode, p99_ms, ip_kb) in LIMITS {
        let Some(row) = rows.iter().find(|row| row.case == case && row.mode == mode) else {
            continue;
        };
        let figure = |what: &str| format!("w3_{name}_{mode}_{what}");
        bars.push(Bar::at_most(figure("p99_ms"), row.p99_ms, p99_ms));
        bars.push(Bar::at_most(figure("ip_kilobytes"), row.ip_kb, ip_kb));
    }
    for row in rows.iter().filter(|row| row.delivered_percent < 100.0) {
        let name = format!("virtual_{:?}_{}_delivered_percent", row.case, row.mode).to_lowercase();
        bars.push(Bar::at_least(name, row.delivered_percent, 100.0));
    }
    bars
}

/// The columns, of a row and its latency against that of the cheapest way to repair.
const COLUMNS: [Column<(VirtualRow, f64)>; 8] = [
    ("p50 ms", 1, |(row, _)| row.p50_ms),
    ("p95 ms", 1, |(row, _)| row.p95_ms),
    ("p99 ms", 1, |(row, _)| row.p99_ms),
    ("max ms", 1, |(row, _)| row.max_ms),
    ("IP kB", 1, |(row, _)| row.ip_kb),
    ("datagrams", 0, |(row, _)| row.datagrams),
    ("delivered %", 2, |(row, _)| row.delivered_percent),
    ("p99 / frugal", 2, |(_, ratio)| *ratio),
];

/// The ways to repair, the cheapest first: gains are measured against it.
const MODES: [(&str, Repair); 3] = [
    ("frugal", Repair::Frugal),
    ("balanced", Repair::Balanced),
    ("fast", Repair::Fast),
];

/// Most milliseconds at the 99th percentile and most kB of IP packets, both ways.
const LIMITS: &[(VirtualCase, &str, &str, f64, f64)] = &[
    (VirtualCase::W3Loss5, "loss5", "frugal", 220.0, 710.0),
    (VirtualCase::W3Loss10, "loss10", "frugal", 275.0, 745.0),
    (VirtualCase::W3Loss5, "loss5", "balanced", 150.0, 800.0),
    (VirtualCase::W3Loss10, "loss10", "balanced", 205.0, 820.0),
    (VirtualCase::W3Loss5, "loss5", "fast", 85.0, 1_040.0),
    (VirtualCase::W3Loss10, "loss10", "fast", 115.0, 1_060.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_judged_by_latency_and_bytes_and_says_what_got_lost() {
        let row = VirtualRow {
            case: VirtualCase::W3Loss5,
            mode: "fast",
            seeds: 1,
            p50_ms: 55.0,
            p95_ms: 60.0,
            p99_ms: 85.5,
            max_ms: 200.0,
            ip_kb: 1_039.0,
            datagrams: 7_000.0,
            delivered_percent: 99.9,
        };
        let lines: Vec<String> = bars(&[row]).iter().map(Bar::line).collect();
        let expected = [
            "w3_loss5_fast_p99_ms 85.500 85.000 short",
            "w3_loss5_fast_ip_kilobytes 1039.000 1040.000 ok",
            "virtual_w3loss5_fast_delivered_percent 99.900 100.000 short",
        ];
        assert_eq!(lines, expected);
    }
}
