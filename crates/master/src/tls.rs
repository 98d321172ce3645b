//! TLS by rustls, for a master without a proxy in front of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::server::{Connections, StartError};

/// Reads a certificate chain and its key.
pub(crate) fn acceptor(chain: &Path, key: &Path) -> Result<TlsAcceptor, StartError> {
    let failed = |file: &Path, why: String| StartError::Tls {
        file: file.display().to_string(),
        why,
    };
    let certificates = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| failed(chain, error.to_string()))?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| failed(key, error.to_string()))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, private)
        })
        .map_err(|error| failed(chain, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Hands out connections whose handshake is done, so that a slow one keeps nobody waiting.
pub(crate) struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: std::io::Result<SocketAddr>,
}

impl TlsListener {
    pub(crate) fn new(listener: Connections, acceptor: TlsAcceptor) -> Self {
        let address = listener.local_addr();
        let (done, ready) = mpsc::channel(READY_MAX);
        tokio::spawn(accept(listener, acceptor, done));
        Self { ready, address }
    }
}

async fn accept(
    mut listener: Connections,
    acceptor: TlsAcceptor,
    done: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(turn) = Arc::clone(&handshakes).acquire_owned().await else {
            return;
        };
        // The plain listener's way, which waits a little when files run out.
        let (stream, address) = Listener::accept(&mut listener).await;
        if done.is_closed() {
            return;
        }
        let (acceptor, done) = (acceptor.clone(), done.clone());
        tokio::spawn(async move {
            let _turn = turn;
            let handshake = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
            match handshake {
                Ok(Ok(stream)) => drop(done.send((stream, address)).await),
                Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS"),
                Err(_) => tracing::debug!(%address, "a TLS handshake took too long"),
            }
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            // The task has ended, which it does only after this is dropped.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(std::io::Error::from(error.kind())),
        }
    }
}

/// Handshakes at once; more wait in the system's queue.
const HANDSHAKES_MAX: usize = 256;
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const READY_MAX: usize = 64;
