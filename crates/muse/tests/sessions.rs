//! Sessions over the real transport and a virtual network, in virtual time: the same code as over sockets.

use std::net::SocketAddr;

use muse::prelude::*;
use muse::session::{ClientSession, GameClientSession, GameServerSession, ServerSession};
use muse::token::{TokenGrant, TokenIssuer, TokenVerifier};
use muse::transport::SeededEntropy;
use muse::{Connect, Endpoint, Instant, ServerKey, ServerOptions};
use muse_netem::{Conditions, Jitter, Network, NodeId, Simulation};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Runner {
    #[field(range = -1000.0..=1000.0, step = 0.001)]
    x: f32,
}

struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = bool;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, runner: &mut Runner, run: &bool, _: &mut StepContext<'_, ()>) {
        runner.x += if *run { 0.1 } else { -0.1 };
    }
}

#[derive(Message, Debug, PartialEq)]
#[message(id = 1)]
struct Count {
    number: u32,
}

fn protocol() -> Protocol {
    Protocol::with_id("sessions/1", PROTOCOL)
        .message::<Count>(Delivery::ReliableOrdered)
        .for_game::<Rules>()
}

/// A server with its game, and clients with theirs, on one network.
struct World {
    simulation: Simulation<Endpoint>,
    server: NodeId,
    session: ServerSession,
    game: GameServerSession<Rules>,
    /// Clients that the server was told have joined.
    joined: Vec<ClientId>,
    /// Those that came back to their player.
    returned: Vec<ClientId>,
    left: Vec<ClientId>,
    counted: Vec<u32>,
}

struct Guest {
    node: NodeId,
    session: ClientSession,
    game: GameClientSession<Rules>,
    sent: u32,
    error: Option<muse::Error>,
}

impl World {
    fn new(seed: u64, options: ServerOptions) -> Self {
        let mut simulation = Simulation::new(Network::new(seed));
        let mut endpoint = new_endpoint(seed);
        endpoint.set_unix_time(Instant::ZERO, UNIX_TIME);
        endpoint.listen(options);
        let game = protocol().game_server(Instant::ZERO);
        Self {
            server: simulation.add(SERVER.into(), endpoint),
            simulation,
            session: ServerSession::new(protocol()),
            game: GameServerSession::new(game.expect("one kind")),
            joined: Vec::new(),
            returned: Vec::new(),
            left: Vec::new(),
            counted: Vec::new(),
        }
    }

    fn join(&mut self, number: u8, connect: Connect, link: &Conditions) -> Guest {
        let now = self.simulation.now();
        let mut endpoint = new_endpoint(u64::from(number) << 20 | 7);
        let connection = endpoint.connect(now, SERVER.into(), connect);
        let session = ClientSession::new(protocol(), connection.expect("a free slot"));
        let address = SocketAddr::from(([10, 0, 0, number], 5_000));
        let node = self.simulation.add(address, endpoint);
        let network = self.simulation.network_mut();
        network.set_links(self.server, node, link.clone());
        let (game, _) = protocol().game_client(now).expect("one kind");
        Guest {
            node,
            session,
            game: GameClientSession::new(game),
            sent: 0,
            error: None,
        }
    }

    /// Two milliseconds of everybody.
    fn turn(&mut self, guests: &mut [Guest]) {
        let now = self.simulation.now() + Duration::from_millis(2);
        self.simulation.run_until(now, |_| ());
        self.serve(now);
        for guest in guests {
            guest.play(now, self.simulation.node_mut(guest.node));
        }
    }

    fn serve(&mut self, now: Instant) {
        let endpoint = self.simulation.node_mut(self.server);
        let mut buffer = Vec::new();
        while let Some(event) = endpoint.poll_event(&mut buffer) {
            let event = self.session.handle_event(now, endpoint, event);
            match event.and_then(|event| self.game.handle_event(now, event)) {
                Some(Joined(client)) => {
                    self.joined.push(client);
                    let joined = self.game.spawn(client, &Runner::default());
                    joined.expect("room");
                }
                Some(Returned(client)) => self.returned.push(client),
                Some(Left(client, _)) => self.left.push(client),
                Some(Received(_, message)) => {
                    let count = message.read::<Count>().expect("the only message");
                    self.counted.push(count.number);
                }
                _ => {}
            }
        }
        while self.game.tick(now, &mut Rules).is_some() {}
        self.game.send_snapshots(now, endpoint, &mut self.session);
        assert_eq!(self.game.refused(), 0, "everybody is honest");
    }
}

