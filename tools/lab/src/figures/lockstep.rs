//! Speed control of lockstep when one player's way becomes long.

use std::net::SocketAddr;

use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::samples::rts::{Order, Rts};
use muse_lockstep::{MatchConfig, Orderer, Role, Session};
use muse_netem::{Network, NodeId, Simulation};
use muse_wire::Duration;

use crate::plot::*;
use crate::stage::conditions;

pub(super) fn plot() -> Plot {
    let mut game = Match::new();
    let mut watch = Watch::default();
    for (round_trip, seconds) in [(60, 30), (400, 30), (60, 50)] {
        game.set_round_trip(round_trip);
        game.run(seconds, &mut watch);
    }
    let round_trip = [
        (0.0, 60.0),
        (30.0, 60.0),
        (30.0, 400.0),
        (60.0, 400.0),
        (60.0, 60.0),
        (110.0, 60.0),
    ];
    Plot::new(
        "Lockstep: turns are as long as the longest way needs",
        "Four players in a strategy game, with 60 ms to the server and back. From 30 to 60 s one of them has 400 ms. Everybody waits for their commands at first; \
         then turns become longer, and the game runs evenly again, with commands that take longer. Turns become shorter when twenty seconds have shown that they can: at the \
         beginning, which is cautious, and after the bad time.",
    )
    .panel(
        Panel::new(
            ("time (s)", 0.0, 110.0),
            ("time (ms)", 0.0, 700.0),
        )
        .with("round trip of the slowest player", Grey, Dashed, round_trip)
        .with("length of a turn", Blue, Thick, watch.turns)
        .with("another player's command runs after", Orange, Specks, watch.commands),
    )
}

/// A server and four players in virtual time, the last of whom has a link of its own.
struct Match {
    simulation: Simulation<PlainPeer<Rts>>,
    hub: NodeId,
    players: Vec<NodeId>,
}

impl Match {
    fn new() -> Self {
        let mut network = Network::new(5);
        network.set_default(conditions(60).loss(0.01));
        let mut simulation = Simulation::new(network).transmit_buffer(1_500);
        let config = MatchConfig::lockstep(PLAYERS);
        let orderer = Orderer::new::<Rts>(config.clone()).expect("the settings make sense");
        let hub = simulation.add(address(1), PlainPeer::server(orderer));
        let join = |number: u8| {
            let (state, nonce) = (Rts::new(PLAYERS, 10, 4), u32::from(number));
            let session = Session::new(config.clone(), state, Role::Player, nonce);
            let session = session.expect("the settings make sense");
            let client = PlainPeer::client(session, address(1));
            simulation.add(address(number), client)
        };
        let players = (2..2 + PLAYERS).map(join).collect();
        Self {
            simulation,
            hub,
            players,
        }
    }

    /// Of the last player to the server and back.
    fn set_round_trip(&mut self, milliseconds: u64) {
        let last = *self.players.last().expect("there are four");
        let network = self.simulation.network_mut();
        network.set_links(self.hub, last, conditions(milliseconds).loss(0.01));
    }

    fn run(&mut self, seconds: u64, watch: &mut Watch) {
        for _ in 0..seconds * 100 {
            self.simulation.run_for(Duration::from_millis(10));
            watch.look(self);
        }
    }
}

/// The turns of the first player.
#[derive(Default)]
struct Watch {
    turns: Vec<(f64, f64)>,
    commands: Vec<(f64, f64)>,
    /// When each turn began, by number.
    begun: Vec<f64>,
}

impl Watch {
    fn look(&mut self, game: &mut Match) {
        let now = game.simulation.now().as_secs_f64();
        let first = game.simulation.node_mut(game.players[0]);
        let session = first.session_mut().expect("a player");
        let (turn, delay) = (session.frame(), session.delay() as usize);
        if turn.0 as usize <= self.begun.len() {
            return;
        }
        let steps = f64::from(session.steps_at(turn));
        self.begun.resize(turn.0 as usize, now);
        self.turns.push((now, steps * STEP_MS));
        // What was given when a turn began runs `delay` turns later.
        if let Some(given) = self.begun.len().checked_sub(1 + delay) {
            let took = (now - self.begun[given]) * 1e3;
            self.commands.push((now, took));
        }
        let middle = Order {
            from: [4, 4],
            radius: 40,
            to: [(turn.0 % 64) as u8, 30],
        };
        session.set_input(vec![middle]).expect("it is small");
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 7_000))
}

const PLAYERS: u8 = 4;
const STEP_MS: f64 = 50.0;
