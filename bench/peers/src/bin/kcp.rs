//! KCP in its fast mode (nodelay 1, interval 10, resend 2, no congestion window). It is reliable only, so unreliable
//! messages travel beside it as datagrams with the conversation number 0.

use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kcp::Kcp;
use muse_bench_peers::{socket, wait_readable};
use muse_bench_workload::{Failure, Kind, Library, Options, Peer, Sent, run};

fn main() -> ExitCode {
    run::<KcpFast>(std::env::args().skip(1))
}

struct KcpFast;

impl Library for KcpFast {
    type Server = Server;
    type Clients = Clients;

    fn serve(options: &Options) -> Result<(Server, u16), Failure> {
        let socket = Arc::new(socket(options.port)?);
        let port = socket.local_addr()?.port();
        let server = Server {
            socket,
            connections: Vec::new(),
            numbers: HashMap::new(),
            started: Instant::now(),
            buffer: vec![0; 65_536],
        };
        Ok((server, port))
    }

    fn clients(_: &Options, server: SocketAddr) -> Result<Clients, Failure> {
        Ok(Clients {
            connected: Vec::new(),
            connections: Vec::new(),
            server,
            started: Instant::now(),
            buffer: vec![0; 65_536],
        })
    }
}

struct Server {
    socket: Arc<UdpSocket>,
    connections: Vec<Connection>,
    numbers: HashMap<SocketAddr, usize>,
    started: Instant,
    buffer: Vec<u8>,
}

impl Peer for Server {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.connections.len()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let now_ms = self.started.elapsed().as_millis() as u32;
        for connection in &mut self.connections {
            connection.update(now_ms);
        }
        while let Ok((len, from)) = self.socket.recv_from(&mut self.buffer) {
            let number = *self.numbers.entry(from).or_insert_with(|| {
                let mut connection = Connection::new(Arc::clone(&self.socket), from);
                connection.update(now_ms);
                self.connections.push(connection);
                self.connections.len() - 1
            });
            let connection = &mut self.connections[number];
            match self.buffer[..len].strip_prefix(&BESIDE) {
                Some([]) => connection.send_beside(&[]),
                Some(message) => received(number, Kind::Unreliable, message),
                None => connection.input(&self.buffer[..len]),
            }
        }
        for (number, connection) in self.connections.iter_mut().enumerate() {
            connection.receive(&mut self.buffer, |message| {
                received(number, Kind::Reliable, message);
            });
        }
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        self.connections[connection].send(kind, message)
    }

    fn flush(&mut self) {
        self.connections.iter_mut().for_each(Connection::flush);
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.socket, timeout);
    }
}

struct Clients {
    connections: Vec<Connection>,
    connected: Vec<bool>,
    server: SocketAddr,
    started: Instant,
    buffer: Vec<u8>,
}

impl muse_bench_workload::Clients for Clients {
    fn add(&mut self) -> Result<(), Failure> {
        let socket = Arc::new(socket(0)?);
        self.connections.push(Connection::new(socket, self.server));
        self.connected.push(false);
        Ok(())
    }
}

impl Peer for Clients {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.connected
            .iter()
            .filter(|&&connected| connected)
            .count()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let now_ms = self.started.elapsed().as_millis() as u32;
        for (number, connection) in self.connections.iter_mut().enumerate() {
            connection.update(now_ms);
            while let Ok((len, _)) = connection.output.socket.recv_from(&mut self.buffer) {
                match self.buffer[..len].strip_prefix(&BESIDE) {
                    Some([]) => self.connected[number] = true,
                    Some(message) => received(number, Kind::Unreliable, message),
                    None => connection.input(&self.buffer[..len]),
                }
            }
            connection.receive(&mut self.buffer, |message| {
                received(number, Kind::Reliable, message);
            });
            if !self.connected[number] {
                connection.send_beside(&[]);
            }
        }
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        self.connections[connection].send(kind, message)
    }

    fn flush(&mut self) {
        self.connections.iter_mut().for_each(Connection::flush);
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.connections[0].output.socket, timeout);
    }
}

struct Connection {
    kcp: Kcp<Output>,
    output: Output,
    /// Something was sent or came in since the last flush.
    touched: bool,
    buffer: Vec<u8>,
}

impl Connection {
    fn new(socket: Arc<UdpSocket>, to: SocketAddr) -> Self {
        let output = Output { socket, to };
        let mut kcp = Kcp::new(CONVERSATION, output.clone());
        kcp.set_nodelay(true, 10, 2, true);
        kcp.set_wndsize(WINDOW, WINDOW);
        Self {
            kcp,
            output,
            touched: false,
            buffer: Vec::new(),
        }
    }

    fn update(&mut self, now_ms: u32) {
        report(self.kcp.update(now_ms));
    }

    fn input(&mut self, datagram: &[u8]) {
        report(self.kcp.input(datagram));
        self.touched = true;
    }

    fn receive(&mut self, buffer: &mut [u8], mut received: impl FnMut(&[u8])) {
        while let Ok(len) = self.kcp.recv(buffer) {
            received(&buffer[..len]);
        }
    }

    fn send(&mut self, kind: Kind, message: &[u8]) -> Sent {
        match kind {
            Kind::Unreliable => self.send_beside(message),
            Kind::Reliable if self.kcp.wait_snd() >= usize::from(WINDOW) * 2 => return Sent::Full,
            Kind::Reliable => {
                report(self.kcp.send(message));
                self.touched = true;
            }
        }
        Sent::Accepted
    }

    fn send_beside(&mut self, message: &[u8]) {
        self.buffer.clear();
        self.buffer.extend_from_slice(&BESIDE);
        self.buffer.extend_from_slice(message);
        // A full socket buffer loses it, as the network may.
        let _ = self.output.socket.send_to(&self.buffer, self.output.to);
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.touched) {
            report(self.kcp.flush());
        }
    }
}

/// Collects the datagrams that KCP writes.
#[derive(Clone)]
struct Output {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
}

impl Write for Output {
    fn write(&mut self, datagram: &[u8]) -> std::io::Result<usize> {
        match self.socket.send_to(datagram, self.to) {
            // A full socket buffer loses it; KCP sends again.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(datagram.len()),
            outcome => outcome,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn report<T>(outcome: kcp::KcpResult<T>) {
    if let Err(error) = outcome {
        eprintln!("kcp: {error}");
    }
}

/// Each connection has a socket address of its own, so the conversation's number need not tell them apart.
const CONVERSATION: u32 = 1;
/// A conversation number that KCP does not get to see.
const BESIDE: [u8; 4] = [0; 4];
/// Segments, each one message here. KCP goes through its window at every flush: larger ones cost CPU time.
const WINDOW: u16 = 64;
const IN_FLIGHT_MAX: u64 = 256;
