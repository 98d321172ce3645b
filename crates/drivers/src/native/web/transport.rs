//! WebTransport: a datagram is a datagram of QUIC, or, where it is too long for one, a stream of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use wtransport::config::QuicTransportConfig;
use wtransport::endpoint::{IncomingSession, SessionRequest, endpoint_side};
use wtransport::error::SendDatagramError;
use wtransport::quinn::{IdleTimeout, VarInt as QuicVarInt};
use wtransport::{Connection, Endpoint, Identity, RecvStream, ServerConfig, VarInt};

use super::doors::{Doors, Pass};
use super::http::PATH;
use super::options::WebOptions;
use super::port::{Harbour, Port};
use super::shared::Shared;
use super::window::WideWindow;
use super::{WebKind, WebSession};

/// The parts that every session needs.
pub(super) struct Transports {
    pub(super) options: WebOptions,
    pub(super) doors: Doors,
    pub(super) harbour: Harbour,
}

/// Accepts sessions for ever.
pub(super) async fn accept(
    endpoint: &Endpoint<endpoint_side::Server>,
    transports: Arc<Transports>,
) {
    loop {
        let incoming = endpoint.accept().await;
        let remote = incoming.remote_address();
        if !incoming.remote_address_validated() && transports.doors.inside() >= PROVE_FROM {
            // Many are here: a newcomer first has to prove its address.
            incoming.retry();
            continue;
        }
        let Some(pass) = transports.doors.enter(remote.ip()) else {
            Shared::count(&transports.harbour.shared().refused, 1);
            incoming.refuse();
            continue;
        };
        let transports = Arc::clone(&transports);
        tokio::spawn(async move { transports.converse(incoming, pass).await });
    }
}

/// The settings of the server's QUIC.
pub(super) fn server_config(socket: std::net::UdpSocket, identity: Identity) -> ServerConfig {
    let mut quic = QuicTransportConfig::default();
    quic.max_idle_timeout(Some(IdleTimeout::from(QuicVarInt::from_u32(IDLE_MS))))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_uni_streams(QuicVarInt::from_u32(STREAMS_MAX))
        .max_concurrent_bidi_streams(QuicVarInt::from_u32(BIDI_STREAMS_MAX))
        .stream_receive_window(QuicVarInt::from_u32(STREAM_WINDOW))
        .receive_window(QuicVarInt::from_u32(RECEIVE_WINDOW))
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER)
        .initial_mtu(INITIAL_MTU)
        .congestion_controller_factory(Arc::new(WideWindow));
    ServerConfig::builder()
        .with_bind_socket(socket)
        .with_custom_transport(identity, quic)
        .build()
}

impl Transports {
    async fn converse(&self, incoming: IncomingSession, pass: Pass) {
        let Ok(Ok(request)) = tokio::time::timeout(HANDSHAKE_WITHIN, incoming).await else {
            Shared::count(&self.harbour.shared().refused, 1);
            // QUIC remembers it for a while, so it is counted as long: otherwise those who open and close at once, from addresses that need not be
            // theirs, would never be many.
            tokio::time::sleep(FORGOTTEN_AFTER).await;
            drop(pass);
            return;
        };
        let Some(connection) = self.accept(request).await else {
            Shared::count(&self.harbour.shared().refused, 1);
            return;
        };
        let session = WebSession {
            remote: connection.remote_address(),
            kind: WebKind::WebTransport,
        };
        if let Some((port, to_browser)) = self.harbour.open(session, pass).await {
            carry(&connection, &port, to_browser).await;
            port.close().await;
        }
    }

    /// Answers a request for a session.
    async fn accept(&self, request: SessionRequest) -> Option<Connection> {
        let path = request.path().split('?').next();
        if path != Some(PATH) {
            request.not_found().await;
            return None;
        }
        if !self.options.allows(request.origin()) {
            request.forbidden().await;
            return None;
        }
        tokio::time::timeout(HANDSHAKE_WITHIN, request.accept())
            .await
            .ok()?
            .ok()
    }
}

/// Carries datagrams both ways until either side is done.
async fn carry(connection: &Connection, port: &Port, to_browser: mpsc::Receiver<Vec<u8>>) {
    tokio::select! {
        () = read_datagrams(connection, port) => {}
        () = read_streams(connection, port) => {}
        () = write(connection, port, to_browser) => {
            // Closing throws away what QUIC has not sent yet, and the last that was said is why it closes.
            tokio::time::sleep(LINGER).await;
        }
        () = port.silence() => {}
    }
    connection.close(VarInt::from_u32(0), b"");
}

