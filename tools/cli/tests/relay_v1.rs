//! `muse relay --v1` over real sockets with clients that misbehave: the others must not notice.
#![cfg(unix)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use muse_drivers::Clock;
use muse_relay_v1::{Client, Event, Update};
use muse_stream::StreamDriver;

/// A running relay.
struct Relay {
    child: Child,
    address: SocketAddr,
}

impl Relay {
    fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["relay", "--v1", "--listen", "127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a line");
        let address = line.strip_prefix("ready ").expect("ready").trim();
        let address = address.parse().expect("an address");
        Self { child, address }
    }

    /// A bare connection that has its address.
    fn raw(&self) -> (TcpStream, u8) {
        let mut stream = TcpStream::connect(self.address).expect("the relay listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut welcome = [0; 6];
        stream.read_exact(&mut welcome).expect("an address at once");
        assert_eq!(welcome[..5], [1, 0, 0, 1, 0]);
        (stream, welcome[5])
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Fails harmlessly when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A well-behaved client, with the library that ships.
struct Player {
    driver: StreamDriver,
    client: Client,
    events: Vec<Event>,
    clock: Clock,
}

impl Player {
    fn join(relay: &Relay) -> Self {
        let timeout = PATIENCE.into();
        let driver = StreamDriver::connect(relay.address, timeout).expect("the relay listens");
        let mut player = Self {
            driver,
            client: Client::new(),
            events: Vec::new(),
            clock: Clock::start(),
        };
        player.until(|player| player.client.address().is_some());
        player
    }

    fn turn(&mut self) {
        let wait = muse_wire::Duration::from_millis(5);
        self.driver
            .turn(&self.clock, &mut self.client, wait)
            .expect("sockets work");
        self.events
            .extend(std::iter::from_fn(|| self.client.poll_event()));
    }

    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < deadline, "{:?}", self.events.last());
            self.turn();
        }
    }

    fn count(&self, wanted: &[u8]) -> usize {
        let is_wanted = |event: &&Event| match event {
            Event::Broadcast { data, .. } | Event::Update { data, .. } => data == wanted,
            _ => false,
        };
        self.events.iter().filter(is_wanted).count()
    }
}

/// Two players who hear each other, over TCP and UDP, whatever `mischief` does between their words.
fn play(relay: &Relay, mut mischief: impl FnMut(usize)) {
    let (mut one, mut two) = (Player::join(relay), Player::join(relay));
    // UDP is known to pass once one packet has.
    let deadline = Instant::now() + PATIENCE;
    while one.count(b"hello") == 0 || two.count(b"hello") == 0 {
        assert!(Instant::now() < deadline, "no UDP");
        for player in [&mut one, &mut two] {
            player
                .client
                .update(Update::new(0), b"hello")
                .expect("room");
            player.turn();
        }
    }
    for round in 0..ROUNDS {
        mischief(round);
        let word = format!("round {round}");
        one.client.broadcast(1, word.as_bytes()).expect("room");
        let every_one = Update::new(1).every_one(true);
        two.client.update(every_one, word.as_bytes()).expect("room");
        one.turn();
        two.turn();
        two.until(|two| two.count(word.as_bytes()) == 1);
        one.until(|one| one.count(word.as_bytes()) == 1);
    }
    assert!(!one.events.contains(&Event::Closed) && !two.events.contains(&Event::Closed));
}

fn frame(control: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_le_bytes();
    [&length[..], &[control], &length, data].concat()
}

/// Reads until the relay has closed the connection.
fn read_to_end(stream: &mut TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => (),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "still open");
                return;
            }
        }
    }
}

#[test]
fn a_slow_reader_is_cut_off_and_the_others_go_on() {
    let relay = Relay::start(&[
        "--tcp-unsent",
        "100000",
        "--tcp-bytes-per-second",
        "100000000",
        "--tcp-bytes-burst",
        "4000000",
    ]);
    let (mut slow, address) = relay.raw();
    let (mut talker, _) = relay.raw();
    let mut drain = talker.try_clone().expect("a second handle");
    // Reads the talker's own side away, so that only one client is slow.
    std::thread::spawn(move || read_to_end(&mut drain));
    let data = vec![7; 60_000];
    play(&relay, |_| {
        talker.write_all(&frame(0, &data)).expect("it is read")
    });
    let deadline = Instant::now() + PATIENCE;
    let (mut asker, _) = relay.raw();
    loop {
        talker.write_all(&frame(0, &data)).expect("it is read");
        asker.write_all(&frame(3, &[address])).expect("it is read");
        let state = answer(&mut asker);
        if state == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "the slow reader is still there");
    }
    read_to_end(&mut slow);
}

