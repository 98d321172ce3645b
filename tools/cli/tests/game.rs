//! `muse game` as a program: two players over real UDP meet, play, talk, and are told the result.

#[path = "game/server.rs"]
mod server;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use muse_biobot::{Command as Keys, FromPlayer, Level, Phase, Player, ToPlayer};
use muse_drivers::ClientDriver;
use muse_lockstep::replay::Chunks;
use muse_relay::{MasterKey, host_token_issuer};
use muse_transport::{Event, Refusal};

use server::Game;

/// A player who walks in a circle.
struct Walker {
    link: ClientDriver,
    player: Option<Player>,
    name: &'static str,
    heard: Vec<ToPlayer>,
    others: usize,
    way: f32,
    closed: bool,
}

impl Walker {
    fn new(game: &Game, name: &'static str) -> Self {
        Self {
            link: game.connect(),
            player: None,
            name,
            heard: Vec::new(),
            others: 0,
            way: 0.0,
            closed: false,
        }
    }

    fn turn(&mut self) {
        self.link.wait(Duration::from_millis(2)).expect("a socket");
        self.link.poll().expect("a socket");
        let now = self.link.now();
        let mut buffer = Vec::new();
        while let Some(event) = self.link.poll_event(&mut buffer) {
            match event {
                Event::Message {
                    channel: 0,
                    payload,
                    ..
                } => {
                    if let Some(player) = &mut self.player {
                        let _ = player.handle_packet(now, payload);
                    }
                }
                Event::Message { payload, .. } => {
                    let message = ToPlayer::decode(payload).expect("the server speaks so");
                    if let ToPlayer::Welcome { mode, .. } = message {
                        let level = Arc::new(Level::of(mode));
                        self.player = Some(Player::new(now, level, self.name));
                    }
                    if let Some(player) = &mut self.player {
                        player.handle_message(&message);
                    }
                    self.heard.push(message);
                }
                Event::Closed { .. } => self.closed = true,
                _ => {}
            }
        }
        let Some(player) = &mut self.player else {
            return;
        };
        while let Some(message) = player.poll_message() {
            let _ = self.link.send(1, &message.encode());
        }
        let before = player.predicted().map(|robot| robot.feet());
        let keys = Keys {
            forward: 1,
            yaw: now.as_micros() as f32 / 1e6 % 6.0,
            ..Keys::default()
        };
        let mut packet = [0; 1_100];
        while let Some(len) = player.poll_packet(now, keys, &mut packet) {
            let _ = self.link.send(0, &packet[..len]);
        }
        let after = player.predicted().map(|robot| robot.feet());
        if let (Some(before), Some(after)) = (before, after) {
            self.way += before.distance(after);
        }
        self.others = self.others.max(player.frame(now).robots.len());
        self.link.flush().expect("a socket");
    }

    fn say(&mut self, text: &str) {
        let text = text.to_owned();
        let player = self.player.as_mut().expect("it plays");
        player.send(FromPlayer::Chat { text });
    }

    fn plays(&self) -> bool {
        let round = self.player.as_ref().and_then(Player::round);
        round.is_some_and(|round| round.phase == Phase::Playing)
    }
}

