//! The ways of a client to a server over sockets: by address, by name, through a relay.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use muse_relay::{Invitation, Link, RoomCode};
use muse_transport::{Config, Connect, ServerPublicKey};

use crate::sockets::Sockets;
use crate::{ClientDriver, Driver, EndpointDriver, UdpDriver, UdpOptions};

impl ClientDriver {
    /// Begins to connect; [`Event::Connected`](muse_transport::Event::Connected),
    /// [`Event::Refused`](muse_transport::Event::Refused) or [`Event::Unanswered`](muse_transport::Event::Unanswered) follows. A
    /// name is looked up first, which waits. Its addresses are tried a quarter of a second apart, IPv6 and IPv4 in turn, until one
    /// of them lets us in, see [`Endpoint::connect_any`](muse_transport::Endpoint::connect_any).
    pub fn connect(server: impl ToSocketAddrs, config: Config, how: Connect) -> io::Result<Self> {
        let mut servers: Vec<SocketAddr> = server.to_socket_addrs()?.collect();
        let driver = socket_towards(&mut servers)?;
        let driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        Self::begin(driver, &servers, how)
    }

    /// Begins to connect through a socket of the caller's choice.
    pub fn connect_from(
        driver: UdpDriver,
        server: SocketAddr,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        Self::begin(driver, &[server], how)
    }

    /// Begins to connect to the host of a room, through the relay at `relay` and then directly where that works. It is the
    /// same connection as any other; [`poll_relay_event`](EndpointDriver::poll_relay_event) tells about the way to it.
    pub fn join(
        relay: SocketAddr,
        code: RoomCode,
        config: Config,
        how: Connect,
    ) -> io::Result<Self> {
        let driver = UdpDriver::bind(any_address(relay), &UdpOptions::default())?;
        let mut driver = EndpointDriver::new(Sockets::udp(driver), config)?;
        let link = Link::join(driver.now(), relay, code, crate::native::relay::seed()?);
        driver.sockets.set_relay(link)?;
        Self::begin(driver, &[Link::host_address()], how)
    }

    /// Begins to connect to the host that wrote an invitation, and to nobody else.
    pub fn accept_invitation(invitation: &Invitation, config: Config) -> io::Result<Self> {
        let key = ServerPublicKey::from_bytes(invitation.host_key);
        let (relay, code) = (invitation.relay, invitation.code);
        Self::join(relay, code, config, Connect::pinned(key))
    }
}

/// Binds a socket from which these addresses can be reached, and removes those that cannot.
pub(crate) fn socket_towards(servers: &mut Vec<SocketAddr>) -> io::Result<UdpDriver> {
    let none = || io::Error::new(io::ErrorKind::NotFound, "the server's name has no address");
    let first = *servers.first().ok_or_else(none)?;
    let options = UdpOptions::default();
    let driver = match servers
        .iter()
        .all(|server| server.is_ipv4() == first.is_ipv4())
    {
        true => UdpDriver::bind(any_address(first), &options)?,
        false => UdpDriver::bind_any(0, &options)?,
    };
    if driver.local_addr()?.is_ipv4() {
        // This machine has no IPv6 at all.
        servers.retain(SocketAddr::is_ipv4);
    }
    Ok(driver)
}

/// Any address and port of our own from which `to` can be reached.
pub(crate) fn any_address(to: SocketAddr) -> SocketAddr {
    match to {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    }
}
