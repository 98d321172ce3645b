//! A memory for the operators' page of what nobody stores: figures of the last hour, and what the master did about each match.

use std::collections::VecDeque;
use std::sync::Mutex;

use muse_master_client::MatchId;
use rustc_hash::FxHashMap;

use crate::clock;
use crate::hub::lock;
use crate::operators::{LogLine, Sample};

/// The memory of one master; it starts over with the process.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    samples: Mutex<VecDeque<Sample>>,
    matches: Mutex<Matches>,
}

#[derive(Debug, Default)]
struct Matches {
    lines: FxHashMap<MatchId, Vec<LogLine>>,
    order: VecDeque<MatchId>,
}

impl Journal {
    /// One more sample; the oldest is forgotten.
    pub(crate) fn sample(&self, sample: Sample) {
        let mut samples = lock(&self.samples);
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// All samples, oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        lock(&self.samples).iter().copied().collect()
    }

    /// Something happened to a match.
    pub(crate) fn note(&self, match_id: MatchId, text: impl Into<String>) {
        let mut matches = lock(&self.matches);
        if !matches.lines.contains_key(&match_id) {
            if matches.order.len() == MATCHES_MAX
                && let Some(oldest) = matches.order.pop_front()
            {
                matches.lines.remove(&oldest);
            }
            matches.order.push_back(match_id);
        }
        let lines = matches.lines.entry(match_id).or_default();
        if lines.len() < LINES_MAX {
            lines.push(LogLine {
                at_ms: clock::now().as_millis(),
                text: text.into(),
            });
        }
    }

    /// Returns the log of a match, oldest first.
    pub(crate) fn lines(&self, match_id: MatchId) -> Vec<LogLine> {
        lock(&self.matches)
            .lines
            .get(&match_id)
            .cloned()
            .unwrap_or_default()
    }
}

/// Time between two samples, in seconds.
pub(crate) const SAMPLE_EVERY_S: u64 = 5;
/// An hour of them.
const SAMPLES_MAX: usize = 720;
/// Matches that are remembered, and lines of each.
const MATCHES_MAX: usize = 1_000;
const LINES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_things_are_forgotten() {
        let journal = Journal::default();
        for n in 0..2_000 {
            journal.note(MatchId(n), "made");
            journal.sample(Sample {
                at_ms: n,
                ..Sample::default()
            });
        }
        assert!(journal.lines(MatchId(0)).is_empty());
        assert_eq!(journal.lines(MatchId(1_999)).len(), 1);
        let samples = journal.samples();
        assert_eq!((samples.len(), samples[0].at_ms), (720, 1_280));
        for _ in 0..500 {
            journal.note(MatchId(1_999), "again");
        }
        assert_eq!(journal.lines(MatchId(1_999)).len(), LINES_MAX);
    }
}
