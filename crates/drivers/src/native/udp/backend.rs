//! The choice of system calls behind a [`UdpDriver`](super::UdpDriver), made once when it is bound.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use muse_wire::Ecn;

#[cfg(target_os = "linux")]
use super::linux::Linux;
use super::options::UdpOptions;
use super::outbox::Outbox;
use super::portable::{self, Portable};

/// A way to move batches of datagrams.
#[derive(Debug)]
pub(super) enum Backend {
    #[cfg(target_os = "linux")]
    Linux(Linux),
    Portable(Portable),
    /// Answers to `send` in order: what a real socket on loopback cannot be made to say.
    #[cfg(test)]
    Scripted(std::collections::VecDeque<Result<usize, io::Error>>),
}

/// A datagram that arrived, with a plain address.
#[derive(Debug)]
pub(super) struct Arrived<'a> {
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) payload: &'a mut [u8],
}

/// The result of one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
    /// Buffers that held several datagrams.
    pub(super) trains: usize,
    /// Datagrams longer than their buffer, dropped.
    pub(super) truncated: usize,
    /// Every buffer was used: there may be more.
    pub(super) full: bool,
}

impl Backend {
    pub(super) fn new(socket: &UdpSocket, options: &UdpOptions) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if !options.portable {
            return Linux::new(socket, options).map(Self::Linux);
        }
        Portable::new(socket, options).map(Self::Portable)
    }

    /// Most datagrams that one message may carry, as far as is known.
    pub(super) fn segments_max(&self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(_) => super::linux::SEGMENTS_MAX,
            Self::Portable(portable) => portable.segments_max(),
            #[cfg(test)]
            Self::Scripted(_) => 64,
        }
    }

    /// Takes one batch from the socket.
    #[inline]
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        sink: &mut impl Sink,
    ) -> io::Result<Batch> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(linux) => linux.receive(socket, sink),
            Self::Portable(portable) => portable.receive(socket, sink),
            #[cfg(test)]
            Self::Scripted(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Sends waiting messages and says how many went. An error belongs to the first of them.
    #[inline]
    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        outbox: &Outbox,
        segments_max: usize,
    ) -> io::Result<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux(linux) => linux.send(socket, outbox, segments_max),
            Self::Portable(portable) => portable.send(socket, outbox, segments_max),
            #[cfg(test)]
            Self::Scripted(answers) => answers
                .pop_front()
                .unwrap_or(Ok(usize::MAX))
                .map(|count| count.min(outbox.messages(segments_max).count())),
        }
    }

    /// Lets only one in two to the power of `shift` handshakes reach the socket, where the kernel can do that.
    pub(super) fn sieve(&self, socket: &UdpSocket, shift: u32) {
        #[cfg(target_os = "linux")]
        if let Self::Linux(_) = self {
            // A sandbox may forbid it; then the flood fills the buffer as it does elsewhere.
            let _ = match shift {
                0 => super::linux::detach_sieve(socket),
                _ => super::linux::attach_sieve(socket, &mut super::sieve::program(shift)),
            };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (socket, shift);
    }

    /// Waits until the socket can be read, or written if `writable` asks for it.
    pub(super) fn wait(
        &self,
        socket: &UdpSocket,
        writable: bool,
        timeout: Duration,
    ) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        if let Self::Linux(_) = self {
            return super::linux::wait(socket, writable, timeout);
        }
        // Without a way to wait for writing, come back soon and try.
        portable::wait(
            socket,
            if writable {
                timeout.min(RETRY_INTERVAL)
            } else {
                timeout
            },
        )
    }
}

/// The receiver of arrived datagrams.
pub(super) trait Sink {
    /// A datagram of the batch will be handled soon.
    fn prepare(&mut self, payload: &[u8]);
    /// A datagram arrived.
    fn handle(&mut self, arrived: Arrived<'_>);
}

impl Batch {
    /// Gives a buffer to the sink, as one datagram or as the several that the kernel coalesced into it.
    #[inline]
    pub(super) fn hand_over(
        &mut self,
        from: SocketAddr,
        ecn: Ecn,
        bytes: &mut [u8],
        stride: usize,
        sink: &mut impl Sink,
    ) {
        self.bytes += bytes.len();
        if bytes.len() <= stride || stride == 0 {
            self.datagrams += 1;
            sink.handle(Arrived {
                from,
                ecn,
                payload: bytes,
            });
            return;
        }
        self.trains += 1;
        for payload in bytes.chunks_mut(stride) {
            self.datagrams += 1;
            sink.handle(Arrived { from, ecn, payload });
        }
    }
}

/// The time that the portable path waits before it tries a full socket again.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
