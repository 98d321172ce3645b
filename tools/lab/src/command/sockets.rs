//! Packets of a case over real sockets, through `muse proxy` in a process of its own, in real time.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant as SystemInstant};

use crate::arena::{Carrier, Way};
use crate::grid::Cell;
use anyhow::{Context, bail};
use muse_netem::Conditions;
use muse_wire::Instant;

/// A server's socket, the proxy, and a socket for each client.
///
/// What goes up begins with the client's number, since the proxy sends from addresses of its own; a packet of nothing but
/// that says hello.
pub(super) struct Sockets {
    proxy: Child,
    server: UdpSocket,
    clients: Vec<UdpSocket>,
    /// Where the server finds each client, once it has heard of it.
    found: Vec<Option<SocketAddr>>,
    started: SystemInstant,
    arrived: VecDeque<(Way, Vec<u8>)>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Starts the proxy with a cell's conditions, and lets so many clients find the server.
    pub(super) fn new(cell: Cell, clients: usize, seed: u64) -> anyhow::Result<Self> {
        let server = socket()?;
        let (proxy, address) = proxy(cell, server.local_addr()?, seed)?;
        let mut sockets = Self {
            proxy,
            server,
            clients: Vec::new(),
            found: vec![None; clients],
            started: SystemInstant::now(),
            arrived: VecDeque::new(),
            buffer: vec![0; PACKET_BYTES_MAX],
        };
        for _ in 0..clients {
            let client = socket()?;
            client.connect(address)?;
            sockets.clients.push(client);
        }
        sockets.greet()?;
        sockets.started = SystemInstant::now();
        Ok(sockets)
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        while self.found.contains(&None) {
            if self.started.elapsed() > GREET_MAX {
                bail!("the server has not heard of every client through the proxy");
            }
            for (number, client) in self.clients.iter().enumerate() {
                if self.found[number].is_none() {
                    client.send(&[number as u8])?;
                }
            }
            std::thread::sleep(GREET_AGAIN);
            self.receive();
        }
        self.arrived.clear();
        Ok(())
    }

    /// Takes in everything that has arrived. What cannot be read is lost, as on any network.
    fn receive(&mut self) {
        while let Ok((len, from)) = self.server.recv_from(&mut self.buffer) {
            let Some((number, packet)) = self.buffer[..len].split_first() else {
                continue;
            };
            let client = usize::from(*number);
            if let Some(found) = self.found.get_mut(client) {
                *found = Some(from);
                if !packet.is_empty() {
                    self.arrived.push_back((Way::Up(client), packet.to_vec()));
                }
            }
        }
        for (number, client) in self.clients.iter().enumerate() {
            while let Ok(len) = client.recv(&mut self.buffer) {
                let packet = self.buffer[..len].to_vec();
                self.arrived.push_back((Way::Down(number), packet));
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.started.elapsed().as_micros() as u64)
    }
}

impl Carrier for Sockets {
    fn join(&mut self, _: &Conditions) {
        // Its socket is there, and the proxy has the conditions.
    }

    fn send(&mut self, _: Instant, way: Way, packet: &[u8]) {
        // What does not go is lost, as the network might have lost it.
        match way {
            Way::Up(client) => {
                self.buffer.clear();
                self.buffer.push(client as u8);
                self.buffer.extend_from_slice(packet);
                let _ = self.clients[client].send(&self.buffer);
                self.buffer.resize(PACKET_BYTES_MAX, 0);
            }
            Way::Down(client) => {
                if let Some(to) = self.found[client] {
                    let _ = self.server.send_to(packet, to);
                }
            }
        }
    }

    fn poll(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Way> {
        if self.arrived.is_empty() {
            self.receive();
        }
        let (way, arrived) = self.arrived.pop_front()?;
        *packet = arrived;
        Some(way)
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

impl Drop for Sockets {
    fn drop(&mut self) {
        let asked = self
            .proxy
            .stdin
            .take()
            .map(|mut lines| writeln!(lines, "quit"));
        if !matches!(asked, Some(Ok(()))) {
            // It may have ended by itself.
            let _ = self.proxy.kill();
        }
        let _ = self.proxy.wait();
    }
}

/// Starts this program once more as a proxy, and says where it listens.
fn proxy(cell: Cell, to: SocketAddr, seed: u64) -> anyhow::Result<(Child, SocketAddr)> {
    let (least, mean, deviation) = cell.delays();
    let program = std::env::current_exe().context("this program does not know its own path")?;
    let mut command = Command::new(program);
    command
        .args(["proxy", "--quiet", "--listen", "127.0.0.1:0", "--to"])
        .arg(to.to_string())
        .args(["--delay", &format!("{:.3}", least.as_millis_f64())])
        .args(["--loss", &cell.loss_percent.to_string()])
        .args(["--seed", &seed.to_string()]);
    if cell.jitter_percent > 0 {
        let (mean, deviation) = (mean.as_millis_f64(), deviation.as_millis_f64());
        command.args(["--jitter", &format!("normal:{mean:.3}:{deviation:.3}")]);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().context("the proxy does not start")?;
    let output = child.stdout.take().context("the proxy has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let address = line.strip_prefix("ready ").map(str::trim).map(str::parse);
    match address {
        Some(Ok(address)) => Ok((child, address)),
        _ => {
            // Whatever it said instead of its address, it is of no use.
            let _ = child.kill();
            let _ = child.wait();
            bail!("the proxy is not ready: {}", line.trim());
        }
    }
}

fn socket() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

const PACKET_BYTES_MAX: usize = 2_048;
/// How long one sleeps at most, so that what arrives does not wait.
const NAP: Duration = Duration::from_micros(250);
const GREET_AGAIN: Duration = Duration::from_millis(10);
const GREET_MAX: Duration = Duration::from_secs(20);
