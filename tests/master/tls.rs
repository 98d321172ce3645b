//! TLS by the master itself: a client that checks the certificate, and game servers that need none.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse::master::{Account, MasterEvent, MasterOptions, Preferences, QueueStatus};
use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::program::{self, Master, Request};

/// A certificate for `localhost` that nobody has signed but its own key.
struct SelfSigned {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl SelfSigned {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let write = |name, text| std::fs::write(folder.path().join(name), text).expect("written");
        write("chain.pem", made.cert.pem());
        write("key.pem", made.signing_key.serialize_pem());
        let certificate = made.cert.der().clone();
        Self {
            folder,
            certificate,
        }
    }

    fn chain(&self) -> PathBuf {
        self.folder.path().join("chain.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

/// A port after which the next one is free too.
fn two_free_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = first.local_addr().expect("bound").port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

/// A client that trusts these certificates and no others.
async fn connect(
    authority: &str,
    trusted: &[CertificateDer<'static>],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.clone()).expect("a certificate");
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TcpStream::connect(authority).await?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

async fn ask(stream: &mut TlsStream<TcpStream>, head: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer
}

#[test]
fn players_come_over_tls_and_game_servers_beside_it() {
    let signed = SelfSigned::new();
    let port = two_free_ports();
    let listen = format!("127.0.0.1:{port}");
    let (chain, key) = (signed.chain(), signed.key());
    let arguments = [
        "--listen",
        &listen,
        "--tls-cert",
        text(&chain),
        "--tls-key",
        text(&key),
    ];
    let master = Master::start(&arguments, 1.0);
    let authority = master.authority();
    assert_eq!(authority, listen);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let trusted = [signed.certificate.clone()];
        let mut stream = connect(authority, &trusted).await.expect("trusted");
        assert_eq!(
            stream.get_ref().1.alpn_protocol(),
            None,
            "the client asked for none"
        );
        let body = r#"{"device_key":"the device of a player"}"#;
        let answer = ask(&mut stream, "POST /v1/guest", body).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let signed_in: Value = serde_json::from_str(body).expect("JSON");
        let token = signed_in["access_token"].as_str().expect("a token");
        push(authority, &trusted, token).await;
        // A client that does not trust the certificate goes no further, and neither does one without TLS.
        let stranger = SelfSigned::new();
        for trusted in [Vec::new(), vec![stranger.certificate.clone()]] {
            let refused = connect(authority, &trusted).await.expect_err("not trusted");
            assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
        }
        let mut plain = TcpStream::connect(authority).await.expect("it listens");
        let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        plain.write_all(request).await.expect("sent");
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
        servers_are_ready(authority, &trusted).await;
    });
    // The port beside it is for game servers and nothing else.
    let beside = format!("127.0.0.1:{}", port + 1);
    let body = r#"{"device_key":"the device of a player"}"#;
    program::ask(&beside, Request::post("/v1/guest", body)).expect(404);
    program::ask(&beside, Request::get("/admin")).expect(404);
}

/// A game's own connection comes over TLS if it trusts the certificate, talks to the master over HTTP as well, and names the cause if it does not.
#[test]
fn the_library_comes_over_tls_and_names_a_certificate_that_it_does_not_trust() {
    let signed = SelfSigned::new();
    let port = two_free_ports();
    let listen = format!("127.0.0.1:{port}");
    let (chain, key) = (signed.chain(), signed.key());
    let arguments = [
        "--listen",
        &listen,
        "--tls-cert",
        text(&chain),
        "--tls-key",
        text(&key),
    ];
    let _master = Master::start(&arguments, 1.0);
    let url = format!("https://localhost:{port}");
    let connect = |trusted: &Path| {
        let options = MasterOptions::default().ca_file(trusted);
        let account = Account::guest_key("the device of a player");
        muse::master::Master::connect_with(&url, account, options).expect("an address and a file")
    };
    let limit = Duration::from_secs(30);
    let mut player = connect(&chain);
    player
        .queue(Preferences::queue("tag").players(2))
        .expect("within the limits");
    program::wait_for("a place in the queue", limit, || {
        std::iter::from_fn(|| player.poll()).any(|event| matches!(event, MasterEvent::Queued(_)))
    });
    assert_eq!(player.queue_status(), QueueStatus::Waiting);
    let asked = player.create_room().expect("asked");
    let mut answer = None;
    program::wait_for("a room", limit, || {
        let answers = std::iter::from_fn(|| player.poll()).filter_map(|event| match event {
            MasterEvent::Answered(answer) => Some(answer),
            _ => None,
        });
        answer = answers.last().or(answer.take());
        answer.is_some()
    });
    let answer = answer.expect("just seen");
    assert_eq!(answer.number, asked);
    // One who waits in the queue has no time for a room, or has one with a code: either way the master has answered this account.
    let is_answer = match &answer.result {
        Ok(body) => body.contains("code"),
        Err(refusal) => refusal.status == 409,
    };
    assert!(is_answer, "{answer:?}");

    let stranger = SelfSigned::new();
    let mut player = connect(&stranger.chain());
    let mut reason = String::new();
    program::wait_for("a refusal", limit, || {
        if let Some(MasterEvent::Lost { reason: why, .. }) = player.poll() {
            reason = why;
        }
        !reason.is_empty()
    });
    assert!(reason.contains("certificate"), "{reason}");
}

/// The WebSocket, over TLS too.
async fn push(authority: &str, trusted: &[CertificateDer<'static>], token: &str) {
    let stream = connect(authority, trusted).await.expect("trusted");
    let mut request = "wss://localhost/v1/push"
        .into_client_request()
        .expect("a request");
    let bearer = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", bearer);
    let opened = tokio_tungstenite::client_async(request, stream).await;
    let (mut socket, _) = opened.expect("opened");
    let keep_alive = Message::text(encode(&ToMaster::KeepAlive));
    socket.send(keep_alive).await.expect("sent");
    let mut heard = Vec::new();
    while heard.len() < 2 {
        let message = tokio::time::timeout(Duration::from_secs(20), socket.next()).await;
        let Some(Ok(Message::Text(text))) = message.expect("an answer") else {
            unreachable!("the connection ended");
        };
        heard.push(decode::<FromMaster>(&text).expect("a message"));
    }
    assert!(matches!(heard[0], FromMaster::Welcome { .. }));
    assert_eq!(heard[1], FromMaster::KeepAlive);
}

/// The warm game server has come by the port beside.
async fn servers_are_ready(authority: &str, trusted: &[CertificateDer<'static>]) {
    for _ in 0..200 {
        let mut stream = connect(authority, trusted).await.expect("trusted");
        let figures = ask(&mut stream, "GET /metrics", "").await;
        if figures.contains("muse_servers_ready 1") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    unreachable!("no game server came");
}

/// A certificate that cannot be read, or whose key is another's, is one clear line and not a master without TLS.
#[test]
fn a_certificate_that_is_no_use_is_a_clear_error() {
    let (one, other) = (SelfSigned::new(), SelfSigned::new());
    let nowhere = one.folder.path().join("nowhere.pem");
    let empty = one.folder.path().join("empty.pem");
    std::fs::write(&empty, "").expect("written");
    for (chain, key, named) in [
        (&nowhere, &one.key(), &nowhere),
        (&empty, &one.key(), &empty),
        (&one.chain(), &empty, &empty),
        (&one.chain(), &other.key(), &one.chain()),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["master", "--listen", "127.0.0.1:0", "--database"])
            .arg(one.folder.path().join("muse.db"))
            .args(["--tls-cert", text(chain), "--tls-key", text(key)])
            .output()
            .expect("the binary");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert_eq!(error.trim().lines().count(), 1, "{error}");
        assert!(error.contains(text(named)), "{error}");
    }
}
