//! Pucks on ice that players push around: every client predicts its own player, the pucks and whoever is near, so that nothing it touches waits for the
//! server.
//!
//!     puck serve                    prints an address
//!     puck play muse://...          as often as you like

use std::sync::atomic::{AtomicBool, Ordering};

use muse::netcode::KindOptions;
use muse::netcode::prediction::{Candidate, Scene};
use muse::prelude::*;

/// Players and pucks are discs on a line of sight from above, on a grid of a millimetre.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Player {
    #[field(range = -50.0..=50.0, step = 0.001, velocity = velocity)]
    pub(crate) position: Vec2,
    #[field(range = -20.0..=20.0, step = 0.001)]
    pub(crate) velocity: Vec2,
}

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Puck {
    #[field(range = -50.0..=50.0, step = 0.001, velocity = velocity)]
    pub(crate) position: Vec2,
    #[field(range = -20.0..=20.0, step = 0.001)]
    pub(crate) velocity: Vec2,
}

/// The input of a player in a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub(crate) x: i8,
    #[field(range = -1..=1)]
    pub(crate) y: i8,
}

/// The rules, the same on the server and on every client.
pub(crate) struct Ice;

impl Game for Ice {
    type Player = Player;
    type Input = Keys;
    type Event = ();
    const PREDICTED_MAX: usize = 12;

    fn step(&mut self, player: &mut Player, keys: &Keys, _: &mut StepContext<'_, ()>) {
        let wanted = Vec2::new(keys.x.into(), keys.y.into()).normalize_or_zero() * 6.0;
        player.velocity += (wanted - player.velocity) * 0.1;
        player.position += player.velocity / 60.0;
    }

    /// Everything that moves together: on the server all of it, on a client what it predicts.
    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        scene.step_players(self);
        for (entity, mut puck) in scene.all::<Puck>() {
            puck.position += puck.velocity / 60.0;
            puck.velocity *= 0.995;
            for player in scene.players().filter_map(|player| scene.player(player)) {
                let apart = puck.position - player.position;
                let (way, distance) = (apart.normalize_or(Vec2::X), apart.length());
                let closing = (player.velocity - puck.velocity).dot(way);
                if distance < REACH && closing > 0.0 {
                    puck.velocity += way * closing * 1.5; // it bounces off
                }
            }
            let (x, y) = puck.position.into();
            puck.velocity.x *= if x.abs() > 20.0 && x * puck.velocity.x > 0.0 {
                -1.0
            } else {
                1.0
            };
            puck.velocity.y *= if y.abs() > 20.0 && y * puck.velocity.y > 0.0 {
                -1.0
            } else {
                1.0
            };
            scene.set(entity, &puck);
        }
    }

    /// All that is within 10 m, the nearest first.
    fn predicts(&self, own: &Player, other: &Candidate<'_>) -> Option<f32> {
        let player = other.state::<Player>().map(|player| player.position);
        let place = player.or_else(|| Some(other.state::<Puck>()?.position))?;
        Some(place.distance(own.position)).filter(|distance| *distance < 10.0)
    }
}

const REACH: f32 = 1.0;

/// The protocol that both sides share: players tell each other their inputs, and pucks are predicted.
pub(crate) fn protocol() -> Protocol {
    Protocol::new("puck/1")
        .kind_with::<Player>(KindOptions::new(0).inputs())
        .kind_with::<Puck>(KindOptions::new(1).predicted())
}

pub(crate) fn serve(mut server: GameServer<Ice>, running: &AtomicBool) -> muse::Result<()> {
    let kind = server.kind::<Puck>().expect("the protocol declares it");
    for x in [-3.0, 3.0] {
        let position = Vec2::new(x, 0.0);
        let puck = Puck {
            position,
            ..Puck::default()
        };
        server.world().spawn(kind, &puck)?;
    }
    while running.load(Ordering::Relaxed) {
        server.tick_within(Duration::from_millis(100), |game, event| match event {
            Joined(client) => game.spawn(client, Player::default()),
            Left(client, _reason) => game.despawn(client),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Plays until `frame` says no; it sees the client once a frame.
pub(crate) fn play(
    mut client: GameClient<Ice>,
    mut keys: impl FnMut(Tick) -> Keys,
    mut frame: impl FnMut(&mut GameClient<Ice>) -> bool,
) -> muse::Result<()> {
    loop {
        client.tick(&mut keys)?;
        if !frame(&mut client) {
            return Ok(());
        }
        client.wait(Duration::from_millis(16))?; // or your window's next frame
    }
}

fn main() -> muse::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let server = GameServer::listen_with("[::]:7000", protocol(), Ice)?;
            println!("join with {}", server.address());
            serve(server, &AtomicBool::new(true))
        }
        ["play", address] => {
            let client = GameClient::connect_with(address, protocol(), Ice)?;
            // To and fro, as this program has no window to read keys from.
            let keys = |tick: Tick| Keys {
                x: if (tick.0 / 90).is_multiple_of(2) {
                    1
                } else {
                    -1
                },
                y: 0,
            };
            play(client, keys, |client| {
                for (_, puck) in client.entities::<Puck>() {
                    println!("a puck at {:.2}", puck.position);
                }
                true
            })
        }
        _ => {
            println!("usage: puck serve | puck play ADDRESS");
            Ok(())
        }
    }
}
