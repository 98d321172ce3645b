//! Both sides of a match of the laboratory's game: an endpoint each, with the shipped session and netcode on it.
//!
//! They have no network and no clock; [`Arena`](crate::arena::Arena) and [`LabStage`](crate::stage::LabStage) carry their datagrams.

use std::net::SocketAddr;

use muse::session::{
    ClientEvent, ClientSession, GameClientSession, GameServerSession, ServerEvent, ServerSession,
};
use muse_netcode::{Client, ClientId, EntityId, Remotes, Server, SessionConfig, Tick};
use muse_transport::{Connect, Endpoint, SeededEntropy, ServerKey, ServerOptions};
use muse_wire::{Datagram, Ecn, Instant, Machine};

use crate::character::{Body, Keys, Rules, protocol};

/// The server of a match.
pub(crate) struct ServerSide {
    pub(crate) game: GameServerSession<Rules>,
    endpoint: Endpoint,
    session: ServerSession,
    /// In the order in which they were expected.
    clients: Vec<Expected>,
    buffer: Vec<u8>,
}

/// A client that is to connect, or has.
struct Expected {
    /// The entity that it plays.
    entity: Option<EntityId>,
    client: Option<ClientId>,
}

impl ServerSide {
    pub(crate) fn new(seed: u64, config: SessionConfig) -> Self {
        let protocol = protocol();
        let mut endpoint = new_endpoint(seed);
        endpoint.listen(ServerOptions::new(key()));
        let (kinds, kind) = (protocol.kinds().clone(), crate::character::kinds().1);
        let game = Server::new(config, kinds, kind, Instant::ZERO);
        Self {
            game: GameServerSession::new(game),
            endpoint,
            session: ServerSession::new(protocol),
            clients: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Expects another client, which plays an entity in this state.
    pub(crate) fn expect_player(&mut self, start: &Body) -> EntityId {
        let kind = crate::character::kinds().1;
        let spawned = self.game.world_mut().spawn(kind, start);
        let entity = spawned.expect("there is room for a player");
        self.expect(Some(entity));
        entity
    }

    /// Expects another client, which only watches.
    pub(crate) fn expect_watcher(&mut self) {
        self.expect(None);
    }

    fn expect(&mut self, entity: Option<EntityId>) {
        let client = None;
        self.clients.push(Expected { entity, client });
    }

    /// Returns the id of an expected client, once it is connected.
    pub(crate) fn client(&self, number: usize) -> Option<ClientId> {
        self.clients[number].client
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        let ecn = Ecn::NotCapable;
        let datagram = Datagram { from, ecn, payload };
        self.endpoint.handle_datagram(now, datagram);
        self.handle_events(now);
    }

    /// Does what the transport has to do by now.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        handle_time(now, &mut self.endpoint);
        self.handle_events(now);
    }

    /// Begins the next tick if it is time.
    pub(crate) fn poll_tick(&mut self, now: Instant) -> Option<Tick> {
        let (tick, _) = self.game.tick(now, &mut Rules)?;
        Some(tick)
    }

    /// Ends the tick, and sends everybody its snapshot.
    pub(crate) fn send_snapshots(&mut self, now: Instant) {
        self.game
            .send_snapshots(now, &mut self.endpoint, &mut self.session);
    }

    /// Gives every datagram that is due, with its destination, to `send`.
    pub(crate) fn flush(&mut self, now: Instant, mut send: impl FnMut(SocketAddr, &[u8])) {
        let mut buffer = [0; DATAGRAM_BYTES];
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut buffer) {
            send(transmit.to, &buffer[..transmit.len]);
        }
    }

    /// Returns the time at which there is something to do next.
    pub(crate) fn poll_timeout(&mut self) -> Instant {
        let tick = self.game.poll_timeout();
        let timer = self.endpoint.poll_timeout();
        timer.map_or(tick, |timer| timer.min(tick))
    }

