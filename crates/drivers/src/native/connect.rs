//! The ways of a client to a server over sockets: by address and by name.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use muse_transport::{Config, Connect};

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
