//! A client for a game loop: one connection to one server, polled, without an async runtime.

use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use muse_transport::congestion::Budget;
use muse_transport::typed::Message;
use muse_transport::{
    ChannelStats, Config, Connect, ConnectError, ConnectionId, ConnectionStats, Event,
    MessageError, MessageId, SendError, SendOptions,
};

use crate::sockets::Sockets;
use crate::{EndpointDriver, MemoryDriver};

/// A connection to a server: an [`EndpointDriver`] that knows which connection is meant.
///
/// Messages can be sent as soon as [`Event::Connected`] has come.
///
/// Dropping it tells the server, which then need not wait for a silence. If the last messages must arrive, call
/// [`finish`](Self::finish) and go on ticking until [`Event::Closed`].
///
/// ```
/// use muse_drivers::{ClientDriver, EndpointDriver, new_key};
/// use muse_transport::{ChannelConfig, Config, Connect, Delivery, Event, ServerOptions};
///
/// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let key = new_key()?;
/// let public = key.public();
/// let mut server = EndpointDriver::bind("127.0.0.1:0", config.clone(), ServerOptions::new(key))?;
/// let mut client = ClientDriver::connect(server.local_addr()?, config, Connect::pinned(public))?;
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
#[derive(Debug)]
pub struct ClientDriver {
    driver: EndpointDriver,
    /// The first of the server's addresses.
    server: SocketAddr,
    connection: ConnectionId,
    /// For another connection when this one is lost.
    how: Connect,
}

impl ClientDriver {
    /// Begins to connect to a server in the same process, over a link that it [added](EndpointDriver::add_memory_link).
    pub fn over_memory(end: MemoryDriver, config: Config, how: Connect) -> io::Result<Self> {
        let server = end.remote();
        let mut driver = EndpointDriver::new(Sockets::default(), config)?;
        driver.attach(end);
        Self::begin(driver, &[server], how)
    }

    /// Begins to connect, over links that lead to all of these addresses.
    pub(crate) fn begin(
        mut driver: EndpointDriver,
        servers: &[SocketAddr],
        how: Connect,
    ) -> io::Result<Self> {
        let now = driver.now();
        let connection = driver.endpoint.connect_any(now, servers, how.clone());
        let connection = connection.map_err(not_begun)?;
        driver.flush()?;
        Ok(Self {
            driver,
            server: servers[0],
            connection,
            how,
        })
    }

    /// Begins to connect to the same server anew, when a connection is lost that could not be resumed. Returns the id that events of the new
    /// connection carry.
    pub fn reconnect(&mut self) -> io::Result<ConnectionId> {
        let (now, server) = (self.driver.now(), self.server_addr());
        let connection = self.driver.endpoint.connect(now, server, self.how.clone());
        self.connection = connection.map_err(not_begun)?;
        Ok(self.connection)
    }

    /// One turn of a game loop: receives what arrived, gives every event to `handle`, sends what is to be sent.
    pub fn tick(&mut self, mut handle: impl FnMut(&mut Self, Event<'_>)) -> io::Result<()> {
        self.poll()?;
        let mut buffer = self.driver.take_buffer();
        while let Some(event) = self.driver.poll_event(&mut buffer) {
            handle(self, event);
        }
        self.driver.keep_buffer(buffer);
        self.flush()
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
        self.driver
            .send_with(self.connection, channel, payload, options)
    }

    /// Sends a typed message; the server gives it to a [`Dispatcher`](muse_transport::Dispatcher).
    pub fn send_message<M: Message>(
        &mut self,
        channel: u8,
        message: &M,
    ) -> Result<MessageId, MessageError> {
        self.driver.send_message(self.connection, channel, message)
    }

    /// Closes at once and tells the server why. What is still on its way may be lost.
    pub fn close(&mut self, code: u16, text: &str) {
        self.driver.close(self.connection, code, text);
    }

    /// Closes once everything reliable has arrived; [`Event::Closed`] says when. Nothing more can be sent meanwhile.
    pub fn finish(&mut self, code: u16, text: &str) {
        self.driver.finish(self.connection, code, text);
    }

    /// True if the connection is made and not over yet.
    pub fn is_connected(&self) -> bool {
        self.driver.endpoint.remote(self.connection).is_some()
    }

    /// True if the server has been silent for a while. The connection is kept and may come back.
    pub fn is_interrupted(&self) -> bool {
        self.driver.endpoint.is_interrupted(self.connection)
    }

    /// State and counters, while connected.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.driver.endpoint.stats(self.connection)
    }

    /// Counters of one channel, while connected.
    pub fn channel_stats(&self, channel: u8) -> Option<ChannelStats> {
        self.driver.endpoint.channel_stats(self.connection, channel)
    }

    /// Returns what may be sent now and in the long run, while connected.
    pub fn budget(&mut self) -> Option<Budget> {
        self.driver.budget(self.connection)
    }

    /// The id that events carry.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Returns the address of the server while connected; otherwise the first of its addresses. A virtual address for one behind a relay.
    pub fn server_addr(&self) -> SocketAddr {
        let remote = self.driver.endpoint.remote(self.connection);
        remote.unwrap_or(self.server)
    }
}

impl Deref for ClientDriver {
    type Target = EndpointDriver;

    fn deref(&self) -> &EndpointDriver {
        &self.driver
    }
}

impl DerefMut for ClientDriver {
    fn deref_mut(&mut self) -> &mut EndpointDriver {
        &mut self.driver
    }
}

impl From<ClientDriver> for EndpointDriver {
    /// Forgets which connection was meant: [`ClientDriver::connection`] tells before.
    fn from(client: ClientDriver) -> Self {
        client.driver
    }
}

pub(crate) fn not_begun(error: ConnectError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
