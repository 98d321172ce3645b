//! A listen server: who hosts the game plays it, too. Alone, the same code is the offline game.

#[path = "common/place.rs"]
mod place;

use std::error::Error;
use std::process::ExitCode;

use muse::Instant;
use muse::game::{GameClient, GameServer, Happening};
use muse::netcode::prediction::{Game, StepContext};
use muse::netcode::{self, ClientId, Host, Kind, KindOptions, Kinds, Remotes, SessionConfig, Tick};
use muse::prelude::*;

const USAGE: &str = "usage: listen_server server [ADDRESS]
       listen_server client [ADDRESS [KEY]]
       listen_server offline
example: cargo run -p muse-net --example listen_server -- server";

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

pub(crate) type Game = netcode::Server<Rules>;

/// One who plays, here or elsewhere.
pub(crate) struct Screen {
    others: Remotes<Skater>,
    pub(crate) shown: Vec<Skater>,
}

fn session() -> (SessionConfig, Kinds, Kind<Skater>) {
    let mut kinds = Kinds::new();
    let skater = kinds.register(KindOptions::new(1)).expect("the first kind");
    (SessionConfig::new(Duration::from_millis(20)), kinds, skater)
}

fn new_view(now: Instant) -> (netcode::Client<Rules>, Screen) {
    let (config, kinds, skater) = session();
    let apart = |a: &Skater, b: &Skater| {
        (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
    };
    let me = netcode::Client::new(config, kinds, skater, apart, now);
    let others = Remotes::new(skater, me.interpolation(), apart);
    (
        me,
        Screen {
            others,
            shown: Vec::new(),
        },
    )
}

impl Screen {
    fn draw(&mut self, me: &mut netcode::Client<Rules>) {
        while let Some(update) = me.poll_update() {
            self.others.handle_update(me, &update);
        }
        self.shown.clear();
        self.shown
            .extend(self.others.show(me).map(|(_, shown)| shown.state));
    }
}

/// Skates around a square, as this example has no window to read keys from.
fn keys(tick: Tick) -> Direction {
    Direction((tick.0 / 25 % 4) as u8)
}

/// The game of one who hosts it.
pub(crate) struct Hosting {
    pub(crate) host: Host<Rules>,
    pub(crate) screen: Screen,
}

pub(crate) fn new_game(now: Instant) -> Result<(Game, Hosting), Box<dyn Error>> {
    let (config, kinds, skater) = session();
    let mut game = Game::new(config, kinds, skater, now);
    game.join(HOST, &Skater::default())?;
    let (me, screen) = new_view(now);
    let host = Host::new(&mut game, HOST, me);
    Ok((game, Hosting { host, screen }))
}

impl Hosting {
    /// A frame of the host's own game, with others or without.
    pub(crate) fn tick(&mut self, now: Instant, game: &mut Game) -> Result<(), Box<dyn Error>> {
        self.host.tick(now, game, &mut Rules, keys)?;
        self.screen.draw(&mut self.host.game);
        Ok(())
    }
}

pub(crate) fn config() -> Config {
    Config::new(0x736b_6174).channel(ChannelConfig::new(Delivery::Unreliable))
}

/// Plays and serves, until `seen` has seen enough.
pub(crate) fn serve(
    link: Server,
    mut seen: impl FnMut(&Hosting) -> bool,
) -> Result<(), Box<dyn Error>> {
    let (game, mut hosting) = new_game(link.now())?;
    let mut server = GameServer::new(link, 0, game);
    while seen(&hosting) {
        server.tick_within(Duration::from_millis(4), &mut Rules, |server, happening| {
            match happening {
                Happening::Came { client, .. } => {
                    place::complain(server.game.join(client, &Skater::default()));
                }
                Happening::Went {
                    player: Some(player),
                    ..
                } => {
                    place::complain(server.game.world_mut().despawn(player));
                }
                _ => {}
            }
        })?;
        hosting.tick(server.link.now(), &mut server.game)?;
    }
    Ok(())
}

/// Plays elsewhere.
pub(crate) fn play(
    link: Client,
    mut seen: impl FnMut(&netcode::Client<Rules>, &Screen) -> bool,
) -> Result<(), Box<dyn Error>> {
    let (me, mut screen) = new_view(link.now());
    let mut client = GameClient::new(link, 0, me);
    let mut end = None;
    while seen(&client.game, &screen) {
        client.tick(&mut Rules, keys, |_, event| end = place::ended(&event))?;
        if let Some(end) = end.take() {
            return Ok(end?);
        }
        screen.draw(&mut client.game);
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

/// Plays alone for so many seconds, without a socket.
pub(crate) fn offline(seconds: u64) -> Result<Hosting, Box<dyn Error>> {
    let (mut game, mut hosting) = new_game(Instant::ZERO)?;
    for now in (0..seconds * 1_000).step_by(4).map(Instant::from_millis) {
        while game.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
        game.commit();
        hosting.tick(now, &mut game)?;
    }
    Ok(hosting)
}

fn show(me: &netcode::Client<Rules>, screen: &Screen) -> bool {
    let at = me.shown_player().map(|skater| skater.position);
    println!("at {at:.2?}, with {} others", screen.shown.len());
    true
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let watch = |hosting: &Hosting| show(&hosting.host.game, &hosting.screen);
    match words.next().as_deref() {
        Some("server") => serve(place::open(words.next(), config())?, watch)?,
        Some("client") => play(place::connect(&mut words, config())?, show)?,
        Some("offline") => {
            watch(&offline(3)?);
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}

/// The host's number, which no connection has.
const HOST: ClientId = ClientId(u32::MAX);
