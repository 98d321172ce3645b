//! A relay, a host and guests over a virtual network, and a conversation between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use muse_netem::{Conditions, NatId, NatKind, Network, NodeId, Simulation};
use muse_relay::{Limits, Link, LinkEvent, Relay, Relayed, RoomKey, ShortCode};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, Refusal,
    SeededEntropy, ServerKey, ServerOptions, ServerPublicKey,
};
use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};

pub(crate) const RELAY: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), 7_788);

/// Whatever runs on a node.
pub(crate) enum Node {
    Relay(Box<Relay>),
    Player(Box<Player>),
}

/// A host or a guest.
pub(crate) struct Player {
    pub(crate) relayed: Relayed<Endpoint>,
    pub(crate) connection: Option<ConnectionId>,
    /// Numbers that came, in order.
    pub(crate) received: Vec<u32>,
    pub(crate) sent: u32,
    pub(crate) events: Vec<LinkEvent>,
    pub(crate) closed: bool,
    pub(crate) refused: Option<Refusal>,
    is_host: bool,
    asked: bool,
    /// The host's key is learned by a short code.
    pub(crate) by_code: bool,
    server: ServerPublicKey,
    buffer: Vec<u8>,
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Relay(relay) => relay.handle_datagram(now, datagram),
            Self::Player(player) => {
                player.relayed.handle_datagram(now, datagram);
                player.serve(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Relay(relay) => relay.handle_timeout(now),
            Self::Player(player) => {
                player.relayed.handle_timeout(now);
                player.serve(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        match self {
            Self::Relay(relay) => relay.poll_transmit(now, buffer),
            Self::Player(player) => player.relayed.poll_transmit(now, buffer),
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Relay(relay) => relay.poll_timeout(),
            Self::Player(player) => player.relayed.poll_timeout(),
        }
    }
}

impl Player {
    /// Takes what came; a host sends it back.
    fn serve(&mut self, now: Instant) {
        while let Some(event) = self.relayed.link_mut().poll_event() {
            let joined = matches!(event, LinkEvent::Joined { .. });
            if joined && !std::mem::replace(&mut self.asked, true) {
                self.connect(now);
            }
            self.events.push(event);
        }
        if let Some(host) = self.relayed.link_mut().poll_host_key() {
            let key = host.map(ServerPublicKey::from_bytes);
            let endpoint = self.relayed.machine_mut();
            endpoint.pin(key.map_err(|reason| reason.to_string()));
        }
        while let Some(event) = self.relayed.machine_mut().poll_event(&mut self.buffer) {
            match event {
                Event::Connected { connection, .. } => self.connection = Some(connection),
                Event::Message {
                    connection,
                    payload,
                    ..
                } => {
                    let number = payload.first_chunk().copied().map(u32::from_le_bytes);
                    self.received
                        .push(number.expect("messages have four bytes"));
                    if self.is_host {
                        let payload = payload.to_vec();
                        let endpoint = self.relayed.machine_mut();
                        // A guest may have gone meanwhile.
                        let _ = endpoint.send(now, connection, 0, &payload);
                    }
                }
                // Under heavy loss an attempt may fail; a player tries again.
                Event::Unanswered { .. } => self.connect(now),
                Event::Refused { reason, .. } => {
                    self.refused = Some(reason);
                    self.closed = true;
                }
                Event::Closed { .. } => self.closed = true,
                _ => {}
            }
        }
    }

    fn connect(&mut self, now: Instant) {
        let how = match self.by_code {
            true => Connect::key_follows(),
            false => Connect::pinned(self.server),
        };
        let endpoint = self.relayed.machine_mut();
        endpoint
            .connect(now, Link::host_address(), how)
            .expect("the endpoint is empty");
    }

    pub(crate) fn is_direct(&self) -> bool {
        let endpoint = self.relayed.machine();
        let remote = self.connection.and_then(|it| endpoint.remote(it));
        remote.is_some_and(|remote| self.relayed.link().is_direct(remote))
    }
}

/// The network that a player is in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Public,
    Behind(NatKind),
}

pub(crate) struct World {
    pub(crate) simulation: Simulation<Node>,
    pub(crate) relay: NodeId,
    pub(crate) host: NodeId,
    pub(crate) guests: Vec<NodeId>,
    pub(crate) host_nat: Option<NatId>,
    pub(crate) guest_nats: Vec<Option<NatId>>,
    pub(crate) key: RoomKey,
    server: ServerKey,
    /// Every secret that an endpoint used, as lines of the key log.
    pub(crate) secrets: Arc<Mutex<Vec<String>>>,
    seed: u64,
}

impl World {
    pub(crate) fn new(seed: u64, conditions: Conditions, limits: Limits, host: Place) -> Self {
        Self::with_host(seed, conditions, limits, host, |link| link)
    }

    /// A world whose host's link has options.
    pub(crate) fn with_host(
        seed: u64,
        conditions: Conditions,
        limits: Limits,
        host: Place,
        options: impl FnOnce(Link) -> Link,
    ) -> Self {
        let mut network = Network::new(seed);
        network.set_default(conditions);
        let mut simulation = Simulation::new(network);
        let relay = Relay::danger_open(Instant::ZERO, limits, [seed as u8; 32]);
        let relay = simulation.add(RELAY, Node::Relay(Box::new(relay)));
        let mut entropy = SeededEntropy::danger_seeded(seed);
        let server = ServerKey::generate(&mut entropy);
        let key = RoomKey::new([seed as u8 ^ 0x55; 16]);
        let secrets = Arc::default();
        let (node, nat) = place(&mut simulation, host, 1);
        let mut world = Self {
            simulation,
            relay,
            host: node,
            guests: Vec::new(),
            host_nat: nat,
            guest_nats: Vec::new(),
            key,
            server,
            secrets,
            seed,
        };
        let mut endpoint = world.endpoint(1);
        endpoint.listen(ServerOptions::new(world.server.clone()));
        let link = Link::open(Instant::ZERO, RELAY, key, world.link_seed(1));
        let inside = world.simulation.network().addresses(node)[0];
        let link = options(link).local_addresses(&[inside]);
        world.attach(node, endpoint, link, true);
        world
    }

    pub(crate) fn add_guest(&mut self, at: Place) -> usize {
        let link = Link::join(self.simulation.now(), RELAY, self.key.code(), [0; 32]);
        self.add_guest_with(at, |_| link)
    }

    /// Adds a guest whose link is made by `link` from a seed.
    pub(crate) fn add_guest_with(
        &mut self,
        at: Place,
        link: impl FnOnce([u8; 32]) -> Link,
    ) -> usize {
        let index = self.guests.len();
        let number = index as u8 + 2;
        let (node, nat) = place(&mut self.simulation, at, number);
        let endpoint = self.endpoint(u64::from(number));
        let inside = self.simulation.network().addresses(node)[0];
        let link = link(self.link_seed(number)).local_addresses(&[inside]);
        self.attach(node, endpoint, link, false);
        self.guests.push(node);
        self.guest_nats.push(nat);
        index
    }

    /// Adds a guest that has a short code and nothing else.
    pub(crate) fn add_guest_by_code(&mut self, at: Place, code: ShortCode) -> usize {
        let now = self.simulation.now();
        let link = |seed| Link::join(now, RELAY, code.room(), seed).take_key(now, code);
        let guest = self.add_guest_with(at, link);
        if let Node::Player(player) = self.simulation.node_mut(self.guests[guest]) {
            (player.by_code, player.asked) = (true, true);
            player.connect(now);
        }
        guest
    }

    /// The host's public key.
    pub(crate) fn host_key(seed: u64) -> [u8; 32] {
        let mut entropy = SeededEntropy::danger_seeded(seed);
        *ServerKey::generate(&mut entropy).public().as_bytes()
    }

    /// Adds a guest behind the host's own router.
    pub(crate) fn add_neighbour(&mut self) {
        let nat = self.host_nat.expect("the host has a router");
        let number = self.guests.len() as u8 + 100;
        let inside = SocketAddr::from(([192, 168, 1, number], 5_000));
        let node = self.simulation.network_mut().add_node_behind(nat, inside);
        let endpoint = self.endpoint(u64::from(number));
        let (now, code) = (self.simulation.now(), self.key.code());
        let link = Link::join(now, RELAY, code, self.link_seed(number));
        self.attach(node, endpoint, link.local_addresses(&[inside]), false);
        self.guests.push(node);
        self.guest_nats.push(Some(nat));
    }

    pub(crate) fn link_seed(&self, number: u8) -> [u8; 32] {
        let mut seed = [number; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed
    }

    fn endpoint(&self, number: u64) -> Endpoint {
        let config = Config::new(7)
            .channel(ChannelConfig::new(Delivery::ReliableOrdered))
            .build()
            .expect("a valid config");
        let entropy = SeededEntropy::danger_seeded(self.seed ^ number << 32);
        let mut endpoint = Endpoint::new(config, entropy);
        let secrets = Arc::clone(&self.secrets);
        endpoint.danger_key_log(Arc::new(move |line| {
            secrets.lock().expect("nobody panics").push(line.to_owned());
        }));
        endpoint
    }

    fn attach(&mut self, node: NodeId, endpoint: Endpoint, link: Link, is_host: bool) {
        let player = Player {
            relayed: Relayed::new(endpoint, link),
            connection: None,
            received: Vec::new(),
            sent: 0,
            events: Vec::new(),
            closed: false,
            refused: None,
            is_host,
            asked: false,
            by_code: false,
            server: self.server.public(),
            buffer: Vec::new(),
        };
        self.simulation.attach(node, Node::Player(Box::new(player)));
    }

    pub(crate) fn player(&self, node: NodeId) -> &Player {
        match self.simulation.node(node) {
            Node::Player(player) => player,
            Node::Relay(_) => unreachable!("the relay is no player"),
        }
    }

    pub(crate) fn host(&self) -> &Player {
        self.player(self.host)
    }

    pub(crate) fn guest(&self, index: usize) -> &Player {
        self.player(self.guests[index])
    }

    pub(crate) fn link_mut(&mut self, node: NodeId) -> &mut Link {
        match self.simulation.node_mut(node) {
            Node::Player(player) => player.relayed.link_mut(),
            Node::Relay(_) => unreachable!("the relay is no player"),
        }
    }

    pub(crate) fn relay(&self) -> &Relay {
        match self.simulation.node(self.relay) {
            Node::Relay(relay) => relay,
            Node::Player(_) => unreachable!("no relay there"),
        }
    }

    pub(crate) fn relay_mut(&mut self) -> &mut Relay {
        match self.simulation.node_mut(self.relay) {
            Node::Relay(relay) => relay,
            Node::Player(_) => unreachable!("no relay there"),
        }
    }

    /// Ends the relay and starts another in its place, which knows nothing.
    pub(crate) fn restart_relay(&mut self, limits: Limits) {
        let now = self.simulation.now();
        let mut seed = [0xA5; 32];
        seed[..8].copy_from_slice(&now.as_micros().to_le_bytes());
        let fresh = Relay::danger_open(now, limits, seed);
        self.simulation
            .attach(self.relay, Node::Relay(Box::new(fresh)));
    }

    /// Every connected guest says the next number.
    pub(crate) fn everybody_speaks(&mut self) {
        let now = self.simulation.now();
        for &guest in &self.guests {
            let Node::Player(player) = self.simulation.node_mut(guest) else {
                continue;
            };
            if let Some(connection) = player.connection {
                let bytes = player.sent.to_le_bytes();
                let endpoint = player.relayed.machine_mut();
                if endpoint.send(now, connection, 0, &bytes).is_ok() {
                    player.sent += 1;
                }
            }
        }
    }

    /// Lets guests speak every 50 ms for so long.
    pub(crate) fn talk(&mut self, span: Duration) {
        let until = self.simulation.now() + span;
        while self.simulation.now() < until {
            self.everybody_speaks();
            self.simulation.run_for(Duration::from_millis(50));
        }
    }

    /// Waits until every guest has its echoes, in order, and says whether that came to pass.
    pub(crate) fn settle(&mut self, span: Duration) -> bool {
        let until = self.simulation.now() + span;
        while self.simulation.now() < until {
            if (0..self.guests.len()).all(|guest| self.is_complete(guest)) {
                return true;
            }
            self.simulation.run_for(Duration::from_millis(50));
        }
        false
    }

    /// Waits until one guest has its echoes.
    pub(crate) fn settle_guest(&mut self, guest: usize, span: Duration) -> bool {
        let until = self.simulation.now() + span;
        while self.simulation.now() < until && !self.is_complete(guest) {
            self.simulation.run_for(Duration::from_millis(50));
        }
        self.is_complete(guest)
    }

    pub(crate) fn is_complete(&self, guest: usize) -> bool {
        let player = self.guest(guest);
        player.sent > 0 && player.received == (0..player.sent).collect::<Vec<u32>>()
    }
}

/// Puts a node behind a router of its own, or not.
fn place(simulation: &mut Simulation<Node>, at: Place, number: u8) -> (NodeId, Option<NatId>) {
    let network = simulation.network_mut();
    match at {
        Place::Public => {
            let address = SocketAddr::from(([198, 51, 100, 100 + number], 4_000));
            (network.add_node(address), None)
        }
        Place::Behind(kind) => {
            let external = IpAddr::from([198, 51, 100, number]);
            let nat = network.add_nat(kind, external, Duration::from_secs(30));
            let inside = SocketAddr::from(([192, 168, number, 2], 5_000));
            (network.add_node_behind(nat, inside), Some(nat))
        }
    }
}

/// Number of seeds that a test tries: `MUSE_SEEDS`, or the default.
pub(crate) fn seeds(default: u64) -> u64 {
    let asked = std::env::var("MUSE_SEEDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// An ordinary way through the internet.
pub(crate) fn ordinary() -> Conditions {
    Conditions::default().delay(Duration::from_millis(20))
}
