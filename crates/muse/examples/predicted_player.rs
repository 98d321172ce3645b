//! A player that the server simulates, its client predicts and others see: all that it takes, over UDP or in memory.

#[path = "common/place.rs"]
mod place;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Instant;
use muse::game::{GameClient, GameServer, Happening};
use muse::netcode::prediction::{Game, StepContext};
use muse::netcode::{self, ClientId, Kind, KindOptions, Kinds, Remotes, SessionConfig, Tick};
use muse::prelude::*;

const USAGE: &str = "usage: predicted_player server [ADDRESS]
       predicted_player client [ADDRESS [KEY]]
       predicted_player offline
example: cargo run -p muse-net --example predicted_player -- offline";

/// What everybody knows of a player, on a grid of a millimetre.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Player {
    #[field(range = -100.0..=100.0, step = 0.001, interpolate = hermite, velocity = velocity)]
    pub(crate) position: [f32; 2],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 2],
}

/// What a player does in a tick.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    #[field(range = -1..=1)]
    pub(crate) x: i8,
    #[field(range = -1..=1)]
    pub(crate) y: i8,
}

/// What that leads to: the same on the server and on the client.
pub(crate) struct Rules;

impl Game for Rules {
    type Player = Player;
    type Input = Keys;
    type Event = ();

    fn step(&mut self, player: &mut Player, keys: &Keys, _: &mut StepContext<'_, ()>) {
        for (axis, key) in [keys.x, keys.y].into_iter().enumerate() {
            player.velocity[axis] += (f32::from(key) * 8.0 - player.velocity[axis]) * 0.2;
            player.position[axis] += player.velocity[axis] * 0.02;
        }
    }
}

pub(crate) type Host = netcode::Server<Rules>;
pub(crate) type Me = netcode::Client<Rules>;
pub(crate) type Others = Remotes<Player>;

fn session() -> (SessionConfig, Kinds, Kind<Player>) {
    let mut kinds = Kinds::new();
    let player = kinds.register(KindOptions::new(1)).expect("the first kind");
    (SessionConfig::new(Duration::from_millis(20)), kinds, player)
}

pub(crate) fn new_game(now: Instant) -> Game {
    let (config, kinds, player) = session();
    Host::new(config, kinds, player, now)
}

pub(crate) fn new_view(now: Instant) -> (Me, Others) {
    let (config, kinds, player) = session();
    let me = Me::new(config, kinds, player, apart, now);
    let others = Remotes::new(player, me.interpolation(), apart);
    (me, others)
}

fn apart(a: &Player, b: &Player) -> f32 {
    (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
}

/// Runs in circles, as this example has no window to read keys from.
pub(crate) fn keys(tick: Tick) -> Keys {
    let [x, y] = [[1, 0], [0, 1], [-1, 0], [0, -1]][tick.0 as usize / 25 % 4];
    Keys { x, y }
}

/// Where everybody is to be drawn: this player, and the others.
pub(crate) fn draw(me: &mut Me, others: &mut Others) -> Option<(Player, Vec<Player>)> {
    while let Some(update) = me.poll_update() {
        others.handle_update(me, &update);
    }
    let others = others.show(me).map(|(_, shown)| shown.state).collect();
    Some((me.shown_player()?, others))
}

pub(crate) fn config() -> Config {
    Config::new(0x706c_6179).channel(ChannelConfig::new(Delivery::Unreliable))
}

pub(crate) fn serve(link: Server, running: &AtomicBool) -> std::io::Result<()> {
    let game = new_game(link.now());
    let mut server = GameServer::new(link, 0, game);
    while running.load(Ordering::Relaxed) {
        server.tick(&mut Rules, |server, happening| match happening {
            Happening::Came { client, .. } => {
                place::complain(server.game.join(client, &Player::default()));
            }
            Happening::Went {
                player: Some(player),
                ..
            } => {
                place::complain(server.game.world_mut().despawn(player));
            }
            _ => {}
        })?;
    }
    Ok(())
}

pub(crate) fn play(
    link: Client,
    mut seen: impl FnMut(&Me, &Player, &[Player]) -> bool,
) -> Result<(), Box<dyn Error>> {
    let (me, mut others) = new_view(link.now());
    let mut client = GameClient::new(link, 0, me);
    let (mut end, mut playing) = (None, true);
    while playing {
        client.tick(&mut Rules, keys, |_, event| end = place::ended(&event))?;
        if let Some(end) = end.take() {
            return Ok(end?);
        }
        if let Some((player, others)) = draw(&mut client.game, &mut others) {
            playing = seen(&client.game, &player, &others);
        }
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

/// A millisecond of both sides in one program, without a socket: each hands the other its bytes.
pub(crate) fn offline(now: Instant, game: &mut Game, me: &mut Me) -> Result<(), Box<dyn Error>> {
    let mut buffer = [0; 1_100];
    while let Some(len) = me.poll_packet(now, &mut Rules, keys, &mut buffer) {
        game.handle_packet(now, ClientId(0), &buffer[..len])?;
    }
    while game.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
    while let Some((_, len)) = game.poll_packet(now, &mut buffer) {
        me.handle_packet(now, &mut Rules, &buffer[..len])?;
    }
    Ok(())
}

fn show(me: &Me, player: &Player, others: &[Player]) -> bool {
    let (at, count) = (player.position, others.len());
    println!("at {at:.2?}, {count} others, {:?}", me.prediction());
    true
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match words.next().as_deref() {
        Some("server") => serve(place::open(words.next(), config())?, &AtomicBool::new(true))?,
        Some("client") => play(place::connect(&mut words, config())?, show)?,
        Some("offline") => {
            let (mut me, mut others) = new_view(Instant::ZERO);
            let mut game = new_game(Instant::ZERO);
            game.join(ClientId(0), &Player::default())?;
            for milli in 0..2_000 {
                offline(Instant::from_millis(milli), &mut game, &mut me)?;
            }
            draw(&mut me, &mut others).map(|(player, others)| show(&me, &player, &others));
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
