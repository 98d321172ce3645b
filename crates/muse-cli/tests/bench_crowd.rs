//! The crowd of `muse bench connections` and `muse bench flood`, over the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
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

    fn stop(mut self) -> Value {
        self.say("stop");
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("its result");
        assert!(self.child.wait().expect("it ends").success());
        let json = text.trim().strip_prefix("result ").expect("a result");
        serde_json::from_str(json).expect("JSON")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
    }
}

fn crowd(server: &str) -> (Program, String, Program) {
    let mut server = Program::start(server);
    let address = format!("127.0.0.1:{}", server.expect("ready"));
    let mut clients = Program::start(&format!(
        "bench-crowd clients --server {address} --clients 20 --sockets 3 --rate 20 --reliable-every 10 --seconds 1"
    ));
    clients.expect("connected");
    server.say("go");
    (server, address, clients)
}

fn assert_all_delivered(clients: &Value, server: &Value) {
    assert_eq!(clients["sent"]["unreliable"], 360);
    assert_eq!(clients["sent"]["reliable"], 40);
    for side in [&server["received"], &server["sent"], &clients["received"]] {
        assert_eq!(side, &clients["sent"]);
    }
    assert_eq!(
        (&clients["cut"], &clients["refused"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn every_message_is_counted_on_each_side() {
    let (server, _, mut clients) = crowd("bench-crowd server");
    clients.say("go");
    clients.expect("done");
    assert_all_delivered(&clients.stop(), &server.stop());
}

#[test]
fn a_flood_is_answered_with_less_than_it_asks() {
    let (server, address, mut clients) = crowd("bench-crowd server --drain");
    let mut flood = Program::start(&format!("bench-flood --server {address}"));
    flood.expect("started");
    flood.say("go");
    clients.say("go");
    clients.expect("done");
    let (flood, clients, server) = (flood.stop(), clients.stop(), server.stop());
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&flood["replies"]) > 0, "{flood}");
    assert!(
        number(&flood["reply_bytes"]) < number(&flood["sent_bytes"]),
        "{flood}"
    );
    assert!(
        number(&flood["reply_len_max"]) <= number(&flood["question_len_min"]),
        "{flood}"
    );
    assert!(
        number(&server["hellos"]) > 20 && number(&server["malformed"]) > 0,
        "{server}"
    );
    assert_eq!(clients["received"]["reliable"], 40, "{clients}");
}