impl Guest {
    fn play(&mut self, now: Instant, endpoint: &mut Endpoint) {
        let mut buffer = Vec::new();
        while let Some(event) = endpoint.poll_event(&mut buffer) {
            let event = self.session.handle_event(event);
            let event = event.and_then(|event| self.game.handle_event(now, &mut Rules, event));
            if let Some(ClientEvent::Ended(error)) = event {
                self.error = Some(error);
            }
        }
        let keys = |tick: Tick| (tick.0 / 40).is_multiple_of(2);
        let (game, session) = (&mut self.game, &mut self.session);
        while let Some(_len) = game.send_packet(now, &mut Rules, endpoint, session, keys) {}
        if self.session.is_connected() && self.sent < COUNTED {
            let number = self.sent;
            let sent = self.session.send(now, endpoint, &Count { number });
            self.sent += u32::from(sent.is_ok());
        }
    }
}

fn new_endpoint(seed: u64) -> Endpoint {
    let config = protocol().config().build().expect("sensible channels");
    Endpoint::new(config, SeededEntropy::danger_seeded(seed))
}

fn key() -> ServerKey {
    ServerKey::from_bytes([7; 32])
}

/// 40 ms away, with jitter that reorders, and this share lost.
fn link(loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(40))
        .jitter(Jitter::Uniform(Duration::from_millis(10)))
        .loss(loss)
}

#[test]
fn predictions_are_exact_and_messages_arrive_in_order() {
    for seed in 0..20 {
        let mut world = World::new(seed, ServerOptions::new(key()));
        let connect = Connect::pinned(key().public());
        let loss = if seed < 10 { 0.0 } else { 0.05 };
        let mut guests = [world.join(1, connect, &link(loss))];
        for _ in 0..3_000 {
            world.turn(&mut guests);
        }
        let expected: Vec<u32> = (0..COUNTED).collect();
        assert_eq!(world.counted, expected, "seed {seed}");
        let prediction = guests[0].game.prediction();
        assert!(prediction.confirmed > 200, "seed {seed}: {prediction:?}");
        if loss == 0.0 {
            assert_eq!(prediction.corrected, 0, "seed {seed}: {prediction:?}");
        }
    }
}

#[test]
fn an_account_that_comes_back_is_the_same_client_and_its_ghost_is_gone() {
    let mut entropy = SeededEntropy::danger_seeded(5);
    let issuer = TokenIssuer::generate(PROTOCOL, 1, &mut entropy);
    let mut verifier = TokenVerifier::new();
    verifier
        .add_key(issuer.key_id(), &issuer.public_key())
        .expect("a public key");
    let options = ServerOptions::new(key()).tokens(verifier);
    let mut world = World::new(3, options);
    let mut token = |account| {
        let grant = TokenGrant::new(account, key().public(), SERVER.into()).lifetime_s(600);
        let issued = issuer.issue(&grant, UNIX_TIME, &mut entropy);
        Connect::token(issued.expect("a sensible grant"))
    };
    let (ada, bob, again) = (token(7), token(8), token(7));
    let mut guests = vec![
        world.join(1, ada, &link(0.02)),
        world.join(2, bob, &link(0.02)),
    ];
    for _ in 0..500 {
        world.turn(&mut guests);
    }
    assert_eq!(world.joined.len(), 2);
    let first = world.session.clients().find(|client| {
        let info = world.session.info(*client);
        info.is_some_and(|info| info.account == 7)
    });
    // The old connection is still thought to live.
    guests.push(world.join(3, again, &link(0.02)));
    for _ in 0..500 {
        world.turn(&mut guests);
    }
    assert_eq!(world.joined.len(), 2);
    assert_eq!(world.returned, Vec::from_iter(first), "the same player");
    assert_eq!(world.left, [], "nobody left: the ghost was replaced");
    assert_eq!(world.session.clients().count(), 2);
    let ended = |guest: &Guest| guest.error.is_some();
    assert_eq!(
        guests.iter().map(ended).collect::<Vec<_>>(),
        [true, false, false]
    );
}

const PROTOCOL: u64 = 77;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 7_000);
const UNIX_TIME: u64 = 1_790_000_000;
/// Messages that a client sends.
const COUNTED: u32 = 300;
