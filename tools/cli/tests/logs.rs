//! Log lines of the shipped program, as text and as JSON.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Runs a master until it is ready, and returns what it wrote to standard error by its end.
fn lines_of_a_master(options: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let directory = TempDir::new().expect("a directory");
    let mut master = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(["master", "--listen", "127.0.0.1:0", "--drain-seconds", "0"])
        .args(options)
        .current_dir(directory.path())
        .env("RUST_LOG", "info")
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut ready = String::new();
    let stdout = master.stdout.take().expect("piped");
    BufReader::new(stdout)
        .read_line(&mut ready)
        .expect("a line");
    assert!(ready.starts_with("http://"), "{ready}");
    let told = Command::new("kill").arg(master.id().to_string()).status();
    assert!(told.expect("there is kill").success());
    let output = master.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stderr).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn text_has_no_colours_where_nobody_looks() {
    let lines = lines_of_a_master(&[], &[]);
    assert!(lines.iter().any(|line| line == "draining"), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(" INFO ")),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line.contains('\x1b')), "{lines:?}");
}

#[test]
fn json_is_an_object_on_each_line() {
    for (options, variables) in [
        (&["--log-format", "json"][..], &[][..]),
        (&[], &[("MUSE_LOG_FORMAT", "json")]),
    ] {
        let lines = lines_of_a_master(options, variables);
        let read = |line: &String| serde_json::from_str(line).expect("an object");
        let objects: Vec<serde_json::Value> = lines.iter().map(read).collect();
        let draining = objects.iter().find(|it| it["message"] == "draining");
        let draining = draining.expect("it says that it drains");
        assert_eq!(draining["level"], "INFO");
        assert!(draining["timestamp"].is_string());
    }
}

#[test]
fn the_reason_for_the_end_is_an_object_as_well() {
    let output = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(["game", "--log-format", "json"])
        .output()
        .expect("the binary can be started");
    assert!(!output.status.success());
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).expect("one object");
    assert_eq!(error["level"], "ERROR");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("--listen"), "{message}");
}