#[test]
fn two_players_meet_talk_and_are_told_the_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let replay = directory.path().join("match.muserply");
    let game = Game::start(&[
        "--no-web",
        "--mode",
        "versus",
        "--versus-seconds",
        "3",
        "--figures",
        "--replay",
        replay.to_str().expect("text"),
    ]);
    // One after the other: seats go by who is there first.
    let mut ada = [Walker::new(&game, "Ada")];
    turn_until(&mut ada, |ada| ada[0].player.is_some());
    let [ada] = ada;
    let mut walkers = [ada, Walker::new(&game, "Grace")];
    let mut said = false;
    turn_until(&mut walkers, |walkers| {
        if !said && walkers.iter().all(Walker::plays) {
            walkers[0].say("hello");
            said = true;
        }
        walkers.iter().all(|walker| walker.closed)
    });
    for walker in &walkers {
        let name = walker.name;
        assert_eq!(walker.others, 1, "{name} saw the other");
        assert!(walker.way > 5.0, "{name} walked {} m", walker.way);
        let hello = |message: &ToPlayer| matches!(message, ToPlayer::Chat { from: Some(0), text } if text == "hello");
        assert!(walker.heard.iter().any(hello), "{name} heard the greeting");
        let result = walker.heard.last();
        assert!(
            matches!(result, Some(ToPlayer::Result { table, .. }) if table.len() == 2),
            "{name}: {result:?}"
        );
    }
    let (text, well) = game.end();
    assert!(well, "{text}");
    assert!(text.contains("player 0 (Ada, id "), "{text}");
    assert!(
        text.contains("clean") && !text.contains("suspect"),
        "{text}"
    );
    assert!(text.contains("at the 99th percentile"), "{text}");
    let replay = std::fs::read(&replay).expect("the match was recorded");
    let (compared, _) = muse_biobot::replay::verify(&replay).expect("it goes the same way again");
    assert!(compared >= 3, "{compared}");
    let figures = text.lines().last().expect("a last line");
    assert!(figures.contains(r#""outcome":"over""#), "{figures}");
}

#[test]
fn two_teams_play_with_the_ball() {
    let words = ["--no-web", "--mode", "ball", "--versus-seconds", "4"];
    let game = Game::start(&words);
    let mut walkers = [Walker::new(&game, "Ada"), Walker::new(&game, "Grace")];
    turn_until(&mut walkers, |walkers| {
        walkers.iter().all(|walker| walker.closed)
    });
    for walker in &walkers {
        let round = walker.player.as_ref().and_then(Player::round);
        let mode = round.map(|round| round.mode);
        assert_eq!(mode, Some(muse_biobot::Mode::Ball), "{}", walker.name);
        assert!(walker.way > 5.0, "{} walked {} m", walker.name, walker.way);
    }
    let (text, well) = game.end();
    assert!(well, "{text}");
    assert!(text.contains("(Ada") && !text.contains("suspect"), "{text}");
}

#[test]
fn a_recording_is_whole_once_a_player_hears_the_result() {
    let directory = tempfile::tempdir().expect("a directory");
    let replay = directory.path().join("match.muserply");
    let mut words = vec!["--no-web", "--mode", "versus", "--versus-seconds", "2"];
    words.extend(["--replay", replay.to_str().expect("text")]);
    let mut game = Game::start(&words);
    let mut walkers = [Walker::new(&game, "Ada"), Walker::new(&game, "Grace")];
    let is_result = |message: &ToPlayer| matches!(message, ToPlayer::Result { .. });
    turn_until(&mut walkers, |walkers| {
        walkers
            .iter()
            .any(|walker| walker.heard.iter().any(is_result))
    });
    // The server still waits for both to have heard it.
    game.child.kill().expect("it runs");
    let replay = std::fs::read(&replay).expect("the match was recorded");
    let (_, chunks) = Chunks::parse(&replay).expect("a recording");
    let last = chunks.last().expect("chunks").expect("whole chunks");
    assert_eq!(char::from(last.1), 'E', "the end is written");
    muse_biobot::replay::verify(&replay).expect("it goes the same way again");
}

#[test]
fn players_may_move_themselves() {
    let mut words = vec!["--no-web", "--mode", "versus", "--versus-seconds", "4"];
    words.extend(["--movement", "validated"]);
    let game = Game::start(&words);
    let mut walkers = [Walker::new(&game, "Ada"), Walker::new(&game, "Grace")];
    turn_until(&mut walkers, |walkers| {
        walkers.iter().all(|walker| walker.closed)
    });
    for walker in &walkers {
        assert!(walker.way > 5.0, "{} walked {} m", walker.name, walker.way);
    }
    let (text, well) = game.end();
    assert!(well, "{text}");
    assert!(
        text.contains("(Ada") && !text.contains("moves too fast"),
        "{text}"
    );
}

#[test]
fn a_player_of_another_version_is_told_so() {
    let game = Game::start(&["--no-web", "--players", "1"]);
    let mut link = game.connect_with("level 9 of another game");
    let limit = Clock::now() + Duration::from_secs(30);
    let mut buffer = Vec::new();
    let refusal = loop {
        assert!(Clock::now() < limit, "it takes too long");
        link.wait(Duration::from_millis(2)).expect("a socket");
        link.poll().expect("a socket");
        if let Some(Event::Refused { reason, .. }) = link.poll_event(&mut buffer) {
            break reason;
        }
        link.flush().expect("a socket");
    };
    let Refusal::Schema { differences, .. } = refusal else {
        unreachable!("{refusal:?}");
    };
    assert_eq!(differences.len(), 1, "{differences:?}");
    let difference = differences[0].to_string();
    assert_eq!(difference, "`level 9 of another game` only here");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_match_and_players_are_told() {
    let game = Game::start(&["--no-web", "--players", "1", "--seed", "3"]);
    let mut walkers = [Walker::new(&game, "Ada")];
    turn_until(&mut walkers, |walkers| walkers[0].plays());
    let status = Command::new("kill")
        .arg(game.child.id().to_string())
        .status();
    assert!(status.expect("kill runs").success());
    turn_until(&mut walkers, |walkers| walkers[0].closed);
    let (text, well) = game.end();
    assert!(well, "{text}");
    assert!(text.contains("player 0 (Ada"), "{text}");
}

#[test]
fn a_game_says_when_its_room_is_open_and_why_it_is_not() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("relay.key");
    let master = MasterKey::of(&host_token_issuer(&[6; 32])).to_string();
    let guarded = [
        "--master-key",
        &master,
        "--key-file",
        file.to_str().expect("text"),
    ];
    for (who, expected) in [
        (&[][..], "the room is open"),
        (
            &guarded,
            "no room: the relay opens rooms for holders of its master's tokens",
        ),
    ] {
        let mut relay = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["relay", "--listen", "127.0.0.1:0"])
            .args(who)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the relay starts");
        let mut ready = String::new();
        let mut output = BufReader::new(relay.stdout.take().expect("piped"));
        output.read_line(&mut ready).expect("a line");
        let at = ready.split_whitespace().nth(1).expect("ready ADDRESS");
        let mut game = Game::start(&["--no-web", "--relay", at]);
        let mut line = String::new();
        game.output.read_line(&mut line).expect("a line");
        assert!(line.starts_with(expected), "{line}");
        drop(game);
        relay.kill().expect("it runs");
        relay.wait().expect("it ends");
    }
}

