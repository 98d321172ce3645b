//! Client and server inside a tokio runtime: the same endpoint, awaited instead of polled.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use muse_transport::{
    Broadcast, Config, Connect, ConnectionId, Endpoint, Event, MessageId, SendError, SendOptions,
    ServerOptions,
};
use muse_wire::Instant;

use crate::{AsyncUdp, Driver, UdpOptions, client, host};

/// A server that is awaited. Use it from one task; connections are told apart by their ids.
///
/// ```no_run
/// # async fn serve(config: muse_transport::Config, key: muse_transport::ServerKey) -> std::io::Result<()> {
/// use muse_drivers::AsyncServer;
/// use muse_transport::{Event, ServerOptions};
/// let address = "[::]:7000".parse().expect("an address");
/// let mut server = AsyncServer::bind(address, config, ServerOptions::new(key))?;
/// let mut buffer = Vec::new();
/// loop {
///     if let Event::Message { connection, channel, payload } = server.next_event(&mut buffer).await? {
///         server.send(connection, channel, payload).expect("room in the queue");
///     }
/// }
/// # }
/// ```
pub struct AsyncServer {
    host: AsyncHost,
}

impl AsyncServer {
    /// Listens at `address`. Must be called within a runtime that has its IO and time drivers on.
    pub fn bind(address: SocketAddr, config: Config, options: ServerOptions) -> io::Result<Self> {
        let mut host = AsyncHost::bind(address, config)?;
        host.endpoint.listen(options);
        Ok(Self { host })
    }

    /// Waits for the next event. What was sent before leaves when there are no events left; may be dropped at any await
    /// without losing anything.
    pub async fn next_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Event<'b>> {
        self.host.next_event(buffer).await
    }

    /// Sends a message on a channel.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
    ) -> Result<MessageId, SendError> {
        self.send_with(connection, channel, payload, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        self.host
            .endpoint
            .send_with(self.host.now(), connection, channel, payload, options)
    }

    /// Sends a message to every client.
    pub fn broadcast(&mut self, channel: u8, payload: &[u8]) -> Broadcast {
        self.host
            .endpoint
            .broadcast(self.host.now(), channel, payload)
    }

    /// Sends what is to be sent at once, without waiting for the next event.
    pub fn flush(&mut self) -> io::Result<()> {
        self.host.flush()
    }

    /// The time to give to the endpoint.
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// Where the server listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.host.udp.driver().local_addr()
    }

    /// The endpoint below, for everything that is not here.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.host.endpoint
    }
}

/// A client that is awaited.
pub struct AsyncClient {
    host: AsyncHost,
    connection: ConnectionId,
}

impl AsyncClient {
    /// Begins to connect. Must be called within a runtime that has its IO and time drivers on.
    pub fn connect(server: SocketAddr, config: Config, how: Connect) -> io::Result<Self> {
        let here = match server {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let mut host = AsyncHost::bind(here, config)?;
        let connection = host
            .endpoint
            .connect(host.now(), server, how)
            .map_err(client::not_begun)?;
        Ok(Self { host, connection })
    }

    /// Waits for the next event. What was sent before leaves when there are no events left; may be dropped at any await
    /// without losing anything.
    pub async fn next_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Event<'b>> {
        self.host.next_event(buffer).await
    }

    /// Sends a message on a channel.
    pub fn send(&mut self, channel: u8, payload: &[u8]) -> Result<MessageId, SendError> {
        self.send_with(channel, payload, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with(
        &mut self,
        channel: u8,
        payload: &[u8],
        options: &SendOptions,
    ) -> Result<MessageId, SendError> {
        self.host
            .endpoint
            .send_with(self.host.now(), self.connection, channel, payload, options)
    }

    /// Sends what is to be sent at once, without waiting for the next event.
    pub fn flush(&mut self) -> io::Result<()> {
        self.host.flush()
    }

    /// The id that events carry.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The time to give to the endpoint.
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// The endpoint below, for everything that is not here.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.host.endpoint
    }
}

/// What both have in common.
struct AsyncHost {
    endpoint: Endpoint,
    udp: AsyncUdp,
}

impl AsyncHost {
    fn bind(address: SocketAddr, config: Config) -> io::Result<Self> {
        let udp = AsyncUdp::bind(address, &UdpOptions::default())?;
        Ok(Self {
            endpoint: host::endpoint(udp.clock(), config)?,
            udp,
        })
    }

    async fn next_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Event<'b>> {
        while !self.endpoint.has_events() {
            self.udp.turn(&mut self.endpoint).await?;
        }
        Ok(self.endpoint.poll_event(buffer).expect("there is an event"))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.udp.flush(&mut self.endpoint)
    }

    fn now(&self) -> Instant {
        self.udp.clock().now()
    }
}

impl Drop for AsyncHost {
    fn drop(&mut self) {
        host::say_goodbye(self.now(), &mut self.endpoint);
        // Nobody is left to report an error to.
        let _ = self.flush();
    }
}

impl fmt::Debug for AsyncServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncServer")
            .field("udp", &self.host.udp)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AsyncClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncClient")
            .field("udp", &self.host.udp)
            .finish_non_exhaustive()
    }
}