    fn handle_events(&mut self, now: Instant) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.endpoint.poll_event(&mut buffer) {
            let endpoint = &mut self.endpoint;
            let event = self.session.handle_event(now, endpoint, event);
            let event = event.and_then(|event| self.game.handle_event(now, event));
            if let Some(ServerEvent::Joined(client)) = event {
                self.welcome(client);
            }
        }
        assert_eq!(self.game.refused(), 0, "our own clients send no nonsense");
        self.buffer = buffer;
    }

    /// Gives a client that has connected what it was expected to play.
    fn welcome(&mut self, client: ClientId) {
        let info = self.session.info(client).expect("it has just connected");
        let number = <[u8; 8]>::try_from(info.hello.as_slice()).map(u64::from_le_bytes);
        let number = number.expect("our own clients say their number") as usize;
        let expected = &mut self.clients[number];
        expected.client = Some(client);
        if let Some(entity) = expected.entity {
            let owned = self.game.world_mut().set_owner(entity, Some(client));
            owned.expect("it was spawned for this client");
            self.game.set_player(client, Some(entity));
        }
    }
}

/// A client of a match.
pub(crate) struct ClientSide {
    pub(crate) game: GameClientSession<Rules>,
    pub(crate) remotes: Remotes<Body>,
    endpoint: Endpoint,
    session: ClientSession,
    buffer: Vec<u8>,
}

impl ClientSide {
    /// Starts to connect to a server that expects this number.
    pub(crate) fn new(
        number: usize,
        seed: u64,
        config: SessionConfig,
        server: SocketAddr,
        now: Instant,
    ) -> Self {
        let (protocol, kind) = (protocol(), crate::character::kinds().1);
        let mut endpoint = new_endpoint(seed ^ (number as u64 + 1) << 32);
        let connect = Connect::pinned(key().public()).hello(&(number as u64).to_le_bytes());
        let connection = endpoint.connect(now, server, connect);
        let connection = connection.expect("the first connection of its endpoint");
        let kinds = protocol.kinds().clone();
        let game = Client::new(config, kinds, kind, Body::distance, now);
        Self {
            remotes: Remotes::new(kind, game.interpolation(), Body::distance),
            game: GameClientSession::new(game),
            endpoint,
            session: ClientSession::new(protocol, connection),
            buffer: Vec::new(),
        }
    }

    /// Takes a datagram; `handle` is told of each packet of the server in it, with its length.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        payload: &mut [u8],
        mut handle: impl FnMut(&Client<Rules>, usize),
    ) {
        let ecn = Ecn::NotCapable;
        let datagram = Datagram { from, ecn, payload };
        self.endpoint.handle_datagram(now, datagram);
        while let Some(event) = self.endpoint.poll_event(&mut self.buffer) {
            let Some(event) = self.session.handle_event(event) else {
                continue;
            };
            let len = match &event {
                ClientEvent::Packet(packet) => Some(packet.len()),
                _ => None,
            };
            self.game.handle_event(now, &mut Rules, event);
            if let Some(len) = len {
                handle(&self.game, len);
            }
        }
    }

    /// Does what the transport has to do by now.
    pub(crate) fn handle_time(&mut self, now: Instant) {
        handle_time(now, &mut self.endpoint);
    }

    /// Plays the ticks that are due, and sends the packet with their inputs. Returns its length; `None` when nothing more is due.
    pub(crate) fn send_packet(
        &mut self,
        now: Instant,
        input: impl FnMut(Tick) -> Keys,
    ) -> Option<usize> {
        let (endpoint, session) = (&mut self.endpoint, &mut self.session);
        self.game
            .send_packet(now, &mut Rules, endpoint, session, input)
    }

    /// Gives every datagram that is due to `send`.
    pub(crate) fn flush(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        let mut buffer = [0; DATAGRAM_BYTES];
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut buffer) {
            send(&buffer[..transmit.len]);
        }
    }

    /// Returns the time at which there is something to do next.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        let dues = [self.game.poll_timeout(), self.endpoint.poll_timeout()];
        dues.into_iter().flatten().min()
    }
}

fn new_endpoint(seed: u64) -> Endpoint {
    let config = protocol().config().build().expect("one usual channel");
    Endpoint::new(config, SeededEntropy::danger_seeded(seed))
}

/// The server's key, which clients know.
fn key() -> ServerKey {
    ServerKey::from_bytes([0x1a; 32])
}

fn handle_time(now: Instant, endpoint: &mut Endpoint) {
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        endpoint.handle_timeout(now);
    }
}

/// Room for one datagram of a usual path.
const DATAGRAM_BYTES: usize = 1_500;
