//! A whole master in one process: its interface over real sockets, its file, and game servers as real child processes, which are this test's own
//! program started again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_master::{Master, MasterConfig};
use muse_master_client::messages::{
    FromMaster, MatchResult, Outcome, Phase, PlayerResult, Report, ToMaster, decode, encode,
};
use muse_master_client::{AccountId, ServerAction, ServerEvent, ServerLink};
use muse_wire::Instant;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

type Socket = WebSocketStream<tokio::net::TcpStream>;

/// The game server that masters of the tests below start: everybody is there at once, and the match lasts as long as the environment says.
#[test]
#[ignore = "started by the other tests as a process of its own"]
fn game_server() {
    let Ok(credential) = std::env::var("MUSE_SERVER_CREDENTIAL") else {
        return;
    };
    let variable = |name: &str| std::env::var(name).expect("the master sets it");
    let port: u16 = variable("MUSE_SERVER_PORT").parse().expect("a port");
    let _socket = UdpSocket::bind(("0.0.0.0", port)).expect("the port is ours");
    let url = format!("{}/v1/server", variable("MUSE_MASTER"));
    let life = ServerLink::new(&variable("MUSE_SERVER_ADDRESS"), &"07".repeat(32));
    let seconds: f64 = variable("MUSE_TEST_SECONDS").parse().expect("a number");
    block_on(host(
        life,
        url,
        credential,
        Duration::from_secs_f64(seconds),
    ));
}

async fn host(mut life: ServerLink, url: String, credential: String, length: Duration) {
    let begun = std::time::Instant::now();
    let now = || Instant::from_micros(begun.elapsed().as_micros() as u64);
    let mut socket: Option<Socket> = None;
    let mut ends: Option<(std::time::Instant, MatchResult)> = None;
    life.start(now());
    loop {
        life.handle_timeout(now());
        if ends
            .as_ref()
            .is_some_and(|(at, _)| *at <= std::time::Instant::now())
        {
            let (_, result) = ends.take().expect("just seen");
            life.finish(result);
        }
        while let Some(action) = life.poll_action() {
            match action {
                ServerAction::Connect => match open(&url, &credential).await {
                    Some(opened) => {
                        socket = Some(opened);
                        life.handle_connected(now());
                    }
                    None => life.handle_lost(now()),
                },
                ServerAction::Send(message) => {
                    if let Some(socket) = &mut socket {
                        let _ = socket.send(Message::text(encode(&message))).await;
                    }
                }
                _ => socket = None,
            }
        }
        while let Some(event) = life.poll_event() {
            match event {
                ServerEvent::Assigned(assignment) => {
                    let players = assignment.players.clone();
                    let player = |(place, account): (usize, &AccountId)| PlayerResult {
                        account: *account,
                        points: place as i64 + 1,
                        team: None,
                    };
                    let result = MatchResult {
                        match_id: assignment.match_id,
                        outcome: Outcome::Finished,
                        players: players.iter().enumerate().map(player).collect(),
                    };
                    for phase in [Phase::Connecting, Phase::Loading, Phase::Running] {
                        life.set_state(Report {
                            phase,
                            seated: players.clone(),
                            present: players.clone(),
                            ..Report::default()
                        });
                    }
                    ends = Some((std::time::Instant::now() + length, result));
                }
                ServerEvent::End => return,
                _ => {}
            }
        }
        let waited = match &mut socket {
            Some(open) => tokio::time::timeout(STEP, open.next()).await.ok(),
            None => {
                tokio::time::sleep(STEP).await;
                None
            }
        };
        match waited {
            Some(Some(Ok(Message::Text(text)))) => {
                life.handle_message(now(), decode(&text).expect("the master speaks well"));
            }
            Some(None | Some(Err(_))) => {
                socket = None;
                life.handle_lost(now());
            }
            _ => {}
        }
    }
}

