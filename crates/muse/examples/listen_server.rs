//! A listen server: who hosts the game plays it, too. Alone, the same code is the offline game.

use std::error::Error;

use muse::prelude::*;

const USAGE: &str = "usage: listen_server serve
       listen_server play ADDRESS
       listen_server offline
example: cargo run -p muse-net --example listen_server -- serve";

#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Skater {
    #[field(range = -100.0..=100.0, step = 0.001)]
    pub(crate) position: [f32; 2],
}

/// North, east, south or west; 4 is to stand.
#[derive(Schema, Clone, Debug, PartialEq)]
pub(crate) struct Direction(#[field(range = 0..=4)] u8);

impl Default for Direction {
    fn default() -> Self {
        Self(4)
    }
}

pub(crate) struct Rules;

impl Game for Rules {
    type Player = Skater;
    type Input = Direction;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, skater: &mut Skater, to: &Direction, _: &mut StepContext<'_, ()>) {
        let ways = [[0.0, 0.1], [0.1, 0.0], [0.0, -0.1], [-0.1, 0.0], [0.0, 0.0]];
        for (place, way) in skater
            .position
            .iter_mut()
            .zip(ways[usize::from(to.0.min(4))])
        {
            *place += way;
        }
    }
}

pub(crate) fn protocol() -> Protocol {
    Protocol::new("skate/1")
}

/// Skates around a square, as this example has no window to read keys from.
fn keys(tick: Tick) -> Direction {
    Direction((tick.0 / 25 % 4) as u8)
}

/// Plays and serves, until `seen` has seen enough. The host's own game is a client like any other, without a socket.
pub(crate) fn serve(
    mut server: GameServer<Rules>,
    mut seen: impl FnMut(&mut GameClient<Rules>) -> bool,
) -> muse::Result<()> {
    let mut client = GameClient::connect_with(server.join_offline(), protocol(), Rules)?;
    while seen(&mut client) {
        server.tick_within(Duration::from_millis(4), |game, event| match event {
            Joined(client) => game.spawn(client, Skater::default()),
            Left(client, _) => game.despawn(client),
            _ => Ok(()),
        })?;
        client.tick(keys)?;
    }
    Ok(())
}

/// Plays elsewhere.
pub(crate) fn play(
    mut client: GameClient<Rules>,
    mut seen: impl FnMut(&mut GameClient<Rules>) -> bool,
) -> muse::Result<()> {
    while seen(&mut client) {
        client.tick(keys)?;
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

fn show(client: &mut GameClient<Rules>) -> bool {
    let at = client.own_player().map(|skater| skater.position);
    println!("at {at:.2?}, with {} others", client.others().len());
    true
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let server = GameServer::listen_with("[::]:7000", protocol(), Rules)?;
            println!("join with {}", server.address());
            Ok(serve(server, show)?)
        }
        ["play", address] => {
            let client = GameClient::connect_with(address, protocol(), Rules)?;
            Ok(play(client, show)?)
        }
        ["offline"] => {
            let server = GameServer::listen_with(Listen::offline(), protocol(), Rules)?;
            Ok(serve(server, show)?)
        }
        _ => Err(USAGE.into()),
    }
}
