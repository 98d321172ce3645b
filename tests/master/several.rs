//! Masters with PostgreSQL and NATS: the database away, the bus lost, a leader stopped or killed, devices at two masters.

use std::time::Duration;

use crate::postgres::Postgres;
use crate::program::{Master, ORPHANED_MATCH, Player, Request, wait_for};

/// The database is away for half a minute: a clear error, no new matches, the running game goes on, and everything goes on without a restart.
#[test]
fn a_database_that_is_away_for_half_a_minute_is_waited_for() {
    let database = Postgres::start();
    let url = database.database("muse");
    let master = Master::start(&["--database", &url], 50.0);
    let players: Vec<Player> = (1..=4).map(|n| Player::start(&master, n, false)).collect();
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    let tokens = [3, 4].map(|device| master.token(device));
    for device in [1, 2] {
        master.play(device);
    }
    for player in &players[..2] {
        player.expect("playing", Duration::from_secs(30));
    }
    let play = |token: &str| Request::post("/v1/ticket", r#"{"preferences":{}}"#).bearer(token);
    database.stop();
    let away = std::time::Instant::now();
    while away.elapsed() < Duration::from_secs(30) {
        for token in &tokens {
            let refused = master.request(play(token)).expect_json(503);
            assert_eq!(refused["code"], "unavailable");
        }
        master.request(Request::get("/ready")).expect(503);
        master.request(Request::get("/health")).expect(204);
        std::thread::sleep(Duration::from_secs(3));
    }
    database.start_again();
    wait_for("it is ready", Duration::from_secs(30), || {
        master.request(Request::get("/ready")).status() == 204
    });
    assert_eq!(database.ask("muse", "SELECT count(*) FROM matches"), "1");
    assert_eq!(database.ask("muse", "SELECT count(*) FROM tickets"), "0");
    for token in &tokens {
        master.request(play(token)).expect(200);
    }
    for player in &players[2..] {
        player.expect("playing", Duration::from_secs(60));
    }
    for player in &players[..2] {
        let back = player.expect("back", Duration::from_secs(60));
        assert!(back.ends_with("Finished"), "{back}");
    }
    let aborted = "SELECT count(*) FROM matches WHERE outcome = 'aborted'";
    assert_eq!(database.ask("muse", aborted), "0");
}

/// Killed between allocation and commit: nobody else may write while the server's name is to be stored, so it is not.
#[test]
fn a_server_that_was_allocated_but_not_recorded_is_reclaimed() {
    let database = Postgres::start();
    let url = database.database("muse");
    let mut master = Master::start(&["--database", &url, "--matches-max", "1"], 8.0);
    let players: Vec<Player> = (1..=4).map(|n| Player::start(&master, n, false)).collect();
    for player in &players {
        player.expect("online", Duration::from_secs(30));
    }
    for (player, device) in players[..2].iter().zip(1..) {
        master.play(device);
        player.expect("queue", Duration::from_secs(30));
    }
    players[0].expect("playing", Duration::from_secs(30));
    let first = master.game_servers()[0];
    for (player, device) in players[2..].iter().zip(3..) {
        master.play(device);
        player.expect("queue", Duration::from_secs(30));
    }
    // The first match is played; the second one waits for the first one's place.
    database.ask("muse", ORPHANED_MATCH);
    let open = "SELECT count(*) FROM matches WHERE ended_us IS NULL AND server IS NULL";
    let over = "SELECT count(*) FROM matches WHERE ended_us IS NOT NULL";
    assert_eq!(database.ask("muse", open), "1");
    // Nobody writes after the end of the first match, so the server's name for the second one cannot be stored.
    let lock = database.hold("muse", over, 1, WRITERS);
    wait_for("a server is allocated", Duration::from_secs(10), || {
        !master.game_servers().contains(&first)
            && master.figure("muse_servers_busy") == Some(1.0)
            && database.ask("muse", open) == "1"
    });
    let servers = master.game_servers();
    master.kill();
    drop(lock);
    assert_eq!(database.ask("muse", open), "1", "it was recorded after all");
    assert!(!servers.is_empty());
    master.start_again();
    wait_for("both matches are over", Duration::from_secs(60), || {
        database.ask("muse", over) == "2"
    });
    assert_eq!(database.ask("muse", "SELECT count(*) FROM seats"), "0");
    wait_for(
        "only the warm server is left",
        Duration::from_secs(30),
        || master.game_servers().len() == 1,
    );
}

#[cfg(feature = "nats")]
mod two {
    use super::*;
    use crate::nats::{Nats, Stranger};
    use crate::operators::signed_in;
    use crate::program::{self, free_port};
    use futures_util::{SinkExt, StreamExt};
    use muse_master_client::Preferences;
    use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;

    /// Two masters with one database, the second one started when the first one leads.
    fn masters(database: &Postgres, nats: &Nats, seconds: f64) -> [Master; 2] {
        let url = database.database("muse");
        let bus = nats.url();
        let addresses = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
        let start = |own: &str, other: &str| {
            let arguments = [
                "--database",
                &url,
                "--nats",
                &bus,
                "--listen",
                own,
                "--other-master",
                other,
                "--operator",
                "ada",
            ];
            Master::start(&arguments, seconds)
        };
        let first = start(&addresses[0], &addresses[1]);
        wait_until_leading(&first);
        [first, start(&addresses[1], &addresses[0])]
    }

    fn wait_until_leading(master: &Master) {
        wait_for("it leads", Duration::from_secs(40), || {
            master.figure("muse_leading") == Some(1.0)
        });
    }

    fn play_together(masters: &[Master; 2], devices: [u32; 2]) -> Vec<Player> {
        let players = masters.iter().zip(devices);
        let players: Vec<Player> = players
            .map(|(master, n)| Player::start(master, n, true))
            .collect();
        for player in &players {
            player.expect("playing", Duration::from_secs(60));
        }
        players
    }

    fn expect_finished(players: &[Player]) {
        for player in players {
            let back = player.expect("back", Duration::from_secs(60));
            assert!(back.ends_with("Finished"), "{back}");
        }
    }

    /// Players of different masters meet, with the bus and without it, and when it is back.
    #[test]
    fn players_of_two_masters_meet_even_when_the_bus_is_lost() {
        let database = Postgres::start();
        let mut nats = Nats::start();
        let masters = masters(&database, &nats, 2.0);
        expect_finished(&play_together(&masters, [1, 2]));
        nats.stop();
        for player in play_together(&masters, [3, 4]) {
            player.expect("back", Duration::from_secs(60));
        }
        nats.start_again();
        play_together(&masters, [5, 6]);
        let aborted = "SELECT count(*) FROM matches WHERE outcome = 'aborted'";
        assert_eq!(database.ask("muse", aborted), "0");
    }

    /// A player leaves the queue by a call to another master, and the bus is lost: the connection hears of it all the same.
    #[test]
    fn who_leaves_the_queue_elsewhere_is_told_without_the_bus() {
        let database = Postgres::start();
        let mut nats = Nats::start();
        let masters = masters(&database, &nats, 2.0);
        nats.stop();
        let player = Player::start(&masters[1], 1, true);
        player.expect("queue", Duration::from_secs(30));
        let token = masters[0].token(1);
        let leave = Request::delete("/v1/ticket").bearer(&token);
        masters[0].request(leave).expect(204);
        player.expect("left", Duration::from_secs(20));
    }

    /// The leader is stopped past its lease, with a match: the other one leads and follows the match to its end, and what the old one does when it
    /// wakes up changes nothing.
    #[test]
    fn a_stopped_leader_wakes_up_without_power() {
        let database = Postgres::start();
        let nats = Nats::start();
        let masters = masters(&database, &nats, 40.0);
        let both = format!("{},{}", masters[0].authority(), masters[1].authority());
        let players = [1, 2].map(|device| Player::start_at(&both, device, true));
        for player in &players {
            player.expect("playing", Duration::from_secs(60));
        }
        program::signal(masters[0].pid(), "STOP");
        wait_until_leading(&masters[1]);
        // The players and the game server notice the silence, and come over.
        for player in &players {
            player.expect("offline", Duration::from_secs(40));
            player.expect("online", Duration::from_secs(40));
        }
        program::signal(masters[0].pid(), "CONT");
        wait_for("the old one has noticed", Duration::from_secs(40), || {
            masters[0].figure("muse_leading") == Some(0.0)
        });
        expect_finished(&players);
        assert_eq!(database.ask("muse", "SELECT max(epoch) FROM leases"), "2");
        let outcomes = "SELECT string_agg(outcome, ',') FROM matches WHERE ended_us IS NOT NULL";
        assert_eq!(database.ask("muse", outcomes), "finished");
        assert_eq!(database.ask("muse", "SELECT count(*) FROM results"), "2");
    }

    /// The leader is killed: the game goes on and its result counts, the queue is restored, and everybody resumes at the other master.
    #[test]
    fn a_killed_leader_is_followed_by_the_other_master() {
        let database = Postgres::start();
        let nats = Nats::start();
        let mut masters = masters(&database, &nats, 30.0);
        let both = format!("{},{}", masters[0].authority(), masters[1].authority());
        let players = [1, 2].map(|device| Player::start_at(&both, device, true));
        for player in &players {
            player.expect("playing", Duration::from_secs(60));
        }
        let waiting = Player::start_at(&both, 3, true);
        waiting.expect("queue", Duration::from_secs(30));
        let games = masters[0].game_servers();
        masters[0].kill();
        assert_eq!(masters[0].game_servers(), games, "a game went down too");
        assert_eq!(database.ask("muse", "SELECT count(*) FROM tickets"), "1");
        waiting.expect("online", Duration::from_secs(40));
        waiting.expect("queue", Duration::from_secs(30));
        wait_until_leading(&masters[1]);
        let late = Player::start(&masters[1], 4, true);
        for player in [&waiting, &late] {
            player.expect("playing", Duration::from_secs(60));
        }
        expect_finished(&players);
        let outcomes = "SELECT string_agg(outcome, ',') FROM matches WHERE ended_us IS NOT NULL";
        assert_eq!(database.ask("muse", outcomes), "finished");
    }

    /// A leader that is told to end gives the lease to the other one at once, and stays until its own match is over.
    #[test]
    fn a_terminated_leader_hands_over_and_lets_its_match_finish() {
        let database = Postgres::start();
        let nats = Nats::start();
        let mut masters = masters(&database, &nats, 15.0);
        let players = [1, 2].map(|device| Player::start(&masters[1], device, true));
        for player in &players {
            player.expect("playing", Duration::from_secs(60));
        }
        program::signal(masters[0].pid(), "TERM");
        wait_until_leading(&masters[1]);
        // The match is told apart from those that come after it by its number's epoch.
        let first = "SELECT coalesce(outcome, '') FROM matches ORDER BY match_id LIMIT 1";
        assert_eq!(database.ask("muse", first), "");
        let others = [3, 4].map(|device| Player::start(&masters[1], device, true));
        for player in &others {
            player.expect("playing", Duration::from_secs(60));
        }
        expect_finished(&players);
        assert!(masters[0].ends_within(Duration::from_secs(30)));
        assert_eq!(database.ask("muse", first), "finished");
    }

    /// The game servers of one master can reach another one alone, which leads and gives them matches: their own master does not end them for being late.
    #[test]
    fn a_server_that_went_to_another_master_plays_its_match_there() {
        let database = Postgres::start();
        let nats = Nats::start();
        let (url, bus) = (database.database("muse"), nats.url());
        let start = |master: &str, seconds| {
            let program = env!("CARGO_BIN_EXE_muse");
            let game = format!("env MUSE_MASTER=ws://{master} '{program}' master-game");
            Master::start(
                &["--database", &url, "--nats", &bus, "--game", &game],
                seconds,
            )
        };
        let nowhere = format!("127.0.0.1:{}", free_port());
        let first = start(&nowhere, 1.0);
        wait_until_leading(&first);
        let second = start(first.authority(), 15.0);
        let players = [1, 2].map(|device| Player::start(&first, device, true));
        for player in &players {
            player.expect("playing", Duration::from_secs(60));
        }
        let games = second.game_servers();
        expect_finished(&players);
        let outcomes = "SELECT string_agg(outcome, ',') FROM matches WHERE ended_us IS NOT NULL";
        assert_eq!(database.ask("muse", outcomes), "finished");
        assert!(
            !games.is_empty(),
            "the match was not on a server of the second master"
        );
    }

    /// Two devices of one account press play at two masters at the same time, many times: never more than one ticket.
    #[test]
    fn two_devices_at_two_masters_have_one_ticket() {
        let database = Postgres::start();
        let nats = Nats::start();
        let masters = masters(&database, &nats, 1.0);
        let name = r#"{"name":"ada","password":"correct horse"}"#;
        let first = masters[0].token(1);
        let named = Request::put("/v1/account/password", name).bearer(&first);
        masters[0].request(named).expect(204);
        let second = masters[1].request(Request::post("/v1/sign-in", name));
        let second = second.expect_json(200)["access_token"].clone();
        let second = second.as_str().expect("a token");
        std::thread::scope(|scope| {
            for (master, token) in masters.iter().zip([first.as_str(), second]) {
                let authority = master.authority();
                scope.spawn(move || {
                    for round in 0..25 {
                        // Each asks for something else, so that nobody's press takes the other's ticket back.
                        let wish = format!(
                            r#"{{"preferences":{{"choices":{{"wish":"{authority} {round}"}}}}}}"#
                        );
                        let play = Request::post("/v1/ticket", &wish).bearer(token);
                        program::ask(authority, play).expect(200);
                    }
                });
            }
            for _ in 0..20 {
                let tickets = database.ask("muse", "SELECT count(*) FROM tickets");
                assert!(["0", "1"].contains(&tickets.as_str()), "{tickets}");
            }
        });
        assert_eq!(database.ask("muse", "SELECT count(*) FROM tickets"), "1");
        let members = "SELECT count(*) FROM ticket_members";
        assert_eq!(database.ask("muse", members), "1");
    }

    /// Leaves a match at a master that does not lead and plays again in the same breath, before the leader can have heard of the one.
    #[test]
    fn who_leaves_a_match_may_play_again_at_once() {
        let database = Postgres::start();
        let nats = Nats::start();
        let masters = masters(&database, &nats, 5.0);
        let other = Player::start(&masters[1], 1, true);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut socket = open_push(&masters[1], 2).await;
            let play = || {
                let preferences = Preferences::default();
                Message::text(encode(&ToMaster::Play { preferences }))
            };
            socket.send(play()).await.expect("sent");
            hear(&mut socket, |heard| matches!(heard, FromMaster::Seat(_))).await;
            other.expect("playing", Duration::from_secs(60));
            let leave = Message::text(encode(&ToMaster::LeaveMatch));
            socket.feed(leave).await.expect("written");
            socket.send(play()).await.expect("sent");
            let answer = hear(&mut socket, |heard| {
                matches!(heard, FromMaster::Queue(_) | FromMaster::Refused { .. })
            });
            let answer = answer.await;
            assert!(matches!(answer, FromMaster::Queue(_)), "{answer:?}");
        });
    }

    /// Somebody who reaches the NATS server tells players lies, kicks them and repeats what masters said: nobody hears it, and it is counted.
    #[test]
    fn notes_of_a_stranger_reach_nobody() {
        let database = Postgres::start();
        let nats = Nats::start();
        let masters = masters(&database, &nats, 1.0);
        let mut stranger = Stranger::connect(&nats, "muse.notes");
        let operator = signed_in(&masters[0]);
        let announce = |text: &str| {
            let body = format!(r#"{{"text":"{text}"}}"#);
            let announce = Request::post("/admin/api/announcements", &body).bearer(&operator);
            masters[0].request(announce).expect(204);
        };
        let account = masters[1].sign_in(1)["account"].clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut socket = open_push(&masters[1], 1).await;
            hear(&mut socket, |heard| {
                matches!(heard, FromMaster::Welcome { .. })
            })
            .await;
            announce("first");
            let said = async |socket: &mut Socket| {
                let words = hear(socket, |heard| {
                    let is_lie = matches!(heard, FromMaster::Refused { .. });
                    is_lie || matches!(heard, FromMaster::Announcement { .. })
                });
                match words.await {
                    FromMaster::Announcement { text } => text,
                    other => unreachable!("{other:?}"),
                }
            };
            assert_eq!(said(&mut socket).await, "first");
            let genuine = stranger.hear("first");
            let forged = genuine.clone();
            let forged = String::from_utf8_lossy(&forged).replace("first", "gifts");
            let lie = encode(&FromMaster::Announcement {
                text: "gifts".to_owned(),
            });
            let plain = [
                serde_json::json!({ "TellAll": lie }).to_string(),
                serde_json::json!({ "Kick": [account, "forged"] }).to_string(),
            ];
            let messages = [genuine.as_slice(), forged.as_bytes(), &genuine];
            let all = messages
                .into_iter()
                .chain(plain.iter().map(String::as_bytes));
            for message in all {
                stranger.publish(message);
            }
            wait_for("each is counted", Duration::from_secs(20), || {
                let refused = |master: &Master| master.figure("muse_notes_refused");
                masters.iter().all(|master| refused(master) == Some(5.0))
            });
            announce("second");
            assert_eq!(said(&mut socket).await, "second");
        });
    }

    type Socket = tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>;

    async fn open_push(master: &Master, device: u32) -> Socket {
        let url = format!("ws://{}/v1/push", master.authority());
        let mut request = url.into_client_request().expect("a request");
        let bearer = format!("Bearer {}", master.token(device));
        let bearer = bearer.parse().expect("a header");
        request.headers_mut().insert("authorization", bearer);
        let stream = tokio::net::TcpStream::connect(master.authority()).await;
        let stream = stream.expect("it listens");
        let opened = tokio_tungstenite::client_async(request, stream).await;
        opened.expect("opened").0
    }

    /// The next thing that the master says of this kind.
    async fn hear(socket: &mut Socket, wanted: impl Fn(&FromMaster) -> bool) -> FromMaster {
        let limit = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(1), socket.next()).await;
            match heard {
                Ok(Some(Ok(Message::Text(text)))) => {
                    let heard = decode(&text).expect("the master speaks well");
                    if wanted(&heard) {
                        return heard;
                    }
                }
                Ok(other) => unreachable!("{other:?}"),
                Err(_) => {
                    let keep_alive = Message::text(encode(&ToMaster::KeepAlive));
                    socket.send(keep_alive).await.expect("sent");
                }
            }
            assert!(tokio::time::Instant::now() < limit, "nothing of this kind");
        }
    }

    /// Friends at different masters see each other come and go, also when a master is killed; the older of two connections is closed, wherever it is.
    #[test]
    fn friends_at_two_masters_see_each_other() {
        let database = Postgres::start();
        let nats = Nats::start();
        let mut masters = masters(&database, &nats, 1.0);
        let signed_in = [masters[0].sign_in(1), masters[1].sign_in(2)];
        let token = |n: usize| signed_in[n]["access_token"].as_str().expect("a token");
        for (n, other) in [(0, 1), (1, 0)] {
            let path = format!("/v1/friends/{}", signed_in[other]["account"]);
            let ask = Request::put(&path, "").bearer(token(n));
            masters[n].request(ask).expect(204);
        }
        let sees = |master: &Master| {
            let friends = Request::get("/v1/friends").bearer(token(1));
            master.request(friends).expect_json(200)[0]["online"] == true
        };
        let watching = Player::start(&masters[1], 2, false);
        watching.expect("online", Duration::from_secs(30));
        assert!(!sees(&masters[1]));
        let first = Player::start(&masters[0], 1, false);
        watching.expect("presence", Duration::from_secs(20));
        assert!(sees(&masters[1]));
        // The same player from another device, at the other master.
        let second = Player::start(&masters[1], 1, false);
        second.expect("online", Duration::from_secs(30));
        first.expect("stopped", Duration::from_secs(20));
        assert!(sees(&masters[0]) && sees(&masters[1]));
        drop(second);
        while !watching
            .expect("presence", Duration::from_secs(20))
            .ends_with("false")
        {}
        assert!(!sees(&masters[1]));
        let third = Player::start(&masters[0], 1, false);
        third.expect("online", Duration::from_secs(30));
        assert!(sees(&masters[1]));
        masters[0].kill();
        wait_for("the player is away", Duration::from_secs(40), || {
            !sees(&masters[1])
        });
    }
}

/// The lock that masters take before they write, as `store/postgres.rs` names it.
const WRITERS: i64 = 5_570_193;
