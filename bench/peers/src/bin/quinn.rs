//! QUIC by `quinn` with its default settings and a self-signed certificate: unreliable messages are datagrams, reliable
//! ones go on one stream, each with its length before it.
//!
//! The runtime has one thread and runs while the workload sleeps or waits. Tasks move what arrives to an inbox, which
//! the tick empties, and what was sent to the stream.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use muse_bench_workload::{Clients, Failure, Kind, Library, Options, Peer, Sent, run};
use quinn::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::{Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

fn main() -> ExitCode {
    run::<Quic>(std::env::args().skip(1))
}

struct Quic;

impl Library for Quic {
    type Server = Connections;
    type Clients = Connections;

    fn serve(options: &Options) -> Result<(Connections, u16), Failure> {
        let connections = Connections::new()?;
        let endpoint = connections.runtime.block_on(async {
            Endpoint::server(server_config()?, (Ipv4Addr::LOCALHOST, options.port).into())
                .map_err(Failure::from)
        })?;
        let port = endpoint.local_addr()?.port();
        let shared = Arc::clone(&connections.shared);
        connections.runtime.spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    let Ok((send, receive)) = connection.accept_bi().await else {
                        return;
                    };
                    attach(shared, None, connection, send, receive);
                });
            }
        });
        Ok((connections, port))
    }

    fn clients(_: &Options, server: SocketAddr) -> Result<Connections, Failure> {
        let mut connections = Connections::new()?;
        connections.target = Some((insecure::client_config()?, server));
        Ok(connections)
    }
}

struct Connections {
    runtime: Runtime,
    shared: Arc<Shared>,
    /// Configuration and address with which clients connect.
    target: Option<(quinn::ClientConfig, SocketAddr)>,
}

impl Clients for Connections {
    fn add(&mut self) -> Result<(), Failure> {
        let Some((config, server)) = self.target.clone() else {
            return Err(Failure::new("a server adds no clients"));
        };
        let number = {
            let mut links = lock(&self.shared.links);
            links.push(None);
            links.len() - 1
        };
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            match open(config, server).await {
                Ok((connection, send, receive)) => {
                    attach(shared, Some(number), connection, send, receive);
                }
                Err(error) => eprintln!("quinn: {error}"),
            }
        });
        Ok(())
    }
}

impl Connections {
    fn new() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            runtime,
            shared: Arc::default(),
            target: None,
        })
    }
}

impl Peer for Connections {
    fn connected(&self) -> usize {
        lock(&self.shared.links).iter().flatten().count()
    }

    fn poll(&mut self, received: &mut impl FnMut(usize, Kind, &[u8])) {
        let mut inbox = lock(&self.shared.inbox);
        let Inbox { entries, bytes } = &mut *inbox;
        let mut rest = bytes.as_slice();
        for (connection, kind, len) in entries.drain(..) {
            let (message, after) = rest.split_at(len);
            received(connection, kind, message);
            rest = after;
        }
        bytes.clear();
    }

    fn send(&mut self, connection: usize, kind: Kind, message: &[u8]) -> Sent {
        let links = lock(&self.shared.links);
        let Some(link) = &links[connection] else {
            return Sent::Full;
        };
        match kind {
            Kind::Unreliable => {
                let outcome = link
                    .connection
                    .send_datagram(Bytes::copy_from_slice(message));
                if let Err(error) = outcome {
                    eprintln!("quinn: {error}");
                }
            }
            Kind::Reliable => {
                let mut outbox = lock(&link.outbox.bytes);
                if outbox.len() > OUTBOX_MAX {
                    return Sent::Full;
                }
                outbox.extend_from_slice(&(message.len() as u16).to_le_bytes());
                outbox.extend_from_slice(message);
                link.outbox.filled.notify_one();
            }
        }
        Sent::Accepted
    }

    fn flush(&mut self) {
        // What has been sent goes out when the runtime next runs.
    }

    fn wait(&mut self, timeout: Duration) {
        let progress = &self.shared.progress;
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(timeout, progress.notified()).await;
        });
    }

    fn sleep(&mut self, duration: Duration) {
        // A timer can only be made inside the runtime.
        self.runtime
            .block_on(async { tokio::time::sleep(duration).await });
    }
}

/// State that the workload and the tasks share.
#[derive(Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    links: Mutex<Vec<Option<Link>>>,
    /// Something has arrived, or there is room to send again.
    progress: Notify,
}

