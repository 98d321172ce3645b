//! A game's server and clients over the real transport and a virtual network, in virtual time.

use std::net::SocketAddr;

use muse::netcode;
use muse::prelude::*;
use muse::session::{ClientSession, PACKET_BYTES, ServerSession};
use muse::transport::SeededEntropy;
use muse::{Connect, Endpoint, Instant, ServerKey, ServerOptions};
use muse_netem::{Conditions, Network, NodeId, Simulation};

/// Everything there is.
pub(crate) struct Stage<G: Game> {
    pub(crate) game: netcode::Server<G>,
    pub(crate) seats: Vec<Seat<G>>,
    /// Bytes that a snapshot may have at most, whatever the links carry.
    pub(crate) budget_max: usize,
    simulation: Simulation<Endpoint>,
    node: NodeId,
    session: ServerSession,
}

/// A client.
pub(crate) struct Seat<G: Game> {
    pub(crate) game: netcode::Client<G>,
    node: NodeId,
    session: ClientSession,
}

/// The part of a game besides its rules.
pub(crate) trait Play<G: Game> {
    fn join(&mut self, game: &mut netcode::Server<G>, client: ClientId);
    fn emitted(&mut self, client: ClientId, event: G::Event);
    fn tick(&mut self, game: &mut netcode::Server<G>, tick: Tick);
    fn frame(&mut self, seat: usize, me: &mut netcode::Client<G>);
    fn keys(&mut self, seat: usize, tick: Tick) -> G::Input;
}

impl<G: Game> Stage<G>
where
    G::Player: State,
{
    /// A server, and a client for each of these links.
    pub(crate) fn new(
        seed: u64,
        protocol: &Protocol,
        game: netcode::Server<G>,
        links: &[Conditions],
        new_client: impl Fn() -> netcode::Client<G>,
    ) -> Self {
        let key = ServerKey::generate(&mut SeededEntropy::danger_seeded(seed));
        let public = key.public();
        let config = protocol.config().build().expect("sensible channels");
        let endpoint = |seed| Endpoint::new(config.clone(), SeededEntropy::danger_seeded(seed));
        let mut simulation = Simulation::new(Network::new(seed));
        let mut server = endpoint(seed ^ 1);
        server.listen(ServerOptions::new(key));
        let node = simulation.add(SERVER.into(), server);
        let mut seats = Vec::new();
        for (number, link) in (0_u8..).zip(links) {
            let mut client = endpoint(seed ^ (u64::from(number) + 2) << 20);
            let how = Connect::pinned(public);
            let connection = client
                .connect(Instant::ZERO, SERVER.into(), how)
                .expect("a free slot");
            let address = SocketAddr::from(([10, 0, 0, number + 1], 5_000));
            let seat = simulation.add(address, client);
            simulation.network_mut().set_links(node, seat, link.clone());
            seats.push(Seat {
                game: new_client(),
                node: seat,
                session: ClientSession::new(protocol.clone(), connection),
            });
        }
        Self {
            game,
            seats,
            budget_max: usize::MAX,
            simulation,
            node,
            session: ServerSession::new(protocol.clone()),
        }
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, length: Duration, rules: &mut G, play: &mut impl Play<G>) {
        let end = self.simulation.now() + length;
        let mut now = self.simulation.now();
        while now < end {
            now += STEP;
            self.simulation.run_until(now, |_| ());
            self.serve(now, rules, play);
            for index in 0..self.seats.len() {
                self.play(now, index, rules, play);
            }
        }
    }

    /// The number of a client, by what it plays.
    pub(crate) fn client(&self, seat: usize) -> ClientId {
        let player = self.seats[seat].game.player();
        let mut clients = self.session.clients();
        let found = clients.find(|client| self.game.player(*client) == player);
        found.expect("it knows what it plays")
    }

    fn serve(&mut self, now: Instant, rules: &mut G, play: &mut impl Play<G>) {
        let endpoint = self.simulation.node_mut(self.node);
        let mut buffer = Vec::new();
        while let Some(event) = endpoint.poll_event(&mut buffer) {
            match self.session.handle_event::<()>(now, endpoint, event) {
                Some(Joined(client)) => play.join(&mut self.game, client),
                Some(ServerEvent::Packet(client, packet)) => {
                    let taken = self.game.handle_packet(now, client, packet);
                    taken.expect("a client's packet");
                }
                other => unreachable!("no connection ends here: {other:?}"),
            }
        }
        let mut emitted = Vec::new();
        while let Some(tick) = {
            let emit = |client, event| emitted.push((client, event));
            self.game.poll_tick(now, rules, emit)
        } {
            for (client, event) in emitted.drain(..) {
                play.emitted(client, event);
            }
            play.tick(&mut self.game, tick);
        }
        let interval = self.game.snapshot_interval();
        for client in self.session.clients() {
            let budget = self
                .session
                .snapshot_budget(now, endpoint, client, interval);
            if let Some(bytes) = budget {
                self.game.set_budget(client, bytes.min(self.budget_max));
            }
        }
        self.game.commit();
        let mut packet = [0; PACKET_BYTES];
        while let Some((client, len)) = self.game.poll_packet(now, &mut packet) {
            // A packet that cannot be sent is lost, as if the network had lost it.
            let _ = self
                .session
                .send_packet(now, endpoint, client, &packet[..len]);
        }
    }

    fn play(&mut self, now: Instant, index: usize, rules: &mut G, play: &mut impl Play<G>) {
        let seat = &mut self.seats[index];
        let due = seat.game.poll_timeout().is_some_and(|due| due <= now);
        let frame = now.as_micros().is_multiple_of(FRAME.as_micros());
        if !due && !frame {
            return;
        }
        let endpoint = self.simulation.node_mut(seat.node);
        let mut buffer = Vec::new();
        while let Some(event) = endpoint.poll_event(&mut buffer) {
            if let Some(ClientEvent::Packet(packet)) = seat.session.handle_event(event) {
                // One that came twice or too late is of no use.
                let _ = seat.game.handle_packet(now, rules, packet);
            }
        }
        let mut packet = [0; PACKET_BYTES];
        let mut keys = |tick| play.keys(index, tick);
        while let Some(len) = seat.game.poll_packet(now, rules, &mut keys, &mut packet) {
            let _ = seat.session.send_packet(now, endpoint, &packet[..len]);
        }
        if frame {
            play.frame(index, &mut seat.game);
        }
    }
}

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 7_000);
const STEP: Duration = Duration::from_millis(2);
const FRAME: Duration = Duration::from_millis(8);
