//! Makes TCP sockets and sets them up.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// A non-blocking listener. `[::]` takes IPv4 too.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Connections of a former process linger in the system for a minute and would keep the port. Elsewhere the option lets
    // another program take it.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A connected, non-blocking stream.
pub(super) fn connect(server: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&server, timeout)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Keep-alive is on for every connection, small writes go at once, and the system buffers little, so that a peer that does
/// not read is noticed.
pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE_IDLE);
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keep_alive = keep_alive.with_interval(KEEP_ALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keep_alive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNANSWERED_MAX))?;
    socket.set_send_buffer_size(SEND_BUFFER)
}

/// Breaks a connection off: dropping it resets it.
pub(super) fn abort(stream: &TcpStream) {
    // If it fails, the connection is closed in order instead.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// IPv4 as plain IPv4, also where it came through an IPv6 socket.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

const BACKLOG: i32 = 1_024;
const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// The time that sent bytes may go without an acknowledgement until the connection counts as broken.
#[cfg(target_os = "linux")]
const UNANSWERED_MAX: Duration = Duration::from_secs(30);
/// Small, so that a client that does not read shows soon as bytes that the relay has to keep.
const SEND_BUFFER: usize = 256 << 10;
