//! Connections that ask for nothing keep nobody out: over real sockets, with and without TLS.

#[path = "support/served.rs"]
mod served;

use std::io;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
use served::{Served, Stream, push};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Requests of a client that never finishes one.
const HALVES: [&str; 3] = [
    "",
    "POST /v1/guest HTTP/1.1\r\nHost: localhost\r\nX-Padding: ",
    "POST /v1/guest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n{\"device_key\"",
];

/// Opens so many connections that stop in the middle of a request; over TLS also some in the middle of the handshake.
async fn attack(served: &Served, connections: usize) -> Vec<Stream> {
    let mut open: Vec<Stream> = Vec::new();
    for n in 0..connections {
        let opened: io::Result<Stream> = match n % 4 {
            0 => served
                .reach(1)
                .await
                .map(|stream| Box::new(stream) as Stream),
            half => match served.open(1).await {
                Ok(mut stream) => stream
                    .write_all(HALVES[half - 1].as_bytes())
                    .await
                    .map(|()| stream),
                Err(error) => Err(error),
            },
        };
        // Some are cut while they are opened, to make room for those after them.
        open.extend(opened);
    }
    open
}

/// Signs in as a new guest, from the attacker's address or another.
async fn sign_in(served: &Served, from: u8, device: usize) -> Duration {
    let body = format!(r#"{{"device_key":"a device key, number {device:06}"}}"#);
    let (answer, took) = served.ask(from, "POST /v1/guest", &body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    took
}

/// Signs in and opens the player's WebSocket over this connection.
async fn open_session<S: AsyncRead + AsyncWrite + Unpin>(
    served: &Served,
    stream: S,
) -> WebSocketStream<S> {
    let body = r#"{"device_key":"a device key, long enough"}"#;
    let (answer, _) = served.ask(1, "POST /v1/guest", body).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let token = body["access_token"].as_str().expect("a token");
    push(stream, token).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_lock_nobody_out_of_a_tls_master() {
    let served = Served::start(true, |config| config).await;
    let second = Duration::from_secs(1);
    let silent = (0..400).map(|_| tokio::time::timeout(second, served.reach(1)));
    let silent = join_all(silent).await;
    for from in [1, 2] {
        let health = served.ask(from, "GET /health", "");
        let health = tokio::time::timeout(Duration::from_secs(2), health).await;
        let (answer, _) = health.expect("answered while they are silent");
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_sign_in_while_one_address_holds_all_the_connections_it_can() {
    for tls in [false, true] {
        let served = Served::start(tls, |config| {
            config.connections_max(200).connections_per_address(100)
        });
        let served = served.await;
        let attacking = async {
            let mut held = Vec::new();
            for _ in 0..6 {
                held.extend(attack(&served, 100).await);
            }
            held
        };
        let signing_in = async {
            let mut times = Vec::new();
            for device in 0..100 {
                times.push(sign_in(&served, 2, device).await);
            }
            times.sort_unstable();
            times
        };
        let (held, times) = tokio::join!(attacking, signing_in);
        println!("tls {tls}: median {:?}, worst {:?}", times[50], times[99]);
        assert!(times[98] < Duration::from_millis(500), "{times:?}");
        assert!(served.figure("muse_connections_evicted ").await > 0.0);
        drop(held);
    }
}

/// Tries wrong passwords of a player and of an operator from one address, 400 at once. The answers.
async fn try_passwords(served: &Served) -> Vec<String> {
    let wrong = r#"{"name":"ada","password":"a wrong password"}"#;
    let tries = (0..400).map(|n| async move {
        let path = ["POST /v1/sign-in", "POST /admin/api/sign-in"][n % 2];
        served.ask(1, path, wrong).await.0
    });
    join_all(tries).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn players_sign_in_by_password_while_one_address_tries_passwords() {
    let right = r#"{"name":"ada","password":"correct horse battery"}"#;
    let served = Served::start(false, |config| {
        let config = config.connections_max(0).connections_per_address(0);
        config.operator("ada", "correct horse battery")
    });
    let served = served.await;
    let device = r#"{"device_key":"a device key, long enough"}"#;
    let (answer, _) = served.ask(2, "POST /v1/guest", device).await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let token = body["access_token"].as_str().expect("a token");
    let bearer = format!("PUT /v1/account/password\r\nAuthorization: Bearer {token}");
    let (named, _) = served.ask(2, &bearer, right).await;
    assert!(named.starts_with("HTTP/1.1 204"), "{named}");

    // How long it takes depends on the machine: `make hostile` judges that.
    let mut answers = Vec::new();
    for round in 0..10 {
        let from = 10 + round;
        let signing_in = async {
            let (answer, _) = served.ask(from, "POST /admin/api/sign-in", right).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            for _ in 0..10 {
                let (answer, _) = served.ask(from, "POST /v1/sign-in", right).await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
        };
        let (tried, ()) = tokio::join!(try_passwords(&served), signing_in);
        answers.extend(tried);
    }
    let refused = answers
        .iter()
        .filter(|answer| !answer.starts_with("HTTP/1.1 401"));
    let refused: Vec<_> = refused.collect();
    assert!(refused.len() > answers.len() / 2, "{}", refused.len());
    for answer in refused {
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
        assert!(
            answer.contains("retry-after: ") && answer.contains(": wait "),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_sends_no_whole_request_is_closed_in_time() {
    for tls in [false, true] {
        let served = Served::start(tls, |config| {
            config.request_time(Duration::from_millis(500))
        });
        let served = served.await;
        let held = attack(&served, 40).await;
        assert_eq!(held.len(), 40);
        let begun = Instant::now();
        let closed = held.into_iter().map(|mut stream| async move {
            let mut rest = Vec::new();
            // A half body is answered before it is closed.
            let ended = stream.read_to_end(&mut rest).await;
            let rest = String::from_utf8_lossy(&rest).into_owned();
            assert!(rest.is_empty() || rest.contains("408"), "{rest} {ended:?}");
        });
        let closed = tokio::time::timeout(Duration::from_secs(20), join_all(closed)).await;
        assert!(closed.is_ok(), "tls {tls}: some are still open");
        println!("tls {tls}: all are closed after {:?}", begun.elapsed());
        assert!(served.figure("muse_connections_timed_out ").await >= 40.0);
        drop(served.folder);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_kept_for_the_next_request() {
    for tls in [false, true] {
        let served = Served::start(tls, |config| config).await;
        let mut stream = served.open(1).await.expect("a connection");
        for _ in 0..3 {
            let request = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = vec![0; 1_024];
            let length = stream.read(&mut answer).await.expect("answered");
            assert!(answer[..length].starts_with(b"HTTP/1.1 204"), "{answer:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_signed_in_is_not_cut_for_others() {
    for tls in [false, true] {
        let served = Served::start(tls, |config| {
            let short = config.request_time(Duration::from_millis(300));
            short.connections_max(20).connections_per_address(10)
        });
        let served = served.await;
        let stream = served.open(1).await.expect("a connection");
        let mut socket = open_session(&served, stream).await;
        // Far more than there is room for, and for longer than a request may take.
        drop(attack(&served, 200).await);
        let held = attack(&served, 20).await;
        join_all(held.into_iter().map(|mut stream| async move {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }))
        .await;
        let unknown = Message::text(encode(&ToMaster::Rejoin));
        socket.send(unknown).await.expect("sent");
        let mut welcomes = 0;
        while welcomes < 2 {
            let Some(Ok(Message::Text(text))) = socket.next().await else {
                unreachable!("the connection was cut");
            };
            let message: FromMaster = decode(&text).expect("the master speaks well");
            welcomes += usize::from(matches!(message, FromMaster::Welcome { .. }));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_never_reads_is_cut() {
    let served = Served::start(false, |config| {
        let short = config.request_time(Duration::from_millis(500));
        short.account_requests_per_second(0)
    });
    let served = served.await;
    let socket = TcpSocket::new_v4().expect("a socket");
    // What the system takes for the player does not count as read.
    socket.set_recv_buffer_size(4_096).expect("smaller");
    let stream = socket.connect(served.master.address()).await;
    let mut socket = open_session(&served, stream.expect("a connection")).await;
    // Each is accepted and answered, until answers fill what lies between.
    let asking = async {
        while socket
            .send(Message::text(encode(&ToMaster::Rejoin)))
            .await
            .is_ok()
        {}
    };
    let cut = tokio::time::timeout(Duration::from_secs(60), asking).await;
    assert!(
        cut.is_ok(),
        "the master still tells one who does not listen"
    );
    assert!(served.figure("muse_connections_timed_out ").await >= 1.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_who_is_refused_all_the_time_is_cut() {
    let served = Served::start(false, |config| config).await;
    let stream = served.open(1).await.expect("a connection");
    let (mut write, mut read) = open_session(&served, stream).await.split();
    let nonsense = Message::text(r#"{"type":"nonsense"}"#);
    let talking = async { while write.send(nonsense.clone()).await.is_ok() {} };
    let listening = async {
        let mut refusals = 0;
        while let Some(Ok(message)) = read.next().await {
            refusals += usize::from(message.to_text().is_ok_and(|text| text.contains("refused")));
        }
        refusals
    };
    let both = async { tokio::join!(talking, listening).1 };
    let refusals = tokio::time::timeout(Duration::from_secs(60), both).await;
    let refusals = refusals.expect("the master still refuses one message after the other");
    assert!(refusals <= 256, "{refusals}");
}
