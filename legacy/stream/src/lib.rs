//! TCP streams and UDP datagrams of one port, run for a machine in one thread (relay v1 needs both).
//!
//! On Linux one `epoll` waits for everything, with a `timerfd` because its own time-outs are whole milliseconds; elsewhere a short
//! sleep does. Nothing blocks: a peer that does not read keeps its bytes waiting in the machine, which decides how long.

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(not(target_os = "linux"))]
#[path = "sleep.rs"]
mod epoll;
mod sockets;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions};
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};
use muse_wire::{Duration, Instant};

use epoll::Poller;
use sockets::{connect, listen, prepare};

/// TCP and UDP on one port, for a [`StreamMachine`]: a server that accepts streams, or a client with one.
///
/// Call [`turn`](Self::turn) in a loop; it sleeps until something happens.
///
/// ```
/// use muse_drivers::UdpOptions;
/// use muse_stream::StreamDriver;
/// let driver = StreamDriver::bind("127.0.0.1:0".parse().expect("an address"), &UdpOptions::default())?;
/// assert_ne!(driver.local_addr()?.port(), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamDriver {
    listener: Option<TcpListener>,
    /// A stream that is connected and not yet given to the machine.
    connected: Option<(TcpStream, SocketAddr)>,
    udp: UdpDriver,
    udp_interest: Interest,
    poller: Poller,
    ready: Vec<Ready>,
    slots: Vec<Option<Slot>>,
    lingering: Vec<Lingering>,
    linger_check: Instant,
    /// The time at which the listener is asked again after the system had no room for another connection.
    accept_again: Option<Instant>,
    buffer: Vec<u8>,
    counters: StreamCounters,
}

/// Counts of a [`StreamDriver`] since it was made; its datagrams are counted by [`StreamDriver::udp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Streams that the machine took.
    pub accepted: u64,
    /// Streams that the machine or a limit refused.
    pub refused: u64,
    /// Streams that could not be accepted or set up.
    pub errors: u64,
    /// Times that a stream took less than there was to write.
    pub blocked: u64,
    /// Times that a stream was left unread because the machine wanted no more for now.
    pub paused: u64,
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// The lateness of the machine's time-out, if it was due.
    pub late: Option<Duration>,
    /// The time from then until everything that it caused was given to the system.
    pub took: Duration,
}

/// The events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interest {
    readable: bool,
    writable: bool,
}

impl Interest {
    const NONE: Self = Self::of(false, false);
    const READ: Self = Self::of(true, false);
    const BOTH: Self = Self::of(true, true);

    const fn of(readable: bool, writable: bool) -> Self {
        Self { readable, writable }
    }
}

/// A socket that need not be waited for any more.
#[derive(Clone, Copy, Debug)]
struct Ready {
    token: u64,
    readable: bool,
    writable: bool,
}

#[derive(Debug)]
struct Slot {
    stream: TcpStream,
    interest: Interest,
    /// Nothing more will be read.
    ended: bool,
}

/// A stream that is closed on our side; what the peer still sends is read and thrown away, because the system would otherwise
/// tell it that its connection was reset, and what we wrote last could be lost.
#[derive(Debug)]
struct Lingering {
    stream: TcpStream,
    until: Instant,
}

impl StreamDriver {
    /// Listens for TCP and UDP at one address. With port 0 the system chooses one that is free for both.
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        let mut failure = None;
        for _ in 0..BIND_ATTEMPTS {
            let listener = listen(address)?;
            let mut chosen = address;
            chosen.set_port(listener.local_addr()?.port());
            match UdpDriver::bind(chosen, options) {
                Ok(udp) => return Self::new(Some(listener), None, udp),
                // Some other program has the UDP port that the system chose for TCP.
                Err(error) if address.port() == 0 && error.kind() == ErrorKind::AddrInUse => {
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| ErrorKind::AddrInUse.into()))
    }

