//! A server for a game loop: many connections behind one socket, polled, without an async runtime.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use muse_relay::{Link, LinkEvent, RoomCode, RoomKey};
use muse_transport::congestion::Budget;
use muse_transport::typed::Message;
use muse_transport::{
    AdmissionError, Broadcast, ChannelStats, Config, ConnectionId, ConnectionStats, Endpoint,
    Event, MessageError, MessageId, SendError, SendOptions, ServerOptions,
};
use muse_wire::{Duration, Instant};

use crate::native::host::Host;
use crate::{UdpDriver, UdpOptions, bind_shards};

/// A server over UDP.
///
/// Each tick: [`poll`](Self::poll), then [`poll_event`](Self::poll_event) until there is none, the game's step,
/// [`flush`](Self::flush). [`tick`](Self::tick) does all of it. A program with nothing else to do sleeps in
/// [`wait`](Self::wait). Dropping it tells the clients.
///
/// ```
/// use muse_drivers::{Server, new_key};
/// use muse_transport::{ChannelConfig, Config, Delivery, Event, ServerOptions};
///
/// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let mut server = Server::bind("[::]:0", config, ServerOptions::new(new_key()?))?;
/// let mut buffer = Vec::new();
/// for _tick in 0..3 {
///     server.poll()?;
///     while let Some(event) = server.poll_event(&mut buffer) {
///         match event {
///             Event::Connected { connection, .. } => println!("{connection:?} is here"),
///             Event::Message { connection, channel, payload } => {
///                 server.send(connection, channel, payload).expect("room in the queue");
///             }
///             _ => {}
///         }
///     }
///     let told = server.broadcast(0, b"the state of the world");
///     assert_eq!(told.sent, 0, "nobody has come yet");
///     server.flush()?;
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Server {
    host: Host,
}

impl Server {
    /// Listens at `address`: `"[::]:7000"` for both IP versions, port 0 for any port.
    pub fn bind(
        address: impl ToSocketAddrs,
        config: Config,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let mut failure = None;
        for address in address.to_socket_addrs()? {
            match UdpDriver::bind(address, &socket_options()) {
                Ok(driver) => return Self::with_driver(driver, config, options),
                Err(error) => {
                    failure = Some(io::Error::new(error.kind(), format!("{address}: {error}")))
                }
            }
        }
        Err(failure
            .unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
    }

    /// Listens at a socket of the caller's choice.
    pub fn with_driver(
        driver: UdpDriver,
        config: Config,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let mut host = Host::new(driver, config)?;
        host.endpoint.listen(options);
        Ok(Self { host })
    }

    /// Listens with up to `count` servers at one address, each to be run by a thread of its own; see [`bind_shards`]
    /// for when there are fewer. `options` is asked for each shard's options: give all of them the same key.
    ///
    /// A connection stays with the shard that accepted it, whatever address its packets come from. A handshake needs no
    /// state that shards would have to share: its packets come from one address, so that one shard gets all of them, and
    /// one that moves meanwhile starts over. Limits count per shard: connections, handshakes, and the single use of
    /// connect tokens, so that a stolen token could be used once in each until its holder connects or it expires.
    pub fn bind_shards(
        address: impl ToSocketAddrs,
        config: Config,
        count: usize,
        mut options: impl FnMut(usize) -> ServerOptions,
    ) -> io::Result<Vec<Self>> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let address = address.to_socket_addrs()?.next().ok_or_else(none)?;
        let drivers = bind_shards(address, count, &socket_options())?;
        let shard = |(number, driver): (usize, UdpDriver)| {
            let config = config
                .clone()
                .shard(u8::try_from(number).unwrap_or(u8::MAX));
            Self::with_driver(driver, config, options(number))
        };
        drivers.into_iter().enumerate().map(shard).collect()
    }

    /// Admits browsers as well: the same connections, events and channels, whatever the link of a client is. One listener; a new
    /// one replaces the one before. [`wait`](Self::wait) wakes up for browsers too.
    ///
    /// ```
    /// use muse_drivers::{Server, WebListener, WebOptions, new_key};
    /// use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
    /// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
    /// let server = Server::bind("127.0.0.1:0", config, ServerOptions::new(new_key()?))?;
    /// let mut server = server.with_web(WebListener::bind(WebOptions::new("127.0.0.1:0".parse().expect("an address")))?)?;
    /// println!("browsers ask http://{}/link", server.web().expect("just given").address());
    /// server.tick(|_, _| {})?;
    /// assert_eq!(server.web().map(WebListener::sessions), Some(0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "web")]
    pub fn with_web(mut self, web: crate::WebListener) -> io::Result<Self> {
        self.host.set_web(web)?;
        Ok(self)
    }

    /// Returns the listener for browsers, for its addresses and counters.
    #[cfg(feature = "web")]
    pub fn web(&self) -> Option<&crate::WebListener> {
        self.host.web()
    }

