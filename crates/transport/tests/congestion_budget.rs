//! A game that sends what its budget allows, once a tick, from a machine that is sometimes busy: it gets what it wants, and soon again after a pause.

use std::net::SocketAddr;

use muse_netem::{Conditions, Jitter, Network, NodeId, Queue, Simulation};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, SeededEntropy,
    ServerKey, ServerOptions,
};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

/// An endpoint in a game's loop: datagrams wait for the next tick, and everything leaves in one.
struct Looped {
    endpoint: Endpoint,
    waiting: Vec<(SocketAddr, Ecn, Vec<u8>)>,
    tick: Duration,
    next: Instant,
    looked_at: Instant,
    /// Within a tick, so that packets may leave.
    open: bool,
    connection: Option<ConnectionId>,
    /// Bytes that the game wants to send in each tick.
    wanted: usize,
    /// Bytes that the budget let it send, for each tick.
    sent: Vec<(Instant, usize)>,
    /// Ticks that come late, and by how much.
    pauses: fastrand::Rng,
    pause_max: Duration,
}

impl Looped {
    fn new(endpoint: Endpoint, tick_ms: u64, wanted: usize, seed: u64) -> Self {
        let tick = Duration::from_millis(tick_ms);
        let mut pauses = fastrand::Rng::with_seed(seed);
        // The offset between the two sides' ticks is random.
        let phase = Duration::from_micros(pauses.u64(0..tick.as_micros()));
        Self {
            endpoint,
            waiting: Vec::new(),
            tick,
            next: Instant::ZERO + phase,
            looked_at: Instant::ZERO,
            open: false,
            connection: None,
            wanted,
            sent: Vec::new(),
            pauses,
            pause_max: Duration::ZERO,
        }
    }

    fn play(&mut self, now: Instant) {
        let mut buffer = Vec::new();
        while let Some(event) = self.endpoint.poll_event(&mut buffer) {
            match event {
                Event::Connected { connection, .. } => self.connection = Some(connection),
                Event::Message { .. } => {}
                other => unreachable!("{other:?}"),
            }
        }
        let Some(connection) = self.connection else {
            return;
        };
        let budget = self.endpoint.budget(now, connection).expect("connected");
        let allowed = self.wanted.min(budget.this_tick(self.tick)).max(LEAST);
        self.sent.push((now, allowed));
        let mut left = allowed;
        while left > 0 {
            let len = left.min(MESSAGE);
            let sent = self.endpoint.send(now, connection, 0, &[0; MESSAGE][..len]);
            sent.expect("nothing waits for long");
            left -= len;
        }
    }

    /// The share of what it wanted that the game could send.
    fn share(&self, from: Instant, to: Instant) -> f64 {
        let ticks = self.sent.iter().filter(|(at, _)| (from..to).contains(at));
        let (count, sum) = ticks.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes));
        sum as f64 / (count * self.wanted) as f64
    }
}

