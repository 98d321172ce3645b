//! Counts instructions with valgrind's callgrind: the same figure in every run, unlike time.

use std::fs;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::role::own_path;

/// Runs this program with these arguments and counts in functions of this name alone. Returns the count and the
/// program's output.
pub(crate) fn count(function: &str, arguments: &[&str]) -> anyhow::Result<(u64, String)> {
    let name = format!("muse-callgrind-{}-{function}", std::process::id());
    let profile = std::env::temp_dir().join(name);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(own_path()?)
        .args(arguments)
        .output()
        .context("cannot run valgrind; install it to count instructions")?;
    let counted = fs::read_to_string(&profile).unwrap_or_default();
    // A file that stays behind in the temporary place harms nobody.
    let _ = fs::remove_file(&profile);
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or("silently");
        bail!("{function} failed under valgrind: {last}");
    }
    let count = instructions_in(&counted).context("callgrind counted nothing")?;
    ensure!(count > 0, "callgrind did not find the function {function}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((count, text))
}

/// The sum that callgrind writes at the end of its profile.
fn instructions_in(profile: &str) -> Option<u64> {
    let mut lines = profile.lines().rev();
    let sum = lines.find_map(|line| line.strip_prefix("totals:"));
    sum?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_at_the_end() {
        let profile = "events: Ir\nfn=(1)\n5 7\ntotals: 1234\n";
        assert_eq!(instructions_in(profile), Some(1_234));
        assert_eq!(instructions_in("events: Ir\n"), None);
    }
}
