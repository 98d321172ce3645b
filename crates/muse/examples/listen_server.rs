//! A listen server: who hosts the game plays it, too. Alone, the same code is the offline game.

use std::error::Error;

use muse::Instant;
use muse::netcode::{self, LocalClient, Remotes};
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

pub(crate) type Match = netcode::Server<Rules>;

pub(crate) fn protocol() -> Protocol {
    Protocol::new("skate/1")
}

/// Skates around a square, as this example has no window to read keys from.
fn keys(tick: Tick) -> Direction {
    Direction((tick.0 / 25 % 4) as u8)
}

/// The game of one who hosts it.
pub(crate) struct Hosting {
    pub(crate) host: LocalClient<Rules>,
    others: Remotes<Skater>,
    pub(crate) shown: Vec<Skater>,
}

impl Hosting {
    /// Joins the match that this program serves.
    fn join(game: &mut Match, now: Instant) -> Result<Self, Box<dyn Error>> {
        game.join(HOST, &Skater::default())?;
        let (me, others) = protocol().for_game::<Rules>().game_client(now)?;
        Ok(Self {
            host: LocalClient::new(game, HOST, me),
            others,
            shown: Vec::new(),
        })
    }

    /// A frame of the host's own game, with others or without.
    fn tick(&mut self, now: Instant, game: &mut Match) -> Result<(), Box<dyn Error>> {
        self.host.tick(now, game, &mut Rules, keys)?;
        let me = &mut self.host.game;
        while let Some(update) = me.poll_update() {
            self.others.handle_update(me, &update);
        }
        self.shown.clear();
        self.shown
            .extend(self.others.show(me).map(|(_, shown)| shown.state));
        Ok(())
    }
}

/// Plays and serves, until `seen` has seen enough.
pub(crate) fn serve(
    mut server: GameServer<Rules>,
    mut seen: impl FnMut(&Hosting) -> bool,
) -> Result<(), Box<dyn Error>> {
    let now = server.now();
    let mut hosting = Hosting::join(server.netcode(), now)?;
    while seen(&hosting) {
        server.tick_within(Duration::from_millis(4), |game, event| match event {
            Joined(client) => game.spawn(client, Skater::default()),
            Left(client, _) => game.despawn(client),
            _ => Ok(()),
        })?;
        let now = server.now();
        hosting.tick(now, server.netcode())?;
    }
    Ok(())
}

/// Plays elsewhere.
pub(crate) fn play(
    mut client: GameClient<Rules>,
    mut seen: impl FnMut(&mut GameClient<Rules>) -> bool,
) -> Result<(), Box<dyn Error>> {
    while seen(&mut client) {
        client.tick(keys)?;
        client.wait(Duration::from_millis(8))?;
    }
    Ok(())
}

/// Plays alone for so many seconds, without a socket.
pub(crate) fn offline(seconds: u64) -> Result<Hosting, Box<dyn Error>> {
    let mut game = protocol().for_game::<Rules>().game_server(Instant::ZERO)?;
    let mut hosting = Hosting::join(&mut game, Instant::ZERO)?;
    for now in (0..seconds * 1_000).step_by(4).map(Instant::from_millis) {
        while game.poll_tick(now, &mut Rules, |_, ()| ()).is_some() {}
        game.commit();
        hosting.tick(now, &mut game)?;
    }
    Ok(hosting)
}

fn show(own: Option<Skater>, others: usize) -> bool {
    let at = own.map(|skater| skater.position);
    println!("at {at:.2?}, with {others} others");
    true
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let watch = |hosting: &Hosting| show(hosting.host.game.shown_player(), hosting.shown.len());
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let server = GameServer::listen_with("[::]:7000", protocol(), Rules)?;
            println!("join with {}", server.address());
            serve(server, watch)
        }
        ["play", address] => {
            let client = GameClient::connect_with(address, protocol(), Rules)?;
            play(client, |client| {
                show(client.own_player(), client.others().len())
            })
        }
        ["offline"] => {
            watch(&offline(3)?);
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

/// The host's number, which no connection has.
const HOST: ClientId = ClientId(u32::MAX);
