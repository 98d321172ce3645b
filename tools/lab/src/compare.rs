//! Two runs side by side: what changed, for better or worse.

use crate::grid::{Better, Case, Column, Run, TABLE};
use crate::report::{case_cells, cell, escaped, number, page, table, word, write_to};

/// The differences between two runs.
///
/// ```
/// use muse_lab::compare::Comparison;
/// use muse_lab::grid::{Plan, Run};
/// use muse_lab::recording::Recording;
/// let plan = Plan::quick().with_seconds(1);
/// let cases = plan.cases();
/// let result = cases[0].run(&Recording::shipped(), 1, 1);
/// # let about = muse_lab::grid::About { seed: 1, seconds: 1, recordings: vec![], over: None };
/// let run = |results| Run { format: 1, about: about.clone(), cases: results };
/// let (before, mut after) = (run(vec![result.clone()]), run(vec![result]));
/// assert!(!Comparison::new(&before, &after).differs());
/// after.cases[0].figures.jumps_per_minute += 3.0;
/// let comparison = Comparison::new(&before, &after);
/// assert_eq!((comparison.changes().len(), comparison.worse()), (1, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Comparison {
    names: [String; 2],
    changes: Vec<Change>,
    only_before: Vec<Case>,
    only_after: Vec<Case>,
    cases: usize,
    is_other_plan: bool,
}

/// A figure of a case that is not what it was.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Of which case.
    pub case: Case,
    /// Which figure.
    pub column: &'static Column,
    /// Its value before.
    pub before: Option<f64>,
    /// Its value after.
    pub after: Option<f64>,
}

impl Change {
    /// True if that is worse; `None` if it is neither better nor worse.
    pub fn is_worse(&self) -> Option<bool> {
        let (before, after) = (self.before?, self.after?);
        match self.column.better {
            Better::Less => Some(after > before),
            Better::More => Some(after < before),
            Better::Neither => None,
        }
    }

    /// By how much it is more than it was, as a share.
    pub fn share(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before != 0.0).then(|| (after - before) / before.abs())
    }

    fn row(&self) -> Vec<String> {
        let class = match self.is_worse() {
            Some(true) => "worse",
            Some(false) => "better",
            None => "",
        };
        let share = self.share().map(|share| format!("{:+.1}", share * 100.0));
        let mut cells = case_cells(self.case);
        cells.push(word(self.column.name));
        cells.push(cell(number(self.before)));
        let after = number(self.after);
        cells.push(format!("<td class=\"{class}\">{after}</td>"));
        cells.push(cell(share.unwrap_or_default()));
        cells
    }
}

impl Comparison {
    /// Compares every figure of every case that both have.
    pub fn new(before: &Run, after: &Run) -> Self {
        let mut changes = Vec::new();
        let mut cases = 0;
        for result in &before.cases {
            let Some(other) = after.case(result.case) else {
                continue;
            };
            cases += 1;
            for column in &TABLE {
                let values = [result, other].map(|result| column.value(&result.figures));
                if values[0] != values[1] {
                    changes.push(Change {
                        case: result.case,
                        column,
                        before: values[0],
                        after: values[1],
                    });
                }
            }
        }
        let missing = |from: &Run, to: &Run| {
            let cases = from.cases.iter().map(|result| result.case);
            cases.filter(|case| to.case(*case).is_none()).collect()
        };
        Self {
            names: ["A".to_owned(), "B".to_owned()],
            changes,
            only_before: missing(before, after),
            only_after: missing(after, before),
            cases,
            is_other_plan: before.about != after.about,
        }
    }

    /// Names the two runs. By default, A and B.
    pub fn named(mut self, before: &str, after: &str) -> Self {
        self.names = [before.to_owned(), after.to_owned()];
        self
    }

    /// True if anything differs, including the cases that were run.
    pub fn differs(&self) -> bool {
        !(self.changes.is_empty() && self.only_before.is_empty() && self.only_after.is_empty())
    }

    /// Every figure that differs.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the number of changes that are worse.
    pub fn worse(&self) -> usize {
        let worse = |change: &&Change| change.is_worse() == Some(true);
        self.changes.iter().filter(worse).count()
    }

