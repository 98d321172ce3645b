//! A relay with many rooms and guests that say plain datagrams: for what is about numbers and rates rather than about sessions.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_relay::{Limits, Link, LinkEvent, LinkState, Relay, Relayed, RoomKey};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

use crate::world::RELAY;

/// Whatever runs on a node.
pub(crate) enum Node {
    Relay(Box<Relay>),
    Member(Box<Relayed<Talker>>),
}

/// Says what it is told to, and counts what it hears by the number in it.
#[derive(Debug, Default)]
pub(crate) struct Talker {
    to_say: VecDeque<(SocketAddr, Vec<u8>)>,
    pub(crate) heard: BTreeMap<u32, u64>,
    /// The address that each number came from last.
    pub(crate) addresses: BTreeMap<u32, SocketAddr>,
}

impl Machine for Talker {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        let number = datagram.payload[1..].first_chunk().copied();
        let number = number.map(u32::from_le_bytes).expect("as it was said");
        *self.heard.entry(number).or_default() += 1;
        self.addresses.insert(number, datagram.from);
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.to_say.pop_front()?;
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

impl Node {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Relay(relay) => relay.as_mut(),
            Self::Member(member) => member.as_mut(),
        }
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.machine().handle_datagram(now, datagram);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.machine().handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.machine().poll_transmit(now, buffer)
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        self.machine().poll_timeout()
    }
}

/// Everybody at one relay.
pub(crate) struct Crowd {
    pub(crate) simulation: Simulation<Node>,
    pub(crate) relay: NodeId,
    drawn: u64,
}

impl Crowd {
    /// Everybody at a relay at which anybody may open rooms.
    pub(crate) fn new(limits: Limits) -> Self {
        Self::at(Relay::danger_open(Instant::ZERO, limits, [1; 32]))
    }

    pub(crate) fn at(relay: Relay) -> Self {
        let mut network = Network::new(1);
        network.set_default(Conditions::default().delay(Duration::from_millis(5)));
        let mut simulation = Simulation::new(network);
        let relay = simulation.add(RELAY, Node::Relay(Box::new(relay)));
        Self {
            simulation,
            relay,
            drawn: 0,
        }
    }

    /// The key of the room with this number.
    pub(crate) fn key(room: u8) -> RoomKey {
        RoomKey::new([room; 16])
    }

    /// Opens a room, and waits until it is open or refused.
    pub(crate) fn open(&mut self, at: SocketAddr, room: u8, direct: bool) -> NodeId {
        let (now, seed) = (self.simulation.now(), self.seed());
        let link = Link::open(now, RELAY, Self::key(room), seed).direct(direct);
        self.add(at, link)
    }

    /// Joins a room, and waits until the guest is in or refused.
    pub(crate) fn join(&mut self, at: SocketAddr, room: u8, direct: bool) -> NodeId {
        let (now, seed) = (self.simulation.now(), self.seed());
        let link = Link::join(now, RELAY, Self::key(room).code(), seed).direct(direct);
        self.add(at, link)
    }

    pub(crate) fn add(&mut self, at: SocketAddr, link: Link) -> NodeId {
        let known = self.simulation.network().node_at(at);
        let node = known.unwrap_or_else(|| self.simulation.network_mut().add_node(at));
        let member = Relayed::new(Talker::default(), link);
        self.simulation.attach(node, Node::Member(Box::new(member)));
        let until = self.simulation.now() + Duration::from_secs(5);
        while self.member(node).link().state() == LinkState::Asking {
            assert!(self.simulation.now() < until, "the relay answers");
            self.simulation.run_for(Duration::from_millis(5));
        }
        node
    }

    pub(crate) fn seed(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut seed = [0x5A; 32];
        seed[..8].copy_from_slice(&self.drawn.to_le_bytes());
        seed
    }

    pub(crate) fn member(&self, node: NodeId) -> &Relayed<Talker> {
        match self.simulation.node(node) {
            Node::Member(member) => member,
            Node::Relay(_) => unreachable!("the relay is no member"),
        }
    }

    pub(crate) fn member_mut(&mut self, node: NodeId) -> &mut Relayed<Talker> {
        match self.simulation.node_mut(node) {
            Node::Member(member) => member,
            Node::Relay(_) => unreachable!("the relay is no member"),
        }
    }

    pub(crate) fn relay(&self) -> &Relay {
        match self.simulation.node(self.relay) {
            Node::Relay(relay) => relay,
            Node::Member(_) => unreachable!("no relay there"),
        }
    }

    /// Has a member say a datagram of `len` bytes with a number in it.
    pub(crate) fn say(&mut self, from: NodeId, to: SocketAddr, number: u32, len: usize) {
        let mut bytes = vec![0x80];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.resize(len.max(5), 0xAB);
        let talker = self.member_mut(from).machine_mut();
        talker.to_say.push_back((to, bytes));
    }

    /// Returns the events of a member's link since the last call.
    pub(crate) fn events(&mut self, node: NodeId) -> Vec<LinkEvent> {
        let link = self.member_mut(node).link_mut();
        std::iter::from_fn(|| link.poll_event()).collect()
    }
}
