//! The memory budgets for received messages: they hold whatever arrives, nothing reliable is lost, and nothing stalls.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, Network, NodeId, Simulation};
use muse_transport::{
    CONNECTION_FLOOR, ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event,
    SeededEntropy, SendError, ServerOptions,
};
use muse_wire::{Duration, Instant, Link};
use pair::{server_address, server_key};

const UNRELIABLE: u8 = 0;
const RELIABLE: [u8; 3] = [1, 2, 3];
const SEQUENCED: u8 = 4;
const MESSAGE_MAX: usize = 16 << 10;
const CONNECTION_MEMORY: usize = 256 << 10;
const DELAY: Duration = Duration::from_millis(20);

fn channels() -> Config {
    let all = Delivery::partially_reliable(50, 100).expect("a promise");
    // Packets of one size, so that no search for a larger one brings packets without messages.
    let link = Link {
        datagram_max: Link::UDP.datagram_min,
        ..Link::UDP
    };
    [
        Delivery::Unreliable,
        Delivery::ReliableOrdered,
        Delivery::ReliableUnordered,
        all,
        Delivery::ReliableSequenced,
    ]
    .into_iter()
    .fold(Config::new(7).link(link), |config, delivery| {
        config.channel(ChannelConfig::new(delivery))
    })
}

/// Clients that may have much on their way, and a server that may hold little.
struct World {
    simulation: Simulation<Endpoint>,
    server: NodeId,
    clients: Vec<(NodeId, ConnectionId)>,
    buffer: Vec<u8>,
    endpoint_memory: usize,
}

impl World {
    fn new(seed: u64, clients: u8, endpoint_memory: usize, conditions: Conditions) -> Self {
        let config = channels()
            .message_max(MESSAGE_MAX)
            .connection_memory(CONNECTION_MEMORY)
            .endpoint_memory(endpoint_memory)
            .build()
            .expect("sensible");
        let (key, public) = server_key(seed);
        let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(seed));
        server.listen(ServerOptions::new(key));
        let mut network = Network::new(seed);
        network.set_default(conditions);
        let mut simulation = Simulation::new(network);
        let server = simulation.add(server_address(), server);
        let clients = (0..clients)
            .map(|index| {
                let config = channels().build().expect("sensible");
                let entropy = SeededEntropy::danger_seeded(seed ^ u64::from(index) << 32 ^ 9);
                let mut client = Endpoint::new(config, entropy);
                let connection = client
                    .connect(Instant::ZERO, server_address(), Connect::pinned(public))
                    .expect("free");
                let address = SocketAddr::from(([203, 0, index, 1], 5));
                (simulation.add(address, client), connection)
            })
            .collect();
        simulation.run_for(Duration::from_secs(10));
        let mut world = Self {
            simulation,
            server,
            clients,
            buffer: Vec::new(),
            endpoint_memory,
        };
        assert!(world.poll(usize::MAX).is_empty());
        world
    }

    fn send(&mut self, client: usize, channel: u8, payload: &[u8]) -> Result<(), SendError> {
        let now = self.simulation.now();
        let (node, connection) = self.clients[client];
        let client = self.simulation.node_mut(node);
        client.send(now, connection, channel, payload).map(|_| ())
    }

    /// Lets time pass in small steps, in which the server does not poll and never holds more than it may.
    fn run(&mut self, span: Duration) {
        let end = self.simulation.now() + span;
        while self.simulation.now() < end {
            let step = Duration::from_millis(20).min(end.saturating_since(self.simulation.now()));
            self.simulation.run_for(step);
            let server = self.simulation.node(self.server);
            let held = server.counters().memory_held;
            let floors = self.clients.len() * CONNECTION_FLOOR;
            assert!(held <= self.endpoint_memory + floors, "{held} bytes in all");
            for connection in server.connections() {
                let held = server.stats(connection).expect("open").memory_held;
                assert!(held <= CONNECTION_MEMORY, "{held} bytes");
            }
        }
    }

    /// The server polls up to `count` events; the messages among them.
    fn poll(&mut self, count: usize) -> Vec<(ConnectionId, u8, Vec<u8>)> {
        let server = self.simulation.node_mut(self.server);
        let mut messages = Vec::new();
        for _ in 0..count {
            match server.poll_event(&mut self.buffer) {
                Some(Event::Message {
                    connection,
                    channel,
                    payload,
                }) => messages.push((connection, channel, payload.to_vec())),
                Some(Event::Connected { .. }) => {}
                Some(other) => unreachable!("{other:?}"),
                None => break,
            }
        }
        messages
    }

    /// Packets that the server has refused.
    fn refused(&self) -> u64 {
        let server = self.server();
        let stats = server.connections().filter_map(|id| server.stats(id));
        stats.map(|stats| stats.packets_refused).sum()
    }

    fn server(&self) -> &Endpoint {
        self.simulation.node(self.server)
    }
}

