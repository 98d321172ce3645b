//! A hostile client at a real server: levers from afar, speed, shots from elsewhere, jumps in the air and more, none of which another player notices, and the report names them.

#[path = "game/server.rs"]
mod server;

use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use muse_biobot::messages::VERSION;
use muse_biobot::{Command, FromPlayer, Level, Phase, Place, Player, ToPlayer};
use muse_drivers::ClientDriver;
use muse_netcode::Claim;
use muse_netcode::{Tick, TickTime};
use muse_transport::Event;
use muse_wire::Instant;

use server::Game;

/// A connection with Biobot's client on it, whose owner may do as they like.
struct Seat {
    link: ClientDriver,
    player: Option<Player>,
    heard: Vec<ToPlayer>,
    /// Packets that it has sent.
    sent: Vec<Vec<u8>>,
    /// True if it sends what an honest client would not.
    modified: bool,
}

impl Seat {
    fn new(game: &Game, modified: bool) -> Self {
        Self {
            link: game.connect(),
            player: None,
            heard: Vec::new(),
            sent: Vec::new(),
            modified,
        }
    }

    /// One turn with these keys, at a time that the player's clock is told.
    fn turn(&mut self, name: &str, keys: Command, clock: impl Fn(Instant) -> Instant) {
        self.link.wait(Duration::from_millis(2)).expect("a socket");
        self.link.poll().expect("a socket");
        let now = clock(self.link.now());
        let mut buffer = Vec::new();
        while let Some(event) = self.link.poll_event(&mut buffer) {
            let Event::Message {
                channel, payload, ..
            } = event
            else {
                continue;
            };
            if channel == 0 {
                if let Some(player) = &mut self.player {
                    let _ = player.handle_packet(now, payload);
                }
                continue;
            }
            let message = ToPlayer::decode(payload).expect("the server speaks so");
            if let ToPlayer::Welcome { mode, .. } = message {
                let mut player = Player::new(now, Arc::new(Level::of(mode)), name);
                if self.modified {
                    player.danger_send_everything();
                }
                self.player = Some(player);
            }
            if let Some(player) = &mut self.player {
                player.handle_message(&message);
            }
            self.heard.push(message);
        }
        let Some(player) = &mut self.player else {
            return;
        };
        while let Some(message) = player.poll_message() {
            let _ = self.link.send(1, &message.encode());
        }
        let mut packet = [0; 1_100];
        while let Some(len) = player.poll_packet(now, keys, &mut packet) {
            let _ = self.link.send(0, &packet[..len]);
            self.sent.push(packet[..len].to_vec());
        }
        player.frame(now);
        self.link.flush().expect("a socket");
    }

    fn say(&mut self, message: &FromPlayer) {
        let _ = self.link.send(1, &message.encode());
    }

    fn plays(&self) -> bool {
        let round = self.player.as_ref().and_then(Player::round);
        round.is_some_and(|round| round.phase == Phase::Playing)
    }
}

/// The honest player and the hostile one, and what the honest one sees.
struct Trial {
    honest: Seat,
    hostile: Seat,
    rng: fastrand::Rng,
    turns: u32,
    seen: Seen,
}

/// The honest player's view of the other.
#[derive(Debug, Default)]
struct Seen {
    height_max: f32,
    /// Fastest over half a second, metres a second along the ground.
    speed_max: f32,
    door_max: f32,
    shots: u32,
    last_shots: Option<u8>,
    from: Option<(Clock, [f32; 3])>,
}

impl Trial {
    /// Plays for a while, the hostile one with these keys; `also` is what they do besides in each turn.
    fn play(
        &mut self,
        seconds: f32,
        keys: impl Fn(u32) -> Command,
        mut also: impl FnMut(&mut Seat, &mut fastrand::Rng),
    ) {
        let until = Clock::now() + Duration::from_secs_f32(seconds);
        while Clock::now() < until {
            self.turn(keys(self.turns), |now| now);
            also(&mut self.hostile, &mut self.rng);
        }
    }

    fn turn(&mut self, keys: Command, clock: impl Fn(Instant) -> Instant) {
        self.turns += 1;
        let circle = Command {
            yaw: self.turns as f32 * 0.01,
            ..Command::default()
        };
        self.honest.turn("Honest", circle, |now| now);
        self.hostile.turn("Hostile", keys, clock);
        if let Some(player) = &self.honest.player {
            self.seen.look(player);
        }
    }
}

