//! A server's application decides about each client before it is in, at once or later.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_transport::token::{ConnectToken, TokenGrant, TokenIssuer, TokenVerifier};
use muse_transport::{
    AdmissionError, AdmissionLimits, ChannelConfig, CloseReason, Config, Connect, ConnectionId,
    Delivery, Endpoint, Event, HandshakeCounters, Refusal, SeededEntropy, ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};

const PROTOCOL: u64 = 0xAD41;
const UNIX_NOW_S: u64 = 1_800_000_000;
const LATENCY: Duration = Duration::from_millis(30);

/// An event of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heard {
    Asking {
        account: u64,
        hello: Vec<u8>,
        address: SocketAddr,
    },
    Connected,
    Message(Vec<u8>),
    Refused(Refusal),
    Closed(CloseReason),
    Other,
}

/// A server that asks, and clients.
struct World {
    simulation: Simulation<Endpoint>,
    server: NodeId,
    clients: Vec<NodeId>,
    key: ServerKey,
}

fn config() -> Config {
    let channel = ChannelConfig::new(Delivery::ReliableOrdered);
    Config::new(PROTOCOL)
        .channel(channel)
        .build()
        .expect("sensible")
}

fn key() -> ServerKey {
    ServerKey::from_bytes([7; 32])
}

fn server_address() -> SocketAddr {
    ([192, 0, 2, 1], 7_000).into()
}

fn client_address(index: usize) -> SocketAddr {
    ([198, 51, 100, index as u8 + 1], 5_000).into()
}

impl World {
    fn new(seed: u64, limits: AdmissionLimits) -> Self {
        Self::with(seed, ServerOptions::new(key()).admission(limits))
    }

    fn with(seed: u64, options: ServerOptions) -> Self {
        let mut network = Network::new(seed);
        network.set_default(Conditions::default().delay(LATENCY));
        let mut simulation = Simulation::new(network);
        let mut server = Endpoint::new(config(), SeededEntropy::danger_seeded(seed));
        server.listen(options);
        server.set_unix_time(Instant::ZERO, UNIX_NOW_S);
        Self {
            server: simulation.add(server_address(), server),
            simulation,
            clients: Vec::new(),
            key: key(),
        }
    }

    fn loss(&mut self, loss: f64) {
        let conditions = Conditions::default().delay(LATENCY).loss(loss);
        self.simulation.network_mut().set_default(conditions);
    }

    /// Another client begins to connect; returns its index.
    fn client(&mut self, how: Connect) -> usize {
        let index = self.clients.len();
        let mut client = Endpoint::new(config(), SeededEntropy::danger_seeded(100 + index as u64));
        client
            .connect(self.simulation.now(), server_address(), how)
            .expect("a free slot");
        let node = self.simulation.add(client_address(index), client);
        self.clients.push(node);
        index
    }

    fn pinned(&self) -> Connect {
        Connect::pinned(self.key.public()).hello(b"Ada")
    }

    fn run(&mut self, span: Duration) {
        self.simulation.run_for(span);
    }

    fn heard(&mut self, node: NodeId) -> Vec<(ConnectionId, Heard)> {
        let mut buffer = Vec::new();
        let endpoint = self.simulation.node_mut(node);
        let mut heard = Vec::new();
        while let Some(event) = endpoint.poll_event(&mut buffer) {
            heard.push(own(&event));
        }
        heard
    }

    fn at_server(&mut self) -> Vec<(ConnectionId, Heard)> {
        self.heard(self.server)
    }

    fn at_client(&mut self, index: usize) -> Vec<Heard> {
        let heard = self.heard(self.clients[index]);
        heard.into_iter().map(|(_, what)| what).collect()
    }

    /// The only client that asks.
    fn asking(&mut self) -> ConnectionId {
        match self.at_server()[..] {
            [(connection, Heard::Asking { .. })] => connection,
            ref other => unreachable!("one question expected: {other:?}"),
        }
    }

