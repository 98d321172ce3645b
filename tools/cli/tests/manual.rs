//! Completions and pages of the manual.

use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn muse(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(line.split_whitespace())
        .output()
        .expect("the binary can be started")
}

fn text(line: &str) -> String {
    let output = muse(line);
    assert!(output.status.success(), "{line}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_shell_has_completions_without_hidden_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&format!("completions {shell}"));
        for word in ["drain-seconds", "log-format", "replay"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("master-player"), "{shell}");
        assert!(!script.contains("bench-crowd"), "{shell}");
    }
    assert_eq!(muse("completions csh").status.code(), Some(2));
}

#[test]
fn bash_completes_commands_and_options() {
    let directory = TempDir::new().expect("a directory");
    let script = directory.path().join("muse");
    std::fs::write(&script, text("completions bash")).expect("written");
    let complete = |words: &str, current: &str| {
        let count = words.split_whitespace().count();
        let ask = format!(
            "source '{}'; COMP_WORDS=({words} '{current}'); COMP_CWORD={count}; _muse muse '{current}' ''; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &ask])
            .stdin(Stdio::null())
            .output()
            .expect("there is bash");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(complete("muse", "mast").trim(), "master");
    assert_eq!(complete("muse master", "--drain").trim(), "--drain-seconds");
    assert_eq!(complete("muse config", "che").trim(), "check");
}

#[test]
fn every_command_has_a_page() {
    let page = text("man master");
    assert!(page.contains(".TH muse-master 1"), "{page}");
    assert!(page.contains("drain\\-seconds"), "{page}");
    assert!(text("man").contains(".TH muse 1"));
    assert!(text("man config print").contains(".TH muse-config-print 1"));
    let none = muse("man chess");
    let message = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        message.contains("there is no command `muse chess`"),
        "{message}"
    );

    let directory = TempDir::new().expect("a directory");
    let out = directory.path().join("pages of muse");
    let written = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(["man", "--out"])
        .arg(&out)
        .status()
        .expect("the binary can be started");
    assert!(written.success());
    for name in ["muse.1", "muse-master.1", "muse-config-check.1"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert!(!out.join("muse-master-player.1").exists());
    let one = std::fs::read_to_string(out.join("muse-master.1")).expect("a page");
    assert_eq!(one, page);
}
