//! Matches in virtual time: endpoints and participants as they ship.

use std::net::SocketAddr;

use muse::deterministic::{MATCH_CHANNEL, MatchEvent, Participant, transport_config};
use muse::lockstep::{DeterministicGame, Frame, MatchConfig, Rng, Role, Session, Status};
use muse::transport::SeededEntropy;
use muse::wire::{Datagram, Machine, Transmit};
use muse::{Config, Connect, Duration, Endpoint, Instant, ServerKey, ServerOptions};
use muse_netem::{Conditions, Network, NodeId, Simulation};

/// A machine: an endpoint, its part in the match, and a bot that gives inputs.
pub(crate) struct Node<G: DeterministicGame> {
    pub(crate) endpoint: Endpoint,
    pub(crate) participant: Participant<G>,
    bot: Box<dyn FnMut(Frame) -> G::Input>,
    /// The parameters to connect again with.
    how: Option<Connect>,
    now: Instant,
    buffer: Vec<u8>,
    pub(crate) events: Vec<MatchEvent<G::Event>>,
    /// Bytes that must never be seen on the network: the contract of the match, with which a hello begins.
    secret: [u8; 8],
    pub(crate) leaked: bool,
}

impl<G: DeterministicGame> Node<G> {
    fn receive(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.endpoint.poll_event(&mut buffer) {
            self.participant.handle_event(self.now, &event);
        }
        self.buffer = buffer;
    }

    fn advance(&mut self) {
        if self.participant.wants_connection()
            && let Some(how) = &self.how
        {
            let connection = self.endpoint.connect(self.now, address(1), how.clone());
            let connection = connection.expect("one connection is no load");
            self.participant.set_connection(connection);
        }
        let bot = &mut self.bot;
        self.participant
            .advance(self.now, &mut self.endpoint, bot)
            .expect("the bot's inputs are small");
        let events = &mut self.events;
        events.extend(std::iter::from_fn(|| self.participant.poll_event()));
    }
}

impl<G: DeterministicGame> Machine for Node<G> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.now = now;
        self.endpoint.handle_datagram(now, datagram);
        self.receive();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        self.receive();
        self.advance();
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        self.now = now;
        self.advance();
        let transmit = self.endpoint.poll_transmit(now, buffer)?;
        let sent = &buffer[..transmit.len];
        self.leaked |= sent.windows(8).any(|bytes| bytes == self.secret);
        Some(transmit)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let participant = self.participant.poll_timeout();
        let endpoint = self.endpoint.poll_timeout();
        Some(endpoint.map_or(participant, |at| at.min(participant)))
    }
}

/// A match: the first node orders.
pub(crate) struct Match<G: DeterministicGame> {
    pub(crate) simulation: Simulation<Node<G>>,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) key: ServerKey,
    pub(crate) config: MatchConfig,
    transport: Config,
    bot: fn(&mut Rng) -> G::Input,
    seed: u64,
}

