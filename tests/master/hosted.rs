//! A game of the library behind the shipped master: its server is started by the master, its players queue, meet, play and come back.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use muse::Protocol;

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
    if let Ok(url) = std::env::var("RACE_MASTER") {
        race::play(&url).expect("the master and the server answer");
    }
}

/// A player's program, with a folder of its own for its key; ended with the test.
struct Player {
    child: Child,
    lines: Receiver<String>,
}

impl Player {
    fn start(url: &str, name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("race-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the key");
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["hosted::race_player", "--ignored", "--exact", "--nocapture"])
            .env("RACE_MASTER", url)
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
            let line = self.lines.recv_timeout(LIMIT).ok();
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
    let this = std::env::current_exe().expect("a path");
    let game = format!("{} hosted::race_server --ignored --exact", this.display());
    let protocol = Protocol::default().config().protocol_id().to_string();
    let arguments = ["--game", &game, "--protocol-id", &protocol];
    let master = program::Master::start(&arguments, 1.0);
    let url = format!("http://{}", master.authority());
    let players = [Player::start(&url, "ada"), Player::start(&url, "bob")];
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

const LIMIT: Duration = Duration::from_secs(60);