impl Seen {
    fn look(&mut self, player: &Player) {
        let frame = player.last_frame();
        let devices = frame.devices.iter().zip(&player.level().devices);
        for (shown, _) in devices.filter(|(_, device)| device.id == "door-a") {
            self.door_max = self.door_max.max(shown.progress);
        }
        let Some(shown) = frame.robots.first() else {
            return;
        };
        let position = shown.robot.position;
        self.height_max = self.height_max.max(position[1]);
        let shots = shown.robot.shots;
        let last = self.last_shots.replace(shots).unwrap_or(shots);
        self.shots += u32::from(shots.wrapping_sub(last));
        let (since, from) = *self.from.get_or_insert((Clock::now(), position));
        let past = since.elapsed().as_secs_f32();
        if past >= 0.5 {
            let way = (position[0] - from[0]).hypot(position[2] - from[2]);
            self.speed_max = self.speed_max.max(way / past);
            self.from = None;
        }
    }
}

#[test]
fn cheats_have_no_effect_and_are_reported() {
    let game = Game::start(&["--no-web", "--seed", "5"]);
    let mut trial = Trial {
        honest: Seat::new(&game, false),
        hostile: Seat::new(&game, true),
        rng: fastrand::Rng::with_seed(41),
        turns: 0,
        seen: Seen::default(),
    };
    let limit = Clock::now() + Duration::from_secs(20);
    while !(trial.honest.plays() && trial.hostile.plays()) {
        assert!(Clock::now() < limit, "the match does not begin");
        trial.turn(Command::default(), |now| now);
    }
    // Doors are drawn shutting when a match begins; from then on everything counts.
    trial.play(3.0, |_| Command::default(), |_, _| ());
    trial.seen = Seen::default();
    cheat_with_keys(&mut trial);
    cheat_with_time(&mut trial);
    cheat_with_bytes(&mut trial);
    cheat_with_words(&mut trial);
    trial.play(1.0, |_| Command::default(), |_, _| ());
    judge(&trial);
    drop((trial.honest, trial.hostile));
    let status = std::process::Command::new("kill")
        .arg(game.child.id().to_string())
        .status();
    assert!(status.expect("kill runs").success());
    let (text, well) = game.end();
    assert!(well, "{text}");
    judge_report(&text);
}

/// Presses what no robot in its place may do: jumps in the air, levers out of reach, shots without pause, weapons that it has not found,
/// claims to have seen what was long ago or is still to come, shots from where it is not.
fn cheat_with_keys(trial: &mut Trial) {
    let jump = |turn: u32| Command {
        jump: turn.is_multiple_of(2),
        ..Command::default()
    };
    trial.play(1.5, jump, |_, _| ());
    let reach = |turn: u32| Command {
        use_: turn.is_multiple_of(2),
        ..Command::default()
    };
    trial.play(1.0, reach, |_, _| ());
    let stolen = |turn: u32| Command {
        weapon: 4,
        fire: turn.is_multiple_of(2),
        ..Command::default()
    };
    trial.play(0.5, stolen, |_, _| ());
    let long_ago = TickTime::from(Tick(1));
    let forged = move |turn: u32| Command {
        fire: turn.is_multiple_of(2),
        yaw: 1.57,
        claim: Some(Claim::at(long_ago)),
        ..Command::default()
    };
    trial.play(1.5, forged, |_, _| ());
    let to_come = move |_: u32| Command {
        fire: true,
        claim: Some(Claim::at(TickTime::from(Tick(1_000_000)))),
        ..Command::default()
    };
    trial.play(0.5, to_come, |_, _| ());
    // All the time on the trigger, also while it reloads.
    let always = |_: u32| Command {
        fire: true,
        ..Command::default()
    };
    trial.play(1.5, always, |_, _| ());
    let robot = trial.hostile.player.as_ref().and_then(Player::predicted);
    let lives = robot.expect("it plays").lives;
    let elsewhere = move |_: u32| Command {
        fire: true,
        place: Some(Place {
            position: [0.0, 0.1, -40.0],
            velocity: [0.0; 3],
            standing: 1,
            lives,
        }),
        ..Command::default()
    };
    trial.play(4.0, elsewhere, |_, _| ());
}