    fn admit(&mut self, connection: ConnectionId) -> Result<(), AdmissionError> {
        let now = self.simulation.now();
        let server = self.simulation.node_mut(self.server);
        server.admit(now, connection)
    }

    fn deny(&mut self, connection: ConnectionId, text: &str) -> Result<(), AdmissionError> {
        let now = self.simulation.now();
        let server = self.simulation.node_mut(self.server);
        server.deny(now, connection, 42, text)
    }

    fn counters(&self) -> HandshakeCounters {
        let server = self.simulation.node(self.server);
        server.handshake_counters().expect("it listens")
    }

    fn pending(&self) -> usize {
        self.simulation.node(self.server).pending()
    }
}

fn own(event: &Event<'_>) -> (ConnectionId, Heard) {
    match event {
        Event::Asking {
            connection,
            account,
            hello,
            address,
            ..
        } => {
            let (account, hello, address) = (*account, hello.to_vec(), *address);
            let asking = Heard::Asking {
                account,
                hello,
                address,
            };
            (*connection, asking)
        }
        Event::Connected { connection, .. } => (*connection, Heard::Connected),
        Event::Message {
            connection,
            payload,
            ..
        } => (*connection, Heard::Message(payload.to_vec())),
        Event::Refused { connection, reason } => (*connection, Heard::Refused(reason.clone())),
        Event::Closed { connection, reason } => (*connection, Heard::Closed(reason.clone())),
        _ => (ConnectionId::from_bits(0), Heard::Other),
    }
}

fn denied(text: &str) -> Heard {
    Heard::Refused(Refusal::Denied {
        code: 42,
        text: text.to_owned(),
    })
}

#[test]
fn nobody_is_in_before_the_decision() {
    let mut world = World::new(1, AdmissionLimits::default());
    let client = world.client(world.pinned());
    world.run(Duration::from_secs(5));
    let heard = world.at_server();
    let [
        (
            connection,
            Heard::Asking {
                account,
                hello,
                address,
            },
        ),
    ] = &heard[..]
    else {
        unreachable!("asked once: {heard:?}")
    };
    assert_eq!((*account, &hello[..]), (0, &b"Ada"[..]));
    assert_eq!(*address, client_address(client));
    assert!(world.at_client(client).is_empty());
    let server = world.simulation.node(world.server);
    assert_eq!((server.pending(), server.connections().count()), (1, 0));
    let stats = world.simulation.network().stats(world.server);
    assert!(
        stats.sent.payload_bytes < stats.received.payload_bytes / 3,
        "{stats:?}"
    );

    assert_eq!(world.admit(*connection), Ok(()));
    world.run(LATENCY * 3);
    assert_eq!(world.at_client(client), [Heard::Connected]);
    assert_eq!(world.at_server(), [(*connection, Heard::Connected)]);
    assert_eq!(world.admit(*connection), Err(AdmissionError::NotAsking));
    let now = world.simulation.now();
    let server = world.simulation.node_mut(world.server);
    let sent = server.send(now, *connection, 0, b"welcome");
    assert!(sent.is_ok(), "{sent:?}");
    world.run(LATENCY * 3);
    let welcome = Heard::Message(b"welcome".to_vec());
    assert_eq!(world.at_client(client), [welcome]);
}

#[test]
fn a_late_decision_outlasts_the_clients_patience_under_loss() {
    for seed in 0..40 {
        let mut world = World::new(seed, AdmissionLimits::default());
        world.loss(0.3);
        let patience = Duration::from_secs(10);
        let client = world.client(world.pinned().timeout(patience));
        let mut questions = Vec::new();
        while questions.is_empty() && world.simulation.now() < Instant::from_secs(10) {
            world.run(Duration::from_millis(100));
            questions.extend(world.at_server());
        }
        world.run(Duration::from_secs(25));
        assert!(world.at_client(client).is_empty(), "seed {seed}");
        let [(connection, Heard::Asking { .. })] = questions[..] else {
            unreachable!("seed {seed}: asked once: {questions:?}")
        };
        assert_eq!(world.admit(connection), Ok(()), "seed {seed}");
        world.run(Duration::from_secs(12));
        assert_eq!(world.at_client(client), [Heard::Connected], "seed {seed}");
        let heard = world.at_server();
        assert_eq!(heard, [(connection, Heard::Connected)], "seed {seed}");
        let counters = world.counters();
        assert_eq!((counters.asked, counters.accepted), (1, 1), "seed {seed}");
    }
}

