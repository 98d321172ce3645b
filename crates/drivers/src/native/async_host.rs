//! Client and server inside a tokio runtime: the same endpoint, awaited instead of polled.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use muse_relay::{Invitation, Link, LinkEvent, RoomCode, RoomKey, Through};
use muse_transport::{
    Broadcast, Config, Connect, ConnectionId, Endpoint, Event, MessageId, SendError, SendOptions,
    ServerOptions, ServerPublicKey,
};
use muse_wire::Instant;

use crate::native::{client, host};
use crate::{AsyncUdp, Driver, UdpOptions};

/// A server that is awaited. Use it from one task; connections are told apart by their ids.
///
/// ```
/// use muse_drivers::AsyncServer;
/// # use muse_drivers::{Client, new_key};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery};
/// use muse_transport::{Event, ServerOptions};
/// # let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// # let key = new_key()?;
/// # let public = key.public();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let address = "127.0.0.1:0".parse().expect("an address");
/// let mut server = AsyncServer::bind(address, config.clone(), ServerOptions::new(key))?;
/// # let address = server.local_addr()?;
/// # let playing = std::thread::spawn(move || {
/// #     let mut client = Client::connect(address, config, Connect::pinned(public))?;
/// #     let mut answer = None;
/// #     while answer.is_none() {
/// #         client.tick(|client, event| match event {
/// #             Event::Connected { .. } => client.send(0, b"hello").map(drop).expect("just connected"),
/// #             Event::Message { payload, .. } => answer = Some(payload.to_vec()),
/// #             other => panic!("{other:?}"),
/// #         })?;
/// #         client.wait(muse_wire::Duration::from_millis(5))?;
/// #     }
/// #     Ok::<_, std::io::Error>(answer)
/// # });
/// let mut buffer = Vec::new();
/// loop {
///     match server.next_event(&mut buffer).await? {
///         Event::Message { connection, channel, payload } => {
///             server.send(connection, channel, payload).expect("room in the queue");
///         }
///         Event::Closed { .. } => break,
///         _ => {}
///     }
/// }
/// // The client has heard what it said, and has gone.
/// # let answer = playing.join().expect("no panic")?;
/// assert_eq!(answer.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
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

    /// Opens a room at a relay; see [`Server::open_room`](crate::Server::open_room).
    pub fn open_room(&mut self, relay: SocketAddr) -> io::Result<RoomCode> {
        let mut key = [0; 16];
        crate::fill_random(&mut key)?;
        let key = RoomKey::new(key);
        let link = Link::open(self.host.now(), relay, key, crate::native::relay::seed()?);
        self.host.set_link(relay, link)?;
        Ok(key.code())
    }

    /// Waits until something happens at the relay; for ever if no room was opened. What happens to connections meanwhile waits for
    /// [`next_event`](Self::next_event). May be dropped at any await without losing anything.
    pub async fn next_relay_event(&mut self) -> io::Result<LinkEvent> {
        self.host.next_relay_event().await
    }

    /// Returns the next event of the relay, without waiting.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.host.link.as_mut()?.poll_event()
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

    /// Returns the address that the server listens on.
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
        let mut host = AsyncHost::bind(client::any_address(server), config)?;
        let connection = host
            .endpoint
            .connect(host.now(), server, how)
            .map_err(client::not_begun)?;
        Ok(Self { host, connection })
    }

    /// Begins to connect to the host of a room, through the relay at `relay` and then directly where that works; see
    /// [`Client::join`](crate::Client::join).
    pub fn join(
        relay: SocketAddr,
        code: RoomCode,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let mut host = AsyncHost::bind(client::any_address(relay), config)?;
        let link = Link::join(host.now(), relay, code, crate::native::relay::seed()?);
        host.set_link(relay, link)?;
        let connection = host
            .endpoint
            .connect(host.now(), Link::host_address(), how)
            .map_err(client::not_begun)?;
        Ok(Self { host, connection })
    }

    /// Begins to connect to the host that wrote an invitation, and to nobody else.
    pub fn accept_invitation(invitation: &Invitation, config: Config) -> io::Result<Self> {
        let key = ServerPublicKey::from_bytes(invitation.host_key);
        let (relay, code) = (invitation.relay, invitation.code);
        Self::join(relay, code, config, Connect::pinned(key))
    }

    /// Waits until something happens at the relay; for ever for a client that did not join through one. What happens to the
    /// connection meanwhile waits for [`next_event`](Self::next_event). May be dropped at any await without losing anything.
    pub async fn next_relay_event(&mut self) -> io::Result<LinkEvent> {
        self.host.next_relay_event().await
    }

    /// Returns the next event of the relay, without waiting.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.host.link.as_mut()?.poll_event()
    }

    /// The link to the relay, for a client that joined through one.
    pub fn relay(&self) -> Option<&Link> {
        self.host.link.as_ref()
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

/// The common part of both.
struct AsyncHost {
    endpoint: Endpoint,
    udp: AsyncUdp,
    /// The relay that peers may come through.
    link: Option<Link>,
}

impl AsyncHost {
    fn bind(address: SocketAddr, config: Config) -> io::Result<Self> {
        let udp = AsyncUdp::bind(address, &UdpOptions::default())?;
        Ok(Self {
            endpoint: host::endpoint(udp.clock(), config)?,
            udp,
            link: None,
        })
    }

    /// Lets peers come through a relay as well.
    fn set_link(&mut self, relay: SocketAddr, link: Link) -> io::Result<()> {
        let here = crate::native::relay::local_address(relay, self.udp.driver().local_addr()?);
        self.link = Some(link.local_addresses(here.as_slice()));
        Ok(())
    }

    async fn next_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Event<'b>> {
        while !self.endpoint.has_events() {
            self.turn().await?;
        }
        Ok(self.endpoint.poll_event(buffer).expect("there is an event"))
    }

    async fn next_relay_event(&mut self) -> io::Result<LinkEvent> {
        loop {
            if let Some(event) = self.link.as_mut().and_then(Link::poll_event) {
                return Ok(event);
            }
            self.turn().await?;
        }
    }

    async fn turn(&mut self) -> io::Result<()> {
        let machine = &mut self.endpoint;
        match &mut self.link {
            None => self.udp.turn(machine).await,
            Some(link) => self.udp.turn(&mut Through { machine, link }).await,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let machine = &mut self.endpoint;
        match &mut self.link {
            None => self.udp.flush(machine),
            Some(link) => self.udp.flush(&mut Through { machine, link }),
        }
    }

    fn now(&self) -> Instant {
        self.udp.clock().now()
    }
}

impl Drop for AsyncHost {
    fn drop(&mut self) {
        host::say_goodbye(self.now(), &mut self.endpoint);
        // What was said goes first: a relay that is left passes nothing on.
        let _ = self.flush();
        if let Some(link) = &mut self.link {
            link.leave();
        }
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