fn number(payload: &[u8]) -> u32 {
    u32::from_le_bytes(*payload.first_chunk().expect("a number"))
}

fn lossy(loss: f64) -> Conditions {
    Conditions::default()
        .delay(DELAY)
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(loss)
}

#[test]
fn a_slow_application_loses_nothing_reliable_and_stalls_nobody() {
    const COUNT: u32 = 300;
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let mut world = World::new(seed, 1, 64 << 20, lossy(0.1));
        for index in 0..COUNT {
            let lens = [4, 900, 5_000, MESSAGE_MAX];
            for channel in RELIABLE.into_iter().chain([SEQUENCED]) {
                let len = lens[rng.usize(..lens.len())].max(4);
                let mut payload = vec![index as u8; len];
                payload[..4].copy_from_slice(&index.to_le_bytes());
                world.send(0, channel, &payload).expect("the queue is long");
            }
        }
        // More is on its way than may be held, and nobody reads for longer than a silent connection lives.
        world.run(Duration::from_secs(45));
        let connection = world.server().connections().next().expect("still there");
        assert!(
            world
                .server()
                .stats(connection)
                .expect("open")
                .packets_refused
                > 0
        );
        let mut heard: [Vec<u32>; 5] = Default::default();
        for _ in 0..6_000 {
            for (_, channel, payload) in world.poll(5) {
                assert!(
                    payload[4..]
                        .iter()
                        .all(|byte| *byte == number(&payload) as u8)
                );
                heard[usize::from(channel)].push(number(&payload));
            }
            if RELIABLE
                .iter()
                .all(|c| heard[usize::from(*c)].len() == COUNT as usize)
            {
                break;
            }
            world.run(Duration::from_millis(50));
        }
        let all: Vec<u32> = (0..COUNT).collect();
        heard[2].sort_unstable();
        for channel in RELIABLE {
            assert_eq!(
                heard[usize::from(channel)],
                all,
                "seed {seed} channel {channel}"
            );
        }
        world.run(Duration::from_secs(5));
        let late = world.poll(usize::MAX);
        let newest = late.iter().map(|(_, _, payload)| number(payload));
        let newest = newest.chain(heard[usize::from(SEQUENCED)].iter().copied());
        assert_eq!(newest.max(), Some(COUNT - 1), "seed {seed}");
        assert_eq!(world.server().counters().memory_held, 0);
    }
}

#[test]
fn empty_messages_meet_the_budget() {
    for channel in [UNRELIABLE, RELIABLE[0]] {
        let mut world = World::new(1, 1, 64 << 20, lossy(0.0));
        let mut sent = 0;
        for _ in 0..50 {
            for _ in 0..2_000 {
                sent += u32::from(world.send(0, channel, b"").is_ok());
            }
            world.run(Duration::from_millis(20));
        }
        let connection = world.server().connections().next().expect("still there");
        let stats = world.server().stats(connection).expect("open");
        assert!(stats.memory_held > CONNECTION_MEMORY / 2);
        assert!(stats.pieces_refused > 0);
        let mut received = 0;
        for _ in 0..2_000 {
            received += world.poll(usize::MAX).len() as u32;
            world.run(Duration::from_millis(20));
        }
        assert!(received <= sent);
        if channel == RELIABLE[0] {
            assert_eq!(received, sent);
        }
        world.send(0, channel, b"still there?").expect("room");
        world.run(Duration::from_secs(5));
        assert_eq!(world.poll(usize::MAX).len(), 1);
    }
}

