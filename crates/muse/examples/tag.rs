//! Tag on a field: the server simulates, every client predicts its own player and sees the others smoothly.
//!
//!     tag serve                    prints an address
//!     tag play muse://...          as often as you like

use muse::prelude::*;

/// The state of a player that everybody sees, on a grid of a millimetre.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Player {
    #[field(range = -100.0..=100.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    position: Vec2,
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: Vec2,
    is_it: bool,
    /// Ticks for which a player who was caught counts to a hundred.
    counts: u8,
}

/// The input of a player in a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    #[field(range = -1..=1)]
    y: i8,
}

/// The rules: one function, the same on the server and on every client.
struct Tag;

impl Game for Tag {
    type Player = Player;
    type Input = Keys;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, player: &mut Player, keys: &Keys, _: &mut StepContext<'_, ()>) {
        player.counts = player.counts.saturating_sub(1);
        let speed = if player.counts > 0 { 0.0 } else { 8.0 };
        let wanted = Vec2::new(keys.x.into(), keys.y.into()).normalize_or_zero() * speed;
        player.velocity += (wanted - player.velocity) * 0.2;
        player.position += player.velocity / 50.0;
    }
}

fn serve(address: &str) -> muse::Result<()> {
    let mut server = GameServer::listen(address, Tag)?; // creates its key on the first run and keeps it
    println!("join with {}", server.address()); // one line that a friend can paste
    loop {
        server.tick(|game, event| match event {
            Joined(client) => game.spawn(client, Player::default()),
            Left(client, _reason) => game.despawn(client),
            TickFinished(_) => pass_it_on(game),
            _ => Ok(()),
        })?;
    }
}

/// Passes the tag on. The server does what concerns more than one player, after everybody has moved.
fn pass_it_on(game: &mut GameServer<Tag>) -> muse::Result<()> {
    let mut players: Vec<(ClientId, Player)> = game.players().collect();
    let it = players.iter().position(|(_, player)| player.is_it);
    let Some((_, chaser)) = players.get(it.unwrap_or(0)).cloned() else {
        return Ok(()); // nobody is here
    };
    let is_caught = |other: &Player| !other.is_it && other.distance(&chaser) < 0.5;
    let caught = players.iter().position(|(_, other)| is_caught(other));
    let caught = caught.filter(|_| chaser.counts == 0);
    for (index, (client, player)) in players.iter_mut().enumerate() {
        player.is_it = Some(index) == caught.or(it);
        player.counts = if Some(index) == caught {
            100
        } else {
            player.counts
        };
        game.set_player(*client, player)?;
    }
    Ok(())
}

fn play(address: &str) -> muse::Result<()> {
    let mut client = GameClient::connect(address, Tag)?;
    loop {
        client.tick(read_keys)?; // sends inputs, predicts, reconciles, interpolates
        draw(client.own_player(), client.other_players());
        client.wait(Duration::from_millis(16))?; // or your window's next frame
    }
}

/// Runs in circles, as this program has no window to read keys from.
fn read_keys(tick: Tick) -> Keys {
    let [x, y] = [[1, 0], [0, 1], [-1, 0], [0, -1]][tick.0 as usize / 25 % 4];
    Keys { x, y }
}

fn draw(own: Option<Player>, others: impl Iterator<Item = Player>) {
    if let Some(own) = own {
        let (at, others) = (own.position, others.count());
        println!("at {at:.2}, it: {}, {others} others", own.is_it);
    }
}

fn main() -> muse::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve("[::]:7000"),
        ["serve", address] => serve(address),
        ["play", address] => play(address),
        _ => {
            println!("usage: tag serve [ADDRESS] | tag play ADDRESS");
            Ok(())
        }
    }
}
