//! The endpoint's driver inside a tokio runtime: awaited instead of polled.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use muse_transport::{
    Broadcast, Config, Connect, ConnectionId, Endpoint, Event, MessageId, SendError, SendOptions,
    ServerOptions,
};
use muse_wire::Instant;
use tokio::net::{ToSocketAddrs, lookup_host};

use crate::client_driver::not_begun;
use crate::endpoint_driver::{ban, endpoint, say_goodbye};
use crate::native::connect::socket_towards;
use crate::native::relay::{self, Link, Through};
use crate::{AsyncUdp, Driver, UdpDriver, UdpOptions};

/// An [`EndpointDriver`](crate::EndpointDriver) over UDP that is awaited. Use it from one task; connections are told apart by their ids.
///
/// ```
/// use muse_drivers::AsyncEndpointDriver;
/// # use muse_drivers::{ClientDriver, new_key};
/// # use muse_transport::{ChannelConfig, Config, Connect, Delivery};
/// use muse_transport::{Event, ServerOptions};
/// # let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// # let key = new_key()?;
/// # let public = key.public();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let address = "127.0.0.1:0".parse().expect("an address");
/// let mut server = AsyncEndpointDriver::bind(address, config.clone(), ServerOptions::new(key))?;
/// # let address = server.local_addr()?;
/// # let playing = std::thread::spawn(move || {
/// #     let mut client = ClientDriver::connect(address, config, Connect::pinned(public))?;
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
pub struct AsyncEndpointDriver {
    endpoint: Endpoint,
    udp: AsyncUdp,
    link: Option<Link>,
}

impl AsyncEndpointDriver {
    /// Listens at `address`. Must be called within a runtime that has its IO and time drivers on.
    pub fn bind(address: SocketAddr, config: Config, options: ServerOptions) -> io::Result<Self> {
        let mut driver = Self::new(UdpDriver::bind(address, &UdpOptions::default())?, config)?;
        driver.endpoint.listen(options);
        Ok(driver)
    }

    fn new(driver: UdpDriver, config: Config) -> io::Result<Self> {
        let udp = AsyncUdp::new(driver)?;
        Ok(Self {
            endpoint: endpoint(udp.clock(), config)?,
            udp,
            link: None,
        })
    }

    /// Waits for the next event. What was sent before leaves when there are no events left; may be dropped at any await
    /// without losing anything.
    pub async fn next_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> io::Result<Event<'b>> {
        while !self.endpoint.has_events() {
            self.turn().await?;
        }
        Ok(self.endpoint.poll_event(buffer).expect("there is an event"))
    }

    async fn turn(&mut self) -> io::Result<()> {
        let machine = &mut self.endpoint;
        match &mut self.link {
            None => self.udp.turn(machine).await,
            Some(link) => {
                self.udp.turn(&mut Through { machine, link }).await?;
                if let Some(server) = relay::host_key(link) {
                    self.endpoint.pin(server);
                }
                Ok(())
            }
        }
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
        self.endpoint
            .send_with(self.now(), connection, channel, payload, options)
    }

    /// Sends a message to every peer.
    pub fn broadcast(&mut self, channel: u8, payload: &[u8]) -> Broadcast {
        self.endpoint.broadcast(self.now(), channel, payload)
    }

    /// Closes a connection and lets the peer come back no more; see [`EndpointDriver::ban`](crate::EndpointDriver::ban).
    pub fn ban(&mut self, connection: ConnectionId, code: u16, text: &str) {
        let (now, link) = (self.now(), self.link.as_mut());
        let at_relay = |peer| link.map_or(Vec::new(), |link| relay::ban(link, now, peer));
        ban(now, &mut self.endpoint, connection, (code, text), at_relay);
    }

    /// Sends what is to be sent at once, without waiting for the next event.
    pub fn flush(&mut self) -> io::Result<()> {
        let machine = &mut self.endpoint;
        match &mut self.link {
            None => self.udp.flush(machine),
            Some(link) => self.udp.flush(&mut Through { machine, link }),
        }
    }

    /// Returns the time to give to the endpoint.
    pub fn now(&self) -> Instant {
        self.udp.clock().now()
    }

    /// Returns the socket's own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.driver().local_addr()
    }

    /// Returns the endpoint below, for everything that is not here.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }
}

/// A connection to a server that is awaited.
#[derive(Debug)]
pub struct AsyncClientDriver {
    driver: AsyncEndpointDriver,
    connection: ConnectionId,
}

impl AsyncClientDriver {
    /// Begins to connect, to whichever of a name's addresses answers first; see
    /// [`ClientDriver::connect`](crate::ClientDriver::connect). Must be called within a runtime that has its IO and time drivers on.
    pub async fn connect(
        server: impl ToSocketAddrs,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let mut servers: Vec<SocketAddr> = lookup_host(server).await?.collect();
        let driver = AsyncEndpointDriver::new(socket_towards(&mut servers)?, config)?;
        Self::begin(driver, &servers, how)
    }

