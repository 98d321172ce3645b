//! The binary's answers to bad input and to those who ask for help.

use std::process::{Command, Output};

fn muse(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(line.split_whitespace())
        .output()
        .expect("the binary can be started")
}

#[test]
fn every_command_has_help_with_an_example() {
    for line in [
        "--help",
        "ping --help",
        "echo --help",
        "relay --help",
        "replay --help",
        "up --help",
        "game --help",
        "bots --help",
        "master --help",
        "completions --help",
        "config --help",
        "config check --help",
        "config print --help",
        "man --help",
    ] {
        shows_an_example(line);
    }
}

#[test]
fn the_game_says_how_a_master_starts_it() {
    let help = String::from_utf8(muse("game --help").stdout).expect("text");
    let id = format!("muse master --protocol-id {} ", muse_biobot::PROTOCOL);
    assert!(help.contains(&id), "no {id:?} in {help}");
}

#[cfg(feature = "legacy")]
#[test]
fn every_command_of_older_protocols_has_help_with_an_example() {
    for line in ["rp --help", "rp serve --help", "rp send --help"] {
        shows_an_example(line);
    }
}

#[cfg(feature = "tools")]
#[test]
fn every_tool_has_help_with_an_example() {
    for line in [
        "lab --help",
        "lab figures --help",
        "proxy --help",
        "bench --help",
        "bench transport --help",
        "bench connections --help",
        "bench flood --help",
        "bench relay --help",
        "bench cubes --help",
        "bench netcode --help",
        "bench master --help",
        "bench match --help",
        "bench rollback --help",
        "bench cost --help",
    ] {
        shows_an_example(line);
    }
}

fn shows_an_example(line: &str) {
    let output = muse(line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}");
    assert!(text.contains("Example: muse "), "{line}: {text}");
}

#[cfg(not(feature = "tools"))]
#[test]
fn tools_that_are_not_built_in_say_how_to_get_them() {
    for line in ["lab run --quick", "bench --help", "proxy"] {
        says_how_to_get_it(line, "tools");
    }
}

#[cfg(not(feature = "legacy"))]
#[test]
fn older_protocols_that_are_not_built_in_say_how_to_get_them() {
    for line in [
        "rp serve --echo",
        "rp --help",
        "relay --v1 --listen 127.0.0.1:0",
    ] {
        says_how_to_get_it(line, "legacy");
    }
}

#[cfg(not(all(feature = "legacy", feature = "tools")))]
fn says_how_to_get_it(line: &str, feature: &str) {
    let output = muse(line);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let command = format!("--features {feature} -- {line}\n");
    assert!(text.ends_with(&command), "{text}");
}

#[cfg(feature = "tools")]
#[test]
fn bad_input_is_answered_with_one_line_and_an_exit_code() {
    let output = muse("bench transport --peers nobody");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.starts_with("error: there is no peer \"nobody\""),
        "{text}"
    );
    assert_eq!(muse("bench transport --workload w9").status.code(), Some(2));
    assert_eq!(muse("bench transport --runs 0").status.code(), Some(2));
}

#[test]
fn a_relay_that_others_reach_must_say_who_may_open_rooms() {
    let output = muse("relay --listen 0.0.0.0:0");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("--master-key") && text.contains("--open"),
        "{text}"
    );
    for line in [
        "relay --listen 0.0.0.0:0 --open --master-key 00",
        "relay --listen 127.0.0.1:0 --master-key 00",
        "relay --v1 --listen 127.0.0.1:0 --open",
    ] {
        assert!(!muse(line).status.success(), "{line}");
    }
}
