//! A running proxy, a server that echoes, and a reader of captures.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Proxy {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    pub(crate) page: Option<SocketAddr>,
}

impl Proxy {
    pub(crate) fn start(server: SocketAddr, arguments: &[&str]) -> Self {
        let mut child = command()
            .args(["--listen", "127.0.0.1:0", "--to", &server.to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary can be started");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.first(), Some(&"ready"), "{line}");
        let page = |url: &&str| {
            let url = url.strip_prefix("http://").expect("a URL");
            url.trim_end_matches('/').parse().expect("an address")
        };
        Self {
            address: words[1].parse().expect("an address"),
            page: words.get(3).map(page),
            child,
            output,
        }
    }

    pub(crate) fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("it listens");
    }

    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        let mut line = || {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a line");
            line.trim_end().to_owned()
        };
        (0..count).map(|_| line()).collect()
    }

    /// The answer to a command whose number of lines is not known: all up to the answer to the next.
    pub(crate) fn ask(&mut self, line: &str) -> Vec<String> {
        self.say(line);
        self.say("nonsense");
        let mut lines = Vec::new();
        loop {
            let line = self.lines(1).remove(0);
            if line.starts_with("error: `nonsense`") {
                return lines;
            }
            lines.push(line);
        }
    }

    /// Waits until clients have sent so many packets to it.
    pub(crate) fn await_packets(&mut self, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.ask("stats");
            let packets = lines.iter().find(|line| line.starts_with("packets in"));
            let up = packets.and_then(|line| line.split_whitespace().nth(2)?.parse().ok());
            if up.is_some_and(|up: u64| up >= count) {
                return;
            }
            assert!(Instant::now() < deadline, "{lines:?}");
        }
    }

    /// Ends it politely, and returns its summary.
    pub(crate) fn end(&mut self) -> String {
        self.say("quit");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("a summary");
        assert!(self.wait().success());
        rest
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The exit code and what is said on standard error.
pub(crate) fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command().args(arguments).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (output.status.code(), error)
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_muse-proxy"))
}

pub(crate) fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    socket
}

/// A server that sends back what it gets, until it is dropped.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Echo {
    pub(crate) fn start() -> Self {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = server.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok((len, from)) = server.recv_from(&mut buffer) {
                if &buffer[..len] == END {
                    return;
                }
                // A client that is gone misses it.
                let _ = server.send_to(&buffer[..len], from);
            }
        });
        Self {
            address,
            thread: Some(thread),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.send_to(END, self.address).expect("sent");
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends");
        }
    }
}

const END: &[u8] = b"the end of the echo";

/// A packet of a capture.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) interface: u32,
    pub(crate) flags: u32,
    pub(crate) comment: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// The packets of a pcapng file, read by its specification.
pub(crate) fn packets(mut file: &[u8]) -> Vec<Packet> {
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    let mut packets = Vec::new();
    while !file.is_empty() {
        let (kind, len) = (word(file, 0), word(file, 4) as usize);
        let (block, rest) = file.split_at(len);
        file = rest;
        if kind != 6 {
            continue;
        }
        let captured = word(block, 20) as usize;
        let mut packet = Packet {
            interface: word(block, 8),
            flags: 0,
            comment: None,
            bytes: block[28..28 + captured].to_vec(),
        };
        let mut options = &block[28 + captured.next_multiple_of(4)..len - 4];
        while word(options, 0) != 0 {
            let (code, len) = (word(options, 0) & 0xFFFF, (word(options, 0) >> 16) as usize);
            let value = &options[4..4 + len];
            match code {
                1 => packet.comment = Some(String::from_utf8_lossy(value).into_owned()),
                2 => packet.flags = word(value, 0),
                _ => (),
            }
            options = &options[4 + len.next_multiple_of(4)..];
        }
        packets.push(packet);
    }
    packets
}
