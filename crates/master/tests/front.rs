//! The way in to a master over real sockets: certificates that are replaced, proxies that name their clients, and operators' own address.

#[path = "support/served.rs"]
mod served;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_master::MasterConfig;
use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
use served::{Served, Stream, certify, localhost, push, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Enough for any machine; nothing depends on it when all is well.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_under_a_thousand_sockets_and_none_is_lost() {
    let served = Served::start(true, |config| {
        let config = config.players_max(2_000).account_requests_per_second(0);
        config.connections_max(0).connections_per_address(0)
    });
    let served = Arc::new(served.await);
    let count = sockets_max();
    let (replaced, _) = watch::channel(false);
    let mut players = JoinSet::new();
    for tokens in guests(&served, count).await.chunks(count.div_ceil(8)) {
        let (served, tokens) = (Arc::clone(&served), tokens.to_vec());
        let replaced = replaced.subscribe();
        players.spawn(async move {
            let mut sockets = JoinSet::new();
            for token in tokens {
                let stream = served.open(1).await.expect("a connection");
                sockets.spawn(stay(push(stream, &token).await, replaced.clone()));
            }
            sockets.join_all().await
        });
    }
    until_figure(&served, "muse_sessions ", count as f64).await;

    // Half of it is not enough, and says nothing.
    let folder = served.folder.path();
    let key = std::fs::read(folder.join("key")).expect("there");
    let trusts_new = certify(folder);
    let new_key = std::fs::read(folder.join("key")).expect("there");
    std::fs::write(folder.join("key"), key).expect("written");
    assert!(served.open(2).await.is_ok(), "the old one goes on");
    std::fs::write(folder.join("key"), new_key).expect("written");
    let new = async {
        loop {
            let stream = served.reach(2).await.expect("it listens");
            if trusts_new.connect(localhost(), stream).await.is_ok() {
                return;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, new).await;
    assert!(found.is_ok(), "new connections have the new certificate");
    assert!(served.open(2).await.is_err(), "and no other");
    replaced.send_replace(true);
    let stayed = players.join_all().await.concat();
    let lost = stayed.iter().filter(|stayed| !**stayed).count();
    println!("{count} sockets, {lost} lost");
    assert_eq!((stayed.len(), lost), (count, 0));
}

/// A thousand, or as many as this process may have open at both ends.
fn sockets_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().next());
    let files: usize = soft.and_then(|soft| soft.parse().ok()).unwrap_or(1_024);
    (files.saturating_sub(100) / 2).min(1_000)
}

/// Signs in so many guests over one connection. Their tokens.
async fn guests(served: &Served, count: usize) -> Vec<String> {
    let mut stream = served.open(1).await.expect("a connection");
    let mut tokens = Vec::new();
    for device in 0..count {
        let body = format!(r#"{{"device_key":"a device key, number {device:06}"}}"#);
        let request = format!(
            "POST /v1/guest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        while !answer.ends_with('}') {
            let mut bytes = [0; 4_096];
            let length = stream.read(&mut bytes).await.expect("answered");
            assert!(length > 0, "{answer}");
            answer += std::str::from_utf8(&bytes[..length]).expect("text");
        }
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        tokens.push(body["access_token"].as_str().expect("a token").to_owned());
    }
    tokens
}

/// Keeps a player's WebSocket open until the certificate was replaced, and says whether it is answered after that.
async fn stay(mut socket: WebSocketStream<Stream>, mut replaced: watch::Receiver<bool>) -> bool {
    // Often enough that the master does not think it gone.
    let mut alive = tokio::time::interval(Duration::from_secs(2));
    let (mut asked, mut welcomes) = (false, 0);
    while welcomes < 2 {
        let said = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let message = decode::<FromMaster>(&text);
                    welcomes += u8::from(matches!(message, Ok(FromMaster::Welcome { .. })));
                    continue;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return false,
            },
            _ = replaced.changed(), if !asked => {
                asked = true;
                ToMaster::Rejoin
            }
            _ = alive.tick() => ToMaster::KeepAlive,
        };
        if socket.send(Message::text(encode(&said))).await.is_err() {
            return false;
        }
    }
    asked
}