    /// For reading in a terminal: sums for each figure, then the largest changes.
    pub fn text(&self) -> String {
        let mut text = self.summary() + "\n";
        for line in self.by_figure() {
            let (column, better, worse, mean) = line;
            let unit = column.unit;
            write_to(
                &mut text,
                format_args!(
                    "  {:24} better in {better:3}, worse in {worse:3} cases, {mean:+.3} {unit} in the mean\n",
                    column.name
                ),
            );
        }
        let largest = self.largest(LINES_MAX);
        if !largest.is_empty() {
            text.push_str("largest changes:\n");
        }
        for change in largest {
            write_to(
                &mut text,
                format_args!(
                    "  {}: {} {} -> {} {}{}\n",
                    change.case.name(),
                    change.column.name,
                    number(change.before),
                    number(change.after),
                    change.column.unit,
                    match change.is_worse() {
                        Some(true) => " (worse)",
                        Some(false) => " (better)",
                        None => "",
                    }
                ),
            );
        }
        text
    }

    /// For reading in a browser: the same with every change in a table.
    pub fn html(&self) -> String {
        let mut body = format!(
            "<h1>Two runs side by side</h1>\n<p class=\"lead\">{}</p>\n",
            escaped(&self.summary())
        );
        let by_figure = self.by_figure().into_iter();
        let rows = by_figure.map(|(column, better, worse, mean)| {
            vec![
                word(column.name),
                cell(column.unit),
                cell(better),
                cell(worse),
                cell(format!("{mean:+.3}")),
            ]
        });
        body.push_str("<h2>By figure</h2>\n");
        let heads = [
            "figure",
            "unit",
            "cases better",
            "cases worse",
            "mean change",
        ];
        body.push_str(&table("", &heads, rows));
        body.push_str("<h2>Every change</h2>\n");
        let [before, after] = self.names.each_ref().map(|name| escaped(name));
        let heads = ["RTT ms", "jitter %", "loss %", "mechanisms", "figure"];
        let heads = [&heads[..], &[&before, &after, "change %"]].concat();
        body.push_str(&table("", &heads, self.changes.iter().map(Change::row)));
        page("Muse laboratory: two runs", &body)
    }

    fn summary(&self) -> String {
        let [before, after] = &self.names;
        let mut text = format!(
            "{before} and {after}: {} figures differ in {} cases of both",
            self.changes.len(),
            self.cases
        );
        if !self.changes.is_empty() {
            write_to(&mut text, format_args!(", {} of them worse", self.worse()));
        }
        for (missing, name) in [(&self.only_before, before), (&self.only_after, after)] {
            if !missing.is_empty() {
                write_to(
                    &mut text,
                    format_args!("; {} cases only in {name}", missing.len()),
                );
            }
        }
        if self.is_other_plan {
            text.push_str("; seeds, lengths or recordings are not the same");
        }
        text
    }

    /// For each figure that changed: in how many cases it is better and worse, and its mean change over all cases.
    fn by_figure(&self) -> Vec<(&'static Column, usize, usize, f64)> {
        let mut lines = Vec::new();
        for column in &TABLE {
            let changes = || {
                self.changes
                    .iter()
                    .filter(|change| change.column.key == column.key)
            };
            if changes().next().is_none() {
                continue;
            }
            let count = |worse| {
                changes()
                    .filter(|change| change.is_worse() == Some(worse))
                    .count()
            };
            let differences = changes().filter_map(|change| Some(change.after? - change.before?));
            let mean = differences.sum::<f64>() / self.cases.max(1) as f64;
            lines.push((column, count(false), count(true), mean));
        }
        lines
    }

    /// The changes that are largest for their size.
    fn largest(&self, count: usize) -> Vec<Change> {
        let mut changes = self.changes.clone();
        let size = |change: &Change| change.share().map_or(f64::INFINITY, f64::abs);
        changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
        changes.truncate(count);
        changes
    }
}

/// Of changes that are printed.
const LINES_MAX: usize = 20;
