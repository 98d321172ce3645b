//! TCP with or without TLS, one HTTP call, and the opening of a WebSocket.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use muse_master_client::api::ErrorBody;
use muse_master_client::messages::MESSAGE_LEN_MAX;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::address::MasterAddress;
use super::socket::MasterRefusal;

pub(super) type Failure = Box<dyn Error + Send + Sync>;

/// A byte stream to a master.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens streams, and knows which certificates are trusted.
#[derive(Clone)]
pub(super) struct Dialer {
    /// None if no master of the list uses TLS.
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// Trusts the system's certificates, and those of `ca_file` besides.
    pub(super) fn new(is_secure: bool, ca_file: Option<&Path>) -> io::Result<Self> {
        let tls = is_secure.then(|| connector(ca_file)).transpose()?;
        Ok(Self { tls })
    }

    async fn dial(&self, address: &MasterAddress) -> Result<Box<dyn Stream>, Failure> {
        let stream = TcpStream::connect((address.host(), address.port())).await?;
        // A message must not wait for the answer to the one before.
        stream.set_nodelay(true)?;
        match self.tls.as_ref().filter(|_| address.is_secure()) {
            Some(tls) => {
                let name = ServerName::try_from(address.host().to_owned())?;
                Ok(Box::new(tls.connect(name, stream).await?))
            }
            None => Ok(Box::new(stream)),
        }
    }

    /// Makes one HTTP call. The inner error is the master's refusal.
    pub(super) async fn call(
        &self,
        address: &MasterAddress,
        method: &str,
        path: &str,
        bearer: Option<&str>,
        body: Option<String>,
    ) -> Result<Result<String, MasterRefusal>, Failure> {
        let stream = self.dial(address).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, address.authority());
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, format!("Bearer {bearer}"));
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default())))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_LEN_MAX);
        let body = body.collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() {
            return Ok(Ok(text));
        }
        let named = serde_json::from_str(&text).unwrap_or_else(|_| ErrorBody {
            code: "http".to_owned(),
            message: format!("{path}: {status}"),
        });
        Ok(Err(MasterRefusal {
            status: status.as_u16(),
            code: named.code,
            message: named.message,
        }))
    }

    /// Opens the WebSocket.
    pub(super) async fn open(
        &self,
        address: &MasterAddress,
        path: &str,
        bearer: &str,
    ) -> Result<WebSocketStream<Box<dyn Stream>>, Failure> {
        let scheme = if address.is_secure() { "wss" } else { "ws" };
        let url = format!("{scheme}://{}{path}", address.authority());
        let mut request = url.into_client_request()?;
        let bearer = format!("Bearer {bearer}").parse()?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let stream = self.dial(address).await?;
        let config = WebSocketConfig::default().max_message_size(Some(TEXT_LEN_MAX));
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        Ok(opened?.0)
    }
}

fn connector(ca_file: Option<&Path>) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    // A certificate of the system that cannot be read makes the others no less good.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        for certificate in read_certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| explain(path, &error))?;
        }
    }
    if roots.is_empty() {
        let message = "this system has no certificates to trust; name a file of them";
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| explain(path, &error))?;
    let read: Result<Vec<_>, _> = read.collect();
    let read = read.map_err(|error| explain(path, &error))?;
    if read.is_empty() {
        return Err(explain(path, &"it has no certificate"));
    }
    Ok(read)
}

fn explain(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    let message = format!("{}: {error}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Longest answer to an HTTP call.
const ANSWER_LEN_MAX: usize = 1024 * 1024;
/// Longest text that is read at all; longer than any that is understood, which is refused with a better error.
const TEXT_LEN_MAX: usize = 4 * MESSAGE_LEN_MAX;
