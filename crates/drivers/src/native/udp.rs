//! One UDP socket, run for a machine from a game loop (`docs/decisions/0004-sendmmsg-by-hand.md`).
//!
//! A server talks to many clients with small datagrams, so batches go across destinations: `recvmmsg` and `sendmmsg` on
//! Linux, `quinn-udp` elsewhere. A bulk sender writes trains of datagrams for one destination, which the kernel
//! segments. Nothing here waits except [`UdpDriver::wait`], and nothing is allocated after [`UdpDriver::bind`].

mod address;
mod backend;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
mod options;
mod outbox;
mod portable;
mod sieve;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use muse_wire::{Datagram, Duration, Instant, Machine};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::Driver;
use backend::{Arrived, Backend, Sink};
pub use options::UdpOptions;
use outbox::Outbox;
use sieve::Sieve;

/// A non-blocking UDP socket that carries the datagrams of a [`Machine`].
///
/// Each tick: [`receive`](Driver::receive), the game's step, [`flush`](Driver::flush); or [`poll`](Driver::poll) for
/// all of it. A program that has nothing else to do sleeps in [`wait`](UdpDriver::wait). Errors about one destination
/// (unreachable, refused, too large) are counted, not returned: one peer's fault never stops a server.
///
/// ```
/// use muse_drivers::{Driver, UdpDriver, UdpOptions};
/// let driver = UdpDriver::bind_any(0, &UdpOptions::default())?;
/// assert_ne!(driver.local_addr()?.port(), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UdpDriver {
    socket: UdpSocket,
    backend: Backend,
    outbox: Outbox,
    segments_max: usize,
    /// Trains refused, since the last sign that their size was the reason.
    train_refusals: u32,
    receive_limit: usize,
    /// Thins out floods of handshakes, if it was asked for.
    sieve: Option<Sieve>,
    counters: UdpCounters,
}

/// Counts of a [`UdpDriver`] since it was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpCounters {
    /// Datagrams given to the machine.
    pub datagrams_received: u64,
    /// Their payload.
    pub bytes_received: u64,
    /// System calls that received.
    pub receive_calls: u64,
    /// Times that the kernel handed over several datagrams of one sender as one.
    pub trains_received: u64,
    /// Datagrams given to the kernel.
    pub datagrams_sent: u64,
    /// Their payload.
    pub bytes_sent: u64,
    /// System calls that sent.
    pub send_calls: u64,
    /// Times that the socket's send buffer was full and datagrams had to wait.
    pub blocked: u64,
    /// Datagrams dropped because they are larger than the interface carries.
    pub oversized: u64,
    /// Datagrams dropped because their destination cannot be reached.
    pub unreachable: u64,
    /// Datagrams that arrived longer than any buffer, dropped.
    pub truncated: u64,
    /// Other errors of the socket, most of them reports of unreachable peers.
    pub errors: u64,
    /// Trains that the kernel or a device refused to segment; they went as single datagrams.
    pub trains_refused: u64,
    /// One handshake in two to the power of this passes the kernel now ([`UdpOptions::sieve`]); 0 while there is no flood.
    pub sieve_shift: u32,
}

