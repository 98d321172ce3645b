//! `muse game` as a program that tests start and join.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use muse_drivers::ClientDriver;
use muse_transport::{Connect, ServerPublicKey};

/// A server that ends with the test.
pub(crate) struct Game {
    pub(crate) child: Child,
    pub(crate) output: BufReader<ChildStdout>,
    address: String,
    key: ServerPublicKey,
}

impl Game {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["game", "--listen", "127.0.0.1:0", "--danger-no-tokens"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let rest = line
            .strip_prefix("listening at ")
            .expect("where it listens");
        let mut parts = rest.trim_end().split(", ");
        let address = parts.next().expect("an address").to_owned();
        let key = parts.next().and_then(|part| part.strip_prefix("key "));
        let key = key.expect("a key").parse().expect("a key");
        Self {
            child,
            output,
            address,
            key,
        }
    }

    /// A client of it, with the channels of the game.
    pub(crate) fn connect(&self) -> ClientDriver {
        self.connect_with("")
    }

    /// The same, of a version of the game that shares more.
    pub(crate) fn connect_with(&self, lines: &str) -> ClientDriver {
        let config = muse_biobot::net::protocol().0.config().shared(lines);
        let how = Connect::pinned(self.key);
        ClientDriver::connect(self.address.as_str(), config, how).expect("a socket")
    }

    /// Waits for the end; returns its output, and whether it ended well.
    pub(crate) fn end(mut self) -> (String, bool) {
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("it ends");
        (text, status.success())
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
