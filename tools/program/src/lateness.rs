//! How late ticks were: the figure by which a server's load is judged.

use std::fmt;

use muse_wire::Duration;
use serde::{Deserialize, Serialize};

/// Counts of latenesses in classes of 50 microseconds; what is later than the last class counts there.
#[derive(Clone, Debug)]
pub struct Lateness {
    classes: Vec<u32>,
    ticks: u64,
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
        Self {
            classes: vec![0; CLASSES],
            ticks: 0,
            most: Duration::ZERO,
        }
    }
}

impl Lateness {
    /// A tick came so late.
    pub fn note(&mut self, late: Duration) {
        let class = usize::try_from(late.as_micros() / CLASS_MICROS).unwrap_or(CLASSES);
        self.classes[class.min(CLASSES - 1)] += 1;
        self.ticks += 1;
        self.most = self.most.max(late);
    }

    /// What it comes to.
    pub fn figures(&self) -> Late {
        Late {
            ticks: self.ticks,
            p50_ms: self.quantile_ms(0.5),
            p99_ms: self.quantile_ms(0.99),
            most_ms: self.most.as_secs_f64() * 1e3,
        }
    }

    /// The upper end of the class in which so large a share of the ticks has been reached.
    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (self.ticks as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return (class as u64 + 1) as f64 * CLASS_MICROS as f64 / 1e3;
            }
        }
        self.most.as_secs_f64() * 1e3
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

/// Width of a class.
const CLASS_MICROS: u64 = 50;
/// Up to 200 ms.
const CLASSES: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_from_the_classes() {
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
