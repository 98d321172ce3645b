//! The programs of `muse bench relay --v1`, over the loopback interface and with few clients.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A program of the benchmark, driven by lines.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(line: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(line.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    /// The rest of the next line, which begins with `word`.
    fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(line.starts_with(word), "{line:?} instead of {word}");
        line[word.len()..].trim().to_owned()
    }

    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("it listens");
    }

    fn stop(&mut self) -> Value {
        self.say("stop");
        serde_json::from_str(&self.expect("result ")).expect("JSON")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_broadcast_over_tcp_arrives_even_beside_hostile_clients() {
    let mut server = Program::start("bench-relay server");
    let port = server.expect("ready");
    let mut clients = Program::start(&format!(
        "bench-relay clients --server 127.0.0.1:{port} --clients 6 --rate 20 --seconds 1 --hostile"
    ));
    clients.expect("connected");
    server.say("go");
    clients.say("go");
    clients.expect("done");
    let (clients, server) = (clients.stop(), server.stop());
    assert_eq!(
        (&clients["tcp_sent"], &clients["cut"]),
        (&12.into(), &0.into())
    );
    assert_eq!(clients["tcp_received"], 12 * 5);
    assert_eq!(clients["udp_sent"], 6 * 20);
    assert!(server["datagrams_limited"].as_u64() > Some(0), "{server}");
    assert!(server["ticks"].as_u64() > Some(0), "{server}");
}

#[test]
fn the_idle_timer_reports_how_late_it_wakes() {
    let mut timer = Program::start("bench-relay timer");
    timer.expect("connected");
    timer.say("go");
    let report = timer.stop();
    assert!(
        report["p99"].is_number() && report["max"].is_number(),
        "{report}"
    );
}