async fn open(url: &str, bearer: &str) -> Option<Socket> {
    let mut request = url.into_client_request().ok()?;
    let header = format!("Bearer {bearer}").parse().ok()?;
    request.headers_mut().insert("authorization", header);
    let authority = url.trim_start_matches("ws://").split('/').next()?;
    let stream = tokio::net::TcpStream::connect(authority).await.ok()?;
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .ok()?;
    Some(socket)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// A master whose matches last so long.
async fn start(folder: &Path, seconds: f64, first_port: u16, players_max: usize) -> Master {
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("text").to_owned();
    let seconds = format!("MUSE_TEST_SECONDS={seconds}");
    let command = [
        "env",
        &seconds,
        &program,
        "--exact",
        "game_server",
        "--ignored",
    ];
    let config = MasterConfig::new(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        folder.join("muse.db"),
    )
    .players_max(players_max)
    .requests_per_second(0)
    .account_requests_per_second(0)
    .first_port(first_port)
    .game(command.iter().map(|&word| word.to_owned()).collect());
    Master::start(config).await.expect("it starts")
}

/// A player's connection.
struct Player {
    socket: Socket,
    token: String,
}

impl Player {
    async fn connect(address: SocketAddr, device: u32) -> Self {
        let token = token(address, device).await;
        let url = format!("ws://{address}/v1/push");
        let socket = open(&url, &token).await.expect("the master takes players");
        Self { socket, token }
    }

    async fn send(&mut self, message: ToMaster) {
        self.socket
            .send(Message::text(encode(&message)))
            .await
            .expect("sent");
    }

    /// The next message for which `wanted` holds; a keep-alive goes out each second meanwhile.
    async fn expect(&mut self, what: &str, wanted: impl Fn(&FromMaster) -> bool) -> FromMaster {
        let mut seen = Vec::new();
        for _ in 0..PATIENCE_S {
            let second = tokio::time::sleep(Duration::from_secs(1));
            tokio::pin!(second);
            loop {
                tokio::select! {
                    message = self.socket.next() => {
                        let Some(Ok(Message::Text(text))) = message else {
                            unreachable!("the connection ended before {what}: {seen:?}");
                        };
                        let message: FromMaster = decode(&text).expect("the master speaks well");
                        if wanted(&message) {
                            return message;
                        }
                        seen.push(message);
                    }
                    () = &mut second => break,
                }
            }
            self.send(ToMaster::KeepAlive).await;
        }
        unreachable!("no {what}: {seen:?}");
    }
}

async fn token(address: SocketAddr, device: u32) -> String {
    let body = format!(r#"{{"device_key":"the device of player {device}"}}"#);
    let answer = call(address, "POST", "/v1/guest", None, &body).await;
    assert_eq!(answer.0, 200, "{}", answer.1);
    answer.1["access_token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

/// One request; the status and the JSON that came back.
async fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    bearer: Option<&str>,
    body: &str,
) -> (u16, Value) {
    let bearer = bearer.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{bearer}\r\n{body}"
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).expect("the master listens");
        stream.write_all(text.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    });
    let answer = answer.await.expect("asked");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let json = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    (status.expect("a status"), json)
}

/// A number from the file, read beside the master.
fn rows(folder: &Path, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(folder.join("muse.db")).expect("the file");
    connection
        .query_row(sql, [], |row| row.get(0))
        .expect("a number")
}

fn is_seat(message: &FromMaster) -> bool {
    matches!(message, FromMaster::Seat(_))
}

fn is_over(message: &FromMaster) -> bool {
    matches!(message, FromMaster::MatchOver { .. })
}

async fn both_play(address: SocketAddr) -> [Player; 2] {
    let mut players = [
        Player::connect(address, 1).await,
        Player::connect(address, 2).await,
    ];
    for player in &mut players {
        let preferences = muse_master_client::Preferences::default();
        player.send(ToMaster::Play { preferences }).await;
    }
    for player in &mut players {
        let FromMaster::Seat(seat) = player.expect("a seat", is_seat).await else {
            unreachable!("it is a seat");
        };
        let token = muse_transport::token::ConnectToken::from_text(&seat.token).expect("a token");
        assert_eq!(token.servers()[0].to_string(), seat.address);
    }
    players
}

#[test]
fn two_players_are_matched_and_come_back_with_points_and_ratings() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let master = start(folder.path(), 0.5, 21_100, 100).await;
        let address = master.address();
        for player in &mut both_play(address).await {
            let over = player.expect("the end", is_over).await;
            assert!(matches!(
                over,
                FromMaster::MatchOver {
                    outcome: Outcome::Finished,
                    ..
                }
            ));
        }
        let (_, ranking) = call(address, "GET", "/v1/ranking", None, "").await;
        assert_eq!(ranking["lines"][0]["points"], 2);
        assert!(ranking["lines"][0]["rating"].as_f64() > Some(1_500.0));
        assert_eq!(rows(folder.path(), "SELECT count(*) FROM seats"), 0);
        let (status, page) = call(address, "GET", "/openapi.json", None, "").await;
        assert!(status == 200 && page["paths"]["/v1/ticket"]["post"].is_object());
        let (_, figures) = call(address, "GET", "/metrics", None, "").await;
        assert!(
            figures
                .as_str()
                .is_some_and(|text| text.contains("muse_matches_created"))
        );
        master.drain(Duration::from_secs(20)).await;
    });
}

