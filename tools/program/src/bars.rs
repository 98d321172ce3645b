//! Bars: figures of Muse with the limits that they have to keep, each a line `name value limit ok|short`.

use std::process::ExitCode;

use serde::Serialize;

/// A figure of Muse and its limit.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// Name of the measurement, without blanks.
    pub name: String,
    /// The figure; absent when it could not be measured.
    pub value: Option<f64>,
    /// The limit; absent when the peer that sets it could not be measured.
    pub limit: Option<f64>,
    /// True if the value has to reach the limit, rather than stay within it.
    pub at_least: bool,
}

impl Bar {
    /// A bar that a figure must not exceed.
    pub fn at_most(
        name: impl Into<String>,
        value: impl Into<Option<f64>>,
        limit: impl Into<Option<f64>>,
    ) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            limit: limit.into(),
            at_least: false,
        }
    }

    /// A bar that a figure must reach.
    pub fn at_least(name: impl Into<String>, value: impl Into<Option<f64>>, limit: f64) -> Self {
        Self {
            at_least: true,
            ..Self::at_most(name, value, limit)
        }
    }

    /// True if the bar is cleared. A missing measurement falls short.
    pub fn is_cleared(&self) -> bool {
        match (self.value, self.limit) {
            (Some(value), Some(limit)) if self.at_least => value >= limit,
            (Some(value), Some(limit)) => value <= limit,
            _ => false,
        }
    }

    /// The share of the limit that is used up: above 1 falls short. Bars of one name have one direction.
    fn used(&self) -> f64 {
        match (self.value, self.limit) {
            (Some(value), Some(limit)) if self.at_least => limit / value,
            (Some(value), Some(limit)) => value / limit,
            _ => f64::INFINITY,
        }
    }

    /// The bar's line.
    pub fn line(&self) -> String {
        let number = |value: Option<f64>| {
            value.map_or("unmeasured".to_owned(), |value| format!("{value:.3}"))
        };
        let verdict = if self.is_cleared() { "ok" } else { "short" };
        format!(
            "{} {} {} {verdict}",
            self.name,
            number(self.value),
            number(self.limit)
        )
    }
}

/// Measures bars that must hold together. If one falls short, measures [`ROUNDS`] times in all and judges each bar by its median: one
/// disturbance from outside, on a machine that others use too, decides nothing. `measure` is told if it is a repetition, so that it
/// measures anew what it compares with.
pub fn settle(
    mut measure: impl FnMut(bool) -> anyhow::Result<Vec<Bar>>,
) -> anyhow::Result<Vec<Bar>> {
    let first = measure(false)?;
    let short = |bar: &&Bar| !bar.is_cleared();
    let Some(bar) = first.iter().find(short) else {
        return Ok(first);
    };
    println!("  {}: measuring again, the median counts", bar.line());
    let mut rounds: Vec<_> = first.into_iter().map(|bar| vec![bar]).collect();
    for _ in 1..ROUNDS {
        let again = measure(true)?;
        for (bars, bar) in rounds.iter_mut().zip(again) {
            bars.push(bar);
        }
    }
    let median = |mut bars: Vec<Bar>| {
        bars.sort_by(|one, other| one.used().total_cmp(&other.used()));
        bars.swap_remove(bars.len() / 2)
    };
    Ok(rounds.into_iter().map(median).collect())
}

/// Prints the bars and says what to exit with.
pub fn judge(bars: &[Bar]) -> ExitCode {
    for bar in bars {
        println!("{}", bar.line());
    }
    match bars.iter().all(Bar::is_cleared) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    }
}

const ROUNDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_falls_short_once_is_judged_by_the_median() {
        let settled = |values: [f64; 3]| {
            let mut rounds = values.into_iter();
            let bars = settle(|_| {
                let value = rounds.next();
                Ok(vec![
                    Bar::at_most("most", value, 2.0),
                    Bar::at_least("least", 5.0, 5.0),
                ])
            });
            let left = rounds.count();
            let cleared = bars.expect("bars").iter().all(Bar::is_cleared);
            (cleared, left)
        };
        assert_eq!(settled([1.0, 9.0, 9.0]), (true, 2), "not repeated");
        assert_eq!(settled([3.0, 1.0, 1.0]), (true, 0));
        assert_eq!(settled([3.0, 1.0, 3.0]), (false, 0));
    }

    #[test]
    fn what_could_not_be_measured_does_not_hold() {
        let bars = settle(|again| Ok(vec![Bar::at_least("x", again.then_some(0.0), 1.0)]));
        assert!(!bars.expect("bars")[0].is_cleared());
    }

    #[test]
    fn a_bar_says_whether_it_is_cleared() {
        let bar = |value, at_least| Bar {
            name: "x".to_owned(),
            value,
            limit: Some(2.0),
            at_least,
        };
        assert_eq!(bar(Some(2.0), false).line(), "x 2.000 2.000 ok");
        assert_eq!(bar(Some(2.1), false).line(), "x 2.100 2.000 short");
        assert_eq!(bar(Some(2.1), true).line(), "x 2.100 2.000 ok");
        assert_eq!(bar(None, true).line(), "x unmeasured 2.000 short");
    }
}