    /// Connects a stream to `server` and binds a UDP socket of its own. The machine gets the stream with the first turn.
    pub fn connect(server: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = connect(server, timeout.into())?;
        // Behind the address that the server sees the stream come from, so that it takes the datagrams.
        let local = SocketAddr::new(stream.local_addr()?.ip(), 0);
        let udp = UdpDriver::bind(local, &UdpOptions::default())?;
        Self::new(None, Some((stream, server)), udp)
    }

    fn new(
        listener: Option<TcpListener>,
        connected: Option<(TcpStream, SocketAddr)>,
        udp: UdpDriver,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(udp.socket(), Token::Udp.into(), Interest::READ)?;
        if let Some(listener) = &listener {
            poller.add(listener, Token::Listener.into(), Interest::READ)?;
        }
        Ok(Self {
            listener,
            connected,
            udp,
            udp_interest: Interest::READ,
            poller,
            ready: Vec::new(),
            slots: Vec::new(),
            lingering: Vec::new(),
            linger_check: Instant::ZERO,
            accept_again: None,
            buffer: vec![0; READ_BYTES],
            counters: StreamCounters::default(),
        })
    }

    /// Returns the address from which datagrams go out, and where streams are accepted.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// The UDP socket, for its counters.
    pub fn udp(&self) -> &UdpDriver {
        &self.udp
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> &StreamCounters {
        &self.counters
    }

    /// Accepts no more streams: new connections are refused by the system.
    pub fn stop_listening(&mut self) {
        self.listener = None;
    }

    /// Streams that are open or not yet closed to the end.
    pub fn streams(&self) -> usize {
        self.slots.iter().flatten().count() + self.lingering.len()
    }

    /// One turn: sleeps until something arrives or becomes due, for `timeout` at most, then handles it and sends what it caused.
    ///
    /// Time-outs that are due come before what arrived, so that no flood makes it late. Errors are those of our own sockets: no peer can cause
    /// one.
    pub fn turn<M: StreamMachine>(
        &mut self,
        clock: &Clock,
        machine: &mut M,
        timeout: Duration,
    ) -> io::Result<Turn> {
        if let Some((stream, peer)) = self.connected.take() {
            self.open(clock.now(), machine, stream, peer)?;
        }
        self.service(clock.now(), machine)?;
        let wait = match (machine.poll_timeout(), self.lingering.is_empty()) {
            (Some(due), true) => clock.until(due).min(timeout),
            (Some(due), false) => clock.until(due).min(timeout).min(LINGER),
            (None, true) => timeout,
            (None, false) => timeout.min(LINGER),
        };
        // The kernel says when a full UDP socket has room again only if it is asked.
        let interest = match self.udp.has_unsent() {
            true => Interest::BOTH,
            false => Interest::READ,
        };
        if interest != self.udp_interest {
            self.udp_interest = interest;
            self.poller
                .modify(self.udp.socket(), Token::Udp.into(), interest)?;
        }
        self.poller.wait(wait.into(), &mut self.ready)?;
        let mut turn = Turn::default();
        self.time_out(clock, machine, &mut turn)?;
        let ready = std::mem::take(&mut self.ready);
        for ready in &ready {
            self.handle(clock.now(), machine, *ready)?;
            // Reading took time: the machine's own time comes first, but once a turn, or a machine that cannot keep up would only
            // ever hear from the first of its peers.
            if turn.late.is_none() {
                self.time_out(clock, machine, &mut turn)?;
            }
        }
        self.ready = ready;
        let now = clock.now();
        self.resume(now, machine)?;
        self.let_go(now);
        self.service(now, machine)?;
        Ok(turn)
    }

    fn time_out<M: StreamMachine>(
        &mut self,
        clock: &Clock,
        machine: &mut M,
        turn: &mut Turn,
    ) -> io::Result<()> {
        let now = clock.now();
        let Some(due) = machine.poll_timeout().filter(|&due| due <= now) else {
            return Ok(());
        };
        machine.handle_timeout(now);
        self.service(now, machine)?;
        turn.late = Some(now - due);
        turn.took = clock.now() - now;
        Ok(())
    }

    fn handle<M: StreamMachine>(
        &mut self,
        now: Instant,
        machine: &mut M,
        ready: Ready,
    ) -> io::Result<()> {
        match Token::from(ready.token) {
            Token::Udp => self.udp.receive(now, machine).map(drop),
            Token::Listener => self.accept(now, machine),
            Token::Stream(index) => {
                if ready.readable {
                    self.read(now, machine, index)?;
                }
                if ready.writable {
                    self.write(now, machine, index)?;
                }
                Ok(())
            }
        }
    }

    /// Does what the machine wants, and sends its datagrams.
    fn service<M: StreamMachine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        while let Some(action) = machine.poll_stream(now) {
            match action {
                StreamAction::Write(stream) => self.write(now, machine, usize::from(stream.0))?,
                StreamAction::Close(stream) => self.close(now, usize::from(stream.0), false)?,
                StreamAction::Abort(stream) => self.close(now, usize::from(stream.0), true)?,
                _ => (),
            }
        }
        // One flush sends a bounded amount; what is left would wait for the next thing to happen.
        for _ in 0..FLUSHES_MAX {
            if self.udp.flush(now, machine)? == 0 || self.udp.has_unsent() {
                break;
            }
        }
        Ok(())
    }

