//! Two friends behind routers: one opens a room at a relay and plays, the other comes by the code that it prints. They talk
//! directly as soon as their routers allow it, and the relay can't read a byte either way.
//!
//!     friend host RELAY:7788           prints a code such as KWXPTR-7Q4M
//!     friend join RELAY:7788 CODE

use muse::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Canoe {
    #[field(range = -50.0..=50.0, step = 0.001, velocity = velocity)]
    position: Vec2,
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: Vec2,
}

/// The direction to paddle, in sixteenths of a turn; 16 is to rest.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
struct Paddle(#[field(range = 0..=16)] u8);

struct Lake;

impl Game for Lake {
    type Player = Canoe;
    type Input = Paddle;
    type Event = ();

    fn step(&mut self, canoe: &mut Canoe, paddle: &Paddle, _: &mut StepContext<'_, ()>) {
        if paddle.0 < 16 {
            let turn = f32::from(paddle.0) * std::f32::consts::TAU / 16.0;
            canoe.velocity += Vec2::from_angle(turn) * 0.1;
        }
        canoe.velocity *= 0.98; // water is thick
        canoe.position += canoe.velocity / 60.0;
    }
}

/// Hosts the game and plays it as well, as a client of the own server.
fn host(relay: &str) -> muse::Result<()> {
    let mut server = GameServer::room(relay, Lake)?;
    let mut client = GameClient::connect(&server.address(), Lake)?;
    loop {
        server.tick_within(Duration::from_millis(4), |game, event| match event {
            Joined(client) => game.spawn(client, Canoe::default()),
            Left(client, _reason) => game.despawn(client),
            RoomOpened(code) => say(&format!("tell your friend: {code}")),
            RoomLost(reason) => say(&format!("no room: {reason}")),
            _ => Ok(()),
        })?;
        client.tick(paddle)?;
        draw(&client);
    }
}

fn say(line: &str) -> muse::Result<()> {
    println!("{line}");
    Ok(())
}

fn join(relay: &str, code: &str) -> muse::Result<()> {
    let mut client = GameClient::connect(Join::room(relay, code), Lake)?;
    loop {
        client.tick(paddle)?;
        draw(&client);
        client.wait(Duration::from_millis(16))?;
    }
}

/// Paddles in a wide circle, as this program has no window to read keys from.
fn paddle(tick: Tick) -> Paddle {
    Paddle((tick.0 / 30 % 16) as u8)
}

fn draw(client: &GameClient<Lake>) {
    if let Some(own) = client.own_player() {
        let others = client.other_players().count();
        println!("at {:.1}, and {others} others", own.position);
    }
}

fn main() -> muse::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["host", relay] => host(relay),
        ["join", relay, code] => join(relay, code),
        _ => {
            println!("usage: friend host RELAY | friend join RELAY CODE");
            Ok(())
        }
    }
}
