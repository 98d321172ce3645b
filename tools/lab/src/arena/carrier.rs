//! What carries packets between a server and its clients, and makes time pass: a virtual network, or something real that a program
//! brings along.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId};
use muse_wire::{Ecn, Instant};

/// Carries packets, and says what time it is.
///
/// ```
/// use muse_lab::arena::{Carrier, Virtual, Way};
/// use muse_lab::stage::conditions;
/// use muse_wire::{Duration, Instant};
/// let mut carrier = Virtual::new(7);
/// carrier.join(&conditions(80));
/// carrier.send(Instant::ZERO, Way::Up(0), b"keys");
/// let now = carrier.wait(Instant::ZERO, Instant::from_secs(1));
/// assert_eq!(now, Instant::from_millis(40));
/// let mut packet = Vec::new();
/// assert_eq!(carrier.poll(now, &mut packet), Some(Way::Up(0)));
/// assert_eq!(packet, b"keys");
/// ```
pub trait Carrier {
    /// A client comes, the next in order, whose packets these conditions are for, in both directions.
    fn join(&mut self, conditions: &Conditions);

    /// Sends a packet; it may be lost.
    fn send(&mut self, now: Instant, way: Way, packet: &[u8]);

    /// The next packet that has arrived, put into `packet`.
    fn poll(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Way>;

    /// Waits until `due` or until a packet arrives, and says what time it is then.
    fn wait(&mut self, now: Instant, due: Instant) -> Instant;
}

/// Which way a packet goes, and of which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From a client to the server.
    Up(usize),
    /// From the server to a client.
    Down(usize),
}

/// A virtual network in virtual time: the same every time.
pub struct Virtual {
    network: Network,
    server: NodeId,
    clients: usize,
}

impl Virtual {
    /// A network without clients. Everything by chance follows from the seed.
    pub fn new(seed: u64) -> Self {
        let mut network = Network::new(seed);
        let server = network.add_node(SERVER);
        Self {
            network,
            server,
            clients: 0,
        }
    }
}

impl Carrier for Virtual {
    fn join(&mut self, conditions: &Conditions) {
        let node = self.network.add_node(address(self.clients));
        self.network
            .set_links(self.server, node, conditions.clone());
        self.clients += 1;
    }

    fn send(&mut self, now: Instant, way: Way, packet: &[u8]) {
        let (from, to) = match way {
            Way::Up(client) => (address(client), SERVER),
            Way::Down(client) => (SERVER, address(client)),
        };
        self.network.send(now, from, to, Ecn::NotCapable, packet);
    }

    fn poll(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Way> {
        let delivery = self.network.poll_deliver(now)?;
        packet.clear();
        packet.extend_from_slice(delivery.payload);
        let number = |address: SocketAddr| usize::from(address.port() - FIRST_PORT);
        Some(match delivery.to == SERVER {
            true => Way::Up(number(delivery.from)),
            false => Way::Down(number(delivery.to)),
        })
    }

    fn wait(&mut self, _: Instant, due: Instant) -> Instant {
        self.network.next_delivery().map_or(due, |at| at.min(due))
    }
}

/// Where a client is.
fn address(client: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], FIRST_PORT + client as u16))
}

const FIRST_PORT: u16 = 1_000;
/// Where the server is.
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    1,
);