impl<G: DeterministicGame + 'static> Match<G> {
    /// A match that a server orders if `game` is none, else a player who hosts.
    pub(crate) fn new(
        seed: u64,
        config: MatchConfig,
        conditions: Conditions,
        game: Option<G>,
        bot: fn(&mut Rng) -> G::Input,
        options: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        // A connection that was cut is given up sooner than by default, so that tests see both ways to come back.
        let transport = transport_config::<G>(&config)
            .keep_alive(Duration::from_millis(500))
            .silence(Duration::from_secs(2))
            .resume_within(Duration::from_secs(18));
        let participant = match game {
            Some(game) => Participant::host(config.clone(), game, MATCH_CHANNEL, 1),
            None => Participant::server(config.clone(), MATCH_CHANNEL),
        };
        let participant = participant.expect("the settings make sense");
        let mut network = Network::new(seed);
        network.set_default(conditions);
        let mut game = Self {
            simulation: Simulation::new(network),
            nodes: Vec::new(),
            config,
            transport,
            bot,
            seed,
            key,
        };
        let mut endpoint = game.endpoint();
        endpoint.set_unix_time(Instant::ZERO, UNIX_S);
        endpoint.listen(options(ServerOptions::new(game.key.clone())));
        let node = game.node(endpoint, participant, None);
        game.nodes.push(game.simulation.add(address(1), node));
        game
    }

    /// Somebody joins with the server's key.
    pub(crate) fn join(&mut self, game: G) -> NodeId {
        self.join_with(game, Connect::pinned(self.key.public()))
    }

    pub(crate) fn join_with(&mut self, game: G, how: Connect) -> NodeId {
        let node = self.guest(game, how);
        let number = self.nodes.len() as u8 + 1;
        let id = self.simulation.add(address(number), node);
        self.nodes.push(id);
        id
    }

    /// A machine that has begun to connect.
    pub(crate) fn guest(&mut self, game: G, how: Connect) -> Node<G> {
        let mut endpoint = self.endpoint();
        let now = self.simulation.now();
        let connection = endpoint.connect(now, address(1), how.clone());
        let connection = connection.expect("the first connection");
        let nonce = self.seed as u32;
        let config = self.config.clone();
        let guest =
            Participant::guest(config, game, Role::Player, MATCH_CHANNEL, nonce, connection);
        self.node(endpoint, guest.expect("the settings make sense"), Some(how))
    }

    fn endpoint(&mut self) -> Endpoint {
        self.seed += 1;
        let config = self.transport.clone().build().expect("one channel");
        Endpoint::new(config, SeededEntropy::danger_seeded(self.seed))
    }

    fn node(
        &self,
        endpoint: Endpoint,
        participant: Participant<G>,
        how: Option<Connect>,
    ) -> Node<G> {
        let (mut rng, bot) = (Rng::new(self.seed), self.bot);
        Node {
            endpoint,
            participant,
            bot: Box::new(move |_| bot(&mut rng)),
            how,
            now: self.simulation.now(),
            buffer: Vec::new(),
            events: Vec::new(),
            secret: self.config.contract::<G>().to_le_bytes(),
            leaked: false,
        }
    }

    pub(crate) fn session(&self, node: NodeId) -> &Session<G> {
        let participant = &self.simulation.node(node).participant;
        participant.session().expect("it plays")
    }

    /// Runs for so long, and compares what is confirmed.
    pub(crate) fn run(&mut self, seconds: u64, ledger: &mut Ledger) {
        for _ in 0..seconds * 20 {
            self.simulation.run_for(Duration::from_millis(50));
            ledger.enter(self);
        }
    }

    /// Nothing of a player passes for so long.
    pub(crate) fn cut(&mut self, node: NodeId, conditions: &Conditions, seconds: u64) {
        let now = self.simulation.now();
        let cut = conditions
            .clone()
            .outage(now, now + Duration::from_secs(seconds));
        let host = self.nodes[0];
        self.simulation.network_mut().set_links(node, host, cut);
    }
}

/// Confirmed states by frame: all machines must have the same.
#[derive(Default)]
pub(crate) struct Ledger {
    sums: Vec<Option<u64>>,
    scratch: Vec<u8>,
    pub(crate) compared: u64,
}

impl Ledger {
    fn enter<G: DeterministicGame + 'static>(&mut self, game: &Match<G>) {
        for node in &game.nodes {
            let Some(session) = game.simulation.node(*node).participant.session() else {
                continue;
            };
            let running = matches!(session.status(), Status::Running | Status::Waiting { .. });
            let Some((end, _)) = session.confirmed_state().filter(|_| running) else {
                continue;
            };
            for frame in end.0.saturating_sub(20)..end.0 {
                let Some(state) = session.state_at(Frame(frame)) else {
                    continue;
                };
                let sum = state.checksum(&mut self.scratch);
                let slot = frame as usize;
                self.sums.resize(self.sums.len().max(slot + 1), None);
                let known = *self.sums[slot].get_or_insert(sum);
                assert_eq!(sum, known, "another state at frame {frame}");
                self.compared += 1;
            }
        }
    }
}

pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 7_000))
}

/// The wall clock when a simulation begins.
pub(crate) const UNIX_S: u64 = 1_800_000_000;
