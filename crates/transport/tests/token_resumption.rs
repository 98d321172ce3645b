//! The holder of a token comes back: on a full server too they take over their session, which goes on until the new
//! connection has shown that it has the keys; and nobody else's connection gives way to it.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_transport::token::{ConnectToken, TokenError, TokenGrant, TokenIssuer, TokenVerifier};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, ConnectionId, Delivery, Endpoint, Event,
    HandshakeLimits, Refusal, SeededEntropy, ServerOptions,
};
use muse_wire::{Duration, Instant};
use pair::{server_address, server_key};

const PROTOCOL: u64 = 0x7E57;
const UNIX_S: u64 = 1_800_000_000;
const DELAY: Duration = Duration::from_millis(20);
/// Longer than a server waits for the first packet of an accepted client.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(13);

/// An event at the server or at a client.
#[derive(Clone, Debug, PartialEq)]
enum OwnedEvent {
    Connected(ConnectionId, u64),
    Closed(ConnectionId, CloseReason),
    Refused(Refusal),
}

struct World {
    simulation: Simulation<Endpoint>,
    server: NodeId,
    config: Config,
    issuer: TokenIssuer,
    clients: u8,
}

impl World {
    fn new(connections_max: usize) -> Self {
        let config = Config::new(PROTOCOL)
            .channel(ChannelConfig::new(Delivery::ReliableOrdered))
            .connections_max(connections_max)
            .build()
            .expect("sensible");
        let issuer = TokenIssuer::from_bytes(PROTOCOL, 1, &[3; 32]);
        let mut verifier = TokenVerifier::new();
        verifier.add_key(1, &issuer.public_key()).expect("a key");
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(3));
        server.set_unix_time(Instant::ZERO, UNIX_S);
        // As many at once as there are: the limit of operations is another promise.
        let limits = HandshakeLimits::default().operations(100_000, 10_000);
        let options = ServerOptions::new(server_key(1).0).tokens(verifier);
        server.listen(options.limits(limits));
        let mut network = Network::new(1);
        network.set_default(Conditions::default().delay(DELAY));
        let mut simulation = Simulation::new(network);
        let server = simulation.add(server_address(), server);
        Self {
            simulation,
            server,
            config,
            issuer,
            clients: 0,
        }
    }

    fn token(&self, account: u64) -> ConnectToken {
        let grant = TokenGrant::new(account, server_key(1).1, server_address());
        let mut entropy = SeededEntropy::danger_seeded(account);
        self.issuer
            .issue(&grant, UNIX_S, &mut entropy)
            .expect("a token")
    }

    /// A client at an address of its own begins to connect.
    fn join(&mut self, token: &ConnectToken) -> NodeId {
        self.clients += 1;
        let seed = 100 + u64::from(self.clients);
        let mut client = Endpoint::new(self.config.clone(), SeededEntropy::danger_seeded(seed));
        client
            .connect(
                self.simulation.now(),
                server_address(),
                Connect::token(token.clone()),
            )
            .expect("free");
        let address = SocketAddr::from(([203, 0, self.clients, 1], 5));
        self.simulation.add(address, client)
    }

    /// A client connects as far as the server's answer and falls silent: it never sends a packet with the new keys.
    fn join_in_silence(&mut self, token: &ConnectToken) -> NodeId {
        let before = self.accepted();
        let node = self.join(token);
        let limit = self.simulation.now() + DELAY * 5;
        let server = self.server;
        self.simulation.run_until(limit, |simulation| {
            let counters = simulation.node(server).handshake_counters();
            if counters.expect("it listens").accepted > before {
                simulation.network_mut().partition_one_way(node, server);
            }
        });
        node
    }

    fn accepted(&self) -> u64 {
        let counters = self.simulation.node(self.server).handshake_counters();
        counters.expect("it listens").accepted
    }

    /// Lets time pass and returns what happened at `node`.
    fn run(&mut self, node: NodeId, span: Duration) -> Vec<OwnedEvent> {
        self.simulation.run_for(span);
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        while let Some(event) = self.simulation.node_mut(node).poll_event(&mut buffer) {
            seen.push(match event {
                Event::Connected {
                    connection,
                    account,
                    ..
                } => OwnedEvent::Connected(connection, account),
                Event::Closed { connection, reason } => OwnedEvent::Closed(connection, reason),
                Event::Refused { reason, .. } => OwnedEvent::Refused(reason),
                other => unreachable!("{other:?}"),
            });
        }
        seen
    }

    /// A client connects and stays; the server's name for it.
    fn settle(&mut self, token: &ConnectToken) -> ConnectionId {
        self.join(token);
        match self.run(self.server, Duration::from_millis(500))[..] {
            [OwnedEvent::Connected(connection, _)] => connection,
            ref other => unreachable!("{other:?}"),
        }
    }

    fn connections(&self) -> Vec<ConnectionId> {
        self.simulation.node(self.server).connections().collect()
    }
}

