//! Means and how sure they are.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mean, and the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// From here.
    pub low: f64,
    /// To here.
    pub high: f64,
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.mean, self.low, self.high)
    }
}

/// The mean of independent values that are not negative, with Student's interval, of which nothing is below zero.
///
/// ```
/// use muse_lab::ab::estimate;
/// let estimate = estimate([4.0, 5.0, 6.0]);
/// assert_eq!(estimate.mean, 5.0);
/// // 4.303 deviations of the mean on either side, for two degrees of freedom.
/// assert!((estimate.high - 7.484).abs() < 0.001);
/// ```
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    let values: Vec<f64> = values.into_iter().collect();
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    let variance = squares.sum::<f64>() / (count - 1.0).max(1.0);
    let half = student(values.len().saturating_sub(1)) * (variance / count).sqrt();
    let round = |value: f64| (value * 1e4).round() / 1e4;
    Estimate {
        mean: round(mean),
        low: round((mean - half).max(0.0)),
        high: round(mean + half),
    }
}

/// The 97.5 % quantile of Student's distribution.
fn student(degrees: usize) -> f64 {
    match degrees {
        0 => 0.0,
        1..=10 => STUDENT[degrees - 1],
        11..=14 => 2.2,
        15..=19 => 2.13,
        20..=29 => 2.09,
        30..=59 => 2.04,
        _ => 2.0,
    }
}

/// For 1 to 10 degrees of freedom; beyond, the larger value of each range is taken.
const STUDENT: [f64; 10] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
];