/// Runs with a clock that goes twice as fast: twice the steps.
fn cheat_with_time(trial: &mut Trial) {
    let from = trial.hostile.link.now();
    let until = Clock::now() + Duration::from_secs(9);
    while Clock::now() < until {
        let run = Command {
            forward: 1,
            yaw: trial.turns as f32 * 0.003,
            ..Command::default()
        };
        trial.turn(run, |now| now + now.saturating_since(from));
    }
}

/// Damaged packets, cut packets, old packets, the same packets over and over, and bytes that are no message.
fn cheat_with_bytes(trial: &mut Trial) {
    let still = |_: u32| Command::default();
    trial.play(1.0, still, |seat, rng| {
        let garbage: Vec<u8> = (0..rng.usize(1..200)).map(|_| rng.u8(..)).collect();
        let _ = seat.link.send(0, &garbage);
        let _ = seat.link.send(1, &garbage);
    });
    trial.play(1.0, still, |seat, rng| {
        let sent = &seat.sent[rng.usize(..seat.sent.len())];
        let cut = &sent[..rng.usize(..sent.len())];
        let _ = seat.link.send(0, cut);
        let old = seat.sent.first().expect("it has sent some").clone();
        let _ = seat.link.send(0, &old);
    });
    trial.play(1.5, still, |seat, _| {
        let last = seat.sent.last().expect("it has sent some").clone();
        for _ in 0..20 {
            let _ = seat.link.send(0, &last);
        }
    });
}

/// Another name, another version, votes about nothing, texts that are none, and too many of them.
fn cheat_with_words(trial: &mut Trial) {
    let hello = |name: &str, version: u16| FromPlayer::Hello {
        name: name.to_owned(),
        version,
    };
    let chat = |text: &str| FromPlayer::Chat {
        text: text.to_owned(),
    };
    for message in [
        hello("Honest", VERSION),
        hello("Hostile", VERSION + 1),
        FromPlayer::Vote { go_on: false },
        chat("\u{7}\u{1b}[2J"),
    ] {
        trial.play(0.3, |_| Command::default(), |_, _| ());
        trial.hostile.say(&message);
    }
    for _ in 0..60 {
        trial.hostile.say(&chat("spam"));
    }
    trial.play(1.0, |_| Command::default(), |_, _| ());
}

/// Checks that the honest player noticed nothing.
fn judge(trial: &Trial) {
    let Trial { honest, seen, .. } = trial;
    assert!(seen.height_max < 1.45, "it jumped in the air: {seen:?}");
    assert!(seen.speed_max < 6.6, "it ran too fast: {seen:?}");
    assert!(
        seen.door_max == 0.0,
        "it used what was out of reach: {seen:?}"
    );
    // Nine seconds on the trigger: the blaster's pause and its magazine leave so many.
    assert!(seen.shots <= 46, "it fired too fast: {seen:?}");
    let player = honest.player.as_ref().expect("it plays");
    let own = player.predicted().expect("it plays");
    assert_eq!(own.health, 100);
    let frame = player.last_frame();
    assert_eq!(frame.statistics.jumps, 0, "{:?}", frame.statistics);
    let other = &frame.robots.first().expect("it is there").robot;
    assert_eq!(
        other.owned & 0b1000,
        0,
        "it has a weapon that it did not find"
    );
    let names: Vec<&str> = player
        .names()
        .iter()
        .map(|name| name.name.as_str())
        .collect();
    assert_eq!(names, ["Honest", "Hostile"]);
    let lines = |wanted: fn(&str) -> bool| {
        let chats = honest.heard.iter().filter(
            |message| matches!(message, ToPlayer::Chat { from: Some(1), text } if wanted(text)),
        );
        chats.count()
    };
    assert!(lines(|text| text == "spam") <= 16, "a flood of lines");
    assert_eq!(lines(|text| text.contains('\u{1b}')), 0);
}

fn judge_report(text: &str) {
    let line = |name: &str| {
        let found = text.lines().find(|line| line.contains(name));
        found.unwrap_or_else(|| unreachable!("nothing on {name}: {text}"))
    };
    assert!(line("(Honest").ends_with("): clean"), "{text}");
    let hostile = line("(Hostile");
    for offence in [
        "suspect",
        "bad packet",
        "bad message",
        "flood of packets",
        "flood of messages",
        "forged claim",
        "weapon not owned",
        "message out of turn",
        "bad text",
        "use from afar",
        "fire too fast",
        "jump in the air",
        "shot from elsewhere",
        "fast clock",
    ] {
        assert!(hostile.contains(offence), "{offence} is not in: {hostile}");
    }
}