#[test]
fn a_game_server_that_dies_aborts_its_match_without_ratings() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let master = start(folder.path(), 600.0, 21_200, 100).await;
        let mut players = both_play(master.address()).await;
        for pid in game_servers(21_200) {
            let killed = std::process::Command::new("kill")
                .args(["-9", &pid.to_string()])
                .status();
            assert!(killed.expect("kill runs").success());
        }
        for player in &mut players {
            let over = player.expect("the end", is_over).await;
            assert!(matches!(
                over,
                FromMaster::MatchOver {
                    outcome: Outcome::Aborted,
                    ..
                }
            ));
        }
        assert_eq!(
            rows(
                folder.path(),
                "SELECT count(*) FROM matches WHERE outcome = 'aborted'"
            ),
            1
        );
        assert_eq!(rows(folder.path(), "SELECT count(*) FROM results"), 0);
        master.drain(Duration::from_secs(20)).await;
    });
}

/// Pids of the game servers whose ports begin at this one.
fn game_servers(first_port: u16) -> Vec<u32> {
    let ports = first_port..first_port + 100;
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| {
            let port = variable.strip_prefix(b"MUSE_SERVER_PORT=");
            let port = port.and_then(|port| std::str::from_utf8(port).ok()?.parse().ok());
            port.is_some_and(|port| ports.contains(&port))
        })
    };
    pids.filter(ours).collect()
}

#[test]
fn a_full_master_says_when_to_come_back_and_a_player_has_one_ticket() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let master = start(folder.path(), 1.0, 21_300, 1).await;
        let address = master.address();
        let mut first = Player::connect(address, 1).await;
        let preferences = muse_master_client::Preferences::default();
        first.send(ToMaster::Play { preferences }).await;
        first
            .expect("a ticket", |message| {
                matches!(message, FromMaster::Queue(_))
            })
            .await;
        let play = r#"{"preferences":{"players":4}}"#;
        let (status, answer) = call(address, "POST", "/v1/ticket", Some(&first.token), play).await;
        assert_eq!(
            (status, &answer["ticket"]["preferences"]["players"]),
            (200, &Value::from(4))
        );
        assert_eq!(rows(folder.path(), "SELECT count(*) FROM tickets"), 1);
        let mut second = Player::connect(address, 2).await;
        let full = second
            .expect("full", |message| matches!(message, FromMaster::Full { .. }))
            .await;
        assert_eq!(full, FromMaster::Full { retry_after_s: 10 });
        // The same player from another device takes over.
        let mut again = Player::connect(address, 1).await;
        let welcome = again
            .expect("welcome", |message| {
                matches!(message, FromMaster::Welcome { .. })
            })
            .await;
        assert!(matches!(
            welcome,
            FromMaster::Welcome {
                ticket: Some(_),
                ..
            }
        ));
        master.drain(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_keep_alive_is_answered_after_a_while_of_silence() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let master = start(folder.path(), 1.0, 21_500, 1).await;
        let mut player = Player::connect(master.address(), 1).await;
        let is_answer = |message: &FromMaster| *message == FromMaster::KeepAlive;
        player.expect("the first answer", is_answer).await;
        // Anything that is said counts.
        let asked = std::time::Instant::now();
        player.socket.send(Message::text("?")).await.expect("sent");
        let is_refusal = |message: &FromMaster| matches!(message, FromMaster::Refused { .. });
        player.expect("a refusal", is_refusal).await;
        let mut unanswered = 0;
        let answer = loop {
            let next = player.socket.next();
            match tokio::time::timeout(Duration::from_millis(50), next).await {
                Ok(heard) => break heard.expect("open").expect("a message"),
                Err(_) => player.send(ToMaster::KeepAlive).await,
            }
            unanswered += 1;
        };
        assert_eq!(answer, Message::text(encode(&FromMaster::KeepAlive)));
        assert!(asked.elapsed() >= Duration::from_millis(2_500));
        assert!(unanswered > 1, "{unanswered}");
        master.drain(Duration::from_secs(1)).await;
    });
}