#[test]
fn what_cannot_be_is_said_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let level = directory.path().join("level.json");
    std::fs::write(&level, "{}").expect("written");
    let level = level.to_str().expect("text");
    for (arguments, expected) in [
        (&["game"][..], "no address to listen on"),
        (&["game", "--listen", "127.0.0.1:0"], "--danger-no-tokens"),
        (
            &[
                "game",
                "--listen",
                "127.0.0.1:0",
                "--danger-no-tokens",
                "--level",
                level,
            ],
            "is not a level",
        ),
        (&["up", "--page", "nowhere"], "make page"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(arguments)
            .output();
        let output = output.expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn secrets_go_to_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt;

    let keys = std::env::temp_dir().join(format!("muse-game-{}.keys", std::process::id()));
    let path = keys.to_str().expect("text");
    let game = Game::start(&["--no-web", "--danger-key-log", path]);
    let mode = |path| {
        let data = std::fs::metadata(path).expect("the log is made before anybody connects");
        data.permissions().mode() & 0o777
    };
    assert_eq!(mode(&keys), 0o600);
    drop(game);
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).expect("our file");
    let output = Command::new(env!("CARGO_BIN_EXE_muse"))
        .args([
            "game",
            "--listen",
            "127.0.0.1:0",
            "--danger-no-tokens",
            "--no-web",
        ])
        .args(["--danger-key-log", path])
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("chmod 600"),
        "{text}"
    );
    std::fs::remove_file(&keys).expect("our file");
}

/// Lets them play until `done`; half a minute is far more than it takes.
fn turn_until(walkers: &mut [Walker], mut done: impl FnMut(&mut [Walker]) -> bool) {
    let limit = Clock::now() + Duration::from_secs(30);
    while !done(walkers) {
        assert!(Clock::now() < limit, "it takes too long");
        walkers.iter_mut().for_each(Walker::turn);
    }
}
