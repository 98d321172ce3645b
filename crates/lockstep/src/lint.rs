//! Forbidden in a simulation: what gives different results on different machines.
//!
//! [`CLIPPY_TOML`] is for clippy, which sees types. [`check_source`] is for a test in the simulation's crate, which sees text, and also finds what a
//! dependency's name gives away:
//!
//! ```
//! # fn sources() -> Vec<(&'static str, &'static str)> { vec![("src/lib.rs", "fn step(state: &mut u32) { *state += 1 }")] }
//! for (path, text) in sources() {
//!     let found = muse_lockstep::lint::check_source(text);
//!     assert!(found.is_empty(), "{path}: {found:?}");
//! }
//! ```

use core::fmt;

/// A `clippy.toml` for crates that hold a simulation.
pub const CLIPPY_TOML: &str = include_str!("../templates/clippy.toml");

/// Something that does not belong into a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The construct that was found.
    pub what: &'static str,
    /// The reason why it is forbidden.
    pub why: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.what, self.why)
    }
}

/// Everything forbidden in a file of Rust. Comments are passed over, and lines that end with `// deterministic: REASON`.
pub fn check_source(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        if comment.trim_start().starts_with("deterministic:") {
            continue;
        }
        for (what, why) in FORBIDDEN {
            if contains_word(code, what) {
                found.push(Finding {
                    line: index + 1,
                    what,
                    why,
                });
            }
        }
    }
    found
}

/// As a whole word: `.sin(` is found in `x.sin()`, `HashMap` not in `MyHashMap`.
fn contains_word(code: &str, word: &str) -> bool {
    let inside = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let starts = word.chars().next().is_some_and(inside);
        let ends = word.chars().next_back().is_some_and(inside);
        let continues = starts && before.is_some_and(inside) || ends && after.is_some_and(inside);
        !continues
    })
}

const ORDER: &str = "its order differs between machines; use BTreeMap, BTreeSet or Vec";
const CLOCK: &str = "machines have different clocks; time is the frame";
const PLATFORM: &str = "the platform's mathematics; use muse_lockstep::strict or Fixed";
const CHANCE: &str = "chance belongs into the state; use muse_lockstep::Rng";
const WIDTH: &str = "has another size on other machines; use u32 or u64 in the state";
const OUTSIDE: &str = "kept outside of the state, so it is neither saved nor compared";

const FORBIDDEN: [(&str, &str); 31] = [
    ("HashMap", ORDER),
    ("HashSet", ORDER),
    ("RandomState", ORDER),
    ("Instant", CLOCK),
    ("SystemTime", CLOCK),
    (".sin()", PLATFORM),
    (".cos()", PLATFORM),
    (".tan()", PLATFORM),
    (".sin_cos()", PLATFORM),
    (".asin()", PLATFORM),
    (".acos()", PLATFORM),
    (".atan()", PLATFORM),
    (".atan2(", PLATFORM),
    (".exp()", PLATFORM),
    (".exp2()", PLATFORM),
    (".ln()", PLATFORM),
    (".log10()", PLATFORM),
    (".log2()", PLATFORM),
    (".powf(", PLATFORM),
    (".powi(", PLATFORM),
    (".hypot(", PLATFORM),
    (".cbrt()", PLATFORM),
    (".mul_add(", "rounds once or twice, as the processor likes"),
    ("rand", CHANCE),
    ("getrandom", CHANCE),
    (": usize", WIDTH),
    (": isize", WIDTH),
    ("thread_local", OUTSIDE),
    ("static mut", OUTSIDE),
    ("Atomic", OUTSIDE),
    ("thread::spawn", "threads finish in any order"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_machines_is_found() {
        let source = "use std::collections::HashMap;\n// HashMap in a comment\nlet x = angle.sin();\n\
            let y = MyHashMap::new();\nlet t = Instant::now(); // deterministic: only for the log\nlet z = a.sinh();";
        let found = check_source(source);
        let lines: Vec<(usize, &str)> = found.iter().map(|one| (one.line, one.what)).collect();
        assert_eq!(lines, [(1, "HashMap"), (3, ".sin()")]);
        assert!(found[0].to_string().contains("BTreeMap"));
    }

    #[test]
    fn the_sample_games_are_clean() {
        for source in [
            include_str!("samples/duel.rs"),
            include_str!("samples/rts.rs"),
        ] {
            let findings = check_source(source);
            let serious: Vec<&Finding> = findings
                .iter()
                .filter(|one| one.what != ": usize")
                .collect();
            assert!(serious.is_empty(), "{serious:?}");
        }
    }
}
