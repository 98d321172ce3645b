//! Requests over HTTP as players and attackers send them: from any address of this machine, with TLS or without, and counted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use muse_master_client::api::SignedIn;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A connection, whatever it is encrypted with.
pub(super) type Stream = Box<dyn Io>;

pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The way to a server, and the bytes that went there.
#[derive(Clone)]
pub(super) struct Reach {
    server: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    connections: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Reach {
    /// Over TLS if the server has a certificate.
    pub(super) fn new(server: SocketAddr, certificate: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self {
            server,
            tls: certificate.map(trust).transpose()?.map(Arc::new),
            connections: Arc::default(),
            bytes: Arc::default(),
        })
    }

    /// A connection over TCP alone.
    pub(super) async fn plain(&self, from: Ipv4Addr) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        let stream = socket.connect(self.server).await?;
        stream.set_nodelay(true)?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(CONNECTION_BYTES, Ordering::Relaxed);
        Ok(stream)
    }

    /// A connection over which requests can be sent.
    pub(super) async fn open(&self, from: Ipv4Addr) -> io::Result<Stream> {
        let stream = self.plain(from).await?;
        let Some(config) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let tls = TlsConnector::from(Arc::clone(config));
        let stream = tls.connect(localhost(), stream).await?;
        self.bytes.fetch_add(TLS_BYTES, Ordering::Relaxed);
        Ok(Box::new(stream))
    }

    /// Sends bytes, as one segment if they are few.
    pub(super) async fn send(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> io::Result<()> {
        let len = SEGMENT_BYTES + bytes.len() as u64;
        self.bytes.fetch_add(len, Ordering::Relaxed);
        stream.write_all(bytes).await?;
        stream.flush().await
    }

    /// Sends a request on a connection of its own, and returns the body of the answer if that is a good one. After its method and path, `head` may have headers.
    pub(super) async fn ask(
        &self,
        from: Ipv4Addr,
        head: &str,
        body: &str,
    ) -> anyhow::Result<String> {
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, "Accept: */*"));
        let (server, len) = (self.server, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{headers}\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        let mut stream = self.open(from).await?;
        self.send(&mut stream, request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        ensure!(answer.starts_with("HTTP/1.1 20"), "{line}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
        Ok(body.to_owned())
    }

    /// Signs in as a guest with a device of this name, and returns the token for requests.
    pub(super) async fn guest(&self, from: Ipv4Addr, device: &str) -> anyhow::Result<String> {
        let body = format!(r#"{{"device_key":"the device of {device}"}}"#);
        let signed_in = self.ask(from, "POST /v1/guest", &body).await?;
        let signed_in: SignedIn = serde_json::from_str(&signed_in)?;
        Ok(signed_in.access_token)
    }

    /// The first bytes of a TLS handshake.
    pub(super) fn client_hello(&self) -> anyhow::Result<Vec<u8>> {
        let config = self.tls.clone().context("no certificate")?;
        let mut connection =
            tokio_rustls::rustls::ClientConnection::new(config, localhost()).context("no TLS")?;
        let mut hello = Vec::new();
        connection.write_tls(&mut hello)?;
        Ok(hello)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes sent, with the headers of TCP and IP.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

/// Trusts the certificate in a file alone.
fn trust(file: &Path) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Bytes of IP and TCP before those of a segment.
const SEGMENT_BYTES: u64 = 52;
/// Bytes of the client's segments that open and close a connection.
const CONNECTION_BYTES: u64 = 4 * SEGMENT_BYTES;
/// Bytes that a client sends for a TLS handshake, with two segments.
const TLS_BYTES: u64 = 500;
