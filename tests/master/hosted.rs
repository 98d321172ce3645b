//! A game of the library behind the shipped master: its server is started by the master, its players queue, meet, play and come back.

use std::time::{Duration, Instant};

use muse::master::MatchEnding;
use muse::prelude::*;

use crate::program::{self, Request};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Runner {
    #[field(range = -10.0..=10.0, step = 0.001)]
    position: Vec2,
}

#[derive(Schema, Clone, Debug, Default, PartialEq)]
struct Keys {
    #[field(range = -1..=1)]
    x: i8,
}

#[derive(Clone)]
struct Race;

impl Game for Race {
    type Player = Runner;
    type Input = Keys;
    type Event = ();
    const TICKS_PER_SECOND: u32 = 50;

    fn step(&mut self, runner: &mut Runner, keys: &Keys, _: &mut StepContext<'_, ()>) {
        runner.position.x = (runner.position.x + f32::from(keys.x) / 50.0).min(9.0);
    }
}

/// The game server that the master below starts: the match is over when a player has run a metre.
#[test]
#[ignore = "started by a master as a process of its own"]
fn race_server() {
    if std::env::var_os("MUSE_MASTER").is_some() {
        serve().expect("the match is hosted");
    }
}

fn serve() -> muse::Result<()> {
    let mut server = GameServer::hosted(Race)?;
    while !server.has_ended() {
        server.tick(|game, event| match event {
            Joined(client) => game.spawn(client, Runner::default()),
            TickFinished(_) => {
                let players: Vec<(ClientId, Runner)> = game.players().collect();
                if players.iter().any(|(_, runner)| runner.position.x >= 1.0) {
                    let points = players.iter().filter_map(|(client, runner)| {
                        Some((game.account(*client)?, (runner.position.x * 100.0) as i64))
                    });
                    let outcome = MatchOutcome::points(points.collect::<Vec<_>>());
                    game.finish(&outcome);
                }
                Ok(())
            }
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Queues, plays one match, and says how it ended and how far the player was seen to run.
fn play(url: &str, key: &str) -> muse::Result<(Option<MatchEnding>, f32)> {
    let mut master = Master::connect(url, Account::guest_key(key))?;
    master.queue(Preferences::queue("race").players(2))?;
    let mut player = GameClient::seated(master, Race);
    let (mut ending, mut farthest) = (None, 0.0_f32);
    let begun = Instant::now();
    while ending.is_none() && begun.elapsed() < LIMIT {
        player.tick(
            |_| Keys { x: 1 },
            |_, event| {
                if let MasterEvent::MatchOver(_, outcome) = event {
                    ending = outcome;
                }
                Ok(())
            },
        )?;
        let own = player.game().and_then(|game| game.own_player());
        farthest = own.map_or(farthest, |own| farthest.max(own.position.x));
        player.wait(Duration::from_millis(10))?;
    }
    Ok((ending, farthest))
}

#[test]
fn players_of_a_game_queue_meet_on_a_hosted_server_and_come_back_with_points() {
    let this = std::env::current_exe().expect("a path");
    let game = format!("{} hosted::race_server --ignored --exact", this.display());
    let protocol = Protocol::default().config().protocol_id().to_string();
    let arguments = ["--game", &game, "--protocol-id", &protocol];
    let master = program::Master::start(&arguments, 1.0);
    let url = format!("http://{}", master.authority());
    let play = |key: &'static str| {
        let url = url.clone();
        std::thread::spawn(move || play(&url, key).expect("the master and the server answer"))
    };
    let players = [
        play("device key of runner 1"),
        play("device key of runner 2"),
    ];
    for player in players {
        let (ending, farthest) = player.join().expect("no panic");
        assert_eq!(ending, Some(MatchEnding::Finished));
        assert!(farthest > 0.5, "the player was seen at {farthest} m");
    }
    let ranking = master.request(Request::get("/v1/ranking")).expect_json(200);
    assert!(
        ranking["lines"][0]["points"].as_i64() >= Some(100),
        "{ranking}"
    );
}

const LIMIT: Duration = Duration::from_secs(60);