async fn read_datagrams(connection: &Connection, port: &Port) {
    while let Ok(datagram) = connection.receive_datagram().await {
        port.deliver(&datagram);
    }
}

/// Reads streams of one datagram each. Ends with the session, or when a browser sends what is none.
async fn read_streams(connection: &Connection, port: &Port) {
    while let Ok(mut stream) = connection.accept_uni().await {
        let read =
            tokio::time::timeout(STREAM_WITHIN, read_stream(&mut stream, port.datagram_max()))
                .await;
        match read {
            Ok(Ok(bytes)) => {
                Shared::count(&port.shared().by_stream, 1);
                port.deliver(&bytes);
            }
            Ok(Err(TooLong)) | Err(_) => {
                Shared::count(&port.shared().violations, 1);
                return;
            }
        }
    }
}

struct TooLong;

async fn read_stream(stream: &mut RecvStream, len_max: usize) -> Result<Vec<u8>, TooLong> {
    let mut bytes = vec![0; len_max + 1];
    let mut len = 0;
    while len < bytes.len() {
        match stream.read(&mut bytes[len..]).await {
            Ok(Some(more)) => len += more,
            // The content of a stream that broke off is lost, as datagrams are.
            Ok(None) | Err(_) => {
                bytes.truncate(len);
                return Ok(bytes);
            }
        }
    }
    Err(TooLong)
}

/// Writes until there is nobody left who could say something.
async fn write(connection: &Connection, port: &Port, mut to_browser: mpsc::Receiver<Vec<u8>>) {
    let streams = Arc::new(Semaphore::new(STREAMS_OUT_MAX));
    while let Some(bytes) = to_browser.recv().await {
        let len = bytes.len();
        match connection.send_datagram(&bytes) {
            Ok(()) => port.sent(len),
            Err(SendDatagramError::NotConnected) => return,
            Err(_) => {
                let Ok(permit) = Arc::clone(&streams).try_acquire_owned() else {
                    Shared::count(&port.shared().dropped_out, 1);
                    continue;
                };
                port.sent(len);
                Shared::count(&port.shared().by_stream, 1);
                let connection = connection.clone();
                tokio::spawn(async move {
                    // If it fails, it is lost, as datagrams are.
                    let _ =
                        tokio::time::timeout(STREAM_WITHIN, send_stream(&connection, &bytes)).await;
                    drop(permit);
                });
            }
        }
    }
}

async fn send_stream(connection: &Connection, bytes: &[u8]) -> Option<()> {
    let mut stream = connection.open_uni().await.ok()?.await.ok()?;
    stream.write_all(bytes).await.ok()?;
    stream.finish().await.ok()
}

/// Number of sessions from which addresses are proven before anything is done for them.
const PROVE_FROM: usize = 64;
/// QUIC, HTTP/3 and the session have to be done by then.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Time for which QUIC keeps a connection that has ended in its handshake: three of its probe time-outs, of a second each.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(4);
/// A stream has to be done by then.
const STREAM_WITHIN: Duration = Duration::from_secs(5);
/// The time that what was said last may take to be sent.
const LINGER: Duration = Duration::from_millis(100);
/// Silence in milliseconds after which a connection is given up; browsers use 30 s.
const IDLE_MS: u32 = 30_000;
/// Often enough for the bindings of routers.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Streams that a browser may have open to us: three of HTTP/3 and those that carry a datagram.
const STREAMS_MAX: u32 = 32;
/// The session's own and some to spare.
const BIDI_STREAMS_MAX: u32 = 4;
/// Streams to a browser that may be open.
const STREAMS_OUT_MAX: usize = 32;
/// Bytes that a browser may send on a stream before we have read them.
const STREAM_WINDOW: u32 = 4_096;
/// The same over all streams.
const RECEIVE_WINDOW: u32 = 64 << 10;
/// Bytes of datagrams that may wait inside of QUIC, each way; the oldest go first when there are more.
const DATAGRAM_BUFFER: usize = 128 << 10;
/// Lets 1,200 bytes of ours fit into a packet from the start, on every path that carries Ethernet's 1,500 or a tunnel's 1,400.
const INITIAL_MTU: u16 = 1_300;
