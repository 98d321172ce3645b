//! Revoked tokens close what was opened with them, at once: over real sockets, and at another master.

#[cfg(all(feature = "nats", feature = "postgres"))]
#[path = "../../../tests/support/nats.rs"]
#[allow(dead_code, reason = "the master's tests use more of it")]
mod nats;
#[cfg(all(feature = "nats", feature = "postgres"))]
#[path = "../../../tests/support/postgres.rs"]
#[allow(dead_code, reason = "the store's tests use more of it")]
mod postgres;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_master::{Master, MasterConfig};
use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

fn config(database: impl Into<std::path::PathBuf>) -> MasterConfig {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    MasterConfig::new(listen, database)
        .requests_per_second(0)
        .operator("ada", "correct horse battery")
        .secret_key(&"7".repeat(64))
}

/// Asks, and returns the status and the body.
async fn call(address: SocketAddr, head: &str, bearer: &str, body: Value) -> (u16, Value) {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {bearer}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (
        status.expect("a status"),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// A signed-in guest: their account and their tokens.
async fn guest(address: SocketAddr, device: u32) -> Value {
    let device = json!({ "device_key": format!("the key of device {device}") });
    let (status, signed_in) = call(address, "POST /v1/guest", "", device).await;
    assert_eq!(status, 200, "{signed_in}");
    signed_in
}

/// A connection of a player.
struct Player {
    socket: WebSocketStream<TcpStream>,
}

impl Player {
    /// Connects with an access token and is welcome.
    async fn connect(address: SocketAddr, token: &str) -> Self {
        let url = format!("ws://{address}/v1/push");
        let mut request = url.into_client_request().expect("a request");
        let header = format!("Bearer {token}").parse().expect("a header");
        request.headers_mut().insert("authorization", header);
        let stream = TcpStream::connect(address).await.expect("a connection");
        let opened = tokio_tungstenite::client_async(request, stream).await;
        let mut player = Self {
            socket: opened.expect("a player").0,
        };
        let welcome = player.next().await;
        assert!(
            matches!(welcome, Some(FromMaster::Welcome { .. })),
            "{welcome:?}"
        );
        player
    }

    /// The next message; none at the end of the connection.
    async fn next(&mut self) -> Option<FromMaster> {
        let patience = Duration::from_secs(20);
        loop {
            let received = tokio::time::timeout(patience, self.socket.next()).await;
            match received.expect("something is received") {
                Some(Ok(Message::Text(text))) => return Some(decode(&text).expect("a message")),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// It is told why, and closed.
    async fn expect_closed(mut self, code: &str) {
        let mut seen = Vec::new();
        while let Some(message) = self.next().await {
            seen.push(message);
        }
        let told = seen.iter().any(|message| match message {
            FromMaster::Refused { code: told, .. } => told == code,
            _ => false,
        });
        let closing = FromMaster::Closing { come_back: false };
        assert!(told && seen.last() == Some(&closing), "{seen:?}");
    }

    /// It is open, and answers.
    async fn expect_open(&mut self) {
        let rejoin = Message::text(encode(&ToMaster::Rejoin));
        self.socket.send(rejoin).await.expect("sent");
        let answer = self.next().await;
        assert!(
            matches!(answer, Some(FromMaster::Welcome { .. })),
            "{answer:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_out_deletion_and_bans_close_connections_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start(config(folder.path().join("muse.db")));
    let master = master.await.expect("it starts");
    let address = master.address();
    let operator = json!({ "name": "ada", "password": "correct horse battery" });
    let (_, operator) = call(address, "POST /admin/api/sign-in", "", operator).await;
    let operator = text(&operator["token"]);
    let ways = [
        ("POST /v1/sign-out-everywhere", "signed_out"),
        ("DELETE /v1/account", "signed_out"),
        ("ban", "kicked"),
    ];
    let mut bystander = {
        let signed_in = guest(address, 0).await;
        Player::connect(address, &text(&signed_in["access_token"])).await
    };
    for (device, (way, code)) in (1..).zip(ways) {
        let signed_in = guest(address, device).await;
        let token = text(&signed_in["access_token"]);
        let player = Player::connect(address, &token).await;
        let (head, bearer, body) = match way {
            "ban" => {
                let head = format!("PUT /admin/api/players/{}/ban", signed_in["account"]);
                let body = json!({ "hours": 1, "reason": "for a test" });
                (head, operator.clone(), body)
            }
            way => (way.to_owned(), token.clone(), Value::Null),
        };
        let (status, answer) = call(address, &head, &bearer, body).await;
        assert_eq!(status, 204, "{answer}");
        player.expect_closed(code).await;
        let refresh = json!({ "refresh_token": signed_in["refresh_token"] });
        let (status, _) = call(address, "POST /v1/refresh", "", refresh).await;
        assert!([401, 403].contains(&status), "{status}");
    }
    bystander.expect_open().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_needs_the_old_one_and_ends_everything_but_this_sign_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let master = Master::start(config(folder.path().join("muse.db")));
    let master = master.await.expect("it starts");
    let address = master.address();
    let [own, other] = [guest(address, 1).await, guest(address, 1).await];
    assert_eq!(own["account"], other["account"]);
    let [own_token, other_token] = [&own, &other].map(|signed_in| text(&signed_in["access_token"]));
    let set = |token: String, password: &str, old: Option<&str>| {
        let mut body = json!({ "name": "eve", "password": password });
        if let Some(old) = old {
            body["old_password"] = json!(old);
        }
        async move { call(address, "PUT /v1/account/password", &token, body).await }
    };
    // The other device is connected, and this one is not.
    let player = Player::connect(address, &other_token).await;
    let (status, answer) = set(own_token.clone(), "a first password", None).await;
    assert_eq!(status, 204, "{answer}");
    player.expect_closed("signed_out").await;
    let ask = |token: String| async move {
        let asked = call(address, "GET /v1/account", &token, Value::Null);
        asked.await.0
    };
    assert_eq!(ask(other_token.clone()).await, 401);
    assert_eq!(ask(own_token.clone()).await, 200);

    let mut player = Player::connect(address, &own_token).await;
    for (old, code) in [
        (None, "old_password"),
        (Some("a wrong password"), "wrong_password"),
    ] {
        let (status, answer) = set(own_token.clone(), "a second password", old).await;
        assert_eq!((status, text(&answer["code"])), (403, code.to_owned()));
    }
    let old = Some("a first password");
    let (status, answer) = set(own_token.clone(), "a second password", old).await;
    assert_eq!(status, 204, "{answer}");
    // This device goes on, with its connection and both of its tokens.
    player.expect_open().await;
    let refresh = json!({ "refresh_token": own["refresh_token"] });
    let (status, first) = call(address, "POST /v1/refresh", "", refresh.clone()).await;
    assert_eq!(status, 200, "{first}");
    // Its answer was lost: the same again.
    let (status, again) = call(address, "POST /v1/refresh", "", refresh.clone()).await;
    assert_eq!(
        (status, &again["refresh_token"]),
        (200, &first["refresh_token"])
    );
    assert_eq!(ask(text(&again["access_token"])).await, 200);
    // A third time it is theft: all is void, and closed.
    let (status, _) = call(address, "POST /v1/refresh", "", refresh).await;
    assert_eq!(status, 401);
    player.expect_closed("signed_out").await;
    assert_eq!(ask(text(&again["access_token"])).await, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_counts_like_everything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path().join("muse.db")).account_requests_per_second(1);
    let master = Master::start(config).await.expect("it starts");
    let address = master.address();
    let token = text(&guest(address, 1).await["access_token"]);
    let mut player = Player::connect(address, &token).await;
    let mut codes = Vec::new();
    for n in 0..60 {
        let nonsense = match n % 2 {
            0 => Message::text("nonsense"),
            _ => Message::binary(vec![0; 16]),
        };
        player.socket.send(nonsense).await.expect("sent");
    }
    while codes.last().map(String::as_str) != Some("too_many_requests") {
        match player.next().await {
            Some(FromMaster::Refused { code, .. }) => codes.push(code),
            Some(_) => {}
            None => unreachable!("there is no limit: {codes:?}"),
        }
    }
    // The connection's own request is one of the burst of twenty.
    assert!((9..=13).contains(&codes.len()), "{codes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_are_not_stored_count_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path().join("muse.db")).account_requests_per_second(0);
    let master = Master::start(config).await.expect("it starts");
    let address = master.address();
    let token = text(&guest(address, 1).await["access_token"]);
    let say = |text: &str| {
        let (token, body) = (token.clone(), json!({ "text": text }));
        async move { call(address, "POST /v1/chat/room", &token, body).await }
    };
    let mut tried = 0;
    let refused = loop {
        let (status, answer) = say("").await;
        match status {
            422 => tried += 1,
            _ => break (status, text(&answer["code"])),
        }
        assert!(tried < 200, "there is no limit");
    };
    assert_eq!(refused, (429, "too_many_requests".to_owned()));
    assert!(tried >= 20, "{tried}");
}

#[cfg(all(feature = "nats", feature = "postgres"))]
mod shared {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nats_closes_at_another_master_what_is_revoked_at_one() {
        let database = postgres::Postgres::start();
        let nats = nats::Nats::start();
        let mut masters = Vec::new();
        let url = database.database("muse");
        for _ in 0..2 {
            let config = config(&url).nats(&nats.url());
            masters.push(Master::start(config).await.expect("it starts"));
        }
        let addresses: Vec<_> = masters.iter().map(Master::address).collect();
        let signed_in = guest(addresses[0], 1).await;
        let token = text(&signed_in["access_token"]);
        let player = Player::connect(addresses[1], &token).await;
        let out = call(
            addresses[0],
            "POST /v1/sign-out-everywhere",
            &token,
            Value::Null,
        );
        assert_eq!(out.await.0, 204);
        player.expect_closed("signed_out").await;
    }
}
