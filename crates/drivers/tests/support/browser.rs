//! A browser played by a program: the transport's client over a real session of WebTransport or WebSocket.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use muse_drivers::{
    Clock, EndpointDriver, SystemEntropy, WebKind, WebListener, WebOptions, new_key,
};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, ServerOptions,
    ServerPublicKey,
};
use muse_wire::{Datagram, Ecn, Machine};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest};
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Connection};

/// Time that a test waits for what must come; nothing depends on it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Six channels, one of each delivery mode.
pub(crate) fn every_mode() -> Config {
    let partial = Delivery::partially_reliable(20, 90).expect("a sensible promise");
    let modes = [
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableSequenced,
        Delivery::ReliableOrdered,
        partial,
    ];
    let add = |config: Config, mode| config.channel(ChannelConfig::new(mode));
    modes.into_iter().fold(Config::new(0x77_6562), add)
}

/// A server for UDP and browsers, and its key.
pub(crate) fn server() -> (EndpointDriver, ServerPublicKey) {
    server_with(WebOptions::new(loopback()))
}

pub(crate) fn server_with(options: WebOptions) -> (EndpointDriver, ServerPublicKey) {
    let key = new_key().expect("randomness");
    let public = key.public();
    let server = EndpointDriver::bind("127.0.0.1:0", every_mode(), ServerOptions::new(key));
    let web = WebListener::bind(options).expect("free ports");
    let server = server
        .and_then(|server| server.with_web(web))
        .expect("a free port");
    (server, public)
}

pub(crate) fn loopback() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// A session without anything above it.
pub(crate) enum Pipe {
    Transport(Connection),
    Socket(Box<WebSocketStream<TcpStream>>),
}

impl Pipe {
    pub(crate) async fn open(web: &WebListener, kind: WebKind) -> Result<Self, String> {
        Self::open_at(web, kind, "/muse").await
    }

    pub(crate) async fn open_at(
        web: &WebListener,
        kind: WebKind,
        path: &str,
    ) -> Result<Self, String> {
        match kind {
            WebKind::WebTransport => {
                let hash = Sha256Digest::new(web.certificate_hash().expect("a hash"));
                let config = ClientConfig::builder()
                    .with_bind_address(loopback())
                    .with_server_certificate_hashes([hash])
                    .build();
                let url = format!("https://127.0.0.1:{}{path}", web.transport_address().port());
                let endpoint = wtransport::Endpoint::client(config).map_err(|e| e.to_string())?;
                let connection = endpoint.connect(url).await.map_err(|e| e.to_string())?;
                Ok(Self::Transport(connection))
            }
            WebKind::WebSocket => {
                let stream = TcpStream::connect(web.address()).await;
                let stream = stream.map_err(|e| e.to_string())?;
                let request = format!("ws://{}{path}", web.address())
                    .into_client_request()
                    .map_err(|e| e.to_string())?;
                let opened = tokio_tungstenite::client_async(request, stream).await;
                let (socket, _) = opened.map_err(|e| e.to_string())?;
                Ok(Self::Socket(Box::new(socket)))
            }
        }
    }

    /// Sends a datagram as a browser does: over a stream if it is too long for a datagram.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Transport(connection) => match connection.send_datagram(bytes) {
                Ok(()) => Ok(()),
                Err(wtransport::error::SendDatagramError::TooLarge) => {
                    let opening = connection.open_uni().await.map_err(|e| e.to_string())?;
                    let mut stream = opening.await.map_err(|e| e.to_string())?;
                    stream.write_all(bytes).await.map_err(|e| e.to_string())?;
                    stream.finish().await.map_err(|e| e.to_string())
                }
                Err(error) => Err(error.to_string()),
            },
            Self::Socket(socket) => socket
                .send(Message::Binary(bytes.to_vec().into()))
                .await
                .map_err(|error| error.to_string()),
        }
    }

    /// The next datagram; none when the session is over.
    pub(crate) async fn receive(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Transport(connection) => tokio::select! {
                datagram = connection.receive_datagram() => datagram.ok().map(|bytes| bytes.to_vec()),
                stream = connection.accept_uni() => {
                    let mut stream = stream.ok()?;
                    let mut bytes = Vec::new();
                    let mut chunk = [0; 2_048];
                    while let Some(len) = stream.read(&mut chunk).await.ok()? {
                        bytes.extend_from_slice(&chunk[..len]);
                    }
                    Some(bytes)
                }
            },
            Self::Socket(socket) => loop {
                match socket.next().await? {
                    Ok(Message::Binary(bytes)) => return Some(bytes.to_vec()),
                    Ok(Message::Close(_)) | Err(_) => return None,
                    Ok(_) => {}
                }
            },
        }
    }

    /// Returns a datagram that arrives within a moment: `Some(None)` when the session is over.
    pub(crate) async fn glance(&mut self) -> Option<Option<Vec<u8>>> {
        tokio::time::timeout(Duration::from_millis(1), self.receive())
            .await
            .ok()
    }
}

