//! A server with several addresses: the first that completes the handshake wins, quickly, and no other leaves a trace.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_transport::{
    AdmissionLimits, ChannelConfig, Config, Connect, ConnectError, ConnectionId, Delivery,
    Endpoint, Event, Refusal, SeededEntropy, ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};

const RTT: Duration = Duration::from_millis(40);
const STAGGER: Duration = Duration::from_millis(250);

fn config() -> Config {
    let channel = ChannelConfig::new(Delivery::ReliableOrdered);
    let config = Config::new(0xADD2).channel(channel);
    config.build().expect("sensible")
}

fn key(number: u8) -> ServerKey {
    ServerKey::from_bytes([number; 32])
}

/// The addresses that the client knows: IPv6, IPv4, IPv6.
fn address(index: usize) -> SocketAddr {
    let texts = ["[2001:db8::1]:7000", "192.0.2.1:7000", "[2001:db8::2]:7000"];
    texts[index].parse().expect("an address")
}

/// A client that looks for the server with key 1 at three addresses.
struct World {
    simulation: Simulation<Endpoint>,
    client: NodeId,
    connection: ConnectionId,
}

impl World {
    fn new(rtt: Duration) -> Self {
        let mut network = Network::new(1);
        network.set_default(Conditions::default().delay(rtt / 2));
        let mut simulation = Simulation::new(network);
        let mut client = Endpoint::new(config(), SeededEntropy::danger_seeded(1));
        let to = [0, 1, 2].map(address);
        let how = Connect::pinned(key(1).public()).timeout(Duration::from_secs(5));
        let connection = client.connect_any(Instant::ZERO, &to, how);
        let client = simulation.add(([198, 51, 100, 1], 5_000).into(), client);
        Self {
            simulation,
            client,
            connection: connection.expect("a free slot"),
        }
    }

    /// A server is at one of the addresses.
    fn server(&mut self, index: usize, options: ServerOptions) -> NodeId {
        let entropy = SeededEntropy::danger_seeded(10 + index as u64);
        let mut server = Endpoint::new(config(), entropy);
        server.listen(options);
        self.simulation.add(address(index), server)
    }

    /// Runs until the client is told something, and says what and when.
    fn outcome(&mut self) -> (Result<SocketAddr, Option<Refusal>>, Instant) {
        let (client, connection) = (self.client, self.connection);
        let mut outcome = None;
        let limit = Instant::from_secs(60);
        self.simulation.run_until_done(limit, |simulation| {
            let at = simulation.now();
            let mut buffer = Vec::new();
            let client = simulation.node_mut(client);
            let result = match client.poll_event(&mut buffer) {
                None => return false,
                Some(Event::Connected { .. }) => Ok(()),
                Some(Event::Refused { reason, .. }) => Err(Some(reason)),
                Some(Event::Unanswered { .. }) => Err(None),
                Some(other) => unreachable!("{other:?}"),
            };
            let remote = || client.remote(connection).expect("connected");
            outcome = Some((result.map(|()| remote()), at));
            true
        });
        outcome.expect("told something within a minute")
    }

    /// Returns how many clients the server was asked to admit, and how many it has.
    fn noticed(&mut self, server: NodeId) -> (u64, usize) {
        self.simulation.run_for(Duration::from_secs(15));
        let server = self.simulation.node(server);
        let counters = server.handshake_counters().expect("it listens");
        (counters.accepted, server.connections().count())
    }
}

fn options(number: u8) -> ServerOptions {
    ServerOptions::new(key(number))
}

#[test]
fn the_first_address_wins_if_it_answers_and_no_other_is_tried() {
    // Up to a round trip of as long as the time between two addresses.
    for rtt in [RTT, STAGGER - Duration::from_millis(10)] {
        let mut world = World::new(rtt);
        let servers = [0, 1, 2].map(|index| world.server(index, options(1)));
        assert_eq!(world.outcome(), (Ok(address(0)), Instant::ZERO + rtt * 2));
        assert_eq!(world.noticed(servers[0]), (1, 1));
        for server in &servers[1..] {
            assert_eq!(world.noticed(*server), (0, 0));
            let heard = world.simulation.network().stats(*server).received;
            assert_eq!(heard.datagrams, 0);
        }
    }
}

