//! The effect of input delay in rollback, and the screen while inputs are guessed.

use std::net::SocketAddr;

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{Frame, MatchConfig, Rng, Role, Session};
use muse_netem::{Network, NodeId, Simulation};
use muse_wire::Duration;

use crate::plot::*;
use crate::stage::conditions;

pub(super) fn plot() -> Plot {
    let mut work = Panel::new(
        ("input delay (frames of 16.7 ms)", 0.0, 8.0),
        ("frames run again a second", 0.0, 40.0),
    )
    .tall(220);
    for (round_trip, colour) in [(200, Red), (100, Orange), (50, Green)] {
        let points: Vec<(f64, f64)> = (0..=8)
            .map(|delay| (f64::from(delay), run_again(round_trip, delay)))
            .collect();
        let name = format!("round trip of {round_trip} ms");
        work = work.with(&name, colour, Joined, points);
    }
    let [drawn, truth] = rival();
    Plot::new(
        "Rollback: work against delay, and what guessing looks like",
        "Two bots change their buttons six times a second; two packets of a hundred are lost. Above: each frame of input delay makes every rollback a frame shorter, until the \
         delay is as long as the way and nothing is run again. Below, at 200 ms and without delay: the rival is drawn as if they held the buttons that are known of them. Where they did \
         not, as at 4.6 s, when they land and jump again a moment later, they are put right after a hundred milliseconds.",
    )
    .panel(work)
    .panel(
        Panel::new(
            ("time (s)", FROM_S, TO_S),
            ("height of the rival (paces)", -0.2, 3.2),
        )
        .tall(240)
        .with("as it was in the end", Blue, Line, truth)
        .with("as it was drawn at once", Orange, Specks, drawn),
    )
}

/// A duel in virtual time: the host, and one who joined.
struct Match {
    simulation: Simulation<PlainPeer<Duel>>,
    players: [NodeId; 2],
    rng: Rng,
}

impl Match {
    fn new(round_trip_ms: u64, delay: u32) -> Self {
        let mut network = Network::new(round_trip_ms);
        network.set_default(conditions(round_trip_ms).loss(0.02));
        let mut simulation = Simulation::new(network).transmit_buffer(1_500);
        let config = MatchConfig::rollback(2).delay(delay);
        let state = Duel::new(7);
        let host = PlainPeer::host(config.clone(), state, 1).expect("the settings make sense");
        let host = simulation.add(address(1), host);
        let session =
            Session::new(config, state, Role::Player, 2).expect("the settings make sense");
        let guest = PlainPeer::client(session, address(1));
        let guest = simulation.add(address(2), guest);
        Self {
            simulation,
            players: [host, guest],
            rng: Rng::new(3),
        }
    }

    fn session(&self, player: usize) -> &Session<Duel> {
        let peer = self.simulation.node(self.players[player]);
        peer.session().expect("both play")
    }

    /// Runs for a while; bots press buttons, and every 5 ms `look` may look.
    fn run(&mut self, span: Duration, mut look: impl FnMut(&Self)) {
        let until = self.simulation.now() + span;
        while self.simulation.now() < until {
            self.simulation.run_for(Duration::from_millis(5));
            for player in self.players {
                if self.rng.below(33) == 0 {
                    let buttons = Buttons::from_bits(self.rng.next() as u8);
                    let peer = self.simulation.node_mut(player);
                    let session = peer.session_mut().expect("both play");
                    session.set_input(buttons).expect("six bits");
                }
            }
            look(self);
        }
    }
}

/// Frames run again a second, by the one who joined.
fn run_again(round_trip_ms: u64, delay: u32) -> f64 {
    let mut game = Match::new(round_trip_ms, delay);
    game.run(Duration::from_secs(SECONDS), |_| ());
    let statistics = game.session(1).statistics();
    statistics.resimulated as f64 / SECONDS as f64
}

/// The height of the host on the screen of the player who joined, and its true height.
fn rival() -> [Vec<(f64, f64)>; 2] {
    let mut game = Match::new(200, 0);
    let mut shown: Vec<(Frame, f64, f64)> = Vec::new();
    game.run(Duration::from_micros((TO_S * 1e6) as u64), |game| {
        let session = game.session(1);
        let now = game.simulation.now().as_secs_f64();
        let is_new = shown
            .last()
            .is_none_or(|(frame, ..)| *frame < session.frame());
        if now >= FROM_S && is_new {
            shown.push((session.frame(), now, height(session.state())));
        }
    });
    game.run(Duration::from_secs(1), |_| ());
    let session = game.session(1);
    let truth = shown.iter().filter_map(|(frame, at, _)| {
        let state = session.state_at(*frame)?;
        Some((*at, height(state)))
    });
    let truth = truth.collect();
    let drawn = shown.iter().map(|(_, at, height)| (*at, *height));
    [drawn.collect(), truth]
}

/// Of the host, in paces.
fn height(duel: &Duel) -> f64 {
    f64::from(duel.fighters[0].at[1]) / 256.0
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 7_000))
}

const FROM_S: f64 = 4.0;
const TO_S: f64 = 7.0;
const SECONDS: u64 = 20;
