//! The stream driver over loopback: a machine that sends everything back, and peers that behave badly.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use muse_wire::{Datagram, Ecn, Machine, Transmit};

use super::*;

/// Sends bytes and datagrams back, and closes a stream that says `q`.
#[derive(Default)]
struct Echo {
    streams: BTreeMap<StreamId, Vec<u8>>,
    actions: Vec<StreamAction>,
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
    paused: bool,
    full: bool,
}

impl Machine for Echo {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        self.datagrams
            .push((datagram.from, datagram.payload.to_vec()));
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.datagrams.pop()?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit {
            to,
            len: bytes.len(),
            segment: None,
            ecn: Ecn::NotCapable,
        })
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

impl StreamMachine for Echo {
    fn handle_open(&mut self, _: Instant, stream: StreamId, _: SocketAddr) -> bool {
        if !self.full {
            self.streams.insert(stream, b"hello".to_vec());
            self.actions.push(StreamAction::Write(stream));
        }
        !self.full
    }
    fn read_limit(&mut self, _: Instant, _: StreamId) -> usize {
        if self.paused { 0 } else { 3 }
    }
    fn handle_bytes(&mut self, _: Instant, stream: StreamId, bytes: &[u8]) {
        assert!(bytes.len() <= 3, "the machine's limit is kept");
        let waiting = self.streams.get_mut(&stream).expect("an open stream");
        waiting.extend_from_slice(bytes);
        self.actions.push(match bytes.contains(&b'q') {
            true => StreamAction::Close(stream),
            false => StreamAction::Write(stream),
        });
    }
    fn handle_end(&mut self, _: Instant, stream: StreamId) {
        if self.streams.remove(&stream).is_some() {
            self.actions.push(StreamAction::Close(stream));
        }
    }
    fn poll_stream(&mut self, _: Instant) -> Option<StreamAction> {
        (!self.actions.is_empty()).then(|| self.actions.remove(0))
    }
    fn outgoing(&self, stream: StreamId) -> &[u8] {
        self.streams.get(&stream).map_or(&[], Vec::as_slice)
    }
    fn handle_written(&mut self, _: Instant, stream: StreamId, len: usize) {
        if let Some(waiting) = self.streams.get_mut(&stream) {
            waiting.drain(..len);
        }
    }
}

struct Fixture {
    driver: StreamDriver,
    machine: Echo,
    clock: Clock,
    address: SocketAddr,
}

impl Fixture {
    fn new() -> io::Result<Self> {
        let driver = StreamDriver::bind(
            SocketAddr::from(([127, 0, 0, 1], 0)),
            &UdpOptions::default(),
        )?;
        Ok(Self {
            address: driver.local_addr()?,
            driver,
            machine: Echo::default(),
            clock: Clock::start(),
        })
    }

    fn turn(&mut self) -> io::Result<()> {
        let wait = Duration::from_millis(20);
        self.driver
            .turn(&self.clock, &mut self.machine, wait)
            .map(drop)
    }

    /// Turns until `stream` has `len` bytes, or has ended, and returns them.
    fn read(&mut self, stream: &mut TcpStream, len: usize) -> io::Result<Vec<u8>> {
        stream.set_nonblocking(true)?;
        let mut got = Vec::new();
        for _ in 0..TURNS_MAX {
            let mut buffer = [0; 64];
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) if passes(&error) => self.turn()?,
                Err(error) => return Err(error),
            }
            if got.len() >= len {
                break;
            }
        }
        stream.set_nonblocking(false)?;
        Ok(got)
    }
}

const TURNS_MAX: usize = 500;

#[test]
fn streams_and_datagrams_share_a_port() -> io::Result<()> {
    let mut fixture = Fixture::new()?;
    let mut stream = TcpStream::connect(fixture.address)?;
    assert_eq!(fixture.read(&mut stream, 5)?, b"hello");
    stream.write_all(b"abcdefgh")?;
    assert_eq!(fixture.read(&mut stream, 8)?, b"abcdefgh");
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    socket.send_to(b"datagram", fixture.address)?;
    socket.set_nonblocking(true)?;
    let mut buffer = [0; 16];
    let got = (0..TURNS_MAX).find_map(|_| {
        fixture.turn().ok()?;
        socket.recv(&mut buffer).ok()
    });
    assert_eq!(got.map(|len| &buffer[..len]), Some(&b"datagram"[..]));
    Ok(())
}

#[test]
fn a_closed_stream_ends_in_order_though_its_peer_still_sends() -> io::Result<()> {
    let mut fixture = Fixture::new()?;
    let mut stream = TcpStream::connect(fixture.address)?;
    // Bytes that are never read would make the system reset the connection.
    stream.write_all(b"qqqqqqqqqqqqqqqqqqqqqqqqqqqqq")?;
    assert_eq!(fixture.read(&mut stream, usize::MAX)?, b"hello");
    drop(stream);
    while fixture.driver.streams() > 0 {
        fixture.turn()?;
    }
    Ok(())
}

#[test]
fn a_refused_stream_is_closed_without_a_word() -> io::Result<()> {
    let mut fixture = Fixture::new()?;
    fixture.machine.full = true;
    let mut stream = TcpStream::connect(fixture.address)?;
    assert_eq!(fixture.read(&mut stream, usize::MAX)?, b"");
    assert_eq!(fixture.driver.counters().refused, 1);
    Ok(())
}

#[test]
fn a_paused_stream_is_read_again_later() -> io::Result<()> {
    let mut fixture = Fixture::new()?;
    let mut stream = TcpStream::connect(fixture.address)?;
    assert_eq!(fixture.read(&mut stream, 5)?, b"hello");
    fixture.machine.paused = true;
    stream.write_all(b"later")?;
    while fixture.driver.counters().paused == 0 {
        fixture.turn()?;
    }
    assert_eq!(
        fixture
            .machine
            .streams
            .values()
            .map(Vec::len)
            .sum::<usize>(),
        0
    );
    fixture.machine.paused = false;
    assert_eq!(fixture.read(&mut stream, 5)?, b"later");
    Ok(())
}

#[test]
fn a_stream_that_ends_is_forgotten_and_its_number_used_again() -> io::Result<()> {
    let mut fixture = Fixture::new()?;
    for _ in 0..3 {
        let mut stream = TcpStream::connect(fixture.address)?;
        assert_eq!(fixture.read(&mut stream, 5)?, b"hello");
        assert_eq!(fixture.machine.streams.keys().next(), Some(&StreamId(0)));
        drop(stream);
        while fixture.driver.streams() > 0 {
            fixture.turn()?;
        }
    }
    Ok(())
}

#[test]
fn a_client_has_one_stream_and_a_socket_of_its_own() -> io::Result<()> {
    let mut server = Fixture::new()?;
    let timeout = Duration::from_secs(5);
    let mut driver = StreamDriver::connect(server.address, timeout)?;
    let mut client = Echo::default();
    for _ in 0..TURNS_MAX {
        driver.turn(&server.clock, &mut client, Duration::from_millis(1))?;
        server.turn()?;
        // Both greet, and both send back what they get.
        if driver.udp().counters().datagrams_received > 2 {
            break;
        }
        if client.streams.len() == 1 && client.datagrams.is_empty() {
            client.datagrams.push((server.address, b"ping".to_vec()));
        }
    }
    assert!(driver.udp().counters().datagrams_received > 2);
    assert_eq!(driver.streams(), 1);
    Ok(())
}
