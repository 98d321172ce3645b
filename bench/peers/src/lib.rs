//! Code that the small programs share: sockets on the loopback interface.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A socket on the loopback interface that never blocks, with the system's default buffers. Port 0 takes any.
pub fn socket(port: u16) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Gives a socket a receive buffer of 4 MB, as far as the system allows.
pub fn enlarge_receive_buffer(socket: &UdpSocket) -> std::io::Result<()> {
    rustix::net::sockopt::set_socket_recv_buffer_size(socket, 4 << 20)?;
    Ok(())
}

/// Returns when `socket` can be read, at the latest after `timeout`.
pub fn wait_readable(socket: &impl AsFd, timeout: Duration) {
    let timeout = Timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // An interrupted wait is a short wait: the caller polls again anyway.
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout));
}
