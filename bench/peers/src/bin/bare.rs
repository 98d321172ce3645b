//! Bare datagrams through `quinn-udp` with segmentation offload where messages have one destination: no reliability,
//! no connection, no crypto. What the kernel alone costs.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use muse_bench_peers::{socket, wait_readable};
use muse_bench_workload::{Failure, Kind, Library, Options, Peer, Sent, run};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

fn main() -> ExitCode {
    run::<Bare>(std::env::args().skip(1))
}

struct Bare;

impl Library for Bare {
    type Server = Server;
    type Clients = Clients;

    fn serve(options: &Options) -> Result<(Server, u16), Failure> {
        let link = Link::open(options.port)?;
        let port = link.socket.local_addr()?.port();
        let server = Server {
            link,
            receiver: Receiver::new(),
            addresses: Vec::new(),
            connections: HashMap::new(),
        };
        Ok((server, port))
    }

    fn clients(_: &Options, server: SocketAddr) -> Result<Clients, Failure> {
        Ok(Clients {
            connected: Vec::new(),
            links: Vec::new(),
            receiver: Receiver::new(),
            server,
        })
    }
}

struct Server {
    link: Link,
    receiver: Receiver,
    addresses: Vec<SocketAddr>,
    connections: HashMap<SocketAddr, usize>,
}

impl Peer for Server {
    const RELIABLE: bool = false;

    fn connected(&self) -> usize {
        self.addresses.len()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let mut greetings = Vec::new();
        self.receiver.receive(&self.link, |from, datagram| {
            let connection = *self.connections.entry(from).or_insert_with(|| {
                self.addresses.push(from);
                self.addresses.len() - 1
            });
            match datagram {
                [_] => greetings.push(from),
                _ => received(connection, Kind::Unreliable, datagram),
            }
        });
        for from in greetings {
            self.link.send(from, &HELLO);
        }
    }

    fn send(&mut self, connection: usize, _: Kind, message: &[u8]) -> Sent {
        self.link.send(self.addresses[connection], message);
        Sent::Accepted
    }

    fn flush(&mut self) {
        self.link.flush();
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.link.socket, timeout);
    }
}

struct Clients {
    links: Vec<Link>,
    receiver: Receiver,
    connected: Vec<bool>,
    server: SocketAddr,
}

impl muse_bench_workload::Clients for Clients {
    fn add(&mut self) -> Result<(), Failure> {
        self.links.push(Link::open(0)?);
        self.connected.push(false);
        Ok(())
    }
}

impl Peer for Clients {
    const RELIABLE: bool = false;

    fn connected(&self) -> usize {
        self.connected
            .iter()
            .filter(|&&connected| connected)
            .count()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        for (connection, link) in self.links.iter_mut().enumerate() {
            let connected = &mut self.connected[connection];
            self.receiver.receive(link, |_, datagram| match datagram {
                [_] => *connected = true,
                _ => received(connection, Kind::Unreliable, datagram),
            });
            if !*connected {
                link.send(self.server, &HELLO);
            }
        }
    }

    fn send(&mut self, connection: usize, _: Kind, message: &[u8]) -> Sent {
        self.links[connection].send(self.server, message);
        Sent::Accepted
    }

    fn flush(&mut self) {
        for link in &mut self.links {
            link.flush();
        }
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.links[0].socket, timeout);
    }
}

/// A socket and the datagrams of one size and destination that wait to go out in one call.
struct Link {
    socket: UdpSocket,
    state: UdpSocketState,
    to: Option<SocketAddr>,
    segment: usize,
    batch: Vec<u8>,
}

impl Link {
    fn open(port: u16) -> std::io::Result<Self> {
        let socket = socket(port)?;
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            socket,
            to: None,
            segment: 0,
            batch: Vec::new(),
        })
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let full = self.batch.len() + datagram.len() > BATCH_BYTES_MAX
            || self.batch.len() >= self.segment * self.state.max_gso_segments();
        if self.to != Some(to) || self.segment != datagram.len() || full {
            self.flush();
        }
        self.to = Some(to);
        self.segment = datagram.len();
        self.batch.extend_from_slice(datagram);
    }

    fn flush(&mut self) {
        let Some(destination) = self.to.take() else {
            return;
        };
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &self.batch,
            segment_size: (self.batch.len() > self.segment).then_some(self.segment),
            src_ip: None,
        };
        // Bare datagrams may get lost, here as anywhere.
        let _ = self.state.try_send((&self.socket).into(), &transmit);
        self.batch.clear();
    }
}

/// Buffers for reading several datagrams in one call.
struct Receiver {
    buffers: Vec<Vec<u8>>,
}

impl Receiver {
    fn new() -> Self {
        Self {
            buffers: vec![vec![0; 65_536]; BATCH_SIZE],
        }
    }

    fn receive(&mut self, link: &Link, mut received: impl FnMut(SocketAddr, &[u8])) {
        loop {
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let mut slices: Vec<IoSliceMut<'_>> = self
                .buffers
                .iter_mut()
                .map(|buffer| IoSliceMut::new(buffer))
                .collect();
            let Ok(count) = link
                .state
                .recv((&link.socket).into(), &mut slices, &mut metas)
            else {
                return;
            };
            for (meta, buffer) in metas[..count].iter().zip(&self.buffers) {
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    received(meta.addr, datagram);
                }
            }
        }
    }
}

/// Asks the server to answer with the same.
const HELLO: [u8; 1] = [0];
/// The largest payload of a datagram, which bounds what one call may send.
const BATCH_BYTES_MAX: usize = 65_507;
