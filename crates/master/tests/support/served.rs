//! A master in this process, and clients that reach it over real sockets, with and without TLS.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muse_master::{Master, MasterConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A master and how to reach it.
pub(crate) struct Served {
    pub(crate) master: Master,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) tls: Option<TlsConnector>,
}

/// A connection, whatever it is encrypted with.
pub(crate) type Stream = Box<dyn Io>;
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

impl Served {
    pub(crate) async fn start(tls: bool, change: impl Fn(MasterConfig) -> MasterConfig) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("muse.db");
        let listen = SocketAddr::from(([127, 0, 0, 1], two_free_ports()));
        let mut config = MasterConfig::new(listen, database).requests_per_second(0);
        let tls = tls.then(|| certify(folder.path()));
        if tls.is_some() {
            config = config.tls(folder.path().join("chain"), folder.path().join("key"));
        }
        let master = Master::start(change(config)).await.expect("it starts");
        Self {
            master,
            folder,
            tls,
        }
    }

    /// A plain connection from another address of this machine.
    pub(crate) async fn reach(&self, from: u8) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0)))?;
        socket.connect(self.master.address()).await
    }

    /// One over which requests can be sent.
    pub(crate) async fn open(&self, from: u8) -> io::Result<Stream> {
        let stream = self.reach(from).await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        Ok(Box::new(tls.connect(localhost(), stream).await?))
    }

    /// Asks on a connection of its own, and how long that took.
    pub(crate) async fn ask(&self, from: u8, head: &str, body: &str) -> (String, Duration) {
        let begun = Instant::now();
        let mut stream = self.open(from).await.expect("a connection");
        send(&mut stream, head, body).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        (answer, begun.elapsed())
    }

    pub(crate) async fn figure(&self, name: &str) -> f64 {
        let (figures, _) = self.ask(9, "GET /metrics", "").await;
        let line = figures.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0.0, |number| number.trim().parse().expect("a number"))
    }
}

/// Sends a request. After its method and path, `head` may have headers.
pub(crate) async fn send(stream: &mut Stream, head: &str, body: &str) -> io::Result<()> {
    let (first, headers) = head.split_once("\r\n").unwrap_or((head, "X-None: 0"));
    let request = format!(
        "{first} HTTP/1.1\r\n{headers}\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await
}

/// Makes a certificate in this folder. A client that trusts it.
pub(crate) fn certify(folder: &Path) -> TlsConnector {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    std::fs::write(folder.join("chain"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key"), made.signing_key.serialize_pem()).expect("written");
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Each connection is shown the certificate.
    config.resumption = Resumption::disabled();
    TlsConnector::from(Arc::new(config))
}

/// Opens a player's WebSocket over this connection.
pub(crate) async fn push<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    token: &str,
) -> WebSocketStream<S> {
    let mut request = "ws://localhost/v1/push"
        .into_client_request()
        .expect("a request");
    let header = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("authorization", header);
    let opened = tokio_tungstenite::client_async(request, stream).await;
    opened.expect("a player").0
}

/// The name in the certificate.
pub(crate) fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

/// A port after which the next one is free too.
pub(crate) fn two_free_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = first.local_addr().expect("bound").port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}