    fn begin(
        mut driver: AsyncEndpointDriver,
        servers: &[SocketAddr],
        how: Connect,
    ) -> io::Result<Self> {
        let now = driver.now();
        let connection = driver.endpoint.connect_any(now, servers, how);
        Ok(Self {
            connection: connection.map_err(not_begun)?,
            driver,
        })
    }

    /// Sends a message on a channel.
    pub fn send(&mut self, channel: u8, payload: &[u8]) -> Result<MessageId, SendError> {
        self.driver.send(self.connection, channel, payload)
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

    /// Returns the id that events carry.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }
}

#[cfg(feature = "relay")]
mod rooms {
    //! Rooms at a relay.

    use muse_relay::{Invitation, LinkEvent, RoomCode, ShortCode};
    use muse_transport::ServerPublicKey;

    use super::*;
    use crate::RoomOptions;
    use crate::native::connect::any_address;
    use crate::native::relay::{join_room, open_room, with_local_addresses};

    impl AsyncEndpointDriver {
        /// Opens a room at a relay; see [`EndpointDriver::open_room`](crate::EndpointDriver::open_room).
        pub fn open_room(&mut self, relay: SocketAddr) -> io::Result<ShortCode> {
            self.open_room_with(relay, RoomOptions::default())
        }

        /// As [`open_room`](Self::open_room), with options.
        pub fn open_room_with(
            &mut self,
            relay: SocketAddr,
            options: RoomOptions,
        ) -> io::Result<ShortCode> {
            let host_key = self.endpoint.public_key();
            let (link, code) = open_room(self.now(), &[relay], host_key, options)?;
            self.set_link(link)?;
            Ok(code)
        }

        fn set_link(&mut self, link: Link) -> io::Result<()> {
            let relays = [link.relay()];
            self.link = Some(with_local_addresses(link, &relays, self.local_addr()?));
            Ok(())
        }

        /// Waits until something happens at the relay; for ever if no room was opened. What happens to connections meanwhile waits for
        /// [`next_event`](Self::next_event). May be dropped at any await without losing anything.
        pub async fn next_relay_event(&mut self) -> io::Result<LinkEvent> {
            loop {
                if let Some(event) = self.poll_relay_event() {
                    return Ok(event);
                }
                self.turn().await?;
            }
        }

        /// Returns the next event of the relay, without waiting.
        pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
            self.link.as_mut()?.poll_event()
        }

        /// Returns the link to the relay, for one that has opened or joined a room.
        pub fn relay(&self) -> Option<&Link> {
            self.link.as_ref()
        }
    }

    impl AsyncClientDriver {
        /// Begins to connect to the host of a room; see [`ClientDriver::join`](crate::ClientDriver::join).
        pub fn join(
            relay: SocketAddr,
            code: RoomCode,
            options: RoomOptions,
            config: Config,
            how: Connect,
        ) -> io::Result<Self> {
            let socket = UdpDriver::bind(any_address(relay), &UdpOptions::default())?;
            let mut driver = AsyncEndpointDriver::new(socket, config)?;
            driver.set_link(join_room(driver.now(), &[relay], code, &options)?)?;
            Self::begin(driver, &[Link::host_address()], how)
        }

        /// Begins to connect to the host of a room by its short code; see
        /// [`ClientDriver::join_by_code`](crate::ClientDriver::join_by_code).
        pub fn join_by_code(
            relay: SocketAddr,
            code: ShortCode,
            options: RoomOptions,
            config: Config,
            how: Connect,
        ) -> io::Result<Self> {
            let socket = UdpDriver::bind(any_address(relay), &UdpOptions::default())?;
            let mut driver = AsyncEndpointDriver::new(socket, config)?;
            let now = driver.now();
            let link = join_room(now, &[relay], code.room(), &options)?;
            driver.set_link(link.take_key(now, code))?;
            Self::begin(driver, &[Link::host_address()], how)
        }

        /// Begins to connect to the host that wrote an invitation, and to nobody else.
        pub fn accept_invitation(invitation: &Invitation, config: Config) -> io::Result<Self> {
            let key = ServerPublicKey::from_bytes(invitation.host_key);
            let (relay, code) = (invitation.relay, invitation.code);
            let options = RoomOptions::default();
            Self::join(relay, code, options, config, Connect::pinned(key))
        }
    }
}

impl Deref for AsyncClientDriver {
    type Target = AsyncEndpointDriver;

    fn deref(&self) -> &AsyncEndpointDriver {
        &self.driver
    }
}

impl DerefMut for AsyncClientDriver {
    fn deref_mut(&mut self) -> &mut AsyncEndpointDriver {
        &mut self.driver
    }
}

impl Drop for AsyncEndpointDriver {
    fn drop(&mut self) {
        say_goodbye(self.now(), &mut self.endpoint);
        // Queued messages go first: a relay that was left forwards nothing.
        let _ = self.flush();
        if let Some(link) = &mut self.link {
            link.leave();
        }
        // Nobody is left to report an error to.
        let _ = self.flush();
    }
}

impl fmt::Debug for AsyncEndpointDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncEndpointDriver")
            .field("udp", &self.udp)
            .finish_non_exhaustive()
    }
}