#[test]
fn dead_addresses_cost_a_quarter_of_a_second_each() {
    for (alive, delay) in [(1, STAGGER), (2, STAGGER * 2)] {
        let mut world = World::new(RTT);
        let server = world.server(alive, options(1));
        let at = Instant::ZERO + delay + RTT * 2;
        assert_eq!(world.outcome(), (Ok(address(alive)), at));
        assert_eq!(world.noticed(server), (1, 1));
    }
}

#[test]
fn on_a_slow_path_losers_leave_nothing_behind() {
    let mut world = World::new(Duration::from_millis(900));
    let servers = [0, 1, 2].map(|index| world.server(index, options(1)));
    let (winner, _) = world.outcome();
    assert_eq!(winner, Ok(address(0)));
    assert_eq!(world.noticed(servers[0]), (1, 1));
    for server in &servers[1..] {
        let (_, connections) = world.noticed(*server);
        assert_eq!(connections, 0);
        let mut buffer = Vec::new();
        let event = world.simulation.node_mut(*server).poll_event(&mut buffer);
        assert_eq!(event, None, "its application has heard of nobody");
    }
}

#[test]
fn a_refusal_is_told_at_once_but_another_machine_is_passed_by() {
    let mut world = World::new(RTT);
    let full = Config::new(0xADD2).channel(ChannelConfig::new(Delivery::Sequenced));
    let mut server = Endpoint::new(
        full.build().expect("sensible"),
        SeededEntropy::danger_seeded(9),
    );
    server.listen(options(1));
    world.simulation.add(address(1), server);
    let (outcome, at) = world.outcome();
    assert!(
        matches!(outcome, Err(Some(Refusal::Schema { .. }))),
        "{outcome:?}"
    );
    assert_eq!(
        at,
        Instant::ZERO + STAGGER + RTT * 3,
        "not after a time-out"
    );

    let mut world = World::new(RTT);
    world.server(0, options(2));
    world.server(1, options(1));
    assert_eq!(world.outcome(), (Ok(address(1)), Instant::ZERO + RTT * 4));

    let mut world = World::new(RTT);
    world.server(0, options(2));
    let (outcome, at) = world.outcome();
    assert_eq!(
        outcome,
        Err(Some(Refusal::WrongKey)),
        "the others did not answer"
    );
    assert!(
        at > Instant::from_secs(5) && at < Instant::from_secs(6),
        "{at:?}"
    );
}

#[test]
fn nobody_anywhere_is_unanswered() {
    let mut world = World::new(RTT);
    let (outcome, at) = world.outcome();
    assert_eq!(outcome, Err(None));
    assert_eq!(at, Instant::from_secs(5) + STAGGER * 2);
    let mut client = Endpoint::new(config(), SeededEntropy::danger_seeded(1));
    let nowhere = client.connect_any(Instant::ZERO, &[], Connect::pinned(key(1).public()));
    assert_eq!(nowhere, Err(ConnectError::NoAddress));
}

#[test]
fn a_server_that_asks_its_application_asks_once() {
    let mut world = World::new(RTT);
    let asking = || options(1).admission(AdmissionLimits::default());
    let servers = [0, 1, 2].map(|index| world.server(index, asking()));
    world.simulation.run_for(Duration::from_secs(3));
    let now = world.simulation.now();
    let mut asked = Vec::new();
    for server in servers {
        let mut buffer = Vec::new();
        let server = world.simulation.node_mut(server);
        if let Some(Event::Asking { connection, .. }) = server.poll_event(&mut buffer) {
            asked.push(connection);
            assert_eq!(server.admit(now, connection), Ok(()));
        }
    }
    assert_eq!(asked.len(), 1);
    assert_eq!(world.outcome().0, Ok(address(0)));
}
