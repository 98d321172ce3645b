//! Rooms at a relay: the drivers' side, and the operating system's part of links, which is randomness and our own address.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use muse_relay::{CodeSecret, Invitation, LinkEvent, RoomCode, RoomKey, ShortCode};
pub(crate) use muse_relay::{Link, Through};
use muse_transport::token::ConnectToken;
use muse_transport::{Config, Connect, Endpoint, ServerPublicKey};
use muse_wire::Instant;

use crate::native::connect::{any_address, socket_towards};
use crate::sockets::Sockets;
use crate::{ClientDriver, EndpointDriver, fill_random};

impl EndpointDriver {
    /// Opens a room at a relay, so that clients behind routers can come by its short code, and others as before. One room at a time; a
    /// new one replaces the one before. [`poll_relay_event`](Self::poll_relay_event) says when it is open. A name is looked up first, which waits, and the relay is asked
    /// at all of its addresses until it answers from one of them. The code leads to the room for those who know the relay; an
    /// [`Invitation`](muse_relay::Invitation) holds everything.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # use muse_drivers::{ClientDriver, EndpointDriver, RoomOptions, new_key};
    /// # use muse_transport::{ChannelConfig, Config, Connect, Delivery, ServerOptions};
    /// use muse_relay::{Invitation, ShortCode};
    /// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
    /// let key = new_key()?;
    /// let host_key = *key.public().as_bytes();
    /// let mut server = EndpointDriver::bind("127.0.0.1:0", config.clone(), ServerOptions::new(key))?;
    /// let relay = "127.0.0.1:7788".parse().expect("an address");
    /// let text = server.open_room(relay)?.to_string(); // such as KWXPTR-7Q4M: what a friend types
    /// let code: ShortCode = text.parse().expect("ten letters");
    /// let (options, how) = (RoomOptions::default(), Connect::key_follows());
    /// let client = ClientDriver::join_by_code(relay, code, options, config.clone(), how)?;
    /// # drop(client);
    /// let text = Invitation { relay, code: code.room(), host_key }.to_string(); // a link, to be sent
    /// let invitation: Invitation = text.parse().expect("copied whole");
    /// let client = ClientDriver::accept_invitation(&invitation, config)?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn open_room(&mut self, relay: impl ToSocketAddrs) -> io::Result<ShortCode> {
        self.open_room_with(relay, RoomOptions::default())
    }

    /// As [`open_room`](Self::open_room), with options.
    pub fn open_room_with(
        &mut self,
        relay: impl ToSocketAddrs,
        options: RoomOptions,
    ) -> io::Result<ShortCode> {
        let relays = reachable(relay, self.local_addr()?)?;
        let (link, code) = open_room(self.now(), &relays, self.endpoint.public_key(), options)?;
        self.set_relay(link, &relays)?;
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

    /// Returns the endpoint and the link to the relay, for a machine that acts on both.
    pub fn endpoint_and_relay(&mut self) -> (&mut Endpoint, Option<&mut Link>) {
        (&mut self.endpoint, self.sockets.relay.as_mut())
    }

    /// Lets peers come through a relay as well.
    fn set_relay(&mut self, link: Link, relays: &[SocketAddr]) -> io::Result<()> {
        let link = with_local_addresses(link, relays, self.local_addr()?);
        self.sockets.relay = Some(link);
        Ok(())
    }
}

impl ClientDriver {
    /// Begins to connect to the host of a room, through the relay at `relay` and then directly where that works. It is the
    /// same connection as any other; [`poll_relay_event`](EndpointDriver::poll_relay_event) tells about the way to it.
    pub fn join(
        relay: impl ToSocketAddrs,
        code: RoomCode,
        options: RoomOptions,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let mut relays: Vec<SocketAddr> = relay.to_socket_addrs()?.collect();
        let driver = socket_towards(&mut relays)?;
        let mut driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        let link = join_room(driver.now(), &relays, code, &options)?;
        driver.set_relay(link, &relays)?;
        Self::begin(driver, &[Link::host_address()], how)
    }

    /// As [`join`](Self::join), with a short code and no key: the host's is learned by the code, through the relay, which cannot read or guess it.
    /// `how` is [`Connect::key_follows`]. A code that leads nowhere ends in [`Refusal::NoWay`](muse_transport::Refusal::NoWay), which says why.
    pub fn join_by_code(
        relay: impl ToSocketAddrs,
        code: ShortCode,
        options: RoomOptions,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let mut relays: Vec<SocketAddr> = relay.to_socket_addrs()?.collect();
        let driver = socket_towards(&mut relays)?;
        let mut driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        let now = driver.now();
        let link = join_room(now, &relays, code.room(), &options)?;
        driver.set_relay(link.take_key(now, code), &relays)?;
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

/// The addresses of a relay that a socket bound at `bound` can reach, at least one.
pub(crate) fn reachable(
    relay: impl ToSocketAddrs,
    bound: SocketAddr,
) -> io::Result<Vec<SocketAddr>> {
    let mut relays: Vec<SocketAddr> = relay.to_socket_addrs()?.collect();
    if bound.is_ipv4() {
        relays.retain(SocketAddr::is_ipv4);
    }
    match relays.is_empty() {
        true => Err(no_relay()),
        false => Ok(relays),
    }
}

/// A link that joins a room at the relay with these addresses.
pub(crate) fn join_room(
    now: Instant,
    relays: &[SocketAddr],
    code: RoomCode,
    options: &RoomOptions,
) -> io::Result<Link> {
    let (first, others) = relays.split_first().ok_or_else(no_relay)?;
    let link = Link::join(now, *first, code, seed()?).elsewhere(others);
    Ok(link.direct(!options.relay_only))
}

fn no_relay() -> io::Error {
    let text = "the relay's name has no address that this socket can reach";
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// The key that a guest has learned by a short code, or why there is none.
pub(crate) fn host_key(link: &mut Link) -> Option<Result<ServerPublicKey, String>> {
    let outcome = link.poll_host_key()?;
    let key = outcome.map(ServerPublicKey::from_bytes);
    Some(key.map_err(|reason| reason.to_string()))
}

/// A link that opens a room at the relay with these addresses and gives the host's key to guests with the room's short code; and that code.
pub(crate) fn open_room(
    now: Instant,
    relays: &[SocketAddr],
    host_key: Option<ServerPublicKey>,
    options: RoomOptions,
) -> io::Result<(Link, ShortCode)> {
    let no_server = || {
        let text = "only a server opens rooms: this endpoint does not listen";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let host_key = host_key.ok_or_else(no_server)?;
    let mut key = [0; 16];
    fill_random(&mut key)?;
    let key = RoomKey::new(key);
    let (first, others) = relays.split_first().ok_or_else(no_relay)?;
    let link = Link::open(now, *first, key, seed()?).elsewhere(others);
    let link = link.direct(!options.relay_only);
    let link = match options.token {
        Some(token) => link.token(token),
        None => link,
    };
    let mut secret = [0; 4];
    fill_random(&mut secret)?;
    let secret = CodeSecret::new(secret);
    let link = link.give_key(now, secret, *host_key.as_bytes());
    Ok((link, ShortCode::new(key.code(), secret)))
}

/// Tells the link where the socket at `bound` is in the local network.
pub(crate) fn with_local_addresses(link: Link, relays: &[SocketAddr], bound: SocketAddr) -> Link {
    relays.iter().fold(link, |link, relay| {
        link.local_addresses(local_address(*relay, bound).as_slice())
    })
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