#[test]
fn who_holds_much_does_not_starve_who_holds_little() {
    let endpoint_memory = 2 * CONNECTION_MEMORY;
    let mut world = World::new(1, 9, endpoint_memory, lossy(0.0));
    for _ in 0..60 {
        for client in 0..8 {
            world
                .send(client, RELIABLE[0], &[1; 5_000])
                .expect("the queue is long");
        }
        world.run(Duration::from_millis(20));
    }
    world.run(Duration::from_secs(10));
    assert!(world.server().counters().pieces_refused > 0);
    assert!(world.server().counters().memory_held > endpoint_memory * 9 / 10);
    for _ in 0..5 {
        world.send(8, RELIABLE[0], &[2; 1_000]).expect("room");
    }
    world.run(Duration::from_secs(2));
    let from = |byte: u8, messages: &[(ConnectionId, u8, Vec<u8>)]| {
        messages.iter().filter(|(_, _, m)| m[0] == byte).count()
    };
    let mut messages = world.poll(usize::MAX);
    assert_eq!(from(2, &messages), 5);
    // The others get all of theirs once the application reads.
    for _ in 0..500 {
        world.run(Duration::from_millis(50));
        messages.extend(world.poll(usize::MAX));
    }
    assert_eq!(from(1, &messages), 8 * 60);
    assert_eq!(world.server().counters().memory_held, 0);
}

#[test]
fn unfinished_unreliable_messages_make_room_for_what_must_arrive() {
    // One packet in three is lost for good: large unreliable messages are rarely finished.
    let mut world = World::new(1, 1, 64 << 20, lossy(0.33));
    let mut received = 0;
    for index in 0..400_u32 {
        let _ = world.send(0, UNRELIABLE, &[0; MESSAGE_MAX]);
        world
            .send(0, RELIABLE[1], &index.to_le_bytes())
            .expect("room");
        world.run(Duration::from_millis(20));
        let messages = world.poll(usize::MAX);
        received += messages
            .iter()
            .filter(|(_, c, _)| *c == RELIABLE[1])
            .count();
    }
    world.run(Duration::from_secs(10));
    received += world
        .poll(usize::MAX)
        .iter()
        .filter(|(_, c, _)| *c == RELIABLE[1])
        .count();
    assert_eq!(received, 400);
}

#[test]
fn what_others_wait_for_is_sent_again_although_they_fill_the_memory() {
    for seed in 0..30 {
        let mut world = World::new(seed, 1, 64 << 20, Conditions::default().delay(DELAY));
        let (client, server) = (world.clients[0].0, world.server);
        // The first message is lost, then its retransmission while the others fill what the server may hold.
        let network = world.simulation.network_mut();
        network.partition_one_way(client, server);
        world.send(0, RELIABLE[0], &[0; 1_000]).expect("room");
        world.run(DELAY);
        world.simulation.network_mut().heal_all();
        for index in 1..1_500_u32 {
            world
                .send(0, RELIABLE[0], &[index as u8; 1_000])
                .expect("room");
        }
        while world.refused() == 0 && world.simulation.now() < Instant::from_secs(30) {
            world.run(Duration::from_millis(1));
        }
        assert!(world.refused() > 0, "seed {seed}");
        let network = world.simulation.network_mut();
        network.partition_one_way(client, server);
        world.run(Duration::from_millis(20 * (seed % 30)));
        world.simulation.network_mut().heal_all();
        let mut received = 0;
        for _ in 0..600 {
            received += world.poll(usize::MAX).len();
            world.run(Duration::from_millis(100));
        }
        assert_eq!(received, 1_500, "seed {seed}");
    }
}