/// A player in a browser.
pub(crate) struct Browser {
    pub(crate) pipe: Pipe,
    pub(crate) endpoint: Endpoint,
    pub(crate) connection: ConnectionId,
    pub(crate) connected: bool,
    pub(crate) messages: Vec<(u8, Vec<u8>)>,
    pub(crate) ended: Option<String>,
    /// The session is over, whatever the connection is.
    pub(crate) pipe_over: bool,
    clock: Clock,
}

impl Browser {
    pub(crate) async fn connect(web: &WebListener, kind: WebKind, key: ServerPublicKey) -> Self {
        let pipe = Pipe::open(web, kind).await.expect("a session");
        let clock = Clock::start();
        let config = every_mode().link(kind.link()).build().expect("sensible");
        let mut endpoint = Endpoint::new(config, SystemEntropy::new().expect("randomness"));
        let connection = endpoint
            .connect(clock.now(), server_address(), Connect::pinned(key))
            .expect("room for one");
        Self {
            pipe,
            endpoint,
            connection,
            connected: false,
            messages: Vec::new(),
            ended: None,
            pipe_over: false,
            clock,
        }
    }

    pub(crate) fn send(&mut self, channel: u8, payload: &[u8]) {
        let now = self.clock.now();
        self.endpoint
            .send(now, self.connection, channel, payload)
            .expect("room in the queue");
    }

    pub(crate) fn close(&mut self) {
        let now = self.clock.now();
        self.endpoint.close(now, self.connection, 7, "enough");
    }

    /// One turn of its loop.
    pub(crate) async fn turn(&mut self) {
        let mut packet = [0; 1_200];
        let now = self.clock.now();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut packet) {
            if self.pipe.send(&packet[..transmit.len]).await.is_err() {
                self.pipe_over = true;
            }
        }
        for _ in 0..64 {
            match self.pipe.glance().await {
                Some(Some(mut bytes)) => self.endpoint.handle_datagram(
                    self.clock.now(),
                    Datagram {
                        from: server_address(),
                        ecn: Ecn::NotCapable,
                        payload: &mut bytes,
                    },
                ),
                Some(None) => {
                    self.pipe_over = true;
                    break;
                }
                None => break,
            }
        }
        let now = self.clock.now();
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        let mut buffer = Vec::new();
        while let Some(event) = self.endpoint.poll_event(&mut buffer) {
            match event {
                Event::Connected { .. } => self.connected = true,
                Event::Message {
                    channel, payload, ..
                } => self.messages.push((channel, payload.to_vec())),
                Event::Refused { .. } | Event::Unanswered { .. } | Event::Closed { .. } => {
                    self.ended = Some(format!("{event:?}"));
                }
                _ => {}
            }
        }
    }
}

/// A browser has no addresses: everything goes into the one session.
fn server_address() -> std::net::SocketAddr {
    "127.0.0.1:1".parse().expect("an address")
}

/// Events at the server.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) connected: Vec<ConnectionId>,
    pub(crate) messages: Vec<(ConnectionId, u8, Vec<u8>)>,
    pub(crate) moved: usize,
    pub(crate) closed: usize,
}

impl Log {
    pub(crate) fn tick(&mut self, server: &mut EndpointDriver) {
        server
            .tick(|_, event| match event {
                Event::Connected { connection, .. } => self.connected.push(connection),
                Event::Message {
                    connection,
                    channel,
                    payload,
                } => self.messages.push((connection, channel, payload.to_vec())),
                Event::AddressChanged { .. } => self.moved += 1,
                Event::Closed { .. } => self.closed += 1,
                _ => {}
            })
            .expect("the socket works");
    }
}
