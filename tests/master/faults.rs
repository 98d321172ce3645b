//! Faults that need more than a kill: a master that dies between allocation and commit, results that come again, ports and disks that run out.

use std::io::Write;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_master_client::messages::{
    FromServer, MatchResult, Outcome, Phase, PlayerResult, Report, ToServer, decode, encode,
};
use muse_master_client::{AccountId, MatchId};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::program::{self, Master, ORPHANED_MATCH, Player, Request, wait_for};

/// Killed between allocation and commit: the server that was started for a match of which nobody knows its server plays it or ends.
#[test]
fn a_server_that_was_allocated_but_not_recorded_is_reclaimed() {
    let mut master = Master::start(&["--matches-max", "1"], 8.0);
    let players: Vec<Player> = (1..=4).map(|n| Player::start(&master, n, false)).collect();
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    for (player, device) in players[..2].iter().zip(1..) {
        master.play(device);
        player.expect("queue", Duration::from_secs(30));
    }
    players[0].expect("playing", Duration::from_secs(30));
    let first = master.busy_game_servers();
    for (player, device) in players[2..].iter().zip(3..) {
        master.play(device);
        player.expect("queue", Duration::from_secs(30));
    }
    // The first match is played; the second one waits for the first one's place.
    let lock = master.lock_file();
    lock.execute_batch(&format!("{ORPHANED_MATCH} COMMIT"))
        .expect("written");
    drop(lock);
    let open = "SELECT count(*) FROM matches WHERE ended_us IS NULL AND server IS NULL";
    assert_eq!(master.rows(open), 1);
    let over = "SELECT count(*) FROM matches WHERE ended_us IS NOT NULL";
    master.wait_in_file("the first one is over", over, 1);
    // Nobody writes from here on, so the server's name for the second match cannot be stored.
    let lock = master.lock_file();
    wait_for("a server is allocated", Duration::from_secs(5), || {
        let gone = |server| !master.game_servers().contains(server);
        first.iter().all(gone) && master.figure("muse_servers_busy") == Some(1.0)
    });
    let servers = master.game_servers();
    master.kill();
    drop(lock);
    assert_eq!(master.rows(open), 1, "the server was recorded after all");
    assert!(!servers.is_empty());
    master.start_again();
    let ended = "SELECT count(*) FROM matches WHERE ended_us IS NOT NULL";
    wait_for("both matches are over", Duration::from_secs(60), || {
        master.rows(ended) == 2
    });
    assert_eq!(master.rows("SELECT count(*) FROM seats"), 0);
    wait_for(
        "only the warm server is left",
        Duration::from_secs(30),
        || master.game_servers().len() == 1,
    );
}

/// A result that comes twice at once and again after the end counts once.
#[test]
fn a_result_that_comes_twice_and_late_counts_once() {
    let master = Master::start(&[], 600.0);
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
    }
    let server = master.busy_game_servers()[0];
    program::signal(server, "STOP");
    let number = |sql: &str| u64::try_from(master.rows(sql)).expect("not negative");
    let match_id = MatchId(number("SELECT match_id FROM matches"));
    let seated = [
        "SELECT min(account) FROM seats",
        "SELECT max(account) FROM seats",
    ];
    let seated = seated.map(|sql| AccountId(number(sql)));
    let result = |points| {
        let player = |account| PlayerResult {
            account,
            points,
            team: None,
        };
        FromServer::Result(MatchResult {
            match_id,
            outcome: Outcome::Finished,
            players: seated.map(player).to_vec(),
        })
    };
    let report = FromServer::Report(Report {
        match_id: Some(match_id),
        phase: Phase::Running,
        seated: seated.to_vec(),
        present: seated.to_vec(),
        ..Report::default()
    });
    let register = FromServer::Register {
        address: program::variable(server, "MUSE_SERVER_ADDRESS"),
        public_key: master
            .texts("SELECT public_key FROM servers WHERE server = (SELECT server FROM matches)")
            .remove(0),
        claim: None,
    };
    let credential = program::variable(server, "MUSE_SERVER_CREDENTIAL");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut request = format!("ws://{}/v1/server", master.authority())
            .into_client_request()
            .expect("a request");
        let bearer = format!("Bearer {credential}").parse().expect("a header");
        request.headers_mut().insert("authorization", bearer);
        let stream = tokio::net::TcpStream::connect(master.authority())
            .await
            .expect("it listens");
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .expect("the credential is right");
        for message in [&register, &report, &result(7), &result(7)] {
            socket
                .send(Message::text(encode(message)))
                .await
                .expect("sent");
        }
        for late in [false, true] {
            if late {
                socket
                    .send(Message::text(encode(&result(99))))
                    .await
                    .expect("sent");
            }
            loop {
                let message = tokio::time::timeout(Duration::from_secs(20), socket.next()).await;
                let Some(Ok(Message::Text(text))) = message.expect("an answer") else {
                    unreachable!("the connection ended before the result was confirmed");
                };
                if matches!(decode(&text), Ok(ToServer::ResultStored { .. })) {
                    break;
                }
            }
        }
    });
    for player in &players {
        let back = player.expect("back", Duration::from_secs(30));
        assert!(back.ends_with("Finished"), "{back}");
    }
    assert_eq!(master.rows("SELECT count(*) FROM results"), 2);
    assert_eq!(master.rows("SELECT sum(points) FROM results"), 14);
    assert_eq!(master.rows("SELECT sum(points) FROM accounts"), 14);
    assert_eq!(
        master.rows("SELECT count(*) FROM matches WHERE outcome = 'finished'"),
        1
    );
}

