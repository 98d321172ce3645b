//! Datagrams of a case over real sockets, through `muse proxy` in a process of its own, in real time.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant as SystemInstant};

use crate::arena::{Arrived, Carrier};
use crate::grid::Cell;
use anyhow::bail;
use muse_netem::Conditions;
use muse_program::child::Program;
use muse_wire::Instant;

/// A server's socket, the proxy, and a socket for each client.
pub(super) struct Sockets {
    _proxy: Program,
    server: UdpSocket,
    clients: Vec<UdpSocket>,
    /// The proxy's address, at which clients reach the server.
    address: SocketAddr,
    started: SystemInstant,
    arrived: VecDeque<(Arrived, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Starts the proxy with a cell's conditions, for so many clients.
    pub(super) fn new(cell: Cell, clients: usize, seed: u64) -> anyhow::Result<Self> {
        let server = socket()?;
        let (proxy, address) = proxy(cell, server.local_addr()?, seed)?;
        let mut sockets = Self {
            _proxy: proxy,
            server,
            clients: Vec::new(),
            address,
            started: SystemInstant::now(),
            arrived: VecDeque::new(),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
        };
        for _ in 0..clients {
            let client = socket()?;
            client.connect(address)?;
            sockets.clients.push(client);
        }
        Ok(sockets)
    }

    /// Receives everything that has arrived. What cannot be read is lost, as on any network.
    fn receive(&mut self) {
        while let Ok((len, from)) = self.server.recv_from(&mut self.buffer) {
            let datagram = self.buffer[..len].to_vec();
            self.arrived.push_back((Arrived::AtServer(from), datagram));
        }
        for (number, client) in self.clients.iter().enumerate() {
            while let Ok(len) = client.recv(&mut self.buffer) {
                let datagram = self.buffer[..len].to_vec();
                self.arrived
                    .push_back((Arrived::AtClient(number), datagram));
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.started.elapsed().as_micros() as u64)
    }
}

impl Carrier for Sockets {
    fn server(&self) -> SocketAddr {
        self.address
    }

    fn join(&mut self, _: &Conditions) {
        // Its socket is there, and the proxy has the conditions.
    }

    fn send_up(&mut self, _: Instant, client: usize, datagram: &[u8]) {
        // What does not go is lost, as the network might have lost it.
        let _ = self.clients[client].send(datagram);
    }

    fn send_down(&mut self, _: Instant, to: SocketAddr, datagram: &[u8]) {
        let _ = self.server.send_to(datagram, to);
    }

    fn poll(&mut self, _: Instant, datagram: &mut Vec<u8>) -> Option<Arrived> {
        if self.arrived.is_empty() {
            self.receive();
        }
        let (place, arrived) = self.arrived.pop_front()?;
        *datagram = arrived;
        Some(place)
    }

    fn wait(&mut self, _: Instant, due: Instant) -> Instant {
        loop {
            let now = self.now();
            if now >= due || !self.arrived.is_empty() {
                return now;
            }
            let rest = Duration::from_micros((due - now).as_micros());
            std::thread::sleep(rest.min(NAP));
            self.receive();
        }
    }
}

/// Starts this program once more as a proxy, and says where it listens.
fn proxy(cell: Cell, to: SocketAddr, seed: u64) -> anyhow::Result<(Program, SocketAddr)> {
    let (least, mean, deviation) = cell.delays();
    let mut line = format!(
        "proxy --quiet --listen 127.0.0.1:0 --to {to} --delay {:.3} --loss {} --seed {seed}",
        least.as_millis_f64(),
        cell.loss_percent
    );
    if cell.jitter_percent > 0 {
        let (mean, deviation) = (mean.as_millis_f64(), deviation.as_millis_f64());
        line += &format!(" --jitter normal:{mean:.3}:{deviation:.3}");
    }
    let mut program = Program::start(&line, |command| {
        command.stderr(Stdio::null());
    })?;
    let said = program.line()?;
    match said.strip_prefix("ready ").map(str::parse) {
        Some(Ok(address)) => Ok((program, address)),
        _ => bail!("the proxy is not ready: {said}"),
    }
}

fn socket() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

const DATAGRAM_BYTES_MAX: usize = 2_048;
/// The longest sleep, so that arriving datagrams do not wait.
const NAP: Duration = Duration::from_micros(250);