/// The next answer to a question about a state; broadcasts before it are left out.
fn answer(stream: &mut TcpStream) -> u8 {
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).expect("a header");
        let mut data = vec![0; usize::from(u16::from_le_bytes([header[0], header[1]]))];
        stream.read_exact(&mut data).expect("data");
        if header[2] == 3 {
            return data[0];
        }
    }
}

#[test]
fn half_open_connections_and_half_sent_packets_disturb_nobody() {
    let relay = Relay::start(&[]);
    let mut kept = Vec::new();
    play(&relay, |round| {
        let (mut stream, _) = relay.raw();
        // Half a header, half a packet, or the end of one direction.
        match round % 3 {
            0 => stream.write_all(&[9, 0]).expect("it listens"),
            1 => stream
                .write_all(&frame(0, &[0; 100])[..50])
                .expect("it listens"),
            _ => stream
                .shutdown(std::net::Shutdown::Write)
                .expect("it is open"),
        }
        kept.push(stream);
    });
}

#[test]
fn broken_headers_cost_only_their_sender() {
    let relay = Relay::start(&[]);
    play(&relay, |_| {
        let (mut stream, _) = relay.raw();
        stream.write_all(&[1, 0, 0, 2, 0]).expect("it listens");
        stream.write_all(&[0; 10_000]).expect("it listens");
        read_to_end(&mut stream);
    });
}

#[test]
fn floods_disturb_nobody() {
    let relay = Relay::start(&[]);
    let (mut flooder, address) = relay.raw();
    flooder.set_nonblocking(true).expect("it can be");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let datagram = |data: &[u8]| {
        let length = (data.len() as u16).to_le_bytes();
        let [low, high] = length;
        [&[low, high, 1, 0, 0, 0, 0, 0, low, high, address][..], data].concat()
    };
    let flood = frame(0, b"").repeat(10_000);
    play(&relay, |_| {
        // As many packets as the relay takes; it leaves the rest with us.
        let _ = flooder.write(&flood);
        let mut buffer = [0; 1 << 16];
        while matches!(flooder.read(&mut buffer), Ok(len) if len > 0) {}
        for length in 0..300 {
            let _ = socket.send_to(&datagram(&vec![0; length % 1_421]), relay.address);
            let _ = socket.send_to(&[length as u8; 40], relay.address);
        }
    });
    // And connections without end.
    play(&relay, |_| {
        for _ in 0..50 {
            drop(TcpStream::connect(relay.address));
        }
    });
}

#[test]
fn a_spoofed_address_gets_nothing_and_says_nothing() {
    let relay = Relay::start(&[]);
    let socket = UdpSocket::bind("127.0.0.7:0").expect("loopback has many addresses");
    play(&relay, |_| {
        for address in 1..=3 {
            for control in [0, 8, 1] {
                let spoofed = [0, 0, 1, control, 0, 0, 0, 0, 0, 0, address];
                socket.send_to(&spoofed, relay.address).expect("it is sent");
            }
        }
    });
    socket.set_nonblocking(true).expect("it can be");
    let got = socket.recv(&mut [0; 2_000]);
    assert_eq!(
        got.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock)
    );
}

#[test]
fn bad_arguments_are_told_in_one_line() {
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(words)
            .output()
            .expect("the binary can be started");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = run(&["relay", "--v1", "--listen", "nowhere"]);
    assert_eq!((code, text.lines().count()), (Some(1), 1), "{text}");
    assert!(
        text.contains("cannot look up nowhere; it must be HOST:PORT"),
        "{text}"
    );
    let (code, _) = run(&[
        "relay",
        "--v1",
        "--listen",
        "127.0.0.1:0",
        "--clients-max",
        "256",
    ]);
    assert_eq!(code, Some(2));
    let taken = Relay::start(&[]);
    let (code, text) = run(&["relay", "--v1", "--listen", &taken.address.to_string()]);
    assert_eq!((code, text.lines().count()), (Some(1), 1), "{text}");
}

const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: usize = 12;
