//! Addresses and plain sockets.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anyhow::Context;
use muse_program::address::resolve;
use socket2::{Domain, Protocol, Socket, Type};

/// Parses the address to listen on: `:PORT` for every address of this machine, or `HOST:PORT`.
pub(super) fn listen_addresses(text: &str) -> anyhow::Result<Vec<SocketAddr>> {
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().with_context(|| {
            format!("`{text}` is not an address; write :9000 or 127.0.0.1:9000")
        })?;
        // IPv4 alone where there is no IPv6.
        return Ok(vec![
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ]);
    }
    resolve(text).map(|address| vec![address])
}

/// An unconnected non-blocking socket with large buffers, for both versions of IP where it can be.
pub(super) fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // The system may grant less; the proxy reports how much it got.
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// The first of these addresses that can be bound.
pub(super) fn first_bound<T>(
    addresses: &[SocketAddr],
    mut bind: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut outcome = Err(ErrorKind::AddrNotAvailable.into());
    for &address in addresses {
        outcome = bind(address);
        // Binding only the IPv4 half of a port that another program has would hide the conflict.
        let is_final = |error: &io::Error| {
            matches!(
                error.kind(),
                ErrorKind::AddrInUse | ErrorKind::PermissionDenied
            )
        };
        if outcome.as_ref().err().is_none_or(is_final) {
            break;
        }
    }
    outcome
}

/// Converts an IPv4-mapped IPv6 address back to IPv4.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Bytes of socket buffers asked for: a tenth of a second of 50,000 small packets.
const BUFFER_BYTES: usize = 4 << 20;
