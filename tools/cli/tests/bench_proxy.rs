//! The proxy of W3 and W4 delays, loses and counts what passes through it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Proxy {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Proxy {
    fn start(server: &UdpSocket, arguments: &[&str]) -> Self {
        let address = server.local_addr().expect("an address").to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["bench-proxy", "--server", &address])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let port = line.trim().strip_prefix("ready ").expect("ready").parse();
        Self {
            child,
            output,
            port: port.expect("a port"),
        }
    }

    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("it listens");
    }

    fn go(&mut self) {
        self.say("go");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        assert_eq!(line, "started\n");
    }

    fn stop(mut self) -> serde_json::Value {
        self.say("stop");
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("its result");
        assert!(self.child.wait().expect("it ends").success());
        let json = text.trim().strip_prefix("result ").expect("a result");
        serde_json::from_str(json).expect("JSON")
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let wait = Some(Duration::from_millis(500));
    socket.set_read_timeout(wait).expect("a time-out");
    socket
}

#[test]
fn datagrams_are_delayed_both_ways_and_counted() {
    let (server, client) = (socket(), socket());
    let mut proxy = Proxy::start(&server, &["--delay-ms", "30"]);
    proxy.go();
    let sent = Instant::now();
    client
        .send_to(&[7; 72], ("127.0.0.1", proxy.port))
        .expect("sent");
    let mut buffer = [0; 100];
    let (len, from) = server.recv_from(&mut buffer).expect("it arrives");
    assert_eq!(buffer[..len], [7; 72]);
    assert!(sent.elapsed() >= Duration::from_millis(30));
    server.send_to(&[8; 22], from).expect("sent");
    let (len, _) = client.recv_from(&mut buffer).expect("it arrives");
    assert_eq!(buffer[..len], [8; 22]);
    assert!(sent.elapsed() >= Duration::from_millis(60));
    let report = proxy.stop();
    assert_eq!(
        (&report["client_datagrams"], &report["client_ip_bytes"]),
        (&1.into(), &100.into())
    );
    assert_eq!(
        (&report["server_datagrams"], &report["server_ip_bytes"]),
        (&1.into(), &50.into())
    );
}

#[test]
fn the_asked_share_is_lost() {
    let (server, client) = (socket(), socket());
    let mut proxy = Proxy::start(&server, &["--delay-ms", "0", "--loss", "0.3"]);
    proxy.go();
    let mut arrived = 0;
    let mut buffer = [0; 100];
    // In portions that fit any socket buffer.
    for _ in 0..10 {
        for _ in 0..50 {
            client
                .send_to(&[1; 10], ("127.0.0.1", proxy.port))
                .expect("sent");
        }
        client
            .send_to(&[2; 10], ("127.0.0.1", proxy.port))
            .expect("sent");
        while server.recv_from(&mut buffer).is_ok() {
            arrived += 1;
            if buffer[0] == 2 {
                break;
            }
        }
    }
    let lost = proxy.stop()["lost"].as_u64().expect("a count");
    assert!((100..=210).contains(&lost), "{lost} of 510");
    assert!((280..=410).contains(&arrived), "{arrived} of 510");
}

#[test]
fn it_ends_when_its_harness_does() {
    let server = socket();
    let mut proxy = Proxy::start(&server, &[]);
    drop(proxy.child.stdin.take());
    assert_eq!(proxy.child.wait().expect("it ends").code(), Some(1));
}
