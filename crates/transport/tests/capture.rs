//! Records a session on a bad network for the independent decoder in `tests/decoder/`: captures, key log, and what
//! both sides say they sent and received.
//!
//! The session uses every delivery mode and every frame of `docs/protocol.md`. The files go to `tmp/capture` in cargo's target
//! folder; `make decode` reads them. Same seed, same files.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use muse_netem::{Capture, Conditions, Jitter, Network, NodeId, Simulation};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, ConnectionId, Delivery, Endpoint, Event, Repair,
    SeededEntropy, SendOptions, ServerKey, ServerOptions,
};
use muse_wire::{Duration, Instant};

const SEED: u64 = 2_026;
const PROTOCOL: u64 = 0x6465_636f_6465;
const TICK: Duration = Duration::from_millis(16);
const TICKS: u64 = 500;
const QUIET_TICKS: u64 = 100;
/// Packets before a sender renews its keys, so that the capture has several key phases.
const RENEWAL: u64 = 300;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 2_000);
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 1_000);
const CLIENT_MOVED: ([u8; 4], u16) = ([198, 51, 100, 7], 1_001);

const UNRELIABLE: u8 = 0;
const ORDERED_BALANCED: u8 = 4;
const ORDERED_FAST: u8 = 7;
/// Its number needs a byte of its own in frames.
const ORDERED_FRUGAL: u8 = 8;

fn channels() -> Vec<(&'static str, ChannelConfig)> {
    let partial = Delivery::partially_reliable(20, 80).expect("a sensible promise");
    vec![
        ("unreliable", ChannelConfig::new(Delivery::Unreliable)),
        ("sequenced", ChannelConfig::new(Delivery::Sequenced)),
        ("unordered", ChannelConfig::new(Delivery::ReliableUnordered)),
        ("newest", ChannelConfig::new(Delivery::ReliableSequenced)),
        ("ordered", ChannelConfig::new(Delivery::ReliableOrdered)),
        ("partial 20 80", ChannelConfig::new(partial)),
        ("ordered", ChannelConfig::new(Delivery::ReliableOrdered)),
        (
            "ordered",
            ChannelConfig::new(Delivery::ReliableOrdered).repair(Repair::Fast),
        ),
        (
            "ordered",
            ChannelConfig::new(Delivery::ReliableOrdered).repair(Repair::Frugal),
        ),
    ]
}

struct Session {
    simulation: Simulation<Endpoint>,
    server: NodeId,
    client: NodeId,
    connections: [Option<ConnectionId>; 2],
    closed: [Option<CloseReason>; 2],
    address_changes: u32,
    /// The session's parameters for the decoder.
    account: String,
    messages: u32,
    rng: fastrand::Rng,
}

