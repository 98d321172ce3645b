//! The operating system's part of links to relays: randomness, and our own address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use muse_relay::{Link, RoomCode, RoomKey};
use muse_transport::token::ConnectToken;
use muse_wire::Instant;

use crate::fill_random;
use crate::native::connect::any_address;

/// Secret randomness for a link.
pub(crate) fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    fill_random(&mut seed)?;
    Ok(seed)
}

/// A link that opens a room at `relay`, with a token if the relay demands one; and the code of the room.
pub(crate) fn open_room(
    now: Instant,
    relay: SocketAddr,
    token: Option<ConnectToken>,
) -> io::Result<(Link, RoomCode)> {
    let mut key = [0; 16];
    fill_random(&mut key)?;
    let key = RoomKey::new(key);
    let link = Link::open(now, relay, key, seed()?);
    let link = match token {
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
