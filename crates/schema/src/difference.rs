//! The differences between two sides' descriptions, found by comparing lines of text and reported in words that point at the field.

use std::collections::BTreeMap;
use std::fmt;

/// A line that two descriptions do not have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Only this side has a line that begins so.
    OnlyHere {
        /// The line.
        here: String,
    },
    /// Only the peer has a line that begins so.
    OnlyThere {
        /// The line.
        there: String,
    },
    /// Both sides have a line that begins so, but not the same.
    Changed {
        /// The line on this side.
        here: String,
        /// The line at the peer.
        there: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyHere { here } => write!(f, "`{here}` only here"),
            Self::OnlyThere { there } => write!(f, "`{there}` only there"),
            Self::Changed { here, there } => {
                let (one, other) = (Parts::of(here), Parts::of(there));
                if one.head == other.head {
                    write!(f, "`{}` differs: ", one.head)?;
                    one.tell(&other, f)
                } else {
                    write!(f, "`{here}` here, `{there}` there")
                }
            }
        }
    }
}

/// Compares two descriptions, such as those of [`Registry::describe`](crate::Registry::describe), line by line.
///
/// Lines belong together if they begin with the same number, or else with the same two words: `7 Say { .. }`, `channel 0 ..`,
/// `tick rate 50`. Differences come in the order of numbers, then of words. Empty lines are passed over; of several lines that begin
/// alike the last one counts.
///
/// ```
/// let here = "7 Say { text: text max 200 }\ntick rate 50\n";
/// let there = "7 Say { text: text max 100 }\ntick rate 50\n";
/// let differences = muse_schema::diff(here, there);
/// assert_eq!(differences[0].to_string(), "`7 Say` differs: text: text max 200 here, text: text max 100 there");
/// assert_eq!(differences.len(), 1);
/// ```
pub fn diff(here: &str, there: &str) -> Vec<Difference> {
    let (here, there) = (lines_by_key(here), lines_by_key(there));
    let mut keys: Vec<Key<'_>> = here.keys().chain(there.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let differences = keys.into_iter().filter_map(|key| {
        let (here, there) = (here.get(&key).copied(), there.get(&key).copied());
        match (here.map(str::to_owned), there.map(str::to_owned)) {
            (Some(here), Some(there)) if here == there => None,
            (Some(here), Some(there)) => Some(Difference::Changed { here, there }),
            (Some(here), None) => Some(Difference::OnlyHere { here }),
            (None, there) => there.map(|there| Difference::OnlyThere { there }),
        }
    });
    differences.collect()
}

/// The subject of a line. Numbers come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Number(u64),
    Words(&'a str),
}

impl<'a> Key<'a> {
    fn of(line: &'a str) -> Self {
        let first = line.split(' ').next().unwrap_or(line);
        if let Ok(number) = first.parse() {
            return Self::Number(number);
        }
        let second = line.get(first.len() + 1..).unwrap_or("").split(' ').next();
        let len = first.len() + second.map_or(0, |second| second.len() + 1);
        Self::Words(line.get(..len).unwrap_or(line))
    }
}

fn lines_by_key(description: &str) -> BTreeMap<Key<'_>, &str> {
    let lines = description.lines().filter(|line| !line.is_empty());
    lines.map(|line| (Key::of(line), line)).collect()
}

/// A described type taken apart: what stands before its brackets, and what stands between them.
struct Parts<'a> {
    head: &'a str,
    items: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(line: &'a str) -> Self {
        let open = [" { ", " < ", " | "]
            .iter()
            .filter_map(|open| line.find(open))
            .min();
        let (head, rest) = open.map_or((line, ""), |at| line.split_at(at));
        // Three bytes open, and two close: a space and a bracket.
        let inner = rest.get(3..).unwrap_or("");
        let inner = inner.get(..inner.len().saturating_sub(2)).unwrap_or(inner);
        Self {
            head,
            items: split(inner),
        }
    }

    /// Says which items differ.
    fn tell(&self, other: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_name = |items: &[&'a str]| -> BTreeMap<&'a str, &'a str> {
            items.iter().map(|item| (name(item), *item)).collect()
        };
        let (ours, theirs) = (by_name(&self.items), by_name(&other.items));
        let mut separator = "";
        for item in &self.items {
            match theirs.get(name(item)) {
                Some(there) if there == item => continue,
                Some(there) => write!(f, "{separator}{item} here, {there} there")?,
                None => write!(f, "{separator}{item} only here")?,
            }
            separator = "; ";
        }
        for item in &other.items {
            if !ours.contains_key(name(item)) {
                write!(f, "{separator}{item} only there")?;
                separator = "; ";
            }
        }
        if separator.is_empty() {
            f.write_str("its parts are in another order")?;
        }
        Ok(())
    }
}

/// The name of a field or variant.
fn name(item: &str) -> &str {
    item.split([':', ' ']).next().unwrap_or(item)
}

/// Splits at the commas that are in no bracket.
fn split(inner: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut in_columns, mut start) = (0_usize, false, 0);
    for (at, character) in inner.char_indices() {
        match character {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            // Columns stand between two bars, and have no columns in them.
            '|' => in_columns = !in_columns,
            ',' if depth == 0 && !in_columns => {
                items.push(inner[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = inner[start..].trim();
    if !last.is_empty() {
        items.push(last);
    }
    items
}
