//! A game of the library behind the shipped master: its server is started by the master, its players queue, meet, play and come back.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use muse::prelude::*;
use serde_json::json;

use crate::program::{self, Request};

/// The program of the start page.
#[allow(dead_code, reason = "its main is not called here")]
#[path = "../../crates/muse/examples/race.rs"]
mod race;

/// The game server that the master below starts.
#[test]
#[ignore = "started by a master as a process of its own"]
fn race_server() {
    if std::env::var_os("MUSE_MASTER").is_some() {
        race::serve().expect("the match is hosted");
    }
}

/// A player who queues again and again.
#[test]
#[ignore = "started by the test below as a process of its own"]
fn race_player() {
    if let Ok(url) = std::env::var("PLAYERS_MASTER") {
        race::play(&url).expect("the master and the server answer");
    }
}

/// A player of a game whose server keeps their progress.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Walker {
    #[field(range = 0..=1000)]
    walks: u32,
}

#[derive(Clone)]
struct Walk;

impl Game for Walk {
    type Player = Walker;
    type Input = bool;
    type Event = ();

    fn step(&mut self, _: &mut Walker, _: &bool, _: &mut StepContext<'_, ()>) {}
}

/// The game server that the master below starts: players enter the world with what they had, and the match ends soon after the first has left.
#[test]
#[ignore = "started by a master as a process of its own"]
fn walk_server() {
    if std::env::var_os("MUSE_MASTER").is_none() {
        return;
    }
    let mut server = GameServer::hosted(Walk).expect("a master has started it");
    let mut ticks_left: Option<u32> = None;
    while !server.has_ended() {
        let ticked = server.tick(|game, event| match event {
            Joined(client) => {
                let account = game.account(client).expect("it has just joined");
                let hosted = game.hosted_match().expect("there is a master");
                hosted.ask_profile(account, "walk");
                Ok(())
            }
            ServerEvent::Profile(profile) => {
                let is_theirs = |client: &ClientId| game.account(*client) == Some(profile.account);
                let client = game.clients().find(is_theirs).expect("they stay");
                let walks = profile.document["walks"].as_u64().unwrap_or(0) as u32;
                game.spawn(client, Walker { walks })
            }
            Left(..) => {
                ticks_left = Some(20);
                Ok(())
            }
            TickFinished(_) => {
                ticks_left = ticks_left.map(|ticks| ticks - 1);
                if ticks_left == Some(0) {
                    end_walk(game);
                    ticks_left = None;
                }
                Ok(())
            }
            _ => Ok(()),
        });
        ticked.expect("the match is hosted");
    }
}

/// One walk more for everybody in the world, whether they are still connected or not.
fn end_walk(game: &mut GameServer<Walk>) {
    let walks: Vec<(AccountId, u32)> = game
        .players()
        .filter_map(|(client, walker)| Some((game.account(client)?, walker.walks + 1)))
        .collect();
    let hosted = game.hosted_match().expect("there is a master");
    for (account, walks) in &walks {
        hosted.save_progress(*account, "walk", json!({ "walks": walks }));
    }
    let points = walks
        .into_iter()
        .map(|(account, walks)| (account, walks.into()));
    game.finish(&MatchOutcome::points(points));
}

#[test]
#[ignore = "started by the test below as a process of its own"]
fn walk_player() {
    walk(false);
}

#[test]
#[ignore = "started by the test below as a process of its own"]
fn walk_quitter() {
    walk(true);
}

/// Plays match after match, or leaves the first one as soon as both players are in the world.
fn walk(quits: bool) {
    let Ok(url) = std::env::var("PLAYERS_MASTER") else {
        return;
    };
    let account = Account::guest("profile.key").expect("a file");
    let mut master = Master::connect(&url, account).expect("a URL");
    let wanted = Preferences::queue("walk").players(2);
    master.queue(wanted.clone()).expect("within the limits");
    let mut player = GameClient::seated(master, Walk);
    loop {
        let ticked = player.tick(
            |_| false,
            |player, event| {
                println!("{event:?}");
                match event {
                    MasterEvent::MatchOver(..) => player.master().queue(wanted.clone()),
                    _ => Ok(()),
                }
            },
        );
        ticked.expect("the master and the server answer");
        if let Some(game) = player.game()
            && quits
            && game.own_player().is_some()
            && game.other_players().count() == 1
        {
            return;
        }
        player.wait(Duration::from_millis(16)).expect("it waits");
    }
}

/// A player's program, with a folder of its own for its key; ended with the test.
struct Player {
    child: Child,
    lines: Receiver<String>,
}

impl Player {
    fn start(program: &str, url: &str, name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{program}-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the key");
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args([&format!("hosted::{program}"), "--ignored", "--exact"])
            .arg("--nocapture")
            .env("PLAYERS_MASTER", url)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it is this program");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            let mut read = output.lines().map_while(Result::ok);
            read.try_for_each(|line| tell.send(line))
        });
        Self { child, lines }
    }

    fn expect(&self, part: &str) {
        loop {
            let line = self.lines.recv_timeout(LIMIT.into()).ok();
            let line = line.unwrap_or_else(|| unreachable!("never printed {part:?}"));
            if line.contains(part) {
                return;
            }
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn players_of_the_start_page_queue_meet_on_a_hosted_server_and_queue_again() {
    let (master, url) = start_master("race_server");
    let players = ["ada", "bob"].map(|name| Player::start("race_player", &url, name));
    for player in &players {
        player.expect("1 others");
        player.expect("MatchOver");
        player.expect("Queued");
    }
    let ranking = master.request(Request::get("/v1/ranking")).expect_json(200);
    assert!(
        ranking["lines"][0]["points"].as_i64() >= Some(10),
        "{ranking}"
    );
}

#[test]
fn a_player_who_is_cut_off_keeps_their_points_and_progress_is_kept_from_match_to_match() {
    let (master, url) = start_master("walk_server");
    let ada = Player::start("walk_player", &url, "ada");
    for walk in 1..=2 {
        let bob = Player::start("walk_quitter", &url, "bob");
        ada.expect("MatchOver");
        let scored = format!("SELECT count(*) FROM results WHERE points = {walk}");
        assert_eq!(master.rows(&scored), 2, "match {walk}");
        drop(bob);
    }
}

/// Starts a master whose game is a test of this file, and returns its URL as well.
fn start_master(game: &str) -> (program::Master, String) {
    let this = std::env::current_exe().expect("a path");
    let game = format!("{} hosted::{game} --ignored --exact", this.display());
    let protocol = Protocol::default().config().protocol_id().to_string();
    let arguments = ["--game", &game, "--protocol-id", &protocol];
    let master = program::Master::start(&arguments, 1.0);
    let url = format!("http://{}", master.authority());
    (master, url)
}

const LIMIT: Duration = Duration::from_secs(60);
