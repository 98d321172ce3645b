//! A client for a game loop: one connection to one server, polled, without an async runtime.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use muse_relay::{Invitation, Link, LinkEvent, RoomCode};
use muse_transport::congestion::Budget;
use muse_transport::typed::Message;
use muse_transport::{
    ChannelStats, Config, Connect, ConnectError, ConnectionId, ConnectionStats, Endpoint, Event,
    MessageError, MessageId, SendError, SendOptions, ServerPublicKey,
};
use muse_wire::{Duration, Instant};

use crate::native::host::Host;
use crate::{Driver, UdpDriver, UdpOptions};

/// A connection to a server over UDP.
///
/// Each tick: [`poll`](Self::poll), then [`poll_event`](Self::poll_event) until there is none, the game's step,
/// [`flush`](Self::flush). [`tick`](Self::tick) does all of it. A program with nothing else to do sleeps in
/// [`wait`](Self::wait). Messages can be sent as soon as [`Event::Connected`] has come.
///
/// Dropping it tells the server, which then need not wait for a silence. If the last messages must arrive, call
/// [`finish`](Self::finish) and go on ticking until [`Event::Closed`].
///
/// ```
/// use muse_drivers::{Client, Server, new_key};
/// use muse_transport::{ChannelConfig, Config, Connect, Delivery, Event, ServerOptions};
///
/// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let key = new_key()?;
/// let public = key.public();
/// let mut server = Server::bind("127.0.0.1:0", config.clone(), ServerOptions::new(key))?;
/// let mut client = Client::connect(server.local_addr()?, config, Connect::pinned(public))?;
/// let mut answer = None;
/// while answer.is_none() {
///     client.tick(|client, event| match event {
///         Event::Connected { .. } => client.send(0, b"hello").map(drop).expect("just connected"),
///         Event::Message { payload, .. } => answer = Some(payload.to_vec()),
///         other => panic!("{other:?}"),
///     })?;
///     server.tick(|server, event| {
///         if let Event::Message { connection, channel, payload } = event {
///             server.send(connection, channel, payload).expect("still there");
///         }
///     })?;
/// }
/// assert_eq!(answer.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Client {
    host: Host,
    server: SocketAddr,
    connection: ConnectionId,
}