#[test]
fn a_denied_client_reads_why_and_is_not_asked_about_again_under_loss() {
    for seed in 0..40 {
        let mut world = World::new(seed, AdmissionLimits::default());
        world.loss(0.4);
        let client = world.client(world.pinned().timeout(Duration::from_secs(30)));
        let mut asked = 0;
        let mut answers = Vec::new();
        while answers.is_empty() && world.simulation.now() < Instant::from_secs(40) {
            world.run(Duration::from_millis(50));
            for (connection, what) in world.at_server() {
                assert!(
                    matches!(what, Heard::Asking { .. }),
                    "seed {seed}: {what:?}"
                );
                asked += 1;
                assert_eq!(world.deny(connection, "banned"), Ok(()));
            }
            answers = world.at_client(client);
        }
        assert_eq!(
            (asked, &answers[..]),
            (1, &[denied("banned")][..]),
            "seed {seed}"
        );
        world.run(Duration::from_secs(5));
        assert!(
            world.at_server().is_empty() && world.pending() == 0,
            "seed {seed}"
        );
        assert_eq!(world.counters().denied, 1, "seed {seed}");
    }
}

#[test]
fn more_clients_than_may_wait_are_refused_as_by_a_busy_server() {
    let mut world = World::new(2, AdmissionLimits::default().pending_max(2));
    for _ in 0..3 {
        world.client(world.pinned());
    }
    world.run(Duration::from_secs(2));
    let asked: Vec<_> = world.at_server().into_iter().map(|(id, _)| id).collect();
    assert_eq!((asked.len(), world.pending()), (2, 2));
    let busy: Vec<_> = (0..3)
        .filter(|index| world.at_client(*index) == [Heard::Refused(Refusal::Busy)])
        .collect();
    assert_eq!(busy.len(), 1);
    assert_eq!(world.counters().pending_limited, 1);
    // A client that is decided about makes room.
    assert_eq!(world.admit(asked[0]), Ok(()));
    let another = world.client(world.pinned());
    world.run(Duration::from_secs(1));
    let heard = world.at_server();
    let [(_, Heard::Connected), (fourth, Heard::Asking { .. })] = heard[..] else {
        unreachable!("one is in, one asks: {heard:?}")
    };
    assert_eq!(world.deny(fourth, "not today"), Ok(()));
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(another), [denied("not today")]);
    assert_eq!(world.pending(), 1);
}

#[test]
fn no_decision_in_time_is_a_refusal_that_both_sides_hear_of() {
    let limits = AdmissionLimits::default().timeout(Duration::from_secs(4));
    let mut world = World::new(3, limits);
    let client = world.client(world.pinned());
    world.run(Duration::from_millis(3_900));
    let connection = world.asking();
    assert!(world.at_client(client).is_empty());
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(client), [Heard::Refused(Refusal::Busy)]);
    let closed = Heard::Closed(CloseReason::Undecided);
    assert_eq!(world.at_server(), [(connection, closed)]);
    assert_eq!((world.counters().undecided, world.pending()), (1, 0));
    assert_eq!(world.admit(connection), Err(AdmissionError::NotAsking));
    assert_eq!(world.deny(connection, ""), Err(AdmissionError::NotAsking));
}

