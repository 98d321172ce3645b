//! A match in virtual time: one server and its clients, over a virtual network, all of it from seeds.
//!
//! A [`Scene`] says what the game does and looks on; the [`Stage`] does the rest. Time passes in steps of a millisecond, in each of which
//! packets arrive, the server ticks if it is due, and clients simulate, send and draw.

use std::net::SocketAddr;

use muse_netcode::interpolation::Shown;
use muse_netcode::{
    Client, ClientId, EntityId, Event, Remotes, Server, SessionConfig, Tick, Update,
};
use muse_netem::{Conditions, Network, NodeId};
use muse_wire::{Duration, Ecn, Instant};

use crate::character::{Body, Keys, Rules, TICKS_PER_SECOND, kinds, play};

/// What a run is about: the server's game, and what is noted down.
pub trait Scene {
    /// The server has simulated its players in this tick and has not committed it.
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        let _ = (server, tick);
    }

    /// A step of time has passed; [`Stage::now`] says which.
    fn look(&mut self, stage: &mut Stage) {
        let _ = stage;
    }
}

/// A scene in which nothing happens besides.
impl Scene for () {}

/// A server, its clients, and the network between them.
///
/// ```
/// use muse_lab::stage::{Stage, conditions};
/// use muse_wire::Duration;
/// let mut stage = Stage::new(7);
/// stage.join(1, conditions(80));
/// stage.run(Duration::from_secs(3), &mut ());
/// let client = stage.guest(0).client();
/// assert!(client.predicted().is_some());
/// assert_eq!(client.clock().round_trip().map(|rtt| rtt.as_millis() / 10), Some(8));
/// ```
pub struct Stage {
    server: Server<Rules>,
    server_node: NodeId,
    network: Network,
    config: SessionConfig,
    guests: Vec<Guest>,
    now: Instant,
}

/// A client and what stands around it.
pub struct Guest {
    client: Client<Rules>,
    remotes: Remotes<Body>,
    address: SocketAddr,
    node: NodeId,
    play: Box<dyn FnMut(Tick) -> Keys>,
    events: Vec<(Instant, Event)>,
    arrivals: Vec<Arrival>,
    states: Vec<(Instant, EntityId, Tick)>,
    sent_bytes: u64,
}

/// A packet that came to a client.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// How long it was, without the headers of UDP and IP.
    pub bytes: usize,
}

impl Stage {
    /// An empty match at the beginning of time. Everything that the network does by chance follows from the seed.
    pub fn new(seed: u64) -> Self {
        Self::with_config(seed, SessionConfig::new(TICK))
    }