impl Client {
    /// Begins to connect; [`Event::Connected`], [`Event::Refused`] or [`Event::Unanswered`] follows. A name is looked
    /// up first, which waits. Its addresses are tried a quarter of a second apart, IPv6 and IPv4 in turn, until one of them
    /// lets us in, see [`Endpoint::connect_any`].
    pub fn connect(server: impl ToSocketAddrs, config: Config, how: Connect) -> io::Result<Self> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the server's name has no address");
        let mut servers: Vec<SocketAddr> = server.to_socket_addrs()?.collect();
        let first = *servers.first().ok_or_else(none)?;
        let mixed = servers
            .iter()
            .any(|server| server.is_ipv4() != first.is_ipv4());
        let driver = match mixed {
            true => UdpDriver::bind_any(0, &UdpOptions::default())?,
            false => UdpDriver::bind(any_address(first), &UdpOptions::default())?,
        };
        if driver.local_addr()?.is_ipv4() {
            // This machine has no IPv6 at all.
            servers.retain(SocketAddr::is_ipv4);
        }
        Self::connect_any(driver, &servers, config, how)
    }

    /// Begins to connect through a socket of the caller's choice.
    pub fn connect_from(
        driver: UdpDriver,
        server: SocketAddr,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        Self::connect_any(driver, &[server], config, how)
    }

    fn connect_any(
        driver: UdpDriver,
        servers: &[SocketAddr],
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let mut host = Host::new(driver, config)?;
        let connection = host
            .endpoint
            .connect_any(host.now(), servers, how)
            .map_err(not_begun)?;
        host.flush()?;
        Ok(Self {
            host,
            server: servers[0],
            connection,
        })
    }

    /// Begins to connect to the host of a room, through the relay at `relay` and then directly where that works. It is the
    /// same connection as any other; [`poll_relay_event`](Self::poll_relay_event) tells about the way to it.
    pub fn join(
        relay: SocketAddr,
        code: RoomCode,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let driver = UdpDriver::bind(any_address(relay), &UdpOptions::default())?;
        let mut host = Host::new(driver, config)?;
        let link = Link::join(host.now(), relay, code, crate::native::relay::seed()?);
        let here = crate::native::relay::local_address(relay, host.local_addr()?);
        host.set_link(link.local_addresses(here.as_slice()));
        let server = Link::host_address();
        let connection = host
            .endpoint
            .connect(host.now(), server, how)
            .map_err(not_begun)?;
        host.flush()?;
        Ok(Self {
            host,
            server,
            connection,
        })
    }

    /// Begins to connect to the host that wrote an invitation, and to nobody else.
    pub fn accept_invitation(invitation: &Invitation, config: Config) -> io::Result<Self> {
        let key = ServerPublicKey::from_bytes(invitation.host_key);
        let (relay, code) = (invitation.relay, invitation.code);
        Self::join(relay, code, config, Connect::pinned(key))
    }

    /// Returns the next event of the relay, for a client that joined through one.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.host.poll_relay_event()
    }

    /// The link to the relay, for a client that joined through one.
    pub fn relay(&self) -> Option<&Link> {
        self.host.link()
    }

    /// One turn of a game loop: receives what arrived, gives every event to `handle`, sends what is to be sent.
    pub fn tick(&mut self, mut handle: impl FnMut(&mut Self, Event<'_>)) -> io::Result<()> {
        self.poll()?;
        let mut buffer = self.host.take_buffer();
        while let Some(event) = self.host.poll_event(&mut buffer) {
            handle(self, event);
        }
        self.host.keep_buffer(buffer);
        self.flush()
    }

    /// Receives what has arrived and handles what has become due. Errors are those of the socket itself, not of the way to the server.
    pub fn poll(&mut self) -> io::Result<()> {
        self.host.poll()
    }

    /// Returns the next event. It borrows from `buffer` alone, so that the client can be used while handling it;
    /// give the same buffer again, and nothing is allocated.
    pub fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.host.poll_event(buffer)
    }

    /// Sends what is to be sent: once a tick, or at once after something urgent.
    pub fn flush(&mut self) -> io::Result<()> {
        self.host.flush()
    }

    /// Flushes, then sleeps until something arrives or becomes due, for `timeout` at most; [`poll`](Self::poll) comes next.
    /// Returns true if something arrived.
    pub fn wait(&mut self, timeout: impl Into<Duration>) -> io::Result<bool> {
        self.host.wait(timeout.into())
    }

    /// Sends a message on a channel, as the channel's config says.
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

    /// Sends a typed message; the server gives it to a [`Dispatcher`](muse_transport::Dispatcher).
    pub fn send_message<M: Message>(
        &mut self,
        channel: u8,
        message: &M,
    ) -> Result<MessageId, MessageError> {
        self.host
            .endpoint
            .send_message(self.host.now(), self.connection, channel, message)
    }

    /// Closes at once and tells the server why. What is still on its way may be lost.
    pub fn close(&mut self, code: u16, text: &str) {
        self.host
            .endpoint
            .close(self.host.now(), self.connection, code, text);
    }

    /// Closes once everything reliable has arrived; [`Event::Closed`] says when. Nothing more can be sent meanwhile.
    pub fn finish(&mut self, code: u16, text: &str) {
        self.host
            .endpoint
            .finish(self.host.now(), self.connection, code, text);
    }

    /// True if the connection is made and not over yet.
    pub fn is_connected(&self) -> bool {
        self.host.endpoint.remote(self.connection).is_some()
    }

    /// True if the server has been silent for a while. The connection is kept and may come back.
    pub fn is_interrupted(&self) -> bool {
        self.host.endpoint.is_interrupted(self.connection)
    }

    /// State and counters, while connected.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.host.endpoint.stats(self.connection)
    }

    /// Counters of one channel, while connected.
    pub fn channel_stats(&self, channel: u8) -> Option<ChannelStats> {
        self.host.endpoint.channel_stats(self.connection, channel)
    }

    /// Returns what may be sent now and in the long run, while connected.
    pub fn budget(&mut self) -> Option<Budget> {
        self.host.endpoint.budget(self.host.now(), self.connection)
    }

    /// Returns the time to which deadlines of messages refer: that of the last poll or flush.
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// The id that events carry.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Returns the address of the server while connected; otherwise the first of its addresses. A virtual address for one behind a relay.
    pub fn server_addr(&self) -> SocketAddr {
        let remote = self.host.endpoint.remote(self.connection);
        remote.unwrap_or(self.server)
    }

    /// The socket's own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.host.local_addr()
    }

    /// The socket, for its counters.
    pub fn driver(&self) -> &UdpDriver {
        &self.host.driver
    }

    /// The endpoint below, for everything that is not here.
    pub fn endpoint(&self) -> &Endpoint {
        &self.host.endpoint
    }

    /// The endpoint below, to change it; its `now` is [`now`](Self::now).
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.host.endpoint
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Any address and port of our own from which `to` can be reached.
pub(crate) fn any_address(to: SocketAddr) -> SocketAddr {
    match to {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}

pub(crate) fn not_begun(error: ConnectError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
