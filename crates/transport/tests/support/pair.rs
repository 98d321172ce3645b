//! A client and a server over a virtual network, with everything that happens to them written down.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use muse_netem::{NatId, NatKind, Network, NodeId, Simulation};
use muse_transport::{
    CloseReason, Config, Connect, ConnectionId, Endpoint, Event, Receipt, Refusal, SeededEntropy,
    ServerKey, ServerOptions, ServerPublicKey,
};
use muse_wire::{Duration, Instant};

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// An [`Event`] that owns what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnedEvent {
    Connected,
    Refused(Refusal),
    Unanswered,
    Message { channel: u8, payload: Vec<u8> },
    Receipt(Receipt),
    Interrupted,
    Resumed,
    AddressChanged(SocketAddr),
    Closed(CloseReason),
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) side: Side,
    pub(crate) what: OwnedEvent,
}

/// A client and a server.
pub(crate) struct Pair {
    pub(crate) simulation: Simulation<Endpoint>,
    pub(crate) nodes: [NodeId; 2],
    /// By side; the server's is known once the client has shown up.
    pub(crate) connections: [Option<ConnectionId>; 2],
    pub(crate) log: Vec<Entry>,
    pub(crate) nat: Option<NatId>,
    buffer: Vec<u8>,
}

/// The address on which the server listens.
pub(crate) fn server_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 2_000))
}

/// The client's first address.
pub(crate) fn client_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000))
}

/// A server's key that follows from `seed`, with its public half.
pub(crate) fn server_key(seed: u64) -> (ServerKey, ServerPublicKey) {
    let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
    let public = key.public();
    (key, public)
}

