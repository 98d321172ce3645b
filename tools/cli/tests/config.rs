//! Options of the shipped program from a file and from the environment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A working directory with a `muse.toml` of this text.
fn directory(text: &str) -> TempDir {
    let directory = tempfile::Builder::new()
        .prefix("with a blank ")
        .tempdir()
        .expect("a directory");
    std::fs::write(directory.path().join("muse.toml"), text).expect("written");
    directory
}

fn muse(directory: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muse"));
    command
        .args(line.split_whitespace())
        .current_dir(directory)
        .env_remove("MUSE_CONFIG");
    command
}

fn run(directory: &Path, line: &str) -> Output {
    muse(directory, line)
        .output()
        .expect("the binary can be started")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_master_starts_with_what_the_file_and_the_environment_say() {
    let directory =
        directory("[master]\nlisten = \"127.0.0.1:1\"\ndatabase = \"a name with blanks.db\"\n");
    let mut child = muse(directory.path(), "master")
        .env("MUSE_MASTER_LISTEN", "127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let port = line.trim().strip_prefix("http://127.0.0.1:");
    assert!(port.is_some_and(|port| port != "1"), "{line}");
    assert!(directory.path().join("a name with blanks.db").is_file());
}

#[test]
fn a_file_is_checked_before_it_is_used() {
    let good = directory("[master]\nplayers = 4\n[game]\nmode = \"versus\"\n");
    let checked = run(good.path(), "config check");
    assert!(checked.status.success(), "{}", err(&checked));
    assert_eq!(out(&checked).lines().next(), Some("muse.toml: 2 options"));

    let bad = directory("[game]\nmode = \"chess\"\n[up]\nplayrs = 3\n");
    let expected = "error: muse.toml:2: game.mode: it must be one of coop, versus, ball\n\
        error: muse.toml:4: up.playrs: `muse up` has no such option; is players meant?\n";
    for line in ["config check", "config check muse.toml", "ping 127.0.0.1:1"] {
        let checked = run(bad.path(), line);
        assert_eq!(checked.status.code(), Some(2), "{line}");
        assert_eq!(err(&checked), expected, "{line}");
    }
    let named = run(good.path(), "config check no.toml");
    assert!(
        err(&named).contains("cannot read no.toml"),
        "{}",
        err(&named)
    );
}

#[test]
fn options_are_printed_with_where_they_are_from() {
    let directory = directory("[master]\nplayers = 4\nnats = \"nats://me:secret@bus:4222\"\n");
    let printed = muse(directory.path(), "config print master --warm 3")
        .env("MUSE_MASTER_MATCHES_MAX", "7")
        .output()
        .expect("the binary can be started");
    let text = out(&printed);
    for line in [
        "[master]",
        "players = 4 # muse.toml:2",
        "nats = \"nats://***@bus:4222\" # muse.toml:3",
        "matches-max = 7 # MUSE_MASTER_MATCHES_MAX in the environment",
        "warm = 3 # command line",
        "database = \"muse.db\" # default",
        "# tls-key is not set",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
}

#[test]
fn the_file_of_the_documentation_is_valid() {
    let page = include_str!("../../../docs/configuration.md");
    let text = page.split("```toml\n").nth(1);
    let text = text.and_then(|rest| rest.split("```").next());
    let directory = directory(text.expect("the page shows a file"));
    let checked = run(directory.path(), "config check");
    assert!(checked.status.success(), "{}", err(&checked));
}
