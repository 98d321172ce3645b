//! `rusty_enet`, ENet's port to Rust, with its default settings: channel 0 unreliable, channel 1 reliable.

use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use muse_bench_peers::{socket, wait_readable};
use muse_bench_workload::{Failure, Kind, Library, Options, Peer, Sent, run};
use rusty_enet::{EventNoRef, Host, HostSettings, Packet, PeerID};

fn main() -> ExitCode {
    run::<RustyEnet>(std::env::args().skip(1))
}

struct RustyEnet;

impl Library for RustyEnet {
    type Server = Server;
    type Clients = Clients;

    fn serve(options: &Options) -> Result<(Server, u16), Failure> {
        let socket = socket(options.port)?;
        let port = socket.local_addr()?.port();
        let host = host(socket, CONNECTIONS_MAX)?;
        Ok((Server { host, connected: 0 }, port))
    }

    fn clients(_: &Options, server: SocketAddr) -> Result<Clients, Failure> {
        Ok(Clients {
            hosts: Vec::new(),
            connected: 0,
            server,
        })
    }
}

/// One host; a connection's number is its peer's.
struct Server {
    host: Host<UdpSocket>,
    connected: usize,
}

impl Peer for Server {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.connected
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        self.connected += service(&mut self.host, |peer, kind, message| {
            received(peer.0, kind, message);
        });
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        send(&mut self.host, PeerID(connection), kind, message)
    }

    fn flush(&mut self) {
        self.host.flush();
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(self.host.socket(), timeout);
    }
}

/// One host with one peer for each client.
struct Clients {
    hosts: Vec<Host<UdpSocket>>,
    connected: usize,
    server: SocketAddr,
}

impl muse_bench_workload::Clients for Clients {
    fn add(&mut self) -> Result<(), Failure> {
        let mut host = host(socket(0)?, 1)?;
        host.connect(self.server, CHANNELS, 0)
            .map_err(|error| Failure::new(format!("cannot connect: {error:?}")))?;
        self.hosts.push(host);
        Ok(())
    }
}

impl Peer for Clients {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.connected
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        for (connection, host) in self.hosts.iter_mut().enumerate() {
            self.connected += service(host, |_, kind, message| {
                received(connection, kind, message);
            });
        }
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        send(&mut self.hosts[connection], PeerID(0), kind, message)
    }

    fn flush(&mut self) {
        for host in &mut self.hosts {
            host.flush();
        }
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(self.hosts[0].socket(), timeout);
    }
}

fn host(socket: UdpSocket, peer_limit: usize) -> Result<Host<UdpSocket>, Failure> {
    let settings = HostSettings {
        peer_limit,
        channel_limit: CHANNELS,
        ..HostSettings::default()
    };
    Host::new(socket, settings)
        .map_err(|error| Failure::new(format!("cannot open a host: {error:?}")))
}

/// Takes in all events; returns how many peers have connected.
fn service(host: &mut Host<UdpSocket>, mut received: impl FnMut(PeerID, Kind, &[u8])) -> usize {
    let mut connected = 0;
    while let Ok(Some(event)) = host.service() {
        match event.no_ref() {
            EventNoRef::Connect { .. } => connected += 1,
            EventNoRef::Disconnect { .. } => eprintln!("rusty_enet: a peer was disconnected"),
            EventNoRef::Receive {
                peer,
                channel_id,
                packet,
            } => {
                let kind = match channel_id {
                    0 => Kind::Unreliable,
                    _ => Kind::Reliable,
                };
                received(peer, kind, packet.data());
            }
        }
    }
    connected
}

fn send(host: &mut Host<UdpSocket>, peer: PeerID, kind: Kind, message: &[u8]) -> Sent {
    let (channel, packet) = match kind {
        Kind::Unreliable => (0, Packet::unreliable(message)),
        Kind::Reliable => (1, Packet::reliable(message)),
    };
    match host.peer_mut(peer).send(channel, &packet) {
        Ok(()) => Sent::Accepted,
        Err(_) => Sent::Full,
    }
}

const CHANNELS: usize = 2;
const CONNECTIONS_MAX: usize = 1_024;
/// ENet goes through its whole queue whenever its own window of 64 kB is full: a short queue is to its advantage.
const IN_FLIGHT_MAX: u64 = 256;
