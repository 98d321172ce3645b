//! Matches in a relay's room in virtual time: relay, links, endpoints and participants as they ship.

use std::net::SocketAddr;

use muse::deterministic::{
    MATCH_CHANNEL, MatchEvent, Participant, SUCCESSION_CHANNEL, transport_config,
};
use muse::drivers::relay::{CodeSecret, Limits, Link, Relay, Relayed, RoomKey};
use muse::lockstep::replay::Recorder;
use muse::lockstep::{Frame, MatchConfig, Rng, Role, Session, Status};
use muse::prelude::*;
use muse::transport::SeededEntropy;
use muse::wire::{Datagram, Machine, Transmit};
use muse::{Connect, Duration, Endpoint, Instant, ServerKey, ServerOptions};
use muse_netem::{Conditions, Network, NodeId, Simulation};

/// A fight of eight on a line: everybody's place depends on everybody's inputs.
#[derive(Clone, Default, Schema)]
pub(crate) struct Melee {
    pub(crate) places: [i32; 8],
    rng: Rng,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Schema)]
pub(crate) struct Push(#[field(range = 0..=7)] u8);

impl DeterministicGame for Melee {
    type Input = Push;
    type Event = u32;

    fn step(&mut self, step: &mut Step<'_, Self>) {
        for (seat, push) in step.players() {
            let chance = self.rng.below(3) as i32;
            let other = (seat.index() + usize::from(push.0)) % 8;
            self.places[seat.index()] += self.places[other] / 5 + i32::from(push.0) - chance;
            self.places[seat.index()] %= 10_000;
            if push.0 == 7 {
                step.emit(seat.index() as u32);
            }
        }
    }
}

/// Whatever runs on a node.
pub(crate) enum Node {
    Relay(Box<Relay>),
    Player(Box<Player>),
}

/// A machine with a link to the room.
pub(crate) struct Player {
    pub(crate) relayed: Relayed<Endpoint>,
    pub(crate) participant: Participant<Melee>,
    rng: Rng,
    held: Push,
    how: Option<Connect>,
    now: Instant,
    buffer: Vec<u8>,
    pub(crate) events: Vec<MatchEvent<u32>>,
    pub(crate) recorder: Option<Recorder<Melee>>,
}

impl Player {
    fn receive(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.relayed.machine_mut().poll_event(&mut buffer) {
            self.participant.handle_event(self.now, &event);
        }
        self.buffer = buffer;
    }

    fn advance(&mut self) {
        let now = self.now;
        if self.participant.wants_connection()
            && let Some(how) = &self.how
        {
            let endpoint = self.relayed.machine_mut();
            let connection = endpoint.connect(now, Link::host_address(), how.clone());
            let connection = connection.expect("one connection is no load");
            self.participant.set_connection(connection);
        }
        let (endpoint, link) = self.relayed.parts_mut();
        let (rng, held) = (&mut self.rng, &mut self.held);
        let bot = |_: Frame| {
            if rng.below(6) == 0 {
                *held = Push(rng.below(8) as u8);
            }
            *held
        };
        let given = self.participant.advance_in_room(now, endpoint, link, bot);
        given.expect("the bot's inputs are small");
        while self.participant.poll_room_event().is_some() {}
        let events = &mut self.events;
        events.extend(std::iter::from_fn(|| self.participant.poll_event()));
        if let (Some(recorder), Some(session)) = (&mut self.recorder, self.participant.session()) {
            recorder.record(session);
        }
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Relay(relay) => relay.handle_datagram(now, datagram),
            Self::Player(player) => {
                player.now = now;
                player.relayed.handle_datagram(now, datagram);
                player.receive();
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Relay(relay) => relay.handle_timeout(now),
            Self::Player(player) => {
                player.now = now;
                if player.relayed.poll_timeout().is_some_and(|at| at <= now) {
                    player.relayed.handle_timeout(now);
                }
                player.receive();
                player.advance();
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        match self {
            Self::Relay(relay) => relay.poll_transmit(now, buffer),
            Self::Player(player) => {
                player.now = now;
                player.advance();
                player.relayed.poll_transmit(now, buffer)
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Relay(relay) => relay.poll_timeout(),
            Self::Player(player) => {
                let participant = player.participant.poll_timeout();
                let relayed = player.relayed.poll_timeout();
                Some(relayed.map_or(participant, |at| at.min(participant)))
            }
        }
    }
}

/// A match in a room. The first player hosts.
pub(crate) struct Party {
    pub(crate) simulation: Simulation<Node>,
    pub(crate) relay: NodeId,
    pub(crate) players: Vec<NodeId>,
    /// By player: the seat before anything happened.
    pub(crate) seats: Vec<Option<Seat>>,
    config: MatchConfig,
    key: ServerKey,
    room: RoomKey,
    seed: u64,
    /// Confirmed states by frame: all machines must have the same.
    sums: Vec<Option<u64>>,
    pub(crate) compared: u64,
}

impl Party {
    pub(crate) fn new(
        seed: u64,
        config: MatchConfig,
        conditions: Conditions,
        guests: usize,
    ) -> Self {
        let mut network = Network::new(seed);
        network.set_default(conditions);
        let mut simulation = Simulation::new(network);
        let relay = Relay::danger_open(Instant::ZERO, Limits::default(), [seed as u8; 32]);
        let relay = simulation.add(RELAY, Node::Relay(Box::new(relay)));
        let mut party = Self {
            simulation,
            relay,
            players: Vec::new(),
            seats: Vec::new(),
            config,
            key: ServerKey::generate(&mut SeededEntropy::danger_seeded(seed)),
            room: RoomKey::new(seed.to_le_bytes().repeat(2).try_into().expect("16 bytes")),
            seed,
            sums: Vec::new(),
            compared: 0,
        };
        party.host();
        while party.relay().rooms() == 0 {
            party.simulation.run_for(Duration::from_millis(50));
        }
        for _ in 0..guests {
            party.join(Role::Player, true);
        }
        party
    }

    fn host(&mut self) {
        let link = Link::open(Instant::ZERO, RELAY, self.room, self.draw_seed());
        let link = link.give_key(
            Instant::ZERO,
            CodeSecret::new([7; 4]),
            *self.key.public().as_bytes(),
        );
        let mut endpoint = self.endpoint();
        endpoint.listen(ServerOptions::new(self.key.clone()));
        let participant =
            Participant::host(self.config.clone(), Melee::default(), MATCH_CHANNEL, 1);
        let participant = participant.expect("the settings make sense");
        let (key, entropy) = (self.key.clone(), self.entropy());
        let participant = participant.with_succession(SUCCESSION_CHANNEL, key, true, entropy);
        self.add(Relayed::new(endpoint, link), participant, None);
    }

    /// Somebody joins with the host's key.
    pub(crate) fn join(&mut self, role: Role, willing: bool) -> usize {
        let now = self.simulation.now();
        let link = Link::join(now, RELAY, self.room.code(), self.draw_seed());
        let mut endpoint = self.endpoint();
        let how = Connect::pinned(self.key.public());
        let connection = endpoint.connect(now, Link::host_address(), how.clone());
        let connection = connection.expect("the first connection");
        let nonce = self.seed as u32;
        let (config, game) = (self.config.clone(), Melee::default());
        let guest = Participant::guest(config, game, role, MATCH_CHANNEL, nonce, connection);
        let guest = guest.expect("the settings make sense");
        let key = ServerKey::generate(&mut self.entropy());
        let guest = guest.with_succession(SUCCESSION_CHANNEL, key, willing, self.entropy());
        self.add(Relayed::new(endpoint, link), guest, Some(how))
    }

    /// The public key that a machine hosts by, or would, in the order of joining.
    fn add(
        &mut self,
        relayed: Relayed<Endpoint>,
        participant: Participant<Melee>,
        how: Option<Connect>,
    ) -> usize {
        let player = Player {
            relayed,
            participant,
            rng: Rng::new(self.seed),
            held: Push::default(),
            how,
            now: self.simulation.now(),
            buffer: Vec::new(),
            events: Vec::new(),
            recorder: Some(Recorder::new(&self.config)),
        };
        let number = self.players.len() as u8 + 1;
        let address = SocketAddr::from(([198, 51, 100, number], 5_000));
        let node = self.simulation.add(address, Node::Player(Box::new(player)));
        self.players.push(node);
        self.players.len() - 1
    }

    fn entropy(&mut self) -> SeededEntropy {
        self.seed += 1_000_003;
        SeededEntropy::danger_seeded(self.seed)
    }

    fn draw_seed(&mut self) -> [u8; 32] {
        self.seed += 1_000_003;
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed
    }

    fn endpoint(&mut self) -> Endpoint {
        let config = transport_config::<Melee>(&self.config).build();
        let entropy = self.entropy();
        Endpoint::new(config.expect("two channels"), entropy)
    }

    pub(crate) fn player(&self, index: usize) -> &Player {
        match self.simulation.node(self.players[index]) {
            Node::Player(player) => player,
            Node::Relay(_) => unreachable!("the relay is no player"),
        }
    }

    pub(crate) fn player_mut(&mut self, index: usize) -> &mut Player {
        match self.simulation.node_mut(self.players[index]) {
            Node::Player(player) => player,
            Node::Relay(_) => unreachable!("the relay is no player"),
        }
    }

    pub(crate) fn relay(&self) -> &Relay {
        match self.simulation.node(self.relay) {
            Node::Relay(relay) => relay,
            Node::Player(_) => unreachable!("no relay there"),
        }
    }

    pub(crate) fn session(&self, index: usize) -> &Session<Melee> {
        self.player(index).participant.session().expect("it plays")
    }

    /// Ends a machine without a word. Returns it.
    pub(crate) fn kill(&mut self, index: usize) -> Option<Node> {
        self.simulation.detach(self.players[index])
    }

    /// Nothing of a machine passes for so long, to the relay or to anybody.
    pub(crate) fn cut_off(&mut self, index: usize, conditions: &Conditions, span: Duration) {
        let now = self.simulation.now();
        let cut = conditions.clone().outage(now, now + span);
        let others = self.players.iter().chain([&self.relay]).copied();
        let node = self.players[index];
        for other in others.filter(|other| *other != node).collect::<Vec<_>>() {
            let network = self.simulation.network_mut();
            network.set_links(node, other, cut.clone());
        }
    }

    /// Runs for so long; what these players have confirmed is compared.
    pub(crate) fn run(&mut self, millis: u64, players: &[usize]) {
        for _ in 0..millis / 10 {
            self.simulation.run_for(Duration::from_millis(10));
            players.iter().for_each(|player| self.compare(*player));
        }
    }

    fn compare(&mut self, index: usize) {
        let (mut sums, mut compared) = (std::mem::take(&mut self.sums), 0);
        let session = self.session(index);
        let running = matches!(session.status(), Status::Running | Status::Waiting { .. });
        if let Some((end, _)) = session.confirmed_state().filter(|_| running) {
            let mut scratch = Vec::new();
            for frame in end.0.saturating_sub(6)..end.0 {
                let Some(state) = session.state_at(Frame(frame)) else {
                    continue;
                };
                let sum = state.checksum(&mut scratch);
                let slot = frame as usize;
                sums.resize(sums.len().max(slot + 1), None);
                let known = *sums[slot].get_or_insert(sum);
                assert_eq!(
                    sum, known,
                    "another state at frame {frame} of player {index}"
                );
                compared += 1;
            }
        }
        (self.sums, self.compared) = (sums, self.compared + compared);
    }
}

const RELAY: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 1)),
    7_788,
);

/// Number of seeds that a test tries: `MUSE_SEEDS`, or the default.
pub(crate) fn seeds(default: u64) -> u64 {
    let asked = std::env::var("MUSE_SEEDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(default)
}
