//! Several endpoints behind one port: a token is good once, whichever of them a client's address leads to, and a player who comes back takes over
//! their session.

#[path = "support/pair.rs"]
mod pair;

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_transport::steering::shard_of;
use muse_transport::token::{ConnectToken, TokenError, TokenGrant, TokenIssuer, TokenVerifier};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, Delivery, Endpoint, Event, Refusal, SeededEntropy,
    ServerOptions,
};
use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};
use pair::{server_address, server_key};

const PROTOCOL: u64 = 0x7E57;
const UNIX_S: u64 = 1_800_000_000;
const SHARDS: usize = 4;

/// A client, or a server's endpoints behind one port with the kernel's choice between them.
struct Node(Vec<Endpoint>);

impl Node {
    fn chosen(&self, datagram: &Datagram<'_>) -> usize {
        let by_address = usize::from(datagram.from.port()) % self.0.len();
        shard_of(datagram.payload, self.0.len()).unwrap_or(by_address)
    }

    fn events(&mut self, mut see: impl FnMut(usize, Event<'_>)) {
        let mut buffer = Vec::new();
        for (shard, endpoint) in self.0.iter_mut().enumerate() {
            while let Some(event) = endpoint.poll_event(&mut buffer) {
                see(shard, event);
            }
        }
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let shard = if self.0.len() > 1 {
            self.chosen(&datagram)
        } else {
            0
        };
        self.0[shard].handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|one| one.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.0
            .iter_mut()
            .find_map(|one| one.poll_transmit(now, buffer))
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.0.iter_mut().filter_map(Machine::poll_timeout).min()
    }
}

struct World {
    simulation: Simulation<Node>,
    server: NodeId,
    issuer: TokenIssuer,
    port: u16,
}

fn config() -> Config {
    Config::new(PROTOCOL).channel(ChannelConfig::new(Delivery::ReliableOrdered))
}

impl World {
    fn new() -> Self {
        let issuer = TokenIssuer::from_bytes(PROTOCOL, 1, &[3; 32]);
        let shards = (0..SHARDS).map(|number| {
            let config = config().shard(number, SHARDS).build().expect("legal");
            let seed = SeededEntropy::danger_seeded(number as u64);
            let mut server = Endpoint::new(config, seed);
            let mut verifier = TokenVerifier::new();
            verifier.add_key(1, &issuer.public_key()).expect("a key");
            server.set_unix_time(Instant::ZERO, UNIX_S);
            let options = ServerOptions::new(server_key(1).0).cookie_secret([9; 32]);
            server.listen(options.tokens(verifier));
            server
        });
        let mut network = Network::new(1);
        network.set_default(Conditions::default().delay(Duration::from_millis(20)));
        let shards = Node(shards.collect());
        let mut simulation = Simulation::new(network);
        let server = simulation.add(server_address(), shards);
        Self {
            simulation,
            server,
            issuer,
            port: 1_000,
        }
    }

    fn token(&self, account: u64) -> ConnectToken {
        let grant = TokenGrant::new(account, server_key(1).1, server_address());
        let entropy = &mut SeededEntropy::danger_seeded(account);
        let token = self.issuer.issue(&grant, UNIX_S, entropy);
        token.expect("a token")
    }

    /// A client connects from another port, which leads to the next shard by address; returns how that ends within `span`.
    fn join(
        &mut self,
        token: &ConnectToken,
        span: Duration,
    ) -> (NodeId, Option<Result<(), Refusal>>) {
        self.port += 1;
        let seed = SeededEntropy::danger_seeded(u64::from(self.port));
        let mut client = Endpoint::new(config().build().expect("legal"), seed);
        let how = Connect::token(token.clone());
        client
            .connect(self.simulation.now(), server_address(), how)
            .expect("free");
        let address = SocketAddr::from(([203, 0, 113, 1], self.port));
        let client = self.simulation.add(address, Node(vec![client]));
        self.simulation.run_for(span);
        let mut outcome = None;
        let node = self.simulation.node_mut(client);
        node.events(|_, event| match event {
            Event::Connected { .. } => outcome = Some(Ok(())),
            Event::Refused { reason, .. } => outcome = Some(Err(reason)),
            _ => {}
        });
        (client, outcome)
    }

    /// Shards on which clients connected, and how connections ended.
    fn server_events(&mut self) -> (Vec<usize>, Vec<CloseReason>) {
        let (mut connected, mut closed) = (Vec::new(), Vec::new());
        let server = self.simulation.node_mut(self.server);
        server.events(|shard, event| match event {
            Event::Connected { .. } => connected.push(shard),
            Event::Closed { reason, .. } => closed.push(reason),
            _ => {}
        });
        (connected, closed)
    }
}

/// Hello and Connect with one cookie, and not a second more.
const SOON: Duration = Duration::from_millis(200);

#[test]
fn a_token_is_good_once_whichever_shard_it_comes_to() {
    let mut world = World::new();
    let mut used = [0; SHARDS];
    for account in 1..=16 {
        let token = world.token(account);
        let (holder, outcome) = world.join(&token, SOON);
        assert_eq!(outcome, Some(Ok(())), "the cookie of any shard is good");
        let (connected, _) = world.server_events();
        assert_eq!(connected.len(), 1);
        used[connected[0]] += 1;
        // The session ends, so that the token cannot resume it.
        let now = world.simulation.now();
        let client = &mut world.simulation.node_mut(holder).0[0];
        let connection = client.connections().next().expect("connected");
        client.close(now, connection, 1, "bye");
        world.simulation.run_for(Duration::from_secs(2));
        world.server_events();
        for _ in 0..SHARDS {
            let (_, outcome) = world.join(&token, SOON);
            assert_eq!(outcome, Some(Err(Refusal::Token(TokenError::Used))));
        }
        assert_eq!(world.server_events(), (Vec::new(), Vec::new()));
    }
    assert!(used.iter().all(|count| *count > 0), "{used:?}");
}

#[test]
fn a_player_who_comes_back_by_another_address_takes_over() {
    let mut world = World::new();
    let token = world.token(7);
    let (_, outcome) = world.join(&token, SOON);
    assert_eq!(outcome, Some(Ok(())));
    let (first, _) = world.server_events();
    for _ in 0..SHARDS {
        let (_, outcome) = world.join(&token, Duration::from_secs(2));
        assert_eq!(outcome, Some(Ok(())));
        let (shards, closed) = world.server_events();
        assert_eq!(
            (&shards, &closed[..]),
            (&first, &[CloseReason::Replaced][..])
        );
    }
    let open = world.simulation.node(world.server).0.iter();
    assert_eq!(
        open.map(|shard| shard.connections().count()).sum::<usize>(),
        1
    );
}

#[test]
fn a_shard_refuses_the_tokens_of_others_however_they_reach_it() {
    let mut world = World::new();
    // One shard alone, to which everything goes.
    let server = world.simulation.node_mut(world.server);
    server.0.truncate(1);
    let outcomes = (1..=16).map(|account| {
        let token = world.token(account);
        world.join(&token, SOON).1.expect("an answer")
    });
    let outcomes: Vec<_> = outcomes.collect();
    let wrong = Err(Refusal::Token(TokenError::WrongServer));
    let refused = outcomes.iter().filter(|outcome| **outcome == wrong).count();
    assert!((6..16).contains(&refused), "{refused} of 16");
    let admitted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(admitted + refused, 16);
}
