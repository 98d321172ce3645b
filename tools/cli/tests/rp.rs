//! `muse rp serve` and `muse rp send` over the loopback interface, through a network that loses every tenth datagram.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const WINDOW: usize = 10;
const LOSSES_ALLOWED: usize = 2;
const COUNT: usize = 300;

fn muse(words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_muse"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started")
}

/// A running `muse rp serve` at 127.0.0.1.
struct Server {
    child: Child,
    ports: [u16; 2],
}

impl Server {
    fn start() -> Self {
        let line = "rp serve --listen 127.0.0.1 --reliable-port 0 --partial-port 0 --window 10 --percent 80 --echo";
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut child = muse(&words);
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        let numbers: Vec<u16> = line
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|word| word.parse().ok())
            .collect();
        let ports = numbers.try_into().expect("two ports");
        Self { child, ports }
    }

    /// Ends it as Ctrl-C does and gives what it printed.
    fn stop(mut self) -> String {
        let mut kill = Command::new("kill");
        let status = kill.args(["-INT", &self.child.id().to_string()]).status();
        assert!(status.expect("kill can be run").success());
        let mut text = String::new();
        let mut output = self.child.stdout.take().expect("piped");
        output.read_to_string(&mut text).expect("text");
        assert!(self.child.wait().expect("it ends").success());
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
    }
}

/// Stands at 127.0.0.2 with the server's ports, so that the port in the handshake leads here too.
struct Forwarder {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u32>>,
}

impl Forwarder {
    fn start(ports: [u16; 2], loss: f64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (number, port) in ports.into_iter().enumerate() {
            let open = |address: SocketAddr| {
                let socket = UdpSocket::bind(address).expect("a free port");
                let wait = Some(Duration::from_millis(20));
                socket.set_read_timeout(wait).expect("an option");
                Arc::new(socket)
            };
            let outside = open(SocketAddr::from(([127, 0, 0, 2], port)));
            let inside = open(SocketAddr::from(([127, 0, 0, 2], 0)));
            let server = SocketAddr::from(([127, 0, 0, 1], port));
            let client = Arc::new(Mutex::new(None));
            for inbound in [true, false] {
                let (stop, client) = (Arc::clone(&stop), Arc::clone(&client));
                let (from, to) = match inbound {
                    true => (Arc::clone(&outside), Arc::clone(&inside)),
                    false => (Arc::clone(&inside), Arc::clone(&outside)),
                };
                let seed = number as u64 * 2 + u64::from(inbound);
                threads.push(std::thread::spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut buffer = [0; 2_048];
                    let mut lost = 0;
                    while !stop.load(Ordering::Acquire) {
                        let Ok((len, source)) = from.recv_from(&mut buffer) else {
                            continue;
                        };
                        let mut client = client.lock().expect("not poisoned");
                        if inbound {
                            *client = Some(source);
                        }
                        if random.f64() < loss {
                            lost += 1;
                            continue;
                        }
                        let target = if inbound { Some(server) } else { *client };
                        if let Some(target) = target {
                            // Refused when the other side has ended.
                            let _ = to.send_to(&buffer[..len], target);
                        }
                    }
                    lost
                }));
            }
        }
        Self { stop, threads }
    }

    /// Ends it and says how many datagrams were lost.
    fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Release);
        let lost = |thread: JoinHandle<u32>| thread.join().expect("it does not panic");
        self.threads.into_iter().map(lost).sum()
    }
}

/// The numbers that the payloads of the `received` lines begin with.
fn received(output: &str, channel: &str) -> Vec<usize> {
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.first(), Some(&"connected"), "{output}");
    assert_eq!(lines.last(), Some(&"disconnected"), "{output}");
    let start = format!("received channel={channel} type=77 seq=");
    let number = |line: &&str| {
        let rest = line.strip_prefix(&start).expect("a line of that channel");
        let (sequence, rest) = rest.split_once(" len=16 data=").expect("16 bytes");
        sequence.parse::<u32>().expect("a number");
        assert_eq!(rest.len(), 32, "{line}");
        let number = u32::from_str_radix(&rest[..8], 16).expect("hexadecimal digits");
        number.swap_bytes() as usize
    };
    lines[1..lines.len() - 1].iter().map(number).collect()
}

/// Sends over the channel with loss; what the server printed and what came back.
fn exchange(channel: &str) -> (Vec<usize>, Vec<usize>) {
    let server = Server::start();
    let forwarder = Forwarder::start(server.ports, 0.1);
    let line = format!(
        "rp send --to 127.0.0.2:{} --channel {channel} --type 77 --count {COUNT} --size 16 --interval-ms 1 --linger-ms 1500",
        server.ports[0]
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    let client = muse(&words).wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&client.stderr).into_owned();
    assert!(client.status.success(), "{errors}");
    let back = String::from_utf8(client.stdout).expect("text");
    let there = server.stop();
    assert!(forwarder.stop() > 50, "the network was bad");
    (received(&there, channel), received(&back, channel))
}

#[test]
fn everything_arrives_in_order_on_the_reliable_channel() {
    let (there, back) = exchange("reliable");
    assert!(there.iter().copied().eq(0..COUNT), "{there:?}");
    assert!(back.iter().copied().eq(0..COUNT), "{back:?}");
}

#[test]
fn no_window_loses_more_than_promised_on_the_partial_channel() {
    let (there, back) = exchange("partial");
    assert!(there.is_sorted() && back.is_sorted());
    assert_eq!(there.last(), Some(&(COUNT - 1)));
    for first in (0..COUNT).step_by(WINDOW) {
        let window = first..first + WINDOW;
        let arrived = there
            .iter()
            .filter(|number| window.contains(number))
            .count();
        assert!(arrived >= WINDOW - LOSSES_ALLOWED, "{window:?}: {there:?}");
    }
    // On the way back the first slot is the server's INIT4, and slots are what was echoed.
    let slots: Vec<usize> = back
        .iter()
        .map(|number| {
            1 + there
                .binary_search(number)
                .expect("an echo of what arrived")
        })
        .collect();
    for first in (WINDOW..=there.len() - WINDOW).step_by(WINDOW) {
        let window = first..first + WINDOW;
        let arrived = slots.iter().filter(|slot| window.contains(slot)).count();
        assert!(arrived >= WINDOW - LOSSES_ALLOWED, "{window:?}: {slots:?}");
    }
}

#[test]
fn help_has_examples_and_bad_input_one_line() {
    for line in ["rp --help", "rp serve --help", "rp send --help"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = muse(&words).wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("Example: muse rp "),
            "{text}"
        );
    }
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let to = nobody.local_addr().expect("bound").to_string();
    let silent = ["rp", "send", "--connect-ms", "20", "--to", &to];
    for words in [&silent[..], &["rp", "send", "--to", "nowhere"]] {
        let output = muse(words).wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.starts_with("error: cannot ") && text.lines().count() == 1,
            "{text}"
        );
        assert!(output.stdout.is_empty());
    }
}
