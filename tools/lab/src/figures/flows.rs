//! Connections of the transport through a virtual network: one receiver, and senders that begin when they like.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, PipeId, Simulation};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Endpoint, Event, SeededEntropy, ServerKey,
    ServerOptions,
};
use muse_wire::{Duration, Instant};

/// A packet that arrived: the number of its sender, when it arrived, and when it was sent.
pub(super) struct Arrival {
    pub(super) sender: usize,
    pub(super) at: Instant,
    pub(super) sent: Instant,
    pub(super) bytes: usize,
}

/// Senders, the network, and a receiver.
pub(super) struct Flows {
    pub(super) simulation: Simulation<Endpoint>,
    pub(super) arrivals: Vec<Arrival>,
    pipe: PipeId,
    config: Config,
    receiver: NodeId,
    connect: Connect,
    senders: Vec<(NodeId, ConnectionId)>,
    /// By sender, as the receiver names them.
    known: Vec<ConnectionId>,
    seed: u64,
}

impl Flows {
    /// Nobody sends yet. Everybody's packets to the receiver go through one pipe.
    pub(super) fn new(
        seed: u64,
        channel: ChannelConfig,
        way: Conditions,
        pipe: Conditions,
    ) -> Self {
        let config = Config::new(9).channel(channel).build().expect("sensible");
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        let connect = Connect::pinned(key.public());
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed ^ 100));
        server.listen(ServerOptions::new(key));
        let mut network = Network::new(seed);
        network.set_default(way.mtu(1_500));
        let pipe = network.add_pipe(pipe);
        let mut simulation = Simulation::new(network);
        let receiver = simulation.add(address(200), server);
        Self {
            simulation,
            arrivals: Vec::new(),
            pipe,
            config,
            receiver,
            connect,
            senders: Vec::new(),
            known: Vec::new(),
            seed,
        }
    }

    /// One more sender connects.
    pub(super) fn begin(&mut self) {
        let number = self.senders.len() as u8;
        let entropy = SeededEntropy::danger_seeded(self.seed ^ u64::from(number + 1) << 32);
        let mut client = Endpoint::new(self.config.clone(), entropy);
        let now = self.simulation.now();
        let connection = client.connect(now, address(200), self.connect.clone());
        let connection = connection.expect("the first of this machine");
        let node = self.simulation.add(address(number), client);
        let network = self.simulation.network_mut();
        network.route(node, self.receiver, &[self.pipe]);
        self.senders.push((node, connection));
    }

    /// Returns the time that a packet which enters the pipe now waits there.
    pub(super) fn queue_delay(&self) -> Duration {
        let network = self.simulation.network();
        network.pipe(self.pipe).queue_delay(self.simulation.now())
    }

    /// Bytes that all senders have put on the wire, without headers of UDP and IP.
    pub(super) fn bytes_sent(&self) -> u64 {
        let network = self.simulation.network();
        let bytes = |(node, _): &(NodeId, _)| network.stats(*node).sent.payload_bytes;
        self.senders.iter().map(bytes).sum()
    }

    /// Every sender sends messages of so many bytes, at most so many, and as long as fewer than `waiting` of them wait.
    pub(super) fn send(&mut self, bytes: usize, messages: usize, waiting: usize) {
        let now = self.simulation.now();
        let mut payload = vec![0; bytes];
        payload[..8].copy_from_slice(&now.as_micros().to_le_bytes());
        let mut buffer = Vec::new();
        for &(node, connection) in &self.senders {
            let client = self.simulation.node_mut(node);
            while client.poll_event(&mut buffer).is_some() {}
            for _ in 0..messages {
                if client.queued(connection, 0).1 >= waiting
                    || client.send(now, connection, 0, &payload).is_err()
                {
                    break;
                }
            }
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let until = self.simulation.now() + span;
        let mut buffer = Vec::new();
        let (receiver, known, arrivals) = (self.receiver, &mut self.known, &mut self.arrivals);
        self.simulation.run_until(until, |simulation| {
            let at = simulation.now();
            while let Some(event) = simulation.node_mut(receiver).poll_event(&mut buffer) {
                match event {
                    Event::Connected { connection, .. } => known.push(connection),
                    Event::Message {
                        connection,
                        payload,
                        ..
                    } => {
                        let sender = known.iter().position(|known| *known == connection);
                        let sent = payload.first_chunk().expect("the time stands first");
                        arrivals.push(Arrival {
                            sender: sender.expect("it connected"),
                            at,
                            sent: Instant::from_micros(u64::from_le_bytes(*sent)),
                            bytes: payload.len(),
                        });
                    }
                    other => unreachable!("{other:?}"),
                }
            }
        });
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 1))
}
