//! Matches over a virtual network.

use std::net::SocketAddr;

use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{DeterministicGame, Frame, MatchConfig, Orderer, Role, Seat, Session, Status};
use muse_netem::{Conditions, Network, NodeId, Simulation};
use muse_wire::{Duration, Instant};

/// A match in virtual time.
pub(crate) struct Match<G: DeterministicGame> {
    pub(crate) simulation: Simulation<PlainPeer<G>>,
    pub(crate) config: MatchConfig,
    /// The orderer's node: a server's, or the host's.
    pub(crate) hub: NodeId,
    /// Sessions, the host's first.
    pub(crate) players: Vec<NodeId>,
    next_address: u8,
    /// Addresses of players who also send each other their inputs directly, by seat; `None` if nobody does.
    mesh: Option<Vec<(NodeId, SocketAddr)>>,
}

impl<G: DeterministicGame> Match<G> {
    /// A match through a server.
    pub(crate) fn with_server(seed: u64, config: MatchConfig, conditions: Conditions) -> Self {
        let mut simulation = simulation(seed, conditions);
        let orderer = Orderer::new::<G>(config.clone()).expect("the settings make sense");
        let hub = simulation.add(address(1), PlainPeer::server(orderer));
        Self {
            simulation,
            config,
            hub,
            players: Vec::new(),
            next_address: 2,
            mesh: None,
        }
    }

    /// A match that the first player hosts.
    pub(crate) fn hosted(seed: u64, config: MatchConfig, conditions: Conditions, state: G) -> Self {
        let mut simulation = simulation(seed, conditions);
        let host = PlainPeer::host(config.clone(), state, 1).expect("the settings make sense");
        let hub = simulation.add(address(1), host);
        Self {
            simulation,
            config,
            hub,
            players: vec![hub],
            next_address: 2,
            mesh: None,
        }
    }

    /// From now on players who join know where all the others are, and send them their inputs directly as well. To be called before
    /// anybody joins; players are then seated in the order in which they join.
    pub(crate) fn with_directs(mut self) -> Self {
        self.mesh = Some(vec![(self.hub, address(1)); self.players.len()]);
        self
    }

    /// Adds a machine that joins with this state.
    pub(crate) fn join(&mut self, state: G, role: Role) -> NodeId {
        let number = self.next_address;
        self.next_address += 1;
        let seats_taken = self.mesh.as_ref().map(|mesh| mesh.len() as u8);
        let seat = seats_taken.filter(|_| role == Role::Player);
        let role = seat.map_or(role, |seat| Role::PlayerAt(Seat(seat)));
        let session = Session::new(self.config.clone(), state, role, u32::from(number));
        let session = session.expect("the settings make sense");
        let client = PlainPeer::client(session, address(1));
        let node = self.simulation.add(address(number), client);
        self.players.push(node);
        if let (Some(mesh), Some(_)) = (&mut self.mesh, seat) {
            mesh.push((node, address(number)));
            self.introduce();
        }
        node
    }

    /// Tells all players where the others are. A host needs nobody's inputs twice: it orders them anyway.
    fn introduce(&mut self) {
        let Some(mesh) = &self.mesh else { return };
        for own in mesh.iter().filter(|own| own.0 != self.hub) {
            let client = self.simulation.node_mut(own.0);
            for other in mesh
                .iter()
                .zip(0..)
                .filter(|(other, _)| other.0 != self.hub)
            {
                if other.0.0 != own.0 {
                    client.connect(Seat(other.1), other.0.1);
                }
            }
        }
    }

    pub(crate) fn session(&self, node: NodeId) -> &Session<G> {
        self.simulation
            .node(node)
            .session()
            .expect("it has a session")
    }

    pub(crate) fn session_mut(&mut self, node: NodeId) -> &mut Session<G> {
        self.simulation
            .node_mut(node)
            .session_mut()
            .expect("it has a session")
    }

    pub(crate) fn orderer(&self) -> &Orderer {
        self.simulation
            .node(self.hub)
            .orderer()
            .expect("the hub orders")
    }

    /// Runs until this time; every 10 ms `each` may look at and touch everything.
    pub(crate) fn run_until(&mut self, until: Instant, mut each: impl FnMut(&mut Self)) {
        while self.simulation.now() < until {
            let next = (self.simulation.now() + Duration::from_millis(10)).min(until);
            self.simulation.run_until(next, |_| ());
            each(self);
        }
    }

    pub(crate) fn run_secs(&mut self, seconds: u64, each: impl FnMut(&mut Self)) {
        self.run_until(self.simulation.now() + Duration::from_secs(seconds), each);
    }

    /// Cuts a machine off from everybody.
    pub(crate) fn cut(&mut self, node: NodeId, conditions: &Conditions, seconds: u64) {
        let now = self.simulation.now();
        let until = now + Duration::from_secs(seconds);
        let cut = conditions.clone().outage(now, until);
        let others = self.players.iter().chain([&self.hub]);
        let others: Vec<NodeId> = others.copied().filter(|other| *other != node).collect();
        for other in others {
            let network = self.simulation.network_mut();
            network.set_links(node, other, cut.clone());
        }
    }
}

/// Confirmed frames, from whichever machine came first: all others must have the same.
#[derive(Default)]
pub(crate) struct Ledger {
    sums: Vec<Option<u64>>,
    /// By player: the next frame to be entered.
    next: Vec<u32>,
    scratch: Vec<u8>,
    pub(crate) compared: u64,
}

impl Ledger {
    /// Enters everything newly confirmed and compares.
    pub(crate) fn enter<G: DeterministicGame>(&mut self, game: &Match<G>) {
        self.next.resize(game.players.len(), 0);
        for (index, node) in game.players.iter().enumerate() {
            let Some(session) = game.simulation.node(*node).session() else {
                continue;
            };
            let running = matches!(session.status(), Status::Running | Status::Waiting { .. });
            let Some((frame, _)) = session.confirmed_state().filter(|_| running) else {
                continue;
            };
            let first = self.next[index].max(frame.0.saturating_sub(100));
            for frame in first..frame.0 {
                if let Some(state) = session.state_at(Frame(frame)) {
                    let sum = state.checksum(&mut self.scratch);
                    self.compare(index, frame, sum);
                }
            }
            self.next[index] = frame.0;
        }
    }

    fn compare(&mut self, player: usize, frame: u32, sum: u64) {
        let slot = frame as usize;
        if self.sums.len() <= slot {
            self.sums.resize(slot + 1, None);
        }
        match self.sums[slot] {
            None => self.sums[slot] = Some(sum),
            Some(known) => {
                assert_eq!(
                    sum, known,
                    "player {player} has another state at frame {frame}"
                );
                self.compared += 1;
            }
        }
    }

    pub(crate) fn frames(&self) -> usize {
        self.sums.len()
    }
}

pub(crate) fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 7_000))
}

fn simulation<G: DeterministicGame>(seed: u64, conditions: Conditions) -> Simulation<PlainPeer<G>> {
    let mut network = Network::new(seed);
    network.set_default(conditions);
    Simulation::new(network).transmit_buffer(1_500)
}
