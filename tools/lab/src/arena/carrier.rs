//! Carriers of datagrams between a server and its clients, which make time pass as well: a virtual network, or something real that a
//! program brings along.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId};
use muse_wire::{Ecn, Instant};

/// Carries datagrams, and says what time it is.
///
/// ```
/// use muse_lab::arena::{Arrived, Carrier, Virtual};
/// use muse_lab::stage::conditions;
/// use muse_wire::{Duration, Instant};
/// let mut carrier = Virtual::new(7);
/// carrier.join(&conditions(80));
/// carrier.send_up(Instant::ZERO, 0, b"keys");
/// let now = carrier.wait(Instant::ZERO, Instant::from_secs(1));
/// assert_eq!(now, Instant::from_millis(40));
/// let mut datagram = Vec::new();
/// let arrived = carrier.poll(now, &mut datagram);
/// assert!(matches!(arrived, Some(Arrived::AtServer(_))));
/// assert_eq!(datagram, b"keys");
/// ```
pub trait Carrier {
    /// Returns the address at which clients reach the server.
    fn server(&self) -> SocketAddr;

    /// Adds a client, the next in order, whose datagrams have these conditions in both directions.
    fn join(&mut self, conditions: &Conditions);

    /// Sends a datagram of a client to the server; it may be lost.
    fn send_up(&mut self, now: Instant, client: usize, datagram: &[u8]);

    /// Sends a datagram of the server to an address that it has heard of; it may be lost.
    fn send_down(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]);

    /// Puts the next datagram that has arrived into `datagram`.
    fn poll(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<Arrived>;

    /// Waits until `due` or until a datagram arrives, and says what time it is then.
    fn wait(&mut self, now: Instant, due: Instant) -> Instant;
}

/// The place where a datagram has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// At the server, from this address.
    AtServer(SocketAddr),
    /// At this client.
    AtClient(usize),
}

/// A virtual network in virtual time: the same every time.
pub struct Virtual {
    network: Network,
    server: NodeId,
    clients: Vec<NodeId>,
}

impl Virtual {
    /// A network without clients. All randomness follows from the seed.
    pub fn new(seed: u64) -> Self {
        let mut network = Network::new(seed);
        let server = network.add_node(SERVER);
        Self {
            network,
            server,
            clients: Vec::new(),
        }
    }

    /// Changes the network between the server and a client, in both directions.
    pub fn set_conditions(&mut self, client: usize, conditions: Conditions) {
        let node = self.clients[client];
        self.network.set_links(self.server, node, conditions);
    }
}

impl Carrier for Virtual {
    fn server(&self) -> SocketAddr {
        SERVER
    }

    fn join(&mut self, conditions: &Conditions) {
        let number = self.clients.len();
        self.clients.push(self.network.add_node(address(number)));
        self.set_conditions(number, conditions.clone());
    }

    fn send_up(&mut self, now: Instant, client: usize, datagram: &[u8]) {
        let from = address(client);
        self.network
            .send(now, from, SERVER, Ecn::NotCapable, datagram);
    }

    fn send_down(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) {
        self.network
            .send(now, SERVER, to, Ecn::NotCapable, datagram);
    }

    fn poll(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<Arrived> {
        let delivery = self.network.poll_deliver(now)?;
        datagram.clear();
        datagram.extend_from_slice(delivery.payload);
        Some(match delivery.to == SERVER {
            true => Arrived::AtServer(delivery.from),
            false => Arrived::AtClient(usize::from(delivery.to.port() - FIRST_PORT)),
        })
    }

    fn wait(&mut self, _: Instant, due: Instant) -> Instant {
        self.network.next_delivery().map_or(due, |at| at.min(due))
    }
}

/// Returns the address of a client.
fn address(client: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], FIRST_PORT + client as u16))
}

const FIRST_PORT: u16 = 1_000;
/// The server's address.
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    1,
);
