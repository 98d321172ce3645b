//! A game's server and clients over the real transport and a virtual network, in virtual time.

use std::net::SocketAddr;

use muse::netcode;
use muse::prelude::*;
use muse::session::{ClientSession, GameClientSession, GameServerSession, ServerSession};
use muse::transport::SeededEntropy;
use muse::{Connect, Endpoint, Instant, ServerKey, ServerOptions};
use muse_netem::{Conditions, Network, NodeId, Simulation};

/// Everything there is.
pub(crate) struct Stage<G: Game> {
    pub(crate) game: GameServerSession<G>,
    pub(crate) seats: Vec<Seat<G>>,
    simulation: Simulation<Endpoint>,
    node: NodeId,
    session: ServerSession,
}

/// A client.
pub(crate) struct Seat<G: Game> {
    pub(crate) game: GameClientSession<G>,
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
                game: GameClientSession::new(new_client()),
                node: seat,
                session: ClientSession::new(protocol.clone(), connection),
            });
        }
        Self {
            game: GameServerSession::new(game),
            seats,
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
            let event = self.session.handle_event(now, endpoint, event);
            match event.and_then(|event| self.game.handle_event(now, event)) {
                None => {}
                Some(Joined(client)) => play.join(&mut self.game, client),
                Some(_) => unreachable!("no connection ends here"),
            }
        }
        assert_eq!(self.game.refused(), 0, "everybody is honest");
        while let Some((tick, emitted)) = self.game.tick(now, rules) {
            for (client, event) in emitted {
                play.emitted(client, event);
            }
            play.tick(&mut self.game, tick);
        }
        self.game.send_snapshots(now, endpoint, &mut self.session);
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
            let event = seat.session.handle_event(event);
            event.and_then(|event| seat.game.handle_event(now, rules, event));
        }
        let mut keys = |tick| play.keys(index, tick);
        let (game, session) = (&mut seat.game, &mut seat.session);
        while let Some(_len) = game.send_packet(now, rules, endpoint, session, &mut keys) {}
        if frame {
            play.frame(index, &mut seat.game);
        }
    }
}

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 7_000);
const STEP: Duration = Duration::from_millis(2);
const FRAME: Duration = Duration::from_millis(8);
