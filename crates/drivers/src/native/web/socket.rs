//! WebSocket: one binary message is one datagram. For browsers without WebTransport, and for pages that came over plain HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, protocol::frame::coding::CloseCode};

use super::doors::{Doors, Pass};
use super::http::{self, Asked};
use super::options::WebOptions;
use super::port::{Harbour, Port};
use super::shared::Shared;
use super::{WebKind, WebSession};

/// The parts that every connection over TCP needs.
pub(super) struct Sockets {
    pub(super) options: WebOptions,
    pub(super) doors: Doors,
    pub(super) harbour: Harbour,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) transport_port: u16,
}

/// Accepts connections for ever.
pub(super) async fn accept(listener: TcpListener, sockets: Arc<Sockets>) {
    loop {
        let (stream, remote) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: sessions have to end first.
                tracing::warn!(%error, "a browser's connection was not accepted");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        let Some(pass) = sockets.doors.enter(remote.ip()) else {
            Shared::count(&sockets.harbour.shared().refused, 1);
            continue;
        };
        let sockets = Arc::clone(&sockets);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            if let Err(error) = sockets.welcome(stream, remote, pass).await {
                tracing::debug!(%remote, %error, "a browser's connection failed");
            }
        });
    }
}

impl Sockets {
    async fn welcome(&self, stream: TcpStream, remote: SocketAddr, pass: Pass) -> io::Result<()> {
        match &self.tls {
            None => self.converse(stream, remote, pass).await,
            Some(tls) => {
                let stream = tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await??;
                self.converse(stream, remote, pass).await
            }
        }
    }

    pub(super) async fn converse<S>(
        &self,
        mut stream: S,
        remote: SocketAddr,
        pass: Pass,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let greeting = tokio::time::timeout(HANDSHAKE_WITHIN, self.greet(&mut stream)).await??;
        if !greeting {
            return Ok(());
        }
        let session = WebSession {
            remote,
            kind: WebKind::WebSocket,
        };
        let Some((port, to_browser)) = self.harbour.open(session, pass).await else {
            return Ok(());
        };
        let config = socket_config(self.options.datagram_max);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        carry(socket, &port, to_browser).await;
        port.close().await;
        Ok(())
    }

    /// Reads the request and answers it. True if it has become a WebSocket.
    async fn greet<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) -> io::Result<bool> {
        let refuse = || Shared::count(&self.harbour.shared().refused, 1);
        match http::read(stream).await? {
            Some(Asked::Link) => http::answer(stream, "200 OK", &self.links()).await?,
            Some(Asked::Preflight) => http::answer(stream, "204 No Content", "").await?,
            Some(Asked::WebSocket { key, origin }) if self.options.allows(origin.as_deref()) => {
                http::upgrade(stream, &derive_accept_key(key.as_bytes())).await?;
                return Ok(true);
            }
            Some(Asked::WebSocket { .. }) => {
                refuse();
                http::answer(stream, "403 Forbidden", "").await?;
            }
            Some(Asked::NotFound) => {
                refuse();
                http::answer(stream, "404 Not Found", "").await?;
            }
            None => refuse(),
        }
        Ok(false)
    }

    /// The answer to `GET /link`.
    fn links(&self) -> String {
        // As JavaScript's `atob` reads it.
        let hash = self.harbour.shared().certificate_hash();
        let certificates: Vec<String> = hash.iter().map(|hash| BASE64.encode(hash)).collect();
        let (path, port, secure) = (http::PATH, self.transport_port, self.tls.is_some());
        json!({
            "muse": 1,
            "webtransport": { "port": port, "path": path, "certificates": certificates },
            "websocket": { "path": path, "secure": secure },
        })
        .to_string()
    }
}

/// Carries datagrams both ways until either side is done.
async fn carry<S>(socket: WebSocketStream<S>, port: &Port, mut to_browser: mpsc::Receiver<Vec<u8>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let close = tokio::select! {
        close = read(&mut stream, port) => close,
        _ = write(&mut sink, port, &mut to_browser) => CloseCode::Away,
        () = port.silence() => CloseCode::Away,
    };
    if close != CloseCode::Away {
        Shared::count(&port.shared().violations, 1);
    }
    let reason = CloseFrame {
        code: close,
        reason: "".into(),
    };
    // Only politeness: the browser may be gone.
    let _ = tokio::time::timeout(GOODBYE_WITHIN, sink.send(Message::Close(Some(reason)))).await;
}

/// Reads until the browser is gone, or says what it did wrong.
async fn read<S>(stream: &mut SplitStream<WebSocketStream<S>>, port: &Port) -> CloseCode
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => port.deliver(&bytes),
            Some(Ok(Message::Text(_))) => return CloseCode::Unsupported,
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(_))) => return CloseCode::Size,
            Some(Err(Error::Protocol(_))) => return CloseCode::Protocol,
            Some(Err(_)) | None => return CloseCode::Away,
        }
    }
}

/// Writes until there is nobody left who could say something.
async fn write<S>(
    sink: &mut SplitSink<WebSocketStream<S>, Message>,
    port: &Port,
    to_browser: &mut mpsc::Receiver<Vec<u8>>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(bytes) = to_browser.recv().await {
        port.sent(bytes.len());
        sink.feed(Message::Binary(bytes.into())).await?;
        // Messages of one tick go out together.
        while let Ok(bytes) = to_browser.try_recv() {
            port.sent(bytes.len());
            sink.feed(Message::Binary(bytes.into())).await?;
        }
        sink.flush().await?;
    }
    Ok(())
}

fn socket_config(message_max: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.read_buffer_size = 4 << 10;
    config.write_buffer_size = 16 << 10;
    config.max_write_buffer_size = 64 << 10;
    config.max_message_size = Some(message_max);
    config.max_frame_size = Some(message_max);
    config
}

/// TLS and the request have to be done by then.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The time that a closing frame may take.
const GOODBYE_WITHIN: Duration = Duration::from_millis(500);
const AFTER_ERROR: Duration = Duration::from_millis(100);
