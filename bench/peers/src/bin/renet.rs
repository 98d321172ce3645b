//! `renet` over its netcode transport, with ChaCha20-Poly1305 as shipped and its default channels (resend after
//! 300 ms).

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use muse_bench_peers::{enlarge_receive_buffer, socket, wait_readable};
use muse_bench_workload::{Failure, Kind, Library, Options, Peer, Sent, run};
use renet::{ClientId, ConnectionConfig, DefaultChannel, RenetClient, RenetServer, ServerEvent};
use renet_netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication,
    ServerConfig,
};

fn main() -> ExitCode {
    run::<Renet>(std::env::args().skip(1))
}

struct Renet;

impl Library for Renet {
    type Server = Server;
    type Clients = Clients;

    fn serve(options: &Options) -> Result<(Server, u16), Failure> {
        let socket = socket(options.port)?;
        // Every client acknowledges in every tick; 500 such datagrams at once are too many for the default buffer.
        enlarge_receive_buffer(&socket)?;
        let address = socket.local_addr()?;
        let config = ServerConfig {
            current_time: since_epoch(),
            max_clients: CONNECTIONS_MAX,
            protocol_id: PROTOCOL,
            public_addresses: vec![address],
            authentication: ServerAuthentication::Unsecure,
        };
        let server = Server {
            handle: socket.try_clone()?,
            transport: NetcodeServerTransport::new(config, socket)?,
            server: RenetServer::new(ConnectionConfig::default()),
            clients: Vec::new(),
            updated: Instant::now(),
        };
        Ok((server, address.port()))
    }

    fn clients(_: &Options, server: SocketAddr) -> Result<Clients, Failure> {
        Ok(Clients {
            clients: Vec::new(),
            server,
            updated: Instant::now(),
        })
    }
}

struct Server {
    handle: std::net::UdpSocket,
    transport: NetcodeServerTransport,
    server: RenetServer,
    clients: Vec<ClientId>,
    updated: Instant,
}

impl Peer for Server {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.clients.len()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let elapsed = lap(&mut self.updated);
        self.server.update(elapsed);
        if let Err(error) = self.transport.update(elapsed, &mut self.server) {
            eprintln!("renet: {error}");
        }
        while let Some(event) = self.server.get_event() {
            match event {
                ServerEvent::ClientConnected { client_id } => self.clients.push(client_id),
                ServerEvent::ClientDisconnected { reason, .. } => eprintln!("renet: {reason}"),
            }
        }
        for (connection, &client) in self.clients.iter().enumerate() {
            for kind in KINDS {
                while let Some(message) = self.server.receive_message(client, channel(kind)) {
                    received(connection, kind, &message);
                }
            }
        }
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        let client = self.clients[connection];
        if !self
            .server
            .can_send_message(client, channel(kind), message.len())
        {
            return Sent::Full;
        }
        let message = Bytes::copy_from_slice(message);
        self.server.send_message(client, channel(kind), message);
        Sent::Accepted
    }

    fn flush(&mut self) {
        self.transport.send_packets(&mut self.server);
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.handle, timeout);
    }
}

struct Clients {
    clients: Vec<Client>,
    server: SocketAddr,
    updated: Instant,
}

struct Client {
    handle: std::net::UdpSocket,
    transport: NetcodeClientTransport,
    client: RenetClient,
}

impl Client {
    fn new(client_id: ClientId, server_addr: SocketAddr) -> Result<Self, Failure> {
        let authentication = ClientAuthentication::Unsecure {
            protocol_id: PROTOCOL,
            client_id,
            server_addr,
            user_data: None,
        };
        let socket = socket(0)?;
        Ok(Self {
            handle: socket.try_clone()?,
            transport: NetcodeClientTransport::new(since_epoch(), authentication, socket)
                .map_err(|error| Failure::new(error.to_string()))?,
            client: RenetClient::new(ConnectionConfig::default()),
        })
    }
}

impl muse_bench_workload::Clients for Clients {
    fn add(&mut self) -> Result<(), Failure> {
        let number = self.clients.len() as ClientId;
        self.clients.push(Client::new(number, self.server)?);
        Ok(())
    }
}

impl Peer for Clients {
    const IN_FLIGHT_MAX: u64 = IN_FLIGHT_MAX;

    fn connected(&self) -> usize {
        self.clients
            .iter()
            .filter(|client| client.client.is_connected())
            .count()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let elapsed = lap(&mut self.updated);
        for (connection, client) in self.clients.iter_mut().enumerate() {
            client.client.update(elapsed);
            if let Err(error) = client.transport.update(elapsed, &mut client.client) {
                eprintln!("renet: {error}");
            }
            for kind in KINDS {
                while let Some(message) = client.client.receive_message(channel(kind)) {
                    received(connection, kind, &message);
                }
            }
        }
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        let client = &mut self.clients[connection].client;
        if !client.can_send_message(channel(kind), message.len()) {
            return Sent::Full;
        }
        client.send_message(channel(kind), Bytes::copy_from_slice(message));
        Sent::Accepted
    }

    fn flush(&mut self) {
        for client in self
            .clients
            .iter_mut()
            .filter(|client| client.client.is_connected())
        {
            if let Err(error) = client.transport.send_packets(&mut client.client) {
                eprintln!("renet: {error}");
            }
        }
    }

    fn wait(&mut self, timeout: Duration) {
        wait_readable(&self.clients[0].handle, timeout);
    }
}

fn channel(kind: Kind) -> u8 {
    match kind {
        Kind::Unreliable => DefaultChannel::Unreliable.into(),
        Kind::Reliable => DefaultChannel::ReliableOrdered.into(),
    }
}

/// Time since the last lap.
fn lap(last: &mut Instant) -> Duration {
    let now = Instant::now();
    now - std::mem::replace(last, now)
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

const KINDS: [Kind; 2] = [Kind::Unreliable, Kind::Reliable];
const PROTOCOL: u64 = 7;
const CONNECTIONS_MAX: usize = 1_024;
/// renet has no window: it sends all it was given at once, and what overflows the receiver's socket comes again after
/// 300 ms. This many messages fit in the socket's default buffer.
const IN_FLIGHT_MAX: u64 = 64;
