//! Medians, spreads and quantiles.

use serde::Serialize;

/// A figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// The middle value, or the mean of the middle two.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
}

impl Figure {
    /// The figure of these values, or `None` when there are none.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        Some(Self { median, min, max })
    }

    /// The median of these values alone.
    pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
        Self::of(values).map(|figure| figure.median)
    }

    /// The median with the smallest and the largest value.
    pub(crate) fn spread(&self, digits: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$}..{max:.digits$})")
    }
}

/// The value below which a share of the sorted values lies, or `None` when there are none.
pub(crate) fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let figure = |values: &[f64]| Figure::of(values.iter().copied());
        assert_eq!(figure(&[]), None);
        let odd = figure(&[3.0, 1.0, 2.0]).expect("values");
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 3.0));
        assert_eq!(figure(&[4.0, 1.0]).map(|even| even.median), Some(2.5));
    }
}
