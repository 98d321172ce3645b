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
    /// True if the value is a time or a ratio of times, which whatever else runs on the machine makes worse.
    pub timed: bool,
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
            timed: false,
        }
    }

    /// A bar that a figure must reach.
    pub fn at_least(name: impl Into<String>, value: impl Into<Option<f64>>, limit: f64) -> Self {
        Self {
            at_least: true,
            ..Self::at_most(name, value, limit)
        }
    }

    /// Marks the figure as one that depends on time.
    #[must_use]
    pub fn timed(self) -> Self {
        Self {
            timed: true,
            ..self
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

/// The way in which repeated measurements of a bar become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The median of three rounds: for figures that are to be believed.
    Median,
    /// A bar that depends on time falls short only if it does in each of five rounds; every other is judged by the median of three. For a gate on
    /// a machine that others use too: what became slower falls short every time, a disturbance does not.
    Regression,
}

impl Verdict {
    /// [`Regression`](Self::Regression) for a shortened run.
    pub fn of(quick: bool) -> Self {
        match quick {
            true => Self::Regression,
            false => Self::Median,
        }
    }

    /// Rounds in all that bars need, after those that there are.
    fn rounds(self, rounds: &[Vec<Bar>]) -> usize {
        let is_short = |bar: &Bar| !bar.is_cleared();
        let best_suffices = |bar: &Bar| self == Self::Regression && bar.timed;
        let of_bar = |bars: &Vec<Bar>| match bars.iter().any(is_short) {
            false => 1,
            true if !bars.first().is_some_and(best_suffices) => ROUNDS,
            true if bars.iter().all(is_short) => ROUNDS_MAX,
            true => 1,
        };
        rounds.iter().map(of_bar).max().unwrap_or(1)
    }

    /// The round of a bar that counts.
    fn judge(self, mut bars: Vec<Bar>) -> Bar {
        let best = self == Self::Regression && bars.first().is_some_and(|bar| bar.timed);
        if !best {
            bars.truncate(ROUNDS);
        }
        bars.sort_by(|one, other| one.used().total_cmp(&other.used()));
        let place = if best { 0 } else { bars.len() / 2 };
        bars.swap_remove(place)
    }
}

/// Measures bars that must hold together. If one falls short, measures again as often as the verdict needs: one disturbance from outside,
/// on a machine that others use too, decides nothing. `measure` is told if it is a repetition, so that it measures anew what it compares with.
pub fn settle(
    verdict: Verdict,
    mut measure: impl FnMut(bool) -> anyhow::Result<Vec<Bar>>,
) -> anyhow::Result<Vec<Bar>> {
    let mut rounds: Vec<_> = measure(false)?.into_iter().map(|bar| vec![bar]).collect();
    let mut measured = 1;
    while measured < verdict.rounds(&rounds) {
        let last = |bars: &Vec<Bar>| bars.last().filter(|bar| !bar.is_cleared()).map(Bar::line);
        for line in rounds.iter().filter_map(last) {
            println!("  {line}: measuring again");
        }
        for (bars, bar) in rounds.iter_mut().zip(measure(true)?) {
            bars.push(bar);
        }
        measured += 1;
    }
    Ok(rounds.into_iter().map(|bars| verdict.judge(bars)).collect())
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

/// Rounds of which the median counts.
const ROUNDS: usize = 3;
/// Rounds in which a bar has to fall short to be a regression.
const ROUNDS_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_falls_short_once_is_judged_by_the_median() {
        let settled = |values: [f64; 3]| {
            let mut rounds = values.into_iter();
            let bars = settle(Verdict::Median, |_| {
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

    /// Measures a bar that depends on time, below 2, and one that does not, which has to reach 5. Returns which hold, and how often they were measured.
    fn regression(timed: [f64; 5], other: [f64; 5]) -> ([bool; 2], usize) {
        let mut rounds = 0;
        let bars = settle(Verdict::Regression, |again| {
            assert_eq!(again, rounds > 0);
            rounds += 1;
            Ok(vec![
                Bar::at_most("p99", timed[rounds - 1], 2.0).timed(),
                Bar::at_least("delivered", other[rounds - 1], 5.0),
            ])
        });
        let bars = bars.expect("bars");
        ([bars[0].is_cleared(), bars[1].is_cleared()], rounds)
    }

    #[test]
    fn in_the_gate_a_time_falls_short_only_if_it_always_does() {
        let all = [5.0; 5];
        assert_eq!(regression([1.0; 5], all), ([true, true], 1));
        assert_eq!(regression([9.0, 1.0, 9.0, 9.0, 9.0], all).1, 2);
        let late = [9.0, 9.0, 9.0, 9.0, 1.0];
        assert_eq!(regression(late, all), ([true, true], 5));
        assert_eq!(regression([9.0; 5], all), ([false, true], 5));
    }

    #[test]
    fn in_the_gate_what_is_no_time_is_judged_by_the_median() {
        let once = [4.0, 5.0, 5.0, 4.0, 4.0];
        assert_eq!(regression([1.0; 5], once), ([true, true], 3));
        let twice = [4.0, 5.0, 4.0, 5.0, 5.0];
        assert_eq!(regression([1.0; 5], twice), ([true, false], 3));
        // Also while a time is measured again.
        assert_eq!(regression([9.0; 5], twice), ([false, false], 5));
        let later = [5.0, 4.0, 5.0, 4.0, 4.0];
        assert_eq!(regression([9.0; 5], later), ([false, true], 5));
    }

    #[test]
    fn what_could_not_be_measured_does_not_hold() {
        for verdict in [Verdict::of(false), Verdict::of(true)] {
            let measure = |again: bool| {
                let value = again.then_some(0.0);
                Ok(vec![
                    Bar::at_least("x", value, 1.0),
                    Bar::at_least("y", None, 1.0).timed(),
                ])
            };
            let bars = settle(verdict, measure).expect("bars");
            assert!(!bars[0].is_cleared() && !bars[1].is_cleared());
        }
    }

    #[test]
    fn a_bar_says_whether_it_is_cleared() {
        let bar = |value, at_least| Bar {
            name: "x".to_owned(),
            value,
            limit: Some(2.0),
            at_least,
            timed: false,
        };
        assert_eq!(bar(Some(2.0), false).line(), "x 2.000 2.000 ok");
        assert_eq!(bar(Some(2.1), false).line(), "x 2.100 2.000 short");
        assert_eq!(bar(Some(2.1), true).line(), "x 2.100 2.000 ok");
        assert_eq!(bar(None, true).line(), "x unmeasured 2.000 short");
    }
}