impl Session {
    fn new(sent: &Capture, delivered: &Capture, keys: &Arc<Mutex<String>>) -> Self {
        let mut account = format!("protocol {PROTOCOL:016x}\n");
        let mut config = Config::new(PROTOCOL).rekey_after(RENEWAL);
        for (index, (name, channel)) in channels().into_iter().enumerate() {
            writeln!(account, "channel {index} {name}").expect("a string takes all");
            config = config.channel(channel);
        }
        let config = config.build().expect("sensible channels");
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(SEED));
        let public = key.public();
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(SEED + 1));
        server.listen(ServerOptions::new(key));
        let lines = Arc::clone(keys);
        server.danger_key_log(Arc::new(move |line| {
            let mut lines = lines.lock().expect("nobody panics while writing");
            writeln!(lines, "{line}").expect("a string takes all");
        }));
        let mut client = Endpoint::new(config, SeededEntropy::danger_seeded(SEED + 2));
        let connection = client
            .connect(Instant::ZERO, SERVER.into(), Connect::pinned(public))
            .expect("a free slot");
        let mut network = Network::new(SEED);
        network.set_default(
            Conditions::default()
                .delay(Duration::from_millis(40))
                .jitter(Jitter::Uniform(Duration::from_millis(25)))
                .loss(0.08)
                .duplicate(0.02, Duration::from_millis(5)),
        );
        let (one, two) = (sent.clone(), delivered.clone());
        network.set_tap(move |sighting| {
            one.record(&sighting);
            two.record(&sighting);
        });
        let mut simulation = Simulation::new(network);
        let server = simulation.add(SERVER.into(), server);
        let client = simulation.add(CLIENT.into(), client);
        Self {
            simulation,
            server,
            client,
            connections: [Some(connection), None],
            closed: [None, None],
            address_changes: 0,
            account,
            messages: 0,
            rng: fastrand::Rng::with_seed(SEED),
        }
    }

    fn run(&mut self) {
        self.advance_until(Instant::from_secs(3));
        assert!(self.connections[1].is_some(), "the client is in");
        let start = self.simulation.now();
        for tick in 0..TICKS {
            self.advance_until(start + TICK * tick);
            self.send_tick(tick);
            if tick == TICKS / 2 {
                let (old, new) = (SocketAddr::from(CLIENT), SocketAddr::from(CLIENT_MOVED));
                self.simulation.network_mut().readdress(old, new);
            }
        }
        // One protected channel alone, whose packets hold a section and nothing else.
        let start = self.simulation.now() + Duration::from_secs(4);
        for tick in 0..QUIET_TICKS {
            self.advance_until(start + TICK * tick);
            self.send(0, ORDERED_BALANCED, 60, SendOptions::default());
        }
        self.advance_until(self.simulation.now() + Duration::from_secs(8));
        self.tell_stale();
        let connection = self.connections[0].expect("the client's own");
        let now = self.simulation.now();
        self.simulation
            .node_mut(self.client)
            .finish(now, connection, 7, "well played");
        self.advance_until(now + Duration::from_secs(8));
    }

    /// Sends what both sides have for one tick.
    fn send_tick(&mut self, tick: u64) {
        for side in 0..2 {
            for channel in 0..9 {
                let rare = matches!(channel, 2 | 3 | 6) && tick % 5 != u64::from(channel) % 5;
                if !rare {
                    let len = self.rng.usize(8..120);
                    self.send(side, channel, len, SendOptions::default());
                }
            }
            let large = tick % 61 == 30 * side as u64;
            if large {
                for channel in [UNRELIABLE, 1, 2, ORDERED_BALANCED, 5, ORDERED_FRUGAL] {
                    let len = self.rng.usize(1_025..6_000);
                    self.send(side, channel, len, SendOptions::default());
                }
            }
            if tick % 7 == 3 {
                // Expires before a retransmission could arrive, so that some are skipped.
                let soon = self.simulation.now() + Duration::from_millis(30);
                self.send(
                    side,
                    ORDERED_FAST,
                    200,
                    SendOptions::default().deadline(soon),
                );
            }
        }
    }

    fn send(&mut self, side: usize, channel: u8, len: usize, options: SendOptions) {
        let Some(connection) = self.connections[side] else {
            return;
        };
        let mut payload = vec![0; len];
        self.rng.fill(&mut payload);
        let now = self.simulation.now();
        let node = if side == 0 { self.client } else { self.server };
        let endpoint = self.simulation.node_mut(node);
        let id = endpoint
            .send_with(now, connection, channel, &payload, &options)
            .expect("room in the queue");
        self.tell("sent", side, channel, id.number, &payload);
        self.messages += 1;
    }

    fn advance_until(&mut self, until: Instant) {
        let mut heard = Vec::new();
        let nodes = [self.client, self.server];
        let mut buffer = Vec::new();
        self.simulation.run_until(until, |simulation| {
            for (side, node) in nodes.into_iter().enumerate() {
                while let Some(event) = simulation.node_mut(node).poll_event(&mut buffer) {
                    match event {
                        Event::Connected { connection, .. } => {
                            self.connections[side] = Some(connection);
                        }
                        Event::Message {
                            channel, payload, ..
                        } => heard.push((side, channel, payload.to_vec())),
                        Event::AddressChanged { .. } => self.address_changes += 1,
                        Event::Closed { reason, .. } => self.closed[side] = Some(reason),
                        _ => {}
                    }
                }
            }
        });
        for (side, channel, payload) in heard {
            self.tell("received", side, channel, 0, &payload);
        }
    }

    /// Says how many unreliable messages congestion held back until they were dropped, which nobody finds on the wire.
    fn tell_stale(&mut self) {
        for (side, node) in [self.client, self.server].into_iter().enumerate() {
            let connection = self.connections[side].expect("both are connected");
            let stats = self.simulation.node(node);
            let stats = stats.channel_stats(connection, UNRELIABLE);
            let count = stats.expect("an open connection").messages_stale;
            let who = ["client", "server"][side];
            writeln!(self.account, "stale {who} {UNRELIABLE} {count}").expect("a string takes all");
        }
    }

    fn tell(&mut self, verb: &str, side: usize, channel: u8, number: u64, payload: &[u8]) {
        let who = ["client", "server"][side];
        write!(self.account, "{verb} {who} {channel} {number} ").expect("a string takes all");
        for byte in payload {
            write!(self.account, "{byte:02x}").expect("a string takes all");
        }
        self.account.push('\n');
    }
}

#[test]
fn a_session_is_recorded_for_the_decoder() {
    let (sent, delivered) = (Capture::of_sent(), Capture::of_delivered());
    let keys = Arc::new(Mutex::new(String::new()));
    let mut session = Session::new(&sent, &delivered, &keys);
    session.run();
    assert!(session.messages > 3_000, "{} messages", session.messages);
    assert_eq!(session.address_changes, 1);
    assert_eq!(session.closed[0], Some(CloseReason::ByUs));
    let text = "well played".to_owned();
    assert_eq!(
        session.closed[1],
        Some(CloseReason::ByPeer { code: 7, text })
    );
    let keys = keys.lock().expect("the session is over").clone();
    assert_eq!(keys.lines().count(), 2, "one line for each direction");

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capture");
    std::fs::create_dir_all(&folder).expect("cargo made the folder above");
    let files = [
        ("sent.pcap", sent.to_bytes()),
        ("delivered.pcap", delivered.to_bytes()),
        ("keys.txt", keys.into_bytes()),
        ("session.txt", session.account.into_bytes()),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).expect("the folder can be written to");
    }
}
