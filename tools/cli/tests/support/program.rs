//! The programs of the benchmarks as tests drive them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A program of the benchmark, driven by lines.
pub(crate) struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(line: &str) -> Self {
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
    pub(crate) fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert!(line.starts_with(word), "{line:?} instead of {word}");
        line[word.len()..].trim().to_owned()
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Tells it to end, and gives back what it reports.
    pub(crate) fn stop(mut self) -> Value {
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
        let _ = self.child.wait();
    }
}
