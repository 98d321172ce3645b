//! The master as it ships: the binary, its child processes and its file, killed by pid in the middle of things.

mod ending;
mod faults;
mod hosted;
mod hostile;
#[cfg(feature = "nats")]
#[path = "../support/nats.rs"]
#[allow(dead_code, reason = "the bus's tests use more of it")]
mod nats;
mod operators;
#[cfg(feature = "postgres")]
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "the store's tests use more of it")]
mod postgres;
mod program;
mod queues;
mod relays;
mod secrets;
#[cfg(feature = "postgres")]
mod several;
mod social;
mod tls;
mod together;

use std::time::Duration;

use program::{Master, Player, Request, wait_for};

/// Two players meet, play and come back, with ratings; the port is free again.
#[test]
fn two_players_play_a_match_and_come_back() {
    let master = Master::start(&[], 1.0);
    let players = [
        Player::start(&master, 1, false),
        Player::start(&master, 2, false),
    ];
    for (player, device) in players.iter().zip(1..) {
        player.expect("online", Duration::from_secs(30));
        master.play(device);
    }
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
        let back = player.expect("back", Duration::from_secs(30));
        assert!(back.ends_with("Finished"), "{back}");
    }
    let ranking = master.request(Request::get("/v1/ranking")).expect_json(200);
    assert_eq!(ranking["lines"][0]["points"], 2);
    assert!(ranking["lines"][0]["rating"].as_f64() > Some(1_500.0));
    let figures = master.request(Request::get("/metrics")).expect(200);
    assert!(figures.contains("muse_matches_created"), "{figures}");
}

/// Master killed with -9: the running game goes on, and its result counts when the master is back.
#[test]
fn a_killed_master_leaves_the_game_running_and_comes_back_to_its_result() {
    let mut master = Master::start(&[], 6.0);
    let players = [
        Player::start(&master, 1, false),
        Player::start(&master, 2, false),
    ];
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    for device in 1..=2 {
        master.play(device);
    }
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    let games = master.busy_game_servers();
    assert_eq!(games.len(), 1);
    master.kill();
    assert_eq!(
        master.busy_game_servers(),
        games,
        "the game went down with the master"
    );
    master.start_again();
    for player in &players {
        player.expect("offline", Duration::from_secs(30));
        player.expect("online", Duration::from_secs(30));
        let back = player.expect("back", Duration::from_secs(40));
        assert!(!back.ends_with("Aborted"), "{back}");
    }
    let finished = "SELECT count(*) FROM matches WHERE outcome = 'finished'";
    assert_eq!(master.rows(finished), 1);
    assert_eq!(master.rows("SELECT count(*) FROM results"), 2);
    assert_eq!(master.rows("SELECT count(*) FROM seats"), 0);
}

/// The queue is restored, with the places of those who come back.
#[test]
fn a_killed_master_restores_its_queue() {
    let mut master = Master::start(&[], 1.0);
    let first = Player::start(&master, 1, true);
    first.expect("queue", Duration::from_secs(30));
    master.kill();
    assert_eq!(master.rows("SELECT count(*) FROM tickets"), 1);
    master.start_again();
    first.expect("online", Duration::from_secs(30));
    first.expect("queue", Duration::from_secs(30));
    let second = Player::start(&master, 2, true);
    first.expect("playing", Duration::from_secs(30));
    second.expect("playing", Duration::from_secs(30));
    assert_eq!(master.rows("SELECT count(*) FROM tickets"), 0);
}

/// Game server killed with -9: one aborted match, no ratings, players back at the master within 10 s.
#[test]
fn a_crashed_game_server_aborts_its_match_once() {
    let master = Master::start(&[], 600.0);
    let players = [
        Player::start(&master, 1, true),
        Player::start(&master, 2, true),
    ];
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    for pid in master.busy_game_servers() {
        program::kill(pid);
    }
    for player in &players {
        let back = player.expect("back", Duration::from_secs(10));
        assert!(back.ends_with("Aborted"), "{back}");
    }
    assert_eq!(
        master.rows("SELECT count(*) FROM matches WHERE outcome = 'aborted'"),
        1
    );
    assert_eq!(master.rows("SELECT count(*) FROM results"), 0);
}

/// A port that another program holds is left alone, and the match is played on another.
#[test]
fn a_strangers_port_is_left_alone() {
    let first_port = program::free_ports();
    let stranger = std::net::UdpSocket::bind(("0.0.0.0", first_port)).expect("a free port");
    let port = first_port.to_string();
    let master = Master::start(&["--first-port", &port], 1.0);
    let players = [
        Player::start(&master, 1, true),
        Player::start(&master, 2, true),
    ];
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    drop(stranger);
}