impl Machine for Looped {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        let Datagram { from, ecn, payload } = datagram;
        self.waiting.push((from, ecn, payload.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.endpoint.looked_away(now - self.looked_at);
        self.looked_at = now;
        self.next += self.tick;
        if self.pause_max > Duration::ZERO && self.pauses.u32(0..40) == 0 {
            self.next += Duration::from_micros(self.pauses.u64(0..self.pause_max.as_micros()));
        }
        for (from, ecn, mut payload) in self.waiting.drain(..) {
            let payload = &mut payload;
            self.endpoint
                .handle_datagram(now, Datagram { from, ecn, payload });
        }
        self.endpoint.handle_timeout(now);
        self.play(now);
        self.open = true;
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = self
            .open
            .then(|| self.endpoint.poll_transmit(now, buffer))
            .flatten();
        self.open = transmit.is_some();
        transmit
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        Some(self.next)
    }
}

/// A server that makes 20 updates a second and a client that makes 60, not in step.
struct Match {
    simulation: Simulation<Looped>,
    nodes: [NodeId; 2],
    conditions: Conditions,
}

impl Match {
    fn new(rtt_ms: u64, seed: u64) -> Self {
        let config = Config::new(9).channel(ChannelConfig::new(Delivery::Unreliable));
        let config = config.build().expect("sensible");
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        let public = key.public();
        let mut server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed ^ 100));
        server.listen(ServerOptions::new(key));
        let mut client = Endpoint::new(config, SeededEntropy::danger_seeded(seed ^ 200));
        let [there, here] = [200, 1].map(|host| SocketAddr::from(([192, 0, 2, host], 1)));
        client
            .connect(Instant::ZERO, there, Connect::pinned(public))
            .expect("free");
        let conditions = Conditions::default()
            .delay(Duration::from_millis(rtt_ms / 2))
            .jitter(Jitter::Uniform(Duration::from_millis(5)))
            .keep_order(true)
            .loss(0.02);
        let mut network = Network::new(seed);
        network.set_default(conditions.clone());
        let mut simulation = Simulation::new(network);
        let server = simulation.add(there, Looped::new(server, 50, WANTED, seed));
        let client = simulation.add(here, Looped::new(client, 16, 20, seed ^ 1));
        Self {
            simulation,
            nodes: [server, client],
            conditions,
        }
    }

    /// Lets both play until a second and says what share of what it wanted the server could send since the last time.
    fn share_until(&mut self, second: u64) -> f64 {
        let from = self.simulation.now();
        let to = Instant::from_secs(second);
        self.simulation.run_until(to, |_| {});
        self.simulation.node(self.nodes[0]).share(from, to)
    }
}

#[test]
fn a_game_that_fills_its_budget_gets_what_it_wants_although_machines_are_busy() {
    println!("round trip, pauses of up to: least share of what was wanted, of all seeds");
    for rtt_ms in [20, 60, 100, 160] {
        for (pause_ms, least) in [(0, 1.0), (100, 0.97), (400, 0.8)] {
            let shares = (0..SEEDS).map(|seed| {
                let mut game = Match::new(rtt_ms, seed);
                game.share_until(2);
                assert_eq!(game.share_until(12), 1.0, "while all is well");
                for node in game.nodes {
                    game.simulation.node_mut(node).pause_max = Duration::from_millis(pause_ms);
                }
                game.share_until(42)
            });
            let worst = shares.fold(1.0, f64::min);
            println!("{rtt_ms:4} ms {pause_ms:4} ms: {worst:.3}");
            assert!(
                worst >= least,
                "{rtt_ms} ms, pauses of {pause_ms} ms: {worst}"
            );
        }
    }
}

#[test]
fn a_game_that_fills_its_budget_gets_more_again_when_there_is_more() {
    for rtt_ms in [20, 60, 100, 160] {
        for seed in 0..SEEDS {
            let mut game = Match::new(rtt_ms, seed);
            game.share_until(5);
            let thin = game
                .conditions
                .clone()
                .rate(400_000)
                .queue(Queue::Time(Duration::from_millis(300)));
            game.simulation.network_mut().set_default(thin);
            game.share_until(8);
            let squeezed = game.share_until(15);
            game.simulation
                .network_mut()
                .set_default(game.conditions.clone());
            game.share_until(20);
            let after = game.share_until(30);
            println!("{rtt_ms:4} ms, seed {seed}: {squeezed:.2}, then {after:.3}");
            assert!(
                (0.4..0.7).contains(&squeezed),
                "the link carries half of it: {squeezed}"
            );
            assert!(after > 0.99, "{after}");
        }
    }
}

/// Bytes that 1,000 moving bodies take in a tick of 50 ms.
const WANTED: usize = 5_000;
/// A game sends something, whatever the budget says.
const LEAST: usize = 20;
const MESSAGE: usize = 1_100;
const SEEDS: u64 = 10;