async fn until_figure(served: &Served, name: &str, wanted: f64) {
    let reached = async {
        while served.figure(name).await < wanted {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let reached = tokio::time::timeout(PATIENCE, reached).await;
    assert!(reached.is_ok(), "{name}");
}

/// The address of the proxy, and of somebody who is none.
const PROXY: u8 = 5;
const STRANGER: u8 = 6;

/// A master that lets an address ask twenty times, and trusts the proxy.
fn behind_a_proxy(config: MasterConfig) -> MasterConfig {
    let proxy = format!("127.0.0.{PROXY}").parse().expect("an address");
    config.requests_per_second(1).trusted_proxies(&[proxy])
}

/// Asks so often, each time with these headers. How many were answered.
async fn ask_often(served: &Served, from: u8, header: impl Fn(usize) -> String) -> usize {
    let mut answered = 0;
    for n in 0..40 {
        let head = format!("GET /v1/ranking\r\n{}", header(n));
        let (answer, _) = served.ask(from, &head, "").await;
        answered += usize::from(answer.starts_with("HTTP/1.1 200"));
    }
    answered
}

/// The clock may let a few more through while the machine is busy.
fn is_limited(answered: usize) -> bool {
    (20..36).contains(&answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_names_its_clients_in_a_header_and_nobody_else_does() {
    let served = Served::start(false, behind_a_proxy).await;
    let one = |_: usize| "X-Forwarded-For: 198.51.100.1".to_owned();
    assert!(is_limited(ask_often(&served, PROXY, one).await));
    // Others behind the same proxy have limits of their own.
    let many = |n: usize| format!("X-Forwarded-For: 203.0.113.{n}");
    assert_eq!(ask_often(&served, PROXY, many).await, 40);
    // The client's own words, before what the proxy has seen.
    let forged = |n: usize| format!("X-Forwarded-For: 203.0.113.{n}, 198.51.100.9");
    assert!(is_limited(ask_often(&served, PROXY, forged).await));
    // Somebody who is no proxy.
    assert!(is_limited(ask_often(&served, STRANGER, many).await));
}

/// A header of PROXY protocol for this client.
fn proxy_header(client: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend(client);
    header.extend([127, 0, 0, 1, 0x12, 0x67, 0x01, 0xbb]);
    header
}

/// Asks over a connection that begins with these bytes. Empty if it is closed.
async fn ask_after(served: &Served, from: u8, begin: &[u8], path: &str) -> String {
    let mut stream = served.reach(from).await.expect("it listens");
    stream.write_all(begin).await.expect("sent");
    let mut stream: Stream = match &served.tls {
        None => Box::new(stream),
        Some(tls) => match tls.connect(localhost(), stream).await {
            Ok(stream) => Box::new(stream),
            Err(_) => return String::new(),
        },
    };
    let mut answer = Vec::new();
    if send(&mut stream, path, "").await.is_ok() {
        // Who is not served may be cut in the middle.
        let _ = stream.read_to_end(&mut answer).await;
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_names_the_client_of_each_connection_and_nobody_else_does() {
    for tls in [false, true] {
        let served = Served::start(tls, |config| behind_a_proxy(config).proxy_protocol(true));
        let served = served.await;
        let mut answered = [0; 3];
        for n in 0..40 {
            let clients = [[198, 51, 100, 1], [203, 0, 113, n], [198, 51, 100, 2]];
            for (client, answered) in clients.into_iter().zip(&mut answered) {
                let header = proxy_header(client);
                // What the client says itself counts for nothing.
                let path = format!("GET /v1/ranking\r\nX-Forwarded-For: 192.0.2.{n}");
                let answer = ask_after(&served, PROXY, &header, &path).await;
                *answered += usize::from(answer.starts_with("HTTP/1.1 200"));
            }
        }
        let [one, many, other] = answered;
        assert!(is_limited(one) && is_limited(other), "{answered:?}");
        assert_eq!(many, 40);
        // The proxy asks for itself.
        let own = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
        let answer = ask_after(&served, PROXY, own, "GET /health").await;
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        // Without a header it is not served, and with one nobody else is; without one others are.
        let answer = ask_after(&served, PROXY, b"", "GET /health").await;
        assert_eq!(answer, "", "a proxy that names nobody");
        let forged = proxy_header([203, 0, 113, 77]);
        let answer = ask_after(&served, STRANGER, &forged, "GET /health").await;
        assert!(!answer.contains("204"), "{answer}");
        let answer = ask_after(&served, STRANGER, b"", "GET /health").await;
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_limited_by_client_and_not_by_proxy() {
    let served = Served::start(false, |config| {
        let config = behind_a_proxy(config).connections_per_address(4);
        config.proxy_protocol(true)
    });
    let served = served.await;
    let open = async |client: [u8; 4]| {
        let mut stream = served.reach(PROXY).await.expect("it listens");
        let header = proxy_header(client);
        stream.write_all(&header).await.expect("sent");
        stream
    };
    let mut many = Vec::new();
    for n in 0..20 {
        many.push(open([203, 0, 113, n]).await);
    }
    let mut greedy = Vec::new();
    for _ in 0..10 {
        greedy.push(open([198, 51, 100, 1]).await);
    }
    until_figure(&served, "muse_connections_evicted ", 6.0).await;
    let mut answered = [0; 2];
    for (streams, answered) in [many, greedy].into_iter().zip(&mut answered) {
        for stream in streams {
            let mut stream: Stream = Box::new(stream);
            let mut answer = Vec::new();
            if send(&mut stream, "GET /health", "").await.is_ok() {
                let _ = stream.read_to_end(&mut answer).await;
            }
            *answered += usize::from(answer.starts_with(b"HTTP/1.1 204"));
        }
    }
    assert_eq!(answered, [20, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_have_an_address_of_their_own() {
    for tls in [false, true] {
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let served = Served::start(tls, |config| config.operator_listen(own)).await;
        for path in [
            "/metrics",
            "/admin",
            "/admin/page.js",
            "/admin/api/overview",
        ] {
            let (answer, _) = served.ask(1, &format!("GET {path}"), "").await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        }
        for (path, status) in [
            ("/metrics", 200),
            ("/admin", 200),
            ("/admin/api/overview", 401),
            ("/health", 204),
            ("/ready", 204),
            ("/v1/ranking", 404),
            ("/v1/server", 404),
        ] {
            // On the loopback address it is without TLS.
            let stream = tokio::net::TcpStream::connect(own).await;
            let mut stream: Stream = Box::new(stream.expect("it listens"));
            send(&mut stream, &format!("GET {path}"), "")
                .await
                .expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("answered");
            let expected = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&expected), "{path}: {answer}");
        }
        let (answer, _) = served.ask(1, "GET /v1/ranking", "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Elsewhere than on the loopback address operators come over TLS as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_elsewhere_come_over_tls() {
    let own = SocketAddr::from((Ipv4Addr::UNSPECIFIED, free_port()));
    let served = Served::start(true, |config| config.operator_listen(own)).await;
    let reach = || tokio::net::TcpStream::connect((IpAddr::from(Ipv4Addr::LOCALHOST), own.port()));
    let plain = reach().await.expect("it listens");
    let tls = served.tls.as_ref().expect("with TLS");
    let secure = reach().await.expect("it listens");
    let secure = tls.connect(localhost(), secure).await.expect("trusted");
    let streams: [(Stream, bool); 2] = [(Box::new(plain), false), (Box::new(secure), true)];
    for (mut stream, is_served) in streams {
        let mut answer = Vec::new();
        if send(&mut stream, "GET /metrics", "").await.is_ok() {
            let _ = stream.read_to_end(&mut answer).await;
        }
        assert_eq!(answer.starts_with(b"HTTP/1.1 200"), is_served);
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}