/// Two devices of one account press play: one ticket; and a full master says so.
#[test]
fn a_player_has_one_ticket_and_a_full_master_says_when_to_come_back() {
    let master = Master::start(&["--players-max", "1"], 1.0);
    let first = Player::start(&master, 1, true);
    first.expect("queue", Duration::from_secs(30));
    let token = master.token(1);
    let play = Request::post("/v1/ticket", r#"{"preferences":{"players":4}}"#).bearer(&token);
    let again = master.request(play).expect_json(200);
    assert_eq!(again["ticket"]["preferences"]["players"], 4);
    assert_eq!(master.rows("SELECT count(*) FROM tickets"), 1);
    let second = Player::start(&master, 2, false);
    second.expect("full", Duration::from_secs(30));
}

/// A master that was stopped past its lease is refused when it wakes up, and the other one goes on.
#[test]
fn a_stopped_master_wakes_up_without_power() {
    let old = Master::start(&[], 1.0);
    wait_for("the first one leads", Duration::from_secs(20), || {
        old.figure("muse_leading") == Some(1.0)
    });
    old.stop_between_transactions();
    let new = Master::start_beside(&old);
    wait_for("the second one leads", Duration::from_secs(30), || {
        new.figure("muse_leading") == Some(1.0)
    });
    assert_eq!(new.rows("SELECT max(epoch) FROM leases"), 2);
    program::signal(old.pid(), "CONT");
    wait_for("the first one has noticed", Duration::from_secs(20), || {
        old.figure("muse_leading") == Some(0.0)
    });
    let players = [Player::start(&new, 1, true), Player::start(&new, 2, true)];
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    assert_eq!(new.rows("SELECT max(epoch) FROM leases"), 2);
}

/// SIGTERM: no new matches, the running one finishes, then the process ends by itself.
#[test]
fn a_terminated_master_lets_its_matches_finish() {
    let mut master = Master::start(&[], 3.0);
    let players = [
        Player::start(&master, 1, false),
        Player::start(&master, 2, false),
    ];
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    for device in 1..=2 {
        master.play(device);
    }
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    program::signal(master.pid(), "TERM");
    assert!(master.ends_within(Duration::from_secs(30)));
    assert_eq!(
        master.rows("SELECT count(*) FROM matches WHERE outcome = 'finished'"),
        1
    );
    wait_for("no game server is left", Duration::from_secs(15), || {
        master.game_servers().is_empty()
    });
}

/// Accounts, friends, rooms, chat and progress over HTTP; and everything goes with the account.
#[test]
fn accounts_are_exported_and_deleted_with_one_call() {
    let master = Master::start(&[], 1.0);
    let (one, other) = (master.token(1), master.token(2));
    let name = r#"{"name":"ada","password":"correct horse"}"#;
    master
        .request(Request::put("/v1/account/password", name).bearer(&one))
        .expect(204);
    master
        .request(Request::put("/v1/account/password", name).bearer(&other))
        .expect(409);
    master
        .request(Request::post("/v1/sign-in", name))
        .expect(200);
    let wrong = r#"{"name":"ada","password":"incorrect horse"}"#;
    master
        .request(Request::post("/v1/sign-in", wrong))
        .expect(401);
    let room = master
        .request(Request::post("/v1/room", "").bearer(&one))
        .expect_json(200);
    let code = room["code"].as_str().expect("a code").to_owned();
    assert_eq!(code.len(), 6);
    let joined = Request::post(&format!("/v1/room/{code}"), "").bearer(&other);
    assert_eq!(
        master.request(joined).expect_json(200)["members"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let line = Request::post("/v1/chat/room", r#"{"text":"hello"}"#).bearer(&one);
    master.request(line).expect(200);
    let progress = r#"{"version":0,"document":{"level":3}}"#;
    master
        .request(Request::put("/v1/progress/biobot", progress).bearer(&one))
        .expect(200);
    master
        .request(Request::put("/v1/progress/biobot", progress).bearer(&one))
        .expect(409);
    let export = master
        .request(Request::get("/v1/account/export").bearer(&one))
        .expect_json(200);
    assert_eq!(export["chat"][0]["text"], "hello");
    master
        .request(Request::delete("/v1/account").bearer(&one))
        .expect(204);
    master
        .request(Request::get("/v1/account").bearer(&one))
        .expect(401);
    assert_eq!(master.rows("SELECT count(*) FROM chat"), 0);
    // Nonsense has an answer too.
    master.request(Request::get("/v1/nowhere")).expect(404);
    master.request(Request::post("/v1/guest", "{")).expect(400);
    master.request(Request::delete("/v1/guest")).expect(405);
    let page = master
        .request(Request::get("/openapi.json"))
        .expect_json(200);
    assert!(page["paths"]["/v1/ticket"]["post"].is_object());
}