    /// Opens a room at a relay, so that clients behind routers can come by its code, and others as before. One room at a time; a
    /// new one replaces the one before. [`poll_relay_event`](Self::poll_relay_event) says when it is open. An
    /// [`Invitation`](muse_relay::Invitation) holds the code together with the server's key.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # use muse_drivers::{Client, Server, new_key};
    /// # use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
    /// use muse_relay::Invitation;
    /// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
    /// let key = new_key()?;
    /// let host_key = *key.public().as_bytes();
    /// let mut server = Server::bind("127.0.0.1:0", config.clone(), ServerOptions::new(key))?;
    /// let relay = "127.0.0.1:7788".parse().expect("an address");
    /// let code = server.open_room(relay)?;
    /// let text = Invitation { relay, code, host_key }.to_string(); // to be sent to a friend, who does:
    /// let invitation: Invitation = text.parse().expect("copied whole");
    /// assert_eq!((invitation.code, invitation.host_key), (code, host_key));
    /// let client = Client::accept_invitation(&invitation, config)?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_room(&mut self, relay: SocketAddr) -> io::Result<RoomCode> {
        let mut key = [0; 16];
        crate::fill_random(&mut key)?;
        let key = RoomKey::new(key);
        let link = Link::open(self.host.now(), relay, key, crate::native::relay::seed()?);
        let here = crate::native::relay::local_address(relay, self.host.local_addr()?);
        self.host.set_link(link.local_addresses(here.as_slice()));
        Ok(key.code())
    }

    /// Returns the next event of the relay, for a server that has opened a room.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.host.poll_relay_event()
    }

    /// The link to the relay, for a server that has opened a room.
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

    /// Receives what has arrived and handles what has become due. Errors are those of the socket itself: no client can cause one.
    pub fn poll(&mut self) -> io::Result<()> {
        self.host.poll()
    }

    /// Returns the next event. It borrows from `buffer` alone, so that the server can be used while handling it;
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
    ///
    /// A loop with ticks of its own waits here for the rest of each tick and polls whenever it wakes, instead of sleeping elsewhere:
    /// a flood of strangers' datagrams fills the socket's buffer within a tick, and what no longer fits is lost, players' packets too.
    pub fn wait(&mut self, timeout: impl Into<Duration>) -> io::Result<bool> {
        self.host.wait(timeout.into())
    }

    /// Sends a message on a channel, as the channel's config says.
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

    /// Sends a typed message; the client gives it to a [`Dispatcher`](muse_transport::Dispatcher).
    pub fn send_message<M: Message>(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        message: &M,
    ) -> Result<MessageId, MessageError> {
        self.host
            .endpoint
            .send_message(self.host.now(), connection, channel, message)
    }

    /// Sends a message to every client.
    pub fn broadcast(&mut self, channel: u8, payload: &[u8]) -> Broadcast {
        self.host
            .endpoint
            .broadcast(self.host.now(), channel, payload)
    }

    /// Sends a message to every client that `wanted` agrees to.
    pub fn broadcast_if(
        &mut self,
        channel: u8,
        payload: &[u8],
        wanted: impl FnMut(ConnectionId) -> bool,
    ) -> Broadcast {
        self.host
            .endpoint
            .broadcast_if(self.host.now(), channel, payload, wanted)
    }

    /// Sends a typed message to every client, encoded once.
    pub fn broadcast_message<M: Message>(
        &mut self,
        channel: u8,
        message: &M,
    ) -> Result<Broadcast, MessageError> {
        self.host
            .endpoint
            .broadcast_message(self.host.now(), channel, message)
    }

    /// Lets a client in that [asks](Event::Asking), see [`Endpoint::admit`].
    pub fn admit(&mut self, connection: ConnectionId) -> Result<(), AdmissionError> {
        self.host.endpoint.admit(self.host.now(), connection)
    }

    /// Refuses a client that [asks](Event::Asking), which reads code and text, see [`Endpoint::deny`].
    pub fn deny(
        &mut self,
        connection: ConnectionId,
        code: u16,
        text: &str,
    ) -> Result<(), AdmissionError> {
        self.host
            .endpoint
            .deny(self.host.now(), connection, code, text)
    }

    /// Closes a connection at once and tells the client why. What is still on its way may be lost.
    pub fn close(&mut self, connection: ConnectionId, code: u16, text: &str) {
        self.host
            .endpoint
            .close(self.host.now(), connection, code, text);
    }

    /// Closes a connection once everything reliable has arrived; [`Event::Closed`] says when. Nothing more can be sent to it
    /// meanwhile.
    pub fn finish(&mut self, connection: ConnectionId, code: u16, text: &str) {
        self.host
            .endpoint
            .finish(self.host.now(), connection, code, text);
    }

    /// Every open connection.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.host.endpoint.connections()
    }

    /// State and counters of a connection.
    pub fn stats(&self, connection: ConnectionId) -> Option<ConnectionStats> {
        self.host.endpoint.stats(connection)
    }

    /// Counters of one channel of a connection.
    pub fn channel_stats(&self, connection: ConnectionId, channel: u8) -> Option<ChannelStats> {
        self.host.endpoint.channel_stats(connection, channel)
    }

    /// Returns what a connection may send now and in the long run.
    pub fn budget(&mut self, connection: ConnectionId) -> Option<Budget> {
        self.host.endpoint.budget(self.host.now(), connection)
    }

    /// Returns the time to which deadlines of messages refer: that of the last poll or flush.
    pub fn now(&self) -> Instant {
        self.host.now()
    }

    /// Returns the address that the server listens on.
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

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("driver", &self.host.driver)
            .finish_non_exhaustive()
    }
}

/// Returns the options of a server's socket.
fn socket_options() -> UdpOptions {
    UdpOptions::default().sieve(true)
}
