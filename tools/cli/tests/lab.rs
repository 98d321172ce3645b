//! `muse lab run` twice: the same bytes, with one thread or with two.

use std::path::Path;
use std::process::Command;

#[test]
fn a_run_has_the_same_bytes_every_time() {
    let first = run("first", "1");
    assert!(first.len() > 10_000, "{} bytes", first.len());
    // Compared as a whole: to print both would help nobody.
    assert!(first == run("second", "2"), "two runs differ");
}

/// The numbers of a run, as it writes them.
fn run(name: &str, threads: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-run-{name}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_muse"));
    command
        .args(["lab", "run", "--quick", "--check", "--threads", threads])
        .arg("--out")
        .arg(&folder);
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(folder.join("run.json"));
    text.expect("it was written")
}
