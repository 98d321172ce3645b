//! A race behind a master: it starts the server, players queue for a match.
//!
//!     race serve                            started by `muse master --game "race serve"`
//!     race play http://127.0.0.1:7777       twice, each in a folder of its own

use muse::prelude::*;

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Player {
    #[field(range = -100.0..=100.0, step = 0.001)]
    position: Vec2,
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
struct Keys {
    #[field(range = -1..=1)]
    x: i8,
    #[field(range = -1..=1)]
    y: i8,
}

/// The rules: the first to run ten metres wins.
#[derive(Clone)]
struct Race;

impl Game for Race {
    type Player = Player;
    type Input = Keys;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, player: &mut Player, keys: &Keys, _: &mut StepContext<'_, ()>) {
        player.position += Vec2::new(keys.x.into(), keys.y.into()) * 0.1;
    }
}

/// A game server that the master starts: it enrols, admits whoever holds a seat, and reports.
pub(crate) fn serve() -> muse::Result<()> {
    let mut server = GameServer::hosted(Race)?; // master, credentials and port from the environment
    while !server.has_ended() {
        server.tick(|game, event| match event {
            MatchAssigned(plan) => {
                println!("match {} of {:?}", plan.match_id, plan.players);
                Ok(())
            }
            Joined(client) => game.spawn(client, Player::default()),
            TickFinished(_) => finish_if_over(game),
            _ => Ok(()), // a player who is cut off keeps the seat for ten seconds, and comes back to it
        })?;
    }
    Ok(())
}

fn finish_if_over(game: &mut GameServer<Race>) -> muse::Result<()> {
    let runners: Vec<(ClientId, Player)> = game.players().collect();
    if runners.iter().any(|(_, runner)| runner.position.x >= 10.0) {
        let points = runners.iter().filter_map(|(client, runner)| {
            Some((game.account(*client)?, runner.position.x as i64))
        });
        let outcome = MatchOutcome::points(points.collect::<Vec<_>>());
        game.finish(&outcome); // repeated until the master has stored it
    }
    Ok(())
}

/// A player: signs in, queues, is seated, plays, comes back after a cut, returns to the queue.
pub(crate) fn play(url: &str) -> muse::Result<()> {
    let mut master = Master::connect(url, Account::guest("profile.key")?)?;
    let wanted = Preferences::queue("race").players(2);
    master.queue(wanted.clone())?;
    let mut player = GameClient::seated(master, Race);
    loop {
        player.tick(read_keys, |player, event| {
            println!("{event:?}"); // Queued, MatchFound, Playing, SeatLost and why, ...
            if let MasterEvent::MatchOver(..) | MasterEvent::Cancelled { waiting: false, .. } =
                event
            {
                player.master().queue(wanted.clone())?;
            }
            Ok(())
        })?;
        if let Some(game) = player.game() {
            draw(game.own_player(), game.other_players());
        }
        player.wait(Duration::from_millis(16))?; // or your window's next frame
    }
}

fn read_keys(_tick: Tick) -> Keys {
    Keys { x: 1, y: 0 }
}

fn draw(own: Option<Player>, others: impl Iterator<Item = Player>) {
    if let Some(own) = own {
        println!("at {:.1}, {} others", own.position, others.count());
    }
}

fn main() -> muse::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    match (words.get(1).map(String::as_str), words.get(2)) {
        (Some("serve"), _) => serve(),
        (Some("play"), Some(url)) => play(url),
        _ => {
            println!("usage: race serve | race play URL");
            Ok(())
        }
    }
}