impl Pair {
    /// A client that knows the server's key and begins to connect, both with this config, over a perfect network.
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        Self::with_nat(config, seed, None)
    }

    /// As [`new`](Self::new), with the client behind a NAT.
    pub(crate) fn with_nat(config: Config, seed: u64, nat: Option<NatKind>) -> Self {
        let (key, public) = server_key(seed);
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed ^ 1));
        server.listen(ServerOptions::new(key));
        let client = Endpoint::new(config, SeededEntropy::danger_seeded(seed ^ 2));
        let connect = Connect::pinned(public).timeout(Duration::from_secs(60));
        Self::of(server, client, connect, seed, nat)
    }

    /// Any two endpoints; the client begins to connect.
    pub(crate) fn of(
        server: Endpoint,
        mut client: Endpoint,
        connect: Connect,
        seed: u64,
        nat: Option<NatKind>,
    ) -> Self {
        let to_server = client
            .connect(Instant::ZERO, server_address(), connect)
            .expect("a free slot");
        let mut network = Network::new(seed);
        let external = SocketAddr::from(([198, 51, 100, 1], 0)).ip();
        let nat = nat.map(|kind| network.add_nat(kind, external, Duration::from_secs(120)));
        let client_node = match nat {
            Some(nat) => network.add_node_behind(nat, client_address()),
            None => network.add_node(client_address()),
        };
        let mut simulation = Simulation::new(network);
        simulation.attach(client_node, client);
        let server_node = simulation.add(server_address(), server);
        Self {
            simulation,
            nodes: [client_node, server_node],
            connections: [Some(to_server), None],
            log: Vec::new(),
            nat,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.simulation.now()
    }

    pub(crate) fn node(&self, side: Side) -> &Endpoint {
        self.simulation.node(self.nodes[side.index()])
    }

    pub(crate) fn node_mut(&mut self, side: Side) -> &mut Endpoint {
        self.simulation.node_mut(self.nodes[side.index()])
    }

    pub(crate) fn connection(&self, side: Side) -> ConnectionId {
        self.connections[side.index()].expect("connected")
    }

    /// Sends a message that must be taken.
    pub(crate) fn send(&mut self, side: Side, channel: u8, payload: &[u8]) {
        let (now, connection) = (self.now(), self.connection(side));
        self.node_mut(side)
            .send(now, connection, channel, payload)
            .expect("room in the queue");
    }

    /// Runs until `until` and writes down what happens.
    pub(crate) fn advance(&mut self, until: Instant) {
        self.run_until(until, |_| false);
    }

    /// Runs for `span`.
    pub(crate) fn advance_for(&mut self, span: Duration) {
        self.advance(self.now() + span);
    }

    /// Runs until `is_done` or `until`; returns whether it is done.
    pub(crate) fn run_until(
        &mut self,
        until: Instant,
        mut is_done: impl FnMut(&Self) -> bool,
    ) -> bool {
        loop {
            self.drain();
            if is_done(self) {
                return true;
            }
            if self.simulation.next_event().is_none_or(|at| at > until) {
                break;
            }
            self.simulation.step();
        }
        self.simulation.run_until(until, |_| ());
        false
    }

    /// Runs until both sides know that they are connected.
    pub(crate) fn connect(&mut self) {
        let limit = self.now() + Duration::from_secs(60);
        let connected = self.run_until(limit, |pair| pair.is_connected());
        assert!(connected, "no connection within a minute: {:?}", self.log);
    }

    pub(crate) fn is_connected(&self) -> bool {
        let is_connected = |entry: &&Entry| entry.what == OwnedEvent::Connected;
        self.log.iter().filter(is_connected).count() == 2
    }

    /// Returns the events of one side, messages left out.
    pub(crate) fn news(&self, side: Side) -> Vec<OwnedEvent> {
        let of_side = self.log.iter().filter(|entry| entry.side == side);
        of_side
            .map(|entry| entry.what.clone())
            .filter(|what| !matches!(what, OwnedEvent::Message { .. } | OwnedEvent::Receipt(_)))
            .collect()
    }

    /// The messages that one side received on a channel.
    pub(crate) fn received(&self, side: Side, channel: u8) -> Vec<&[u8]> {
        let of_side = self.log.iter().filter(|entry| entry.side == side);
        of_side
            .filter_map(|entry| match &entry.what {
                OwnedEvent::Message {
                    channel: on,
                    payload,
                } if *on == channel => Some(&payload[..]),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn closed(&self, side: Side) -> Option<&CloseReason> {
        self.log.iter().find_map(|entry| match &entry.what {
            OwnedEvent::Closed(reason) if entry.side == side => Some(reason),
            _ => None,
        })
    }

    /// Messages of all channels that wait on one side to be sent or acknowledged.
    pub(crate) fn queued(&self, side: Side) -> usize {
        let Some(connection) = self.connections[side.index()] else {
            return 0;
        };
        let node = self.node(side);
        let channels = node.config().channels().len() as u8;
        (0..channels)
            .map(|channel| node.queued(connection, channel).1)
            .sum()
    }

    /// A fingerprint of everything that happened and when.
    pub(crate) fn trace(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for entry in &self.log {
            entry.at.as_micros().hash(&mut hasher);
            format!("{:?} {:?}", entry.side, entry.what).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn drain(&mut self) {
        let at = self.now();
        for side in Side::BOTH {
            let node = self.nodes[side.index()];
            loop {
                let endpoint = self.simulation.node_mut(node);
                let Some(event) = endpoint.poll_event(&mut self.buffer) else {
                    break;
                };
                let what = own(&event);
                if let Event::Connected { connection, .. } = event {
                    self.connections[side.index()] = Some(connection);
                }
                self.log.push(Entry { at, side, what });
            }
        }
    }
}

fn own(event: &Event<'_>) -> OwnedEvent {
    match event {
        Event::Connected { .. } => OwnedEvent::Connected,
        Event::Refused { reason, .. } => OwnedEvent::Refused(reason.clone()),
        Event::Unanswered { .. } => OwnedEvent::Unanswered,
        Event::Message {
            channel, payload, ..
        } => OwnedEvent::Message {
            channel: *channel,
            payload: payload.to_vec(),
        },
        Event::Receipt { receipt, .. } => OwnedEvent::Receipt(*receipt),
        Event::Interrupted { .. } => OwnedEvent::Interrupted,
        Event::Resumed { .. } => OwnedEvent::Resumed,
        Event::AddressChanged { address, .. } => OwnedEvent::AddressChanged(*address),
        Event::Closed { reason, .. } => OwnedEvent::Closed(reason.clone()),
        other => unreachable!("an event that the tests do not know: {other:?}"),
    }
}