impl UdpDriver {
    /// Binds a socket. Port 0 lets the system choose one; `[::]` takes IPv4 too (see [`UdpOptions::dual_stack`]).
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        if address.is_ipv6() {
            socket.set_only_v6(!options.dual_stack)?;
        }
        if options.reuse_port {
            set_reuse_port(&socket)?;
        }
        request_buffer(options.receive_buffer, |bytes| {
            socket.set_recv_buffer_size(bytes)
        });
        request_buffer(options.send_buffer, |bytes| {
            socket.set_send_buffer_size(bytes)
        });
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let backend = Backend::new(&socket, options)?;
        let buffer = granted(SockRef::from(&socket).recv_buffer_size()?);
        Ok(Self {
            segments_max: if options.gso {
                backend.segments_max()
            } else {
                1
            },
            socket,
            backend,
            outbox: Outbox::new(),
            train_refusals: 0,
            receive_limit: options.receive_limit,
            sieve: options.sieve.then(|| Sieve::new(buffer)),
            counters: UdpCounters::default(),
        })
    }

    /// Binds to every address of this machine: both IP versions, or IPv4 alone where there is no IPv6.
    pub fn bind_any(port: u16, options: &UdpOptions) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), options).or_else(|error| {
            match error.kind() {
                // Somebody has the port; to take only its IPv4 half would hide that.
                ErrorKind::AddrInUse | ErrorKind::PermissionDenied => Err(error),
                _ => Self::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), options),
            }
        })
    }

    /// Sleeps until a datagram has arrived, or until unsent ones can go, for `timeout` at most. False on time-out, and
    /// possibly early when a signal came.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        self.backend
            .wait(&self.socket, self.has_unsent(), timeout.into())
    }

    /// True if datagrams wait in the driver because the socket was full. The next flush tries them first.
    pub fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Bytes of receive buffer that the kernel granted, comparable with what was asked for.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        SockRef::from(&self.socket).recv_buffer_size().map(granted)
    }

    /// Bytes of send buffer that the kernel granted, comparable with what was asked for.
    pub fn send_buffer(&self) -> io::Result<usize> {
        SockRef::from(&self.socket).send_buffer_size().map(granted)
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// The socket, for a driver that waits for it together with others.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sends what waits. False if the socket is full before all of it went.
    ///
    /// Every turn of the loop sends something, drops something, or splits a train: it ends.
    fn drain(&mut self, sent: &mut usize) -> io::Result<bool> {
        while !self.outbox.is_empty() {
            self.counters.send_calls += 1;
            match self
                .backend
                .send(&self.socket, &self.outbox, self.segments_max)
            {
                Ok(0) => return Ok(false),
                Ok(messages) => {
                    let taken = self.outbox.advance(self.segments_max, messages);
                    *sent += taken.datagrams;
                    self.counters.datagrams_sent += taken.datagrams as u64;
                    self.counters.bytes_sent += taken.bytes as u64;
                }
                Err(error) => {
                    if !self.handle_send_error(error)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Deals with the error that the first waiting message met. False if there is nothing to do but to wait.
    fn handle_send_error(&mut self, error: io::Error) -> io::Result<bool> {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.counters.blocked += 1;
            return Ok(false);
        }
        let first = self.outbox.messages(self.segments_max).next();
        let is_train = first.is_some_and(|message| message.segment.is_some());
        if quinn_udp::is_msg_size_err(&error) {
            let taken = self.outbox.advance(self.segments_max, 1);
            self.counters.oversized += taken.datagrams as u64;
            // Some kernels refuse a train when it is the size of its segments that is wrong: no reason to stop
            // sending trains.
            self.train_refusals = 0;
        } else if is_train && refuses_trains(&error) {
            self.outbox.split_first();
            self.counters.trains_refused += 1;
            self.train_refusals += 1;
            if self.train_refusals >= TRAIN_REFUSALS_MAX {
                self.segments_max = 1;
            }
        } else {
            let taken = self.outbox.advance(self.segments_max, 1);
            self.counters.unreachable += taken.datagrams as u64;
            if is_fatal(&error) {
                return Err(error);
            }
        }
        Ok(true)
    }
}

/// Hands what arrives to a machine.
struct ToMachine<'a, M: ?Sized> {
    now: Instant,
    machine: &'a mut M,
    handshakes: usize,
}

impl<M: Machine + ?Sized> Sink for ToMachine<'_, M> {
    #[inline]
    fn prepare(&mut self, payload: &[u8]) {
        self.machine.prepare(payload);
    }

    #[inline]
    fn handle(&mut self, Arrived { from, ecn, payload }: Arrived<'_>) {
        self.handshakes += usize::from(sieve::is_handshake(payload));
        self.machine
            .handle_datagram(self.now, Datagram { from, ecn, payload });
    }
}

impl Driver for UdpDriver {
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        let mut sink = ToMachine {
            now,
            machine,
            handshakes: 0,
        };
        let (mut count, mut failures) = (0, 0);
        while count < self.receive_limit && failures < RECEIVE_FAILURES_MAX {
            self.counters.receive_calls += 1;
            match self.backend.receive(&self.socket, &mut sink) {
                Ok(batch) => {
                    count += batch.datagrams;
                    failures += usize::from(batch.datagrams == 0);
                    self.counters.datagrams_received += batch.datagrams as u64;
                    self.counters.bytes_received += batch.bytes as u64;
                    self.counters.trains_received += batch.trains as u64;
                    self.counters.truncated += batch.truncated as u64;
                    if !batch.full {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if is_fatal(&error) => return Err(error),
                Err(_) => {
                    self.counters.errors += 1;
                    failures += 1;
                }
            }
        }
        let handshakes = sink.handshakes;
        if let Some(shift) = self
            .sieve
            .as_mut()
            .and_then(|sieve| sieve.judge(now, handshakes))
        {
            self.backend.sieve(&self.socket, shift);
            self.counters.sieve_shift = shift;
        }
        Ok(count)
    }

    fn flush<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        let mut sent = 0;
        for _ in 0..FLUSH_BATCHES_MAX {
            if !self.drain(&mut sent)? {
                return Ok(sent);
            }
            let (any, unreachable) = self.outbox.fill(now, machine);
            self.counters.unreachable += unreachable as u64;
            if !any {
                return Ok(sent);
            }
        }
        self.drain(&mut sent)?;
        Ok(sent)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Asks for a buffer, and for smaller ones where the system refuses rather than grants what it can (macOS).
fn request_buffer(bytes: usize, set: impl Fn(usize) -> io::Result<()>) {
    let mut bytes = bytes;
    while set(bytes).is_err() && bytes > BUFFER_BYTES_MIN {
        bytes /= 2;
    }
}

/// Linux reports twice what it was asked for, to count its own bookkeeping.
fn granted(reported: usize) -> usize {
    if cfg!(target_os = "linux") {
        reported / 2
    } else {
        reported
    }
}

#[cfg(unix)]
fn set_reuse_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn set_reuse_port(_: &Socket) -> io::Result<()> {
    // Windows' SO_REUSEADDR would let any program steal the port instead of sharing it.
    Err(ErrorKind::Unsupported.into())
}

/// True for the errors by which a kernel or a device says that it does not segment: EIO for want of checksum offload; EINVAL, ENOPROTOOPT or
/// EOPNOTSUPP from old kernels. Linux's and Windows' numbers, as no other system segments.
fn refuses_trains(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 4] = [5, 22, 92, 95];
    #[cfg(not(unix))]
    const CODES: [i32; 3] = [10_022, 10_042, 10_045];
    error
        .raw_os_error()
        .is_some_and(|code| CODES.contains(&code))
}

/// The socket itself is unusable (EBADF, EFAULT, ENOTSOCK), as after a phone slept. All other errors concern one
/// destination or pass by themselves: reports by ICMP, missing routes, firewalls, full queues.
fn is_fatal(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 4] = [9, 14, 38, 88];
    #[cfg(not(unix))]
    const CODES: [i32; 3] = [10_009, 10_014, 10_038];
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::NotConnected
    ) || error
        .raw_os_error()
        .is_some_and(|code| CODES.contains(&code))
}

/// Most batches that one flush sends: a machine that always has something to say must not keep the loop.
const FLUSH_BATCHES_MAX: usize = 256;
/// Most failed calls that one receive makes.
const RECEIVE_FAILURES_MAX: usize = 16;
/// Number of refusals after which trains are given up for this socket.
const TRAIN_REFUSALS_MAX: u32 = 3;
/// No smaller buffer is asked for.
const BUFFER_BYTES_MIN: usize = 64 << 10;

#[cfg(test)]
#[path = "udp/tests.rs"]
mod tests;