/// Messages that have arrived, one behind the other.
#[derive(Default)]
struct Inbox {
    entries: Vec<(usize, Kind, usize)>,
    bytes: Vec<u8>,
}

impl Inbox {
    fn push(&mut self, connection: usize, kind: Kind, message: &[u8]) {
        self.entries.push((connection, kind, message.len()));
        self.bytes.extend_from_slice(message);
    }
}

struct Link {
    connection: Connection,
    outbox: Arc<Outbox>,
}

/// Messages that wait for the stream to take them.
#[derive(Default)]
struct Outbox {
    bytes: Mutex<Vec<u8>>,
    filled: Notify,
}

/// Gives an open connection its number and starts its three tasks.
fn attach(
    shared: Arc<Shared>,
    number: Option<usize>,
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
) {
    let outbox = Arc::new(Outbox::default());
    let number = {
        let mut links = lock(&shared.links);
        let number = number.unwrap_or(links.len());
        if number == links.len() {
            links.push(None);
        }
        links[number] = Some(Link {
            connection: connection.clone(),
            outbox: Arc::clone(&outbox),
        });
        number
    };
    tokio::spawn(read_datagrams(Arc::clone(&shared), number, connection));
    tokio::spawn(read_stream(Arc::clone(&shared), number, receive));
    tokio::spawn(write_stream(shared, outbox, send));
}

async fn read_datagrams(shared: Arc<Shared>, number: usize, connection: Connection) {
    while let Ok(datagram) = connection.read_datagram().await {
        lock(&shared.inbox).push(number, Kind::Unreliable, &datagram);
        shared.progress.notify_one();
    }
}

async fn read_stream(shared: Arc<Shared>, number: usize, mut stream: RecvStream) {
    let mut buffer = vec![0; READ_MAX];
    let mut filled = 0;
    while let Ok(Some(read)) = stream.read(&mut buffer[filled..]).await {
        filled += read;
        let mut rest = &buffer[..filled];
        {
            let mut inbox = lock(&shared.inbox);
            while let Some((len, after)) = rest.split_first_chunk::<2>() {
                let Some((message, after)) =
                    after.split_at_checked(u16::from_le_bytes(*len).into())
                else {
                    break;
                };
                if !message.is_empty() {
                    inbox.push(number, Kind::Reliable, message);
                }
                rest = after;
            }
        }
        let left = rest.len();
        buffer.copy_within(filled - left..filled, 0);
        filled = left;
        shared.progress.notify_one();
    }
}

async fn write_stream(shared: Arc<Shared>, outbox: Arc<Outbox>, mut stream: SendStream) {
    let mut bytes = Vec::new();
    loop {
        outbox.filled.notified().await;
        std::mem::swap(&mut bytes, &mut *lock(&outbox.bytes));
        shared.progress.notify_one();
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}

async fn open(
    config: quinn::ClientConfig,
    server: SocketAddr,
) -> Result<(Connection, SendStream, RecvStream), Box<dyn std::error::Error + Send + Sync>> {
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(server, "localhost")?.await?;
    let (mut send, receive) = connection.open_bi().await?;
    // An empty message: the server learns of the stream with its first bytes.
    send.write_all(&[0, 0]).await?;
    Ok((connection, send, receive))
}

fn server_config() -> Result<ServerConfig, Failure> {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .map_err(|error| Failure::new(error.to_string()))?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let chain = vec![certified.cert.der().clone()];
    ServerConfig::with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
        .map_err(|error| Failure::new(error.to_string()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

/// Bytes that may wait for the stream, beyond its own window.
const OUTBOX_MAX: usize = 65_536;
const READ_MAX: usize = 65_536;

/// A client that takes any certificate: the other process made its own a moment ago.
mod insecure {
    use std::sync::Arc;

    use muse_bench_workload::Failure;
    use quinn::crypto::rustls::QuicClientConfig;
    use quinn::rustls::client::danger::{
        HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
    };
    use quinn::rustls::crypto::{
        CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
    };
    use quinn::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use quinn::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

    pub fn client_config() -> Result<quinn::ClientConfig, Failure> {
        let provider = Arc::new(ring::default_provider());
        let tls = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Failure::new(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        let quic =
            QuicClientConfig::try_from(tls).map_err(|error| Failure::new(error.to_string()))?;
        Ok(quinn::ClientConfig::new(Arc::new(quic)))
    }

    #[derive(Debug)]
    struct AnyCertificate(Arc<CryptoProvider>);

    impl ServerCertVerifier for AnyCertificate {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.0.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signature, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.0.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
