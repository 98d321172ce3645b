//! The cases that are measured: the workloads with the networks they run through, in full or shortened.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// A workload as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkloadName {
    /// Many clients: 500 of them, echo of small messages.
    W1,
    /// One fat pipe: 1,000,000 reliable messages of 1,000 bytes.
    W2,
    /// Bad network: 110 ms round trip, 5 % and 10 % loss each way.
    W3,
    /// Reordering and bursts: jitter to 60 ms, losses in bursts.
    W4,
}

impl WorkloadName {
    /// The cases that this workload consists of.
    pub(crate) fn cases(self, quick: bool) -> &'static [Case] {
        match self {
            Self::W1 => &[Case::ManyClients],
            Self::W2 => &[Case::FatPipe],
            Self::W3 if quick => &[Case::Loss5],
            Self::W3 => &[Case::Loss5, Case::Loss10],
            Self::W4 => &[Case::Bursts],
        }
    }
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Case {
    /// W1.
    #[serde(rename = "w1")]
    ManyClients,
    /// W2.
    #[serde(rename = "w2")]
    FatPipe,
    /// W3 with 5 % loss each way.
    #[serde(rename = "w3-loss5")]
    Loss5,
    /// W3 with 10 % loss each way.
    #[serde(rename = "w3-loss10")]
    Loss10,
    /// W4.
    #[serde(rename = "w4")]
    Bursts,
}

/// The size of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Number of clients in the client's process.
    pub(crate) clients: usize,
    /// Time that W1 and W3 send.
    pub(crate) seconds: u64,
    /// Number of messages that W2 sends.
    pub(crate) messages: u64,
}

impl Case {
    /// The workload's name for the programs under test.
    pub(crate) fn workload(self) -> &'static str {
        match self {
            Self::ManyClients => "w1",
            Self::FatPipe => "w2",
            Self::Loss5 | Self::Loss10 => "w3",
            Self::Bursts => "w4",
        }
    }

    /// The title for readers.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::ManyClients => {
                "W1: 500 clients, 20 unreliable and 2 reliable messages/s of 64 bytes each, echoed"
            }
            Self::FatPipe => "W2: reliable messages of 1,000 bytes, one connection",
            Self::Loss5 => {
                "W3: 60 reliable-ordered messages/s of 100 bytes, 50 + 0..10 ms one way, 5 % loss each way"
            }
            Self::Loss10 => {
                "W3: 60 reliable-ordered messages/s of 100 bytes, 50 + 0..10 ms one way, 10 % loss each way"
            }
            Self::Bursts => {
                "W4: 60 reliable-ordered messages/s of 100 bytes, 50 + 0..60 ms one way, 5 % loss in bursts of 4"
            }
        }
    }

    /// The arguments of the proxy in between, if the case has one.
    pub(crate) fn network(self) -> Option<&'static str> {
        match self {
            Self::ManyClients | Self::FatPipe => None,
            Self::Loss5 => Some("--jitter-ms 10 --loss 0.05"),
            Self::Loss10 => Some("--jitter-ms 10 --loss 0.10"),
            Self::Bursts => Some("--jitter-ms 60 --loss 0.05 --burst 4"),
        }
    }

    /// Returns how much of it to run.
    pub(crate) fn size(self, quick: bool) -> Size {
        let seconds = match (self, quick) {
            (Self::ManyClients, false) => 20,
            (Self::ManyClients, true) => 2,
            (_, false) => 60,
            (_, true) => 3,
        };
        Size {
            clients: if self == Self::ManyClients { 500 } else { 1 },
            seconds,
            messages: if quick { 100_000 } else { 1_000_000 },
        }
    }

    /// The longest that a sound run takes from start mark to end mark.
    pub(crate) fn time_max(self, size: Size) -> Duration {
        match self {
            Self::FatPipe => Duration::from_secs(60 + size.messages / 4_000),
            _ => Duration::from_secs(size.seconds + 30),
        }
    }
}
