//! A NATS server of a test's own, from the system's package.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server; it ends with the value.
pub(crate) struct Nats {
    child: Child,
    port: u16,
    arguments: Vec<String>,
}

impl Nats {
    pub(crate) fn start() -> Self {
        Self::start_with(Vec::new())
    }

    /// A server that asks for TLS, and for the user `muse` with this password.
    pub(crate) fn start_with_tls(certificate: &Path, key: &Path, password: &str) -> Self {
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        let tls = ["--tls", "--tlscert", &text(certificate), "--tlskey"].map(str::to_owned);
        let user = [&text(key), "--user", "muse", "--pass", password].map(str::to_owned);
        Self::start_with(tls.into_iter().chain(user).collect())
    }

    fn start_with(arguments: Vec<String>) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let child = Self::spawn(port, &arguments);
        Self {
            child,
            port,
            arguments,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// Starts it again at the same port.
    pub(crate) fn start_again(&mut self) {
        self.child = Self::spawn(self.port, &self.arguments);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn spawn(port: u16, arguments: &[String]) -> Child {
        let program = std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let child = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.expect("nats-server is installed, or NATS_SERVER names it");
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "it does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who reaches the server and is no master: hears and publishes bytes.
pub(crate) struct Stranger {
    stream: BufReader<TcpStream>,
    subject: String,
}

impl Stranger {
    /// Connects and hears everything about a subject from now on.
    pub(crate) fn connect(nats: &Nats, subject: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", nats.port)).expect("it listens");
        let limit = Some(Duration::from_secs(30));
        stream.set_read_timeout(limit).expect("set");
        let mut stranger = Self {
            stream: BufReader::new(stream),
            subject: subject.to_owned(),
        };
        assert!(stranger.line().starts_with("INFO"));
        let hello = format!("CONNECT {{\"verbose\":false,\"echo\":false}}\r\nSUB {subject} 1\r\n");
        stranger.write(hello.as_bytes());
        stranger.settle();
        stranger
    }

    /// Publishes bytes.
    pub(crate) fn publish(&mut self, message: &[u8]) {
        let head = format!("PUB {} {}\r\n", self.subject, message.len());
        self.write(&[head.as_bytes(), message, b"\r\n"].concat());
    }

    /// The next message that holds this text.
    pub(crate) fn hear(&mut self, part: &str) -> Vec<u8> {
        loop {
            let line = self.line();
            if line.starts_with("PING") {
                self.write(b"PONG\r\n");
            }
            let Some(head) = line.strip_prefix("MSG ") else {
                continue;
            };
            let len = head
                .trim()
                .rsplit(' ')
                .next()
                .and_then(|len| len.parse().ok());
            let mut message = vec![0; len.expect("a length")];
            self.stream.read_exact(&mut message).expect("a message");
            if String::from_utf8_lossy(&message).contains(part) {
                return message;
            }
        }
    }

    /// Waits until the server has done everything so far.
    fn settle(&mut self) {
        self.write(b"PING\r\n");
        while !self.line().starts_with("PONG") {}
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("sent");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line
    }
}