    fn accept<M: StreamMachine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            match listener.accept() {
                Ok((stream, peer)) => match stream.set_nonblocking(true) {
                    Ok(()) => self.open(now, machine, stream, sockets::plain(peer))?,
                    Err(_) => self.counters.errors += 1,
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                // The peer gave up before we came to it.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => (),
                Err(_) => {
                    // No more descriptors or memory: others may be closed soon.
                    self.counters.errors += 1;
                    self.accept_again = Some(now + ACCEPT_PAUSE);
                    return self
                        .poller
                        .modify(listener, Token::Listener.into(), Interest::NONE);
                }
            }
        }
        Ok(())
    }

    fn open<M: StreamMachine>(
        &mut self,
        now: Instant,
        machine: &mut M,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> io::Result<()> {
        let index = match self.slots.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        let id = u16::try_from(index).map(StreamId);
        let taken = id.is_ok_and(|id| machine.handle_open(now, id, peer));
        if !taken {
            self.counters.refused += 1;
            self.linger(now, stream);
            return Ok(());
        }
        self.counters.accepted += 1;
        // A stream that is broken already is found so when it is used.
        self.counters.errors += u64::from(prepare(&stream).is_err());
        let interest = Interest::READ;
        self.poller
            .add(&stream, Token::Stream(index).into(), interest)?;
        self.slots[index] = Some(Slot {
            stream,
            interest,
            ended: false,
        });
        // The machine's messages to a new client go at once.
        self.service(now, machine)
    }

    fn read<M: StreamMachine>(
        &mut self,
        now: Instant,
        machine: &mut M,
        index: usize,
    ) -> io::Result<()> {
        let id = StreamId(index as u16);
        let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else {
            return Ok(());
        };
        if slot.ended {
            return Ok(());
        }
        let limit = machine.read_limit(now, id).min(self.buffer.len());
        if limit == 0 {
            self.counters.paused += 1;
            return self.set_interest(index, |interest| interest.readable = false);
        }
        match slot.stream.read(&mut self.buffer[..limit]) {
            Ok(0) => self.end(now, machine, index),
            Ok(len) => {
                machine.handle_bytes(now, id, &self.buffer[..len]);
                Ok(())
            }
            Err(error) if passes(&error) => Ok(()),
            Err(_) => self.end(now, machine, index),
        }
    }

    fn write<M: StreamMachine>(
        &mut self,
        now: Instant,
        machine: &mut M,
        index: usize,
    ) -> io::Result<()> {
        let id = StreamId(index as u16);
        loop {
            let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else {
                return Ok(());
            };
            let bytes = machine.outgoing(id);
            if bytes.is_empty() {
                return self.set_interest(index, |interest| interest.writable = false);
            }
            match slot.stream.write(bytes) {
                Ok(len) => machine.handle_written(now, id, len),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.counters.blocked += 1;
                    machine.handle_written(now, id, 0);
                    return self.set_interest(index, |interest| interest.writable = true);
                }
                Err(_) => return self.end(now, machine, index),
            }
        }
    }

    /// The peer ended the stream, or it broke. It stays until the machine closes it, and is no longer listened to.
    fn end<M: StreamMachine>(
        &mut self,
        now: Instant,
        machine: &mut M,
        index: usize,
    ) -> io::Result<()> {
        if let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) {
            slot.ended = true;
        }
        self.set_interest(index, |interest| *interest = Interest::NONE)?;
        machine.handle_end(now, StreamId(index as u16));
        Ok(())
    }

    fn close(&mut self, now: Instant, index: usize, abort: bool) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(index).and_then(Option::take) else {
            return Ok(());
        };
        self.poller.remove(&slot.stream)?;
        if abort {
            sockets::abort(&slot.stream);
        } else if !slot.ended {
            self.linger(now, slot.stream);
        }
        Ok(())
    }

    fn linger(&mut self, now: Instant, stream: TcpStream) {
        // A stream that broke meanwhile is simply dropped.
        if stream.shutdown(std::net::Shutdown::Write).is_ok()
            && self.lingering.len() < LINGERING_MAX
        {
            let until = now + LINGER * LINGER_ROUNDS;
            self.lingering.push(Lingering { stream, until });
        }
    }

    /// Reads what closed streams still get, and drops those whose peers have closed too or had their time.
    fn let_go(&mut self, now: Instant) {
        // Not with every turn: a flood of refused connections must not cost more than the rest.
        if now < self.linger_check {
            return;
        }
        self.linger_check = now + LINGER;
        let buffer = &mut self.buffer;
        self.lingering.retain_mut(|lingering| {
            let open = match lingering.stream.read(buffer) {
                Ok(len) => len > 0,
                Err(error) => passes(&error),
            };
            open && now < lingering.until
        });
    }

    /// Listens again to streams that the machine wants to hear again, and to the listener.
    fn resume<M: StreamMachine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        for index in 0..self.slots.len() {
            let paused = |slot: &Slot| !slot.interest.readable && !slot.ended;
            if self.slots[index].as_ref().is_some_and(paused)
                && machine.read_limit(now, StreamId(index as u16)) > 0
            {
                self.set_interest(index, |interest| interest.readable = true)?;
            }
        }
        if self.accept_again.is_some_and(|again| again <= now)
            && let Some(listener) = &self.listener
        {
            self.accept_again = None;
            self.poller
                .modify(listener, Token::Listener.into(), Interest::READ)?;
        }
        Ok(())
    }

    fn set_interest(&mut self, index: usize, change: impl FnOnce(&mut Interest)) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(index).and_then(Option::as_mut) else {
            return Ok(());
        };
        let mut wanted = slot.interest;
        change(&mut wanted);
        if wanted != slot.interest {
            slot.interest = wanted;
            self.poller
                .modify(&slot.stream, Token::Stream(index).into(), wanted)?;
        }
        Ok(())
    }
}

/// The subject of a readiness.
enum Token {
    Udp,
    Listener,
    Stream(usize),
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        match token {
            Token::Udp => 0,
            Token::Listener => 1,
            Token::Stream(index) => index as Self + 2,
        }
    }
}

impl From<u64> for Token {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::Udp,
            1 => Self::Listener,
            number => Self::Stream((number - 2) as usize),
        }
    }
}

fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Bytes read from one stream before the others have their turn.
const READ_BYTES: usize = 64 << 10;
/// Flushes of the UDP socket in a row.
const FLUSHES_MAX: usize = 16;
/// Streams accepted in one turn.
const ACCEPTS_MAX: usize = 64;
/// The time for which no stream is accepted after the system had no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Tries to find a port that is free for both TCP and UDP.
const BIND_ATTEMPTS: usize = 16;
/// The interval at which closed streams are looked at, and how many times.
const LINGER: Duration = Duration::from_millis(100);
const LINGER_ROUNDS: u64 = 10;
/// Most closed streams that are waited for.
const LINGERING_MAX: usize = 256;

#[cfg(test)]
mod tests;