#[test]
fn accounts_rooms_chat_and_progress_over_http() {
    let folder = tempfile::tempdir().expect("a folder");
    block_on(async {
        let master = start(folder.path(), 1.0, 21_400, 100).await;
        let address = master.address();
        let (one, other) = (token(address, 1).await, token(address, 2).await);
        let ask = |method: &'static str,
                   path: &'static str,
                   bearer: Option<String>,
                   body: &'static str| async move {
            call(address, method, path, bearer.as_deref(), body).await
        };
        let (one, other) = (Some(one), Some(other));
        let name = r#"{"name":"ada","password":"correct horse"}"#;
        assert_eq!(
            ask("PUT", "/v1/account/password", one.clone(), name)
                .await
                .0,
            204
        );
        assert_eq!(
            ask("PUT", "/v1/account/password", other.clone(), name)
                .await
                .0,
            409
        );
        assert_eq!(ask("POST", "/v1/sign-in", None, name).await.0, 200);
        let wrong = r#"{"name":"ada","password":"incorrect horse"}"#;
        assert_eq!(ask("POST", "/v1/sign-in", None, wrong).await.0, 401);
        let nobody = r#"{"name":"bob","password":"correct horse"}"#;
        assert_eq!(ask("POST", "/v1/sign-in", None, nobody).await.0, 401);
        let (_, room) = ask("POST", "/v1/room", one.clone(), "").await;
        assert_eq!(room["code"].as_str().map(str::len), Some(6));
        assert_eq!(
            ask("POST", "/v1/chat/room", one.clone(), r#"{"text":"hello"}"#)
                .await
                .0,
            200
        );
        let progress = r#"{"version":0,"document":{"level":3}}"#;
        assert_eq!(
            ask("PUT", "/v1/progress/biobot", one.clone(), progress)
                .await
                .0,
            200
        );
        assert_eq!(
            ask("PUT", "/v1/progress/biobot", one.clone(), progress)
                .await
                .0,
            409
        );
        let (_, export) = ask("GET", "/v1/account/export", one.clone(), "").await;
        assert_eq!(export["chat"][0]["text"], "hello");
        assert_eq!(ask("DELETE", "/v1/account", one.clone(), "").await.0, 204);
        assert_eq!(ask("GET", "/v1/account", one, "").await.0, 401);
        assert_eq!(rows(folder.path(), "SELECT count(*) FROM chat"), 0);
        assert_eq!(ask("GET", "/v1/nowhere", None, "").await.0, 404);
        assert_eq!(ask("POST", "/v1/guest", None, "{").await.0, 400);
        assert_eq!(ask("DELETE", "/v1/guest", None, "").await.0, 405);
        master.drain(Duration::from_secs(1)).await;
    });
}

const STEP: Duration = Duration::from_millis(20);
/// Seconds that something may take on a busy machine.
const PATIENCE_S: usize = 60;
