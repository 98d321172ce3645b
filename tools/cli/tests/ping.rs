//! `muse ping` and `muse echo` over the loopback interface.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A running `muse echo`.
struct Echo {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
    key: String,
}

impl Echo {
    fn start() -> Self {
        let mut child = muse(&["echo", "--listen", "127.0.0.1:0"]);
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let [muse, ping, address, flag, key] = words.try_into().expect("a command to type");
        assert_eq!([muse, ping, flag], ["muse", "ping", "--key"]);
        Self {
            child,
            output,
            address,
            key,
        }
    }

    /// Ends it as Ctrl-C does and returns whether it ended well.
    fn stop(mut self) -> bool {
        interrupt(&self.child);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "");
        self.child.wait().expect("it ends").success()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
    }
}

fn muse(words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started")
}

fn ping(words: &[&str]) -> (Output, String, String) {
    let child = muse(&[&["ping"], words].concat());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

fn interrupt(child: &Child) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill can be run").success());
}

#[test]
fn every_ping_is_answered_and_summed_up() {
    let echo = Echo::start();
    let (output, out, err) = ping(&[
        &echo.address,
        "--key",
        &echo.key,
        "--count",
        "3",
        "--interval-ms",
        "10",
    ]);
    assert!(output.status.success(), "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 7, "{out}");
    assert!(lines[0].starts_with(&format!("PING {} (connected in ", echo.address)));
    for (index, line) in lines[1..4].iter().enumerate() {
        let start = format!("answer from {}: number={} time=", echo.address, index + 1);
        assert!(line.starts_with(&start) && line.ends_with(" ms"), "{line}");
    }
    assert_eq!(
        lines[4],
        format!("--- {} ping statistics ---", echo.address)
    );
    assert_eq!(lines[5], "3 sent, 3 received, 0.0 % loss");
    assert!(
        lines[6].starts_with("round trip min/avg/max/jitter = "),
        "{out}"
    );
    assert!(echo.stop());
}

#[test]
fn a_wrong_key_is_refused_with_advice() {
    let echo = Echo::start();
    let (output, _, err) = ping(&[&echo.address, "--key", &"09".repeat(32)]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("refused") && err.contains("--key"), "{err}");
}

#[test]
fn nobody_there_is_said_with_advice() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("an address").to_string();
    let key = "09".repeat(32);
    let (output, _, err) = ping(&[&address, "--key", &key, "--timeout-ms", "300"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.contains("no answer from") && err.contains("muse echo"),
        "{err}"
    );
}

#[test]
fn ctrl_c_ends_with_a_summary() {
    let echo = Echo::start();
    let mut child = muse(&[
        "ping",
        &echo.address,
        "--key",
        &echo.key,
        "--interval-ms",
        "10",
    ]);
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("answer from") {
        line.clear();
        assert_ne!(
            output.read_line(&mut line).expect("a line"),
            0,
            "it ended early"
        );
    }
    interrupt(&child);
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert!(child.wait().expect("it ends").success());
    assert!(
        rest.contains("ping statistics") && rest.contains("round trip"),
        "{rest}"
    );
}

#[test]
fn ctrl_c_before_any_answer_is_a_failure() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("an address").to_string();
    let mut child = muse(&[
        "ping",
        &address,
        "--key",
        &"09".repeat(32),
        "--timeout-ms",
        "60000",
    ]);
    // Its first packet says that it is running.
    silent.recv_from(&mut [0; 2_000]).expect("a packet");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn bad_input_says_what_is_wrong() {
    let (output, _, err) = ping(&["nowhere", "--key", &"09".repeat(32)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("HOST:PORT"), "{err}");
    let (output, _, err) = ping(&["127.0.0.1:1", "--key", "abc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("64 hexadecimal digits"), "{err}");
}

/// The next line of a program.
fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

#[test]
fn a_short_code_is_all_that_a_friend_needs() {
    let mut relay = muse(&["relay", "--listen", "127.0.0.1:0"]);
    let mut output = BufReader::new(relay.stdout.take().expect("piped"));
    let ready = line(&mut output);
    let at = ready.split(' ').nth(1).expect("ready ADDRESS");
    let mut echo = muse(&["echo", "--listen", "127.0.0.1:0", "--relay", at]);
    let mut output = BufReader::new(echo.stdout.take().expect("piped"));
    let _address = line(&mut output);
    let invitation = line(&mut output);
    assert!(invitation.starts_with("muse ping muse2:"), "{invitation}");
    let typed = line(&mut output);
    let words: Vec<&str> = typed.split(' ').collect();
    let [_, _, code, flag, place] = words[..] else {
        unreachable!("a command to type: {typed}");
    };
    assert_eq!((code.len(), flag, place), (11, "--relay", at));
    let common = ["--relay", at, "--count", "3", "--interval-ms", "10"];
    let (output, out, err) = ping(&[&[code, "--relay-only"], &common[..]].concat());
    assert!(output.status.success(), "{out}{err}");
    assert!(
        out.contains("3 received") && !out.contains("directly"),
        "{out}"
    );
    let last = if code.ends_with('7') { "8" } else { "7" };
    let wrong = format!("{}{last}", &code[..10]);
    let (output, out, err) = ping(&[&[&*wrong], &common[..]].concat());
    assert!(!output.status.success(), "{out}");
    assert!(
        err.contains("the last four letters of the code are wrong"),
        "{err}"
    );
    for mut child in [echo, relay] {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
}