/// Two devices of one account press play at the same time, many times: never more than one ticket.
#[test]
fn two_devices_that_play_at_once_have_one_ticket() {
    let master = Master::start(&[], 1.0);
    let name = r#"{"name":"ada","password":"correct horse"}"#;
    let first = master.token(1);
    master
        .request(Request::put("/v1/account/password", name).bearer(&first))
        .expect(204);
    let second = master
        .request(Request::post("/v1/sign-in", name))
        .expect_json(200);
    let second = second["access_token"].as_str().expect("a token");
    std::thread::scope(|scope| {
        for (device, token) in [first.as_str(), second].into_iter().enumerate() {
            let authority = master.authority();
            scope.spawn(move || {
                for round in 0..25 {
                    // Each asks for something else, so that nobody's press takes the other's ticket back.
                    let wish =
                        format!(r#"{{"preferences":{{"choices":{{"wish":"{device} {round}"}}}}}}"#);
                    let play = Request::post("/v1/ticket", &wish).bearer(token);
                    program::ask(authority, play).expect(200);
                }
            });
        }
        for _ in 0..50 {
            assert!(master.rows("SELECT count(*) FROM tickets") <= 1);
        }
    });
    assert_eq!(master.rows("SELECT count(*) FROM tickets"), 1);
    assert_eq!(master.rows("SELECT count(*) FROM ticket_members"), 1);
}

/// The master is paused for longer than a server may be silent, twice: the match goes on and its result counts.
#[test]
fn a_paused_master_aborts_no_match() {
    let master = Master::start(&[], 40.0);
    let players = [
        Player::start(&master, 1, true),
        Player::start(&master, 2, true),
    ];
    for player in &players {
        player.expect("playing", Duration::from_secs(30));
    }
    for _ in 0..2 {
        master.stop_between_transactions();
        std::thread::sleep(Duration::from_secs(12));
        program::signal(master.pid(), "CONT");
        // The pause is over when it leads again by a lease of its own.
        wait_for("it leads", Duration::from_secs(20), || {
            let holds = "SELECT count(*) FROM leases WHERE until_us > 1000000 * CAST(strftime('%s') AS INTEGER)";
            master.rows(holds) == 1 && master.figure("muse_leading") == Some(1.0)
        });
        let aborted = "SELECT count(*) FROM matches WHERE outcome IS NOT NULL";
        assert_eq!(master.rows(aborted), 0);
    }
    for player in &players {
        let back = player.expect("back", Duration::from_secs(60));
        assert!(back.ends_with("Finished"), "{back}");
    }
    assert_eq!(master.rows("SELECT count(*) FROM results"), 2);
}

/// There is one port: the second match waits until the first one's is free again.
#[test]
fn a_match_waits_while_all_ports_are_taken() {
    let master = Master::start(&["--first-port", "65535"], 2.0);
    let players: Vec<Player> = (1..=4).map(|n| Player::start(&master, n, false)).collect();
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    for device in 1..=4 {
        master.play(device);
    }
    for player in &players {
        player.expect("playing", Duration::from_secs(60));
        let back = player.expect("back", Duration::from_secs(30));
        assert!(back.ends_with("Finished"), "{back}");
    }
    assert_eq!(
        master.rows("SELECT count(*) FROM matches WHERE outcome = 'finished'"),
        2
    );
    let elsewhere = "SELECT count(*) FROM servers WHERE address NOT LIKE '%:65535'";
    assert_eq!(master.rows(elsewhere), 0);
}

/// The disk is full: a clear error and nothing half-written; room again: it goes on without a restart.
#[test]
fn a_full_disk_is_a_clear_error_and_no_more() {
    let master = Master::start_on_small_disk(4);
    let token = master.token(1);
    let ballast = master.folder().join("ballast");
    let mut file = std::fs::File::create(&ballast).expect("made");
    while file.write_all(&[1; 4_096]).is_ok() {}
    drop(file);
    // What is in the log already may still be overwritten, so the first few may go through.
    let mut acknowledged = 0;
    let refused = (0..200).find_map(|round| {
        let wish = format!(r#"{{"preferences":{{"choices":{{"wish":"{round}"}}}}}}"#);
        let answer = master.request(Request::post("/v1/ticket", &wish).bearer(&token));
        if answer.status() == 200 {
            acknowledged = round;
        }
        (answer.status() != 200).then_some(answer)
    });
    let body = refused.expect("the disk is full").expect_json(503);
    assert_eq!(body["code"], "unavailable");
    master.request(Request::get("/health")).expect(204);
    std::fs::remove_file(&ballast).expect("removed");
    wait_for("it is ready again", Duration::from_secs(30), || {
        master.request(Request::get("/ready")).status() == 204
    });
    let state = master
        .request(Request::get("/v1/state").bearer(&token))
        .expect_json(200);
    let kept = state["ticket"]["preferences"]["choices"]["wish"]
        .as_str()
        .map(str::to_owned);
    let expected = (acknowledged > 0).then(|| acknowledged.to_string());
    assert!(
        kept == expected || kept.as_deref() == Some("0"),
        "{kept:?}, acknowledged {acknowledged}"
    );
    let again = Request::post("/v1/ticket", r#"{"preferences":{"players":2}}"#).bearer(&token);
    master.request(again).expect(200);
    assert_eq!(master.rows("SELECT count(*) FROM tickets"), 1);
    wait_for("it leads again", Duration::from_secs(30), || {
        master.figure("muse_leading") == Some(1.0)
    });
}