#[test]
fn on_a_full_server_the_holder_takes_over_the_session() {
    let mut world = World::new(2);
    let (mine, other) = (world.token(1), world.token(2));
    let old = world.settle(&mine);
    let neighbour = world.settle(&other);
    let again = world.join(&mine);
    // Hello, cookie and Connect have arrived, the Accept is on its way: the old session is as it was.
    assert_eq!(world.run(world.server, DELAY * 7 / 2), []);
    assert_eq!(world.accepted(), 3);
    assert_eq!(world.connections(), [old, neighbour]);
    let seen = world.run(world.server, Duration::from_secs(2));
    let [
        OwnedEvent::Connected(new, 1),
        OwnedEvent::Closed(closed, CloseReason::Replaced),
    ] = seen[..]
    else {
        unreachable!("{seen:?}");
    };
    assert_eq!(closed, old);
    let mut left = world.connections();
    left.sort();
    let mut wanted = [neighbour, new];
    wanted.sort();
    assert_eq!(left, wanted);
    let seen = world.run(again, Duration::ZERO);
    assert!(matches!(seen[..], [OwnedEvent::Connected(..)]), "{seen:?}");
}

#[test]
fn who_cannot_confirm_does_not_close_the_session() {
    let mut world = World::new(2);
    let (mine, other) = (world.token(1), world.token(2));
    let old = world.settle(&mine);
    let neighbour = world.settle(&other);
    for _ in 0..3 {
        let silent = world.join_in_silence(&mine);
        world.simulation.detach(silent);
        assert_eq!(world.run(world.server, CONFIRM_TIMEOUT), []);
        assert_eq!(world.connections(), [old, neighbour]);
    }
    // The holder can still come back.
    world.join(&mine);
    let seen = world.run(world.server, Duration::from_secs(2));
    assert!(matches!(
        seen[..],
        [
            OwnedEvent::Connected(_, 1),
            OwnedEvent::Closed(closed, CloseReason::Replaced)
        ] if closed == old
    ));
}

#[test]
fn a_token_whose_session_has_ended_closes_nobody() {
    let mut world = World::new(1);
    let (mine, other) = (world.token(1), world.token(2));
    world.settle(&mine);
    world.join(&mine);
    world.run(world.server, Duration::from_secs(2));
    // Whatever session the token has by now ends, and another player takes its place.
    for connection in world.connections() {
        let now = world.simulation.now();
        let server = world.simulation.node_mut(world.server);
        server.close(now, connection, 1, "enough");
    }
    world.run(world.server, Duration::from_secs(5));
    let holder = world.settle(&other);
    let late = world.join(&mine);
    assert_eq!(world.run(world.server, Duration::from_secs(2)), []);
    assert_eq!(world.connections(), [holder]);
    assert_eq!(
        world.run(late, Duration::ZERO),
        [OwnedEvent::Refused(Refusal::Token(TokenError::Used))]
    );
}

#[test]
fn a_session_that_was_closed_is_not_resumed_while_it_lingers() {
    let mut world = World::new(2);
    let mine = world.token(1);
    let client = world.join(&mine);
    world.run(world.server, Duration::from_millis(500));
    // The client is gone, so that nobody answers the close.
    world.simulation.detach(client);
    let [connection] = world.connections()[..] else {
        unreachable!("one is there");
    };
    let now = world.simulation.now();
    let server = world.simulation.node_mut(world.server);
    server.close(now, connection, 1, "cheating");
    let late = world.join(&mine);
    world.run(world.server, Duration::from_secs(2));
    assert_eq!(
        world.run(late, Duration::ZERO),
        [OwnedEvent::Refused(Refusal::Token(TokenError::Used))]
    );
}

#[test]
fn everybody_comes_back_to_a_full_server_at_once() {
    let sessions = muse_transport::RESUMING_MAX + 20;
    let mut world = World::new(sessions);
    let tokens: Vec<_> = (0..sessions as u64)
        .map(|account| world.token(account))
        .collect();
    let old: Vec<_> = tokens.iter().map(|token| world.join(token)).collect();
    let connected = world.run(world.server, Duration::from_secs(8));
    assert_eq!(connected.len(), sessions);
    // A router starts again: all of them are gone without a word, and back at other addresses.
    for node in old {
        world.simulation.detach(node);
    }
    let back: Vec<_> = tokens.iter().map(|token| world.join(token)).collect();
    world.run(world.server, Duration::from_secs(9));
    for node in back {
        let seen = world.run(node, Duration::ZERO);
        assert!(matches!(seen[..], [OwnedEvent::Connected(..)]), "{seen:?}");
    }
    assert_eq!(world.connections().len(), sessions);
}

#[test]
fn a_full_server_admits_a_bounded_number_of_returning_players_at_once() {
    let beyond = muse_transport::RESUMING_MAX;
    let sessions = beyond + 3;
    let mut world = World::new(sessions);
    let tokens: Vec<_> = (0..sessions as u64)
        .map(|account| world.token(account))
        .collect();
    for token in &tokens {
        world.settle(token);
    }
    let settled = world.connections();
    let before = world.accepted();
    for token in &tokens {
        world.join_in_silence(token);
    }
    assert_eq!(world.accepted() - before, beyond as u64);
    // Those who stay silent close nobody; the three who found no place come in when the silent ones are given up.
    let seen = world.run(world.server, CONFIRM_TIMEOUT);
    let connected = |event: &&OwnedEvent| matches!(event, OwnedEvent::Connected(..));
    assert_eq!(seen.iter().filter(connected).count(), 3, "{seen:?}");
    let now = world.connections();
    assert_eq!(now.len(), sessions);
    let stayed = settled.iter().filter(|old| now.contains(old)).count();
    assert_eq!(stayed, beyond);
}
