//! The operating system's part of links to relays: randomness, and our own address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use crate::fill_random;
use crate::native::connect::any_address;

/// Secret randomness for a link.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill_random(&mut seed)?;
    Ok(seed)
}

/// The address of this machine on the way to `relay`, with the port of the socket at `bound`. None where there is no way, which the
/// link will notice by itself.
pub(crate) fn local_address(relay: SocketAddr, bound: SocketAddr) -> Option<SocketAddr> {
    // Connecting a UDP socket sends nothing: it only looks up the route.
    let socket = UdpSocket::bind(any_address(relay)).ok()?;
    socket.connect(relay).ok()?;
    let here = socket.local_addr().ok()?;
    Some(SocketAddr::new(here.ip(), bound.port()))
}