    /// As [`new`](Self::new), with settings for both sides.
    pub fn with_config(seed: u64, config: SessionConfig) -> Self {
        let (all, body) = kinds();
        let mut network = Network::new(seed);
        let server_node = network.add_node(SERVER);
        Self {
            server: Server::new(config, all, body, Instant::ZERO),
            server_node,
            network,
            config,
            guests: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// A client comes, whose player starts at the origin and does what follows from `seed`. Its packets take these conditions on both
    /// ways.
    pub fn join(&mut self, seed: u64, conditions: Conditions) -> EntityId {
        self.join_as(Body::at(0.0, 0.0), conditions, move |tick| play(seed, tick))
    }

    /// A client comes, whose player starts there and does what `play` says.
    pub fn join_as(
        &mut self,
        start: Body,
        conditions: Conditions,
        play: impl FnMut(Tick) -> Keys + 'static,
    ) -> EntityId {
        let number = self.guests.len() as u32;
        let entity = self.server.join(ClientId(number), &start);
        self.seat(conditions, Box::new(play));
        entity.expect("there is room for a player")
    }

    /// A client comes who only watches.
    pub fn watch(&mut self, conditions: Conditions) {
        self.server.watch(ClientId(self.guests.len() as u32));
        self.seat(conditions, Box::new(|_| Keys::default()));
    }

    /// The network between the server and a client changes, both ways.
    pub fn set_conditions(&mut self, guest: usize, conditions: Conditions) {
        let node = self.guests[guest].node;
        self.network.set_links(self.server_node, node, conditions);
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration, scene: &mut impl Scene) {
        let end = self.now + time;
        while self.now < end {
            self.step(scene);
            self.now += STEP;
        }
    }

    /// What time it is.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The same in seconds.
    pub fn seconds(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// Whether a picture is due that is drawn so often.
    pub fn is_every(&self, interval: Duration) -> bool {
        self.now.as_micros().is_multiple_of(interval.as_micros())
    }

    /// The server.
    pub const fn server(&self) -> &Server<Rules> {
        &self.server
    }

    /// The server, to change the world before a run.
    pub const fn server_mut(&mut self) -> &mut Server<Rules> {
        &mut self.server
    }

    /// A client, in the order in which they came.
    pub fn guest(&self, number: usize) -> &Guest {
        &self.guests[number]
    }

    /// A client, to draw what it shows.
    pub fn guest_mut(&mut self, number: usize) -> &mut Guest {
        &mut self.guests[number]
    }

    /// An entity's state on the server.
    pub fn truth(&self, entity: EntityId) -> Option<Body> {
        self.server.world().state(kinds().1, entity)
    }

    fn seat(&mut self, conditions: Conditions, play: Box<dyn FnMut(Tick) -> Keys>) {
        let number = self.guests.len() as u8;
        let address = SocketAddr::from(([192, 0, 2, 2], 1_000 + u16::from(number)));
        let node = self.network.add_node(address);
        self.network.set_links(self.server_node, node, conditions);
        let (all, body) = kinds();
        let client = Client::new(self.config, all, body, Body::distance, self.now);
        self.guests.push(Guest {
            remotes: Remotes::new(body, client.interpolation(), Body::distance),
            client,
            address,
            node,
            play,
            events: Vec::new(),
            arrivals: Vec::new(),
            states: Vec::new(),
            sent_bytes: 0,
        });
    }

    fn step(&mut self, scene: &mut impl Scene) {
        let now = self.now;
        while let Some(delivery) = self.network.poll_deliver(now) {
            let address = |address| self.guests.iter().position(|g| g.address == address);
            if let Some(number) = address(delivery.to) {
                self.guests[number].handle_packet(now, delivery.payload);
            } else if let Some(number) = address(delivery.from) {
                let client = ClientId(number as u32);
                let taken = self.server.handle_packet(now, client, delivery.payload);
                taken.expect("a packet of our own client");
            }
        }
        let mut buffer = [0; PACKET_BYTES];
        while let Some(tick) = self.server.poll_tick(now, &mut Rules, |_, ()| ()) {
            scene.tick(&mut self.server, tick);
            self.server.commit();
            while let Some((client, len)) = self.server.poll_packet(now, &mut buffer) {
                let to = self.guests[client.0 as usize].address;
                self.network
                    .send(now, SERVER, to, Ecn::NotCapable, &buffer[..len]);
            }
        }
        for guest in &mut self.guests {
            while let Some(len) = guest.poll_packet(now, &mut buffer) {
                let from = guest.address;
                self.network
                    .send(now, from, SERVER, Ecn::NotCapable, &buffer[..len]);
            }
        }
        scene.look(self);
    }
}

impl Guest {
    /// The client.
    pub const fn client(&self) -> &Client<Rules> {
        &self.client
    }

    /// What it shows of others.
    pub fn show(&mut self) -> impl Iterator<Item = (EntityId, Shown<Body>)> {
        self.remotes.show(&self.client)
    }

    /// The events that it was told, and when.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    /// The packets that have come.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The states of others that have come: when, whose, and of which tick.
    pub fn states(&self) -> &[(Instant, EntityId, Tick)] {
        &self.states
    }

    /// Bytes that it has sent.
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// What its player does from now on.
    pub fn set_play(&mut self, play: impl FnMut(Tick) -> Keys + 'static) {
        self.play = Box::new(play);
    }

    fn handle_packet(&mut self, now: Instant, payload: &[u8]) {
        let bytes = payload.len();
        self.arrivals.push(Arrival { at: now, bytes });
        // Late and doubled packets are refused, as they should be.
        let _ = self.client.handle_packet(now, &mut Rules, payload);
        while let Some(update) = self.client.poll_update() {
            self.remotes.handle_update(&self.client, &update);
            if let Update::State { entity, tick, .. } = update {
                self.states.push((now, entity, tick));
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push((now, event));
        }
    }

    fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        let len = self
            .client
            .poll_packet(now, &mut Rules, &mut self.play, buffer)?;
        self.sent_bytes += len as u64;
        Some(len)
    }
}

/// A perfect network with this round trip, to which loss and jitter can be added.
pub fn conditions(round_trip_ms: u64) -> Conditions {
    Conditions::default().delay(Duration::from_micros(round_trip_ms * 500))
}

/// Length of a tick.
pub const TICK: Duration = Duration::from_micros(1_000_000 / TICKS_PER_SECOND as u64);
/// Length of a step of time.
pub const STEP: Duration = Duration::from_millis(1);
/// Largest packet.
const PACKET_BYTES: usize = 1_200;
/// Where the server is.
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    1,
);