#[test]
fn a_client_that_leaves_before_the_decision_is_forgotten() {
    let mut world = World::new(4, AdmissionLimits::default());
    let client = world.client(world.pinned());
    world.run(Duration::from_secs(2));
    let connection = world.asking();
    world.simulation.detach(world.clients[client]);
    world.run(Duration::from_secs(7));
    let closed = Heard::Closed(CloseReason::Lost);
    assert_eq!(world.at_server(), [(connection, closed)]);
    assert_eq!((world.counters().withdrawn, world.pending()), (1, 0));
    assert_eq!(world.admit(connection), Err(AdmissionError::NotAsking));
}

#[test]
fn a_client_that_leaves_after_the_decision_is_closed() {
    let mut world = World::new(5, AdmissionLimits::default());
    let client = world.client(world.pinned());
    world.run(Duration::from_secs(1));
    let connection = world.asking();
    world.simulation.detach(world.clients[client]);
    assert_eq!(world.admit(connection), Ok(()));
    world.run(Duration::from_secs(13));
    let closed = Heard::Closed(CloseReason::Lost);
    assert_eq!(world.at_server(), [(connection, closed)]);
    assert_eq!(world.simulation.node(world.server).remote(connection), None);
}

#[test]
fn closing_a_client_that_asks_denies_it() {
    let mut world = World::new(6, AdmissionLimits::default());
    let client = world.client(world.pinned());
    world.run(Duration::from_secs(1));
    let connection = world.asking();
    let now = world.simulation.now();
    let server = world.simulation.node_mut(world.server);
    server.close(now, connection, 42, "closing time");
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(client), [denied("closing time")]);
    assert!(world.at_server().is_empty());
}

/// A master's token for account 9, and a server that wants one and asks all the same.
fn with_tokens(seed: u64) -> (World, ConnectToken) {
    let mut entropy = SeededEntropy::danger_seeded(50);
    let issuer = TokenIssuer::generate(PROTOCOL, 1, &mut entropy);
    let mut verifier = TokenVerifier::new();
    let trusted = verifier.add_key(issuer.key_id(), &issuer.public_key());
    assert_eq!(trusted, Ok(()));
    let grant = TokenGrant::new(9, key().public(), server_address());
    let token = issuer.issue(&grant, UNIX_NOW_S, &mut entropy);
    let options = ServerOptions::new(key())
        .tokens(verifier)
        .admission(AdmissionLimits::default());
    (World::with(seed, options), token.expect("within limits"))
}

#[test]
fn the_question_names_the_account_and_a_denied_token_is_not_spent() {
    let (mut world, token) = with_tokens(7);
    let client = world.client(Connect::token(token.clone()));
    world.run(Duration::from_secs(1));
    let heard = world.at_server();
    let [(connection, Heard::Asking { account: 9, .. })] = heard[..] else {
        unreachable!("account 9 asks: {heard:?}")
    };
    assert_eq!(world.deny(connection, "the match has not begun"), Ok(()));
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(client), [denied("the match has not begun")]);
    let again = world.client(Connect::token(token));
    world.run(Duration::from_secs(1));
    let connection = world.asking();
    assert_eq!(world.admit(connection), Ok(()));
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(again), [Heard::Connected]);
}

#[test]
fn a_holder_that_restarts_while_it_waits_gets_in_once() {
    let (mut world, token) = with_tokens(8);
    let first = world.client(Connect::token(token.clone()));
    world.run(Duration::from_secs(1));
    let gone = world.asking();
    world.simulation.detach(world.clients[first]);
    let second = world.client(Connect::token(token));
    world.run(Duration::from_secs(1));
    let alive = world.asking();
    assert_eq!(world.admit(gone), Ok(()));
    assert_eq!(world.admit(alive), Ok(()));
    world.run(Duration::from_secs(1));
    assert_eq!(world.at_client(second), [Heard::Connected]);
    let replaced = Heard::Closed(CloseReason::Replaced);
    assert_eq!(
        world.at_server(),
        [(alive, Heard::Connected), (gone, replaced)]
    );
    let connections: Vec<_> = world.simulation.node(world.server).connections().collect();
    assert_eq!(connections, [alive]);
}
