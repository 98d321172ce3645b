//! Browsers whose page came over HTTPS: WebSockets over TLS, with a certificate that is replaced while they play, and WebTransport beside them.
#![cfg(feature = "web")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/node.rs"]
mod support;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use browser::{PATIENCE, Pipe, loopback};
use futures_util::{SinkExt, StreamExt};
use muse_drivers::{Clock, Driver, WebKind, WebListener, WebOptions};
use support::Node;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// Makes a certificate in this folder. A client that trusts it alone.
fn certify(folder: &Path) -> TlsConnector {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    std::fs::write(folder.join("chain"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key"), made.signing_key.serialize_pem()).expect("written");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Each connection is shown the certificate.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

async fn connect(web: &WebListener, trusted: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(web.address()).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    trusted.connect(name, stream).await
}

async fn open(web: &WebListener, trusted: &TlsConnector) -> Socket {
    let stream = connect(web, trusted).await.expect("trusted");
    let opened = tokio_tungstenite::client_async("wss://localhost/muse", stream).await;
    opened.expect("a session").0
}

/// Sends this, runs the server, which sends everything back, and waits for it.
async fn echo(web: &mut WebListener, node: &mut Node, socket: &mut Socket, word: &str) {
    let message = Message::Binary(word.as_bytes().to_vec().into());
    socket.send(message).await.expect("sent");
    let clock = Clock::start();
    let answered = async {
        loop {
            web.poll(clock.now(), node).expect("no sockets here");
            let next = tokio::time::timeout(Duration::from_millis(1), socket.next());
            if let Ok(next) = next.await {
                return next.expect("it goes on").expect("it goes on");
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, answered).await;
    let answer = answer.expect("an answer").into_data();
    assert_eq!(&answer[..], word.as_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_and_browsers_play_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, key) = (folder.path().join("chain"), folder.path().join("key"));
    let old = certify(folder.path());
    let options = WebOptions::new(loopback()).certificate(&chain, &key);
    let mut web = WebListener::bind(options).expect("free ports");
    let mut node = Node {
        echo: true,
        ..Node::default()
    };
    let mut early = open(&web, &old).await;
    echo(&mut web, &mut node, &mut early, "before").await;

    let new = certify(folder.path());
    let replaced = async { while connect(&web, &new).await.is_err() {} };
    let replaced = tokio::time::timeout(PATIENCE, replaced).await;
    assert!(replaced.is_ok(), "new sessions have the new certificate");
    assert!(connect(&web, &old).await.is_err(), "and no other");
    let mut late = open(&web, &new).await;
    for word in ["after", "and on"] {
        echo(&mut web, &mut node, &mut early, word).await;
        echo(&mut web, &mut node, &mut late, word).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_links_are_told_over_https_and_lead_to_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, key) = (folder.path().join("chain"), folder.path().join("key"));
    let trusted = certify(folder.path());
    let options = WebOptions::new(loopback()).certificate(&chain, &key);
    let web = WebListener::bind(options).expect("free ports");
    let mut stream = connect(&web, &trusted).await.expect("trusted");
    let request = b"GET /link HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let mut answer = String::new();
    // Who has answered hangs up without ceremony.
    let _ = stream.read_to_string(&mut answer).await;
    let (_, links) = answer.split_once("\r\n\r\n").expect("an answer");
    let links: serde_json::Value = serde_json::from_str(links).expect("JSON");
    assert_eq!(links["websocket"]["secure"], true, "{links}");
    let hashes = links["webtransport"]["certificates"].as_array();
    assert_eq!(hashes.map(Vec::len), Some(1), "{links}");
    // By that hash, whoever signed the other certificate.
    let session = Pipe::open(&web, WebKind::WebTransport).await;
    assert!(session.is_ok(), "{:?}", session.err());

    let mut plain = TcpStream::connect(web.address()).await.expect("it listens");
    plain.write_all(request).await.expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[test]
fn files_without_a_certificate_are_a_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (chain, key) = (folder.path().join("chain"), folder.path().join("key"));
    let bind = || WebListener::bind(WebOptions::new(loopback()).certificate(&chain, &key));
    let error = bind().expect_err("there is nothing").to_string();
    assert!(error.contains("chain"), "{error}");
    drop(certify(folder.path()));
    std::fs::write(&key, "").expect("written");
    let error = bind().expect_err("no key").to_string();
    assert!(error.contains("key"), "{error}");
}
