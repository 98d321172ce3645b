//! A hostile browser, or a program that pretends to be one: nothing it sends reaches another player.
#![cfg(feature = "web")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/node.rs"]
mod support;

use std::time::Instant;

use browser::{Browser, Log, PATIENCE, Pipe, every_mode, loopback, server};
use futures_util::SinkExt;
use muse_drivers::{Clock, Driver, SystemEntropy, WebKind, WebListener, WebOptions};
use muse_transport::{Connect, Endpoint};
use muse_wire::Machine;
use support::Node;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio_tungstenite::tungstenite::Message;

const KINDS: [WebKind; 2] = [WebKind::WebTransport, WebKind::WebSocket];

/// Runs a server until its counters say so.
async fn until(
    web: &mut WebListener,
    node: &mut Node,
    what: &str,
    done: impl Fn(&WebListener, &Node) -> bool,
) {
    let clock = Clock::start();
    let end = Instant::now() + PATIENCE;
    while !done(web, node) {
        assert!(Instant::now() < end, "{what}: {:?}", web.counters());
        web.poll(clock.now(), node).expect("no sockets here");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn messages_that_are_no_datagrams_end_their_session_alone() {
    let mut web = WebListener::bind(WebOptions::new(loopback())).expect("free ports");
    let mut node = Node {
        echo: true,
        ..Node::default()
    };
    let mut good = Pipe::open(&web, WebKind::WebSocket)
        .await
        .expect("a session");
    for (number, message) in [
        Message::Text("hello".into()),
        Message::Binary(vec![0; 1_201].into()),
        Message::Binary(vec![0; 1 << 20].into()),
    ]
    .into_iter()
    .enumerate()
    {
        let Ok(Pipe::Socket(mut socket)) = Pipe::open(&web, WebKind::WebSocket).await else {
            unreachable!("a WebSocket");
        };
        // The server may hang up in the middle of it.
        let _ = socket.send(message).await;
        until(&mut web, &mut node, "a violation", |web, _| {
            web.counters().violations == number as u64 + 1
        })
        .await;
    }
    // A stream that is longer than a datagram.
    let Ok(Pipe::Transport(session)) = Pipe::open(&web, WebKind::WebTransport).await else {
        unreachable!("a session");
    };
    let mut stream = session.open_uni().await.expect("open").await.expect("open");
    let _ = stream.write_all(&[7; 5_000]).await;
    until(&mut web, &mut node, "a violation", |web, _| {
        web.counters().violations == 4
    })
    .await;
    assert!(node.received.is_empty(), "nothing of it was a datagram");

    good.send(b"still here").await.expect("open");
    until(&mut web, &mut node, "an echo", |_, node| {
        node.received.len() == 1
    })
    .await;
    assert_eq!(good.receive().await.as_deref(), Some(&b"still here"[..]));
}

/// The two packets of a client that opens a connection of QUIC and closes it at once, as it sends them to somebody who never answers.
async fn opened_and_closed(
    endpoint: &wtransport::quinn::Endpoint,
    config: &wtransport::quinn::ClientConfig,
    nobody: &UdpSocket,
) -> [Vec<u8>; 2] {
    // Up to the end of the id that the client makes up for the server.
    let id = |packet: &[u8]| packet[5..14].to_vec();
    let mut buffer = [0; 2_000];
    let to = nobody.local_addr().expect("bound");
    let connecting = endpoint.connect_with(config.clone(), to, "localhost");
    let len = nobody.recv(&mut buffer).await.expect("a packet");
    let opens = buffer[..len].to_vec();
    drop(connecting.expect("a connection"));
    loop {
        let len = nobody.recv(&mut buffer).await.expect("a packet");
        if id(&buffer) == id(&opens) {
            return [opens, buffer[..len].to_vec()];
        }
    }
}

#[tokio::test]
async fn many_who_close_in_the_handshake_make_newcomers_prove_their_address() {
    let mut web = WebListener::bind(WebOptions::new(loopback())).expect("free ports");
    let mut node = Node::default();
    let hash = wtransport::tls::Sha256Digest::new(web.certificate_hash().expect("a hash"));
    let config = wtransport::ClientConfig::builder()
        .with_bind_address(loopback())
        .with_server_certificate_hashes([hash])
        .build();
    let config = config.quic_config();
    let endpoint = wtransport::quinn::Endpoint::client(loopback()).expect("a socket");
    let nobody = UdpSocket::bind(loopback()).await.expect("a socket");
    let mut pairs = Vec::new();
    for _ in 0..MANY + 1 {
        pairs.push(opened_and_closed(&endpoint, config, &nobody).await);
    }
    let [newcomer, _] = pairs.pop().expect("one more");
    let server = web.transport_address();
    for (number, packets) in pairs.iter().enumerate() {
        // As from addresses that are not theirs: no answer is read.
        let from = std::net::SocketAddr::from(([127, 9, number as u8, 1], 0));
        let socket = UdpSocket::bind(from).await.expect("an address of ours");
        for packet in packets {
            socket.send_to(packet, server).await.expect("sent");
        }
        // One after the other: a full buffer of the socket would drop some.
        until(&mut web, &mut node, "given up", |web, _| {
            web.counters().sessions_refused > number as u64
        })
        .await;
    }
    let socket = UdpSocket::bind("127.10.0.1:0").await.expect("a socket");
    socket.send_to(&newcomer, server).await.expect("sent");
    let mut answer = [0; 2_000];
    let answered = tokio::time::timeout(PATIENCE, socket.recv(&mut answer)).await;
    answered.expect("answered").expect("a packet");
    assert_eq!(
        answer[0] & 0xF0,
        0xF0,
        "a Retry, which costs the server nothing"
    );
}

/// Sessions from which on a server asks newcomers for a proof of their address.
const MANY: usize = 64;

#[tokio::test]
async fn what_is_no_request_is_answered_with_nothing() {
    let web = WebListener::bind(WebOptions::new(loopback())).expect("free ports");
    let long = [b"GET /link HTTP/1.1\r\n".to_vec(), vec![b'a'; 20_000]].concat();
    for bytes in [
        b"\x16\x03\x01\x00\xff\x01\r\n\r\n".to_vec(),
        b"\r\n\r\n".to_vec(),
        long,
    ] {
        let mut stream = TcpStream::connect(web.address())
            .await
            .expect("a connection");
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    }
    let mut stream = TcpStream::connect(web.address())
        .await
        .expect("a connection");
    stream
        .write_all(b"GET /link HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .expect("open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let links: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let certificate = web.certificate_hash().expect("made by itself");
    let expected = serde_json::json!({
        "muse": 1,
        "webtransport": {
            "port": web.transport_address().port(),
            "path": "/muse",
            "certificates": [data_encoding::BASE64.encode(&certificate)],
        },
        "websocket": { "path": "/muse", "secure": false },
    });
    assert_eq!(links, expected);
    let path = Pipe::open_at(&web, WebKind::WebTransport, "/other").await;
    assert!(path.is_err());
}

#[tokio::test]
async fn noise_in_a_session_changes_nothing_for_players() {
    for kind in KINDS {
        let (mut server, key) = server();
        let mut log = Log::default();
        let web = server.web().expect("given");
        let mut noisy = Pipe::open(web, kind).await.expect("a session");
        let mut player = Browser::connect(web, kind, key).await;
        let mut random = fastrand::Rng::with_seed(7);
        let end = Instant::now() + PATIENCE;
        while player.messages.is_empty() {
            assert!(Instant::now() < end, "{kind:?}");
            let bytes: Vec<u8> = (0..random.usize(1..1_100)).map(|_| random.u8(..)).collect();
            noisy.send(&bytes).await.expect("a session that is kept");
            log.tick(&mut server);
            player.turn().await;
            if let Some(&connection) = log.connected.first() {
                let _ = server.send(connection, 4, b"welcome");
            }
        }
        assert_eq!(log.connected.len(), 1);
        assert_eq!(
            noisy.glance().await,
            None,
            "{kind:?}: noise is not answered"
        );
    }
}

#[tokio::test]
async fn nobody_gets_more_bytes_than_he_sent_before_his_handshake_is_done() {
    for kind in KINDS {
        let (mut server, key) = server();
        let mut pipe = Pipe::open(server.web().expect("given"), kind)
            .await
            .expect("a session");
        let config = every_mode().link(kind.link()).build().expect("sensible");
        let clock = Clock::start();
        let mut client = Endpoint::new(config, SystemEntropy::new().expect("randomness"));
        let to = "127.0.0.1:1".parse().expect("an address");
        client
            .connect(clock.now(), to, Connect::pinned(key))
            .expect("room");
        let mut packet = [0; 1_200];
        let hello = client
            .poll_transmit(clock.now(), &mut packet)
            .expect("a hello");
        pipe.send(&packet[..hello.len]).await.expect("open");
        let end = Instant::now() + PATIENCE;
        let answer = loop {
            assert!(Instant::now() < end);
            server.tick(|_, _| {}).expect("the socket works");
            if let Some(Some(answer)) = pipe.glance().await {
                break answer;
            }
        };
        assert!(
            answer.len() <= hello.len,
            "{} for {}",
            answer.len(),
            hello.len
        );
        for _ in 0..50 {
            server.tick(|_, _| {}).expect("the socket works");
            assert_eq!(pipe.glance().await, None, "one answer to one question");
        }
    }
}

#[tokio::test]
async fn a_thousand_datagrams_come_once_each_and_mostly_in_order() {
    for kind in KINDS {
        let mut web = WebListener::bind(WebOptions::new(loopback())).expect("free ports");
        let mut node = Node::default();
        let clock = Clock::start();
        let mut pipe = Pipe::open(&web, kind).await.expect("a session");
        let mut sizes = fastrand::Rng::with_seed(3);
        for number in 0..1_000_u16 {
            let mut bytes = vec![0; sizes.usize(2..1_150)];
            bytes[..2].copy_from_slice(&number.to_le_bytes());
            pipe.send(&bytes).await.expect("open");
            web.poll(clock.now(), &mut node).expect("no sockets here");
            if number % 20 == 19 {
                // Datagrams may be lost where a queue is full; here is time for each.
                let sent = usize::from(number) + 1;
                until(&mut web, &mut node, "datagrams", |_, node| {
                    node.received.len() == sent
                })
                .await;
            }
        }
        let numbers: Vec<u16> = node
            .received
            .iter()
            .map(|datagram| u16::from_le_bytes([datagram.bytes[0], datagram.bytes[1]]))
            .collect();
        let in_order = (0..1_000).collect::<Vec<u16>>();
        if kind == WebKind::WebSocket {
            assert_eq!(numbers, in_order);
        }
        let mut sorted = numbers;
        sorted.sort_unstable();
        assert_eq!(sorted, in_order, "{kind:?}");
        assert_eq!(web.counters().datagrams_received, 1_000);
        assert_eq!(web.counters().dropped_incoming, 0);
    }
}

#[test]
fn another_path_is_refused_and_counted() {
    use std::io::{Read, Write};
    let web = WebListener::bind(WebOptions::new(loopback())).expect("a free port");
    let mut stream = std::net::TcpStream::connect(web.address()).expect("it listens");
    stream
        .write_all(b"GET /admin HTTP/1.1\r\nHost: game\r\n\r\n")
        .expect("connected");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 404");
    let counters = web.counters();
    assert_eq!(
        (counters.sessions_refused, counters.sessions_opened),
        (1, 0)
    );
}
