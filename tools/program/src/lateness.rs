//! The lateness of ticks: the figure by which a server's load is judged.

use std::fmt;

use hdrhistogram::Histogram;
use muse_wire::Duration;
use serde::{Deserialize, Serialize};

/// A histogram of how late ticks were, to two digits.
#[derive(Clone, Debug)]
pub struct Lateness {
    micros: Histogram<u32>,
    most: Duration,
}

/// The figures of a [`Lateness`], in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Late {
    /// Ticks that were counted.
    pub ticks: u64,
    /// The median.
    pub p50_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The latest tick.
    pub most_ms: f64,
}

impl Default for Lateness {
    fn default() -> Self {
        let micros = Histogram::new_with_max(MICROS_MAX, DIGITS);
        Self {
            micros: micros.expect("the limits are in order"),
            most: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// Counts a tick that was late by this much.
    pub fn note(&mut self, late: Duration) {
        self.micros.saturating_record(late.as_micros());
        self.most = self.most.max(late);
    }

    /// Returns the mean, percentiles and maximum so far.
    pub fn figures(&self) -> Late {
        Late {
            ticks: self.micros.len(),
            p50_ms: self.quantile_ms(0.5),
            p99_ms: self.quantile_ms(0.99),
            most_ms: self.most.as_secs_f64() * 1e3,
        }
    }

    fn quantile_ms(&self, share: f64) -> f64 {
        self.micros.value_at_quantile(share) as f64 / 1e3
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.figures();
        write!(
            f,
            "{} ticks; late by {:.2} ms at the median, {:.2} ms at the 99th percentile, {:.2} ms at most",
            late.ticks, late.p50_ms, late.p99_ms, late.most_ms
        )
    }
}

/// Longer delays are counted as this.
const MICROS_MAX: u64 = 60_000_000;
/// Significant digits of the histogram.
const DIGITS: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_from_the_histogram() {
        let mut lateness = Lateness::default();
        for micros in 0..1_000 {
            lateness.note(Duration::from_micros(micros));
        }
        lateness.note(Duration::from_secs(9));
        let late = lateness.figures();
        assert_eq!(late.ticks, 1_001);
        assert!((late.p50_ms - 0.55).abs() < 0.051, "{late:?}");
        assert!((late.p99_ms - 1.0).abs() < 0.051, "{late:?}");
        assert_eq!(late.most_ms, 9_000.0);
    }
}
