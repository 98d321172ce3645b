//! Rooms at a relay: the drivers' side, and the operating system's part of links, which is randomness and our own address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use muse_relay::{Invitation, LinkEvent, RoomCode, RoomKey};
pub(crate) use muse_relay::{Link, Through};
use muse_transport::token::ConnectToken;
use muse_transport::{Config, Connect, ServerPublicKey};
use muse_wire::Instant;

use crate::native::connect::any_address;
use crate::sockets::Sockets;
use crate::{ClientDriver, EndpointDriver, UdpDriver, UdpOptions, fill_random};

impl EndpointDriver {
    /// Opens a room at a relay, so that clients behind routers can come by its code, and others as before. One room at a time; a
    /// new one replaces the one before. [`poll_relay_event`](Self::poll_relay_event) says when it is open. An
    /// [`Invitation`](muse_relay::Invitation) holds the code together with the server's key.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # use muse_drivers::{ClientDriver, EndpointDriver, new_key};
    /// # use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
    /// use muse_relay::Invitation;
    /// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
    /// let key = new_key()?;
    /// let host_key = *key.public().as_bytes();
    /// let mut server = EndpointDriver::bind("127.0.0.1:0", config.clone(), ServerOptions::new(key))?;
    /// let relay = "127.0.0.1:7788".parse().expect("an address");
    /// let code = server.open_room(relay)?;
    /// let text = Invitation { relay, code, host_key }.to_string(); // to be sent to a friend, who does:
    /// let invitation: Invitation = text.parse().expect("copied whole");
    /// assert_eq!((invitation.code, invitation.host_key), (code, host_key));
    /// let client = ClientDriver::accept_invitation(&invitation, config)?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_room(&mut self, relay: SocketAddr) -> io::Result<RoomCode> {
        self.open_room_with(relay, RoomOptions::default())
    }

    /// As [`open_room`](Self::open_room), with options.
    pub fn open_room_with(
        &mut self,
        relay: SocketAddr,
        options: RoomOptions,
    ) -> io::Result<RoomCode> {
        let (link, code) = open_room(self.now(), relay, options)?;
        self.set_relay(link)?;
        Ok(code)
    }

    /// Returns the next event of the relay, for one that has opened or joined a room.
    pub fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.sockets.relay.as_mut()?.poll_event()
    }

    /// Returns the link to the relay, for one that has opened or joined a room.
    pub fn relay(&self) -> Option<&Link> {
        self.sockets.relay.as_ref()
    }

    /// Lets peers come through a relay as well.
    fn set_relay(&mut self, link: Link) -> io::Result<()> {
        self.sockets.relay = Some(with_local_address(link, self.local_addr()?));
        Ok(())
    }
}

impl ClientDriver {
    /// Begins to connect to the host of a room, through the relay at `relay` and then directly where that works. It is the
    /// same connection as any other; [`poll_relay_event`](EndpointDriver::poll_relay_event) tells about the way to it.
    pub fn join(
        relay: SocketAddr,
        code: RoomCode,
        options: RoomOptions,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let driver = UdpDriver::bind(any_address(relay), &UdpOptions::default())?;
        let mut driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        let link = join_room(driver.now(), relay, code, &options)?;
        driver.set_relay(link)?;
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

/// Options of a room at a relay, for its host and for its guests.
#[derive(Debug, Default)]
pub struct RoomOptions {
    relay_only: bool,
    token: Option<ConnectToken>,
}

impl RoomOptions {
    /// Looks for no direct way: everything goes through the relay, and neither side learns the other's address. It is enough if one of the two
    /// wants it. Costs the way over the relay for as long as the connection lasts, and the relay's bandwidth.
    pub fn relay_only(mut self) -> Self {
        self.relay_only = true;
        self
    }
}

muse_wire::setters! { RoomOptions:
    /// The host's right to open a room, at a relay that opens rooms for holders of its master's tokens alone. Guests need none.
    token: ConnectToken = Some(token),
}

/// Has a relay let a peer in no more. Returns the peer's addresses that are known.
pub(crate) fn ban(link: &mut Link, now: Instant, peer: SocketAddr) -> Vec<SocketAddr> {
    link.ban(now, peer).as_slice().to_vec()
}

/// Secret randomness for a link.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill_random(&mut seed)?;
    Ok(seed)
}

/// A link that joins a room at `relay`.
pub(crate) fn join_room(
    now: Instant,
    relay: SocketAddr,
    code: RoomCode,
    options: &RoomOptions,
) -> io::Result<Link> {
    Ok(Link::join(now, relay, code, seed()?).direct(!options.relay_only))
}

/// A link that opens a room at `relay`, and the code of the room.
pub(crate) fn open_room(
    now: Instant,
    relay: SocketAddr,
    options: RoomOptions,
) -> io::Result<(Link, RoomCode)> {
    let mut key = [0; 16];
    fill_random(&mut key)?;
    let key = RoomKey::new(key);
    let link = Link::open(now, relay, key, seed()?).direct(!options.relay_only);
    let link = match options.token {
        Some(token) => link.token(token),
        None => link,
    };
    Ok((link, key.code()))
}

/// Tells the link where the socket at `bound` is in the local network.
pub(crate) fn with_local_address(link: Link, bound: SocketAddr) -> Link {
    let here = local_address(link.relay(), bound);
    link.local_addresses(here.as_slice())
}

/// The address of this machine on the way to `relay`, with the port of the socket at `bound`. None where there is no way, which the
/// link will notice by itself.
fn local_address(relay: SocketAddr, bound: SocketAddr) -> Option<SocketAddr> {
    // Connecting a UDP socket sends nothing: it only looks up the route.
    let socket = UdpSocket::bind(any_address(relay)).ok()?;
    socket.connect(relay).ok()?;
    let here = socket.local_addr().ok()?;
    Some(SocketAddr::new(here.ip(), bound.port()))
}
