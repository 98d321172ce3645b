//! Browsers: WebTransport, and WebSocket where a browser or a page has none.
//!
//! A [`WebListener`] carries whole datagrams between browsers and a machine. Its sockets run in a tokio runtime on a thread of its
//! own; the game loop and that thread speak through bounded queues, so that the loop needs no async code and never waits. Each
//! session of a browser has a synthetic address, so that one endpoint handles browsers and players over UDP alike; see `address`.
//!
//! - `runtime` is what runs on the thread: it accepts, and ends everything.
//! - `transport` and `socket` are the two kinds of link, `http` the little HTTP before a WebSocket.
//! - `port` is a session as the thread sees it, `doors` who may have one.
//! - `route` sorts what a machine sends: to browsers, or on to the next driver; `both` is a driver that does so for any machine.

mod address;
mod both;
mod certificate;
mod doors;
mod http;
mod options;
mod port;
mod runtime;
mod shared;
mod socket;
mod transport;
mod window;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use muse_wire::{Datagram, Duration, Ecn, Instant, Link, Machine, Transmit};
use tokio::sync::{mpsc, oneshot};

pub use self::address::is_web_address;
pub use self::both::UdpWebDriver;
pub use self::options::WebOptions;
pub use self::shared::WebCounters;
use self::shared::{FromWeb, Outgoing, Shared};
use crate::Driver;
use crate::beside::SideLink;

/// Admits browsers, over WebTransport and over WebSocket.
///
/// It is given to an [`EndpointDriver`](crate::EndpointDriver) with [`with_web`](crate::EndpointDriver::with_web), or is a [`Driver`] of its own for any machine.
/// A page finds the links by `GET /link` at [`address`](Self::address), whose answer names the port and the certificate of WebTransport:
///
/// ```json
/// {"muse":1,"webtransport":{"port":41234,"path":"/muse","certificates":["base64 of SHA-256"]},"websocket":{"path":"/muse","secure":false}}
/// ```
///
/// ```
/// use muse_drivers::{EndpointDriver, WebListener, WebOptions, new_key};
/// use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
///
/// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
/// let web = WebListener::bind(WebOptions::new("127.0.0.1:0".parse().expect("an address")))?;
/// let mut server = EndpointDriver::bind("127.0.0.1:0", config, ServerOptions::new(new_key()?))?.with_web(web)?;
/// server.poll()?;
/// // Nobody has come yet.
/// assert_eq!(server.web().map(WebListener::sessions), Some(0));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WebListener {
    address: SocketAddr,
    transport_address: SocketAddr,
    from_web: mpsc::Receiver<FromWeb>,
    sessions: HashMap<SocketAddr, Outgoing>,
    shared: Arc<Shared>,
    datagram_max: usize,
    /// The source of wake-up calls.
    waker: Option<SocketAddr>,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The buffer into which `flush` lets machines write.
    buffer: Box<[u8]>,
}

/// A browser that is connected, not necessarily a player yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebSession {
    /// Its real address.
    pub remote: SocketAddr,
    /// The kind of its link.
    pub kind: WebKind,
}

/// The kinds of link that browsers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebKind {
    /// Datagrams over QUIC.
    WebTransport,
    /// Messages over TCP.
    WebSocket,
}

impl WebKind {
    /// Returns the properties of the link, for a protocol above it.
    pub const fn link(self) -> Link {
        Link {
            datagram_min: DATAGRAM_MAX,
            datagram_max: DATAGRAM_MAX,
            encrypted: matches!(self, Self::WebTransport),
            reliable: matches!(self, Self::WebSocket),
            keep_alive: Duration::from_secs(15),
        }
    }
}

impl WebListener {
    /// Opens both sockets and starts the thread. Fails if an address is taken or a certificate cannot be read.
    pub fn bind(options: WebOptions) -> io::Result<Self> {
        let (to_game, from_web) = mpsc::channel(QUEUE_IN);
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::new(Shared::default());
        let datagram_max = options.datagram_max;
        let (bound, is_bound) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("muse-web".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || runtime::run(options, to_game, shared, stopped, &bound)
            })?;
        let gone = |_| io::Error::other("the thread for browsers ended before it began");
        let runtime::Bound {
            address,
            transport_address,
        } = is_bound.recv().map_err(gone)??;
        Ok(Self {
            address,
            transport_address,
            from_web,
            sessions: HashMap::new(),
            shared,
            datagram_max,
            waker: None,
            stop: Some(stop),
            thread: Some(thread),
            buffer: vec![0; datagram_max].into_boxed_slice(),
        })
    }

    /// Returns the address at which pages find `GET /link` and WebSockets (TCP).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of WebTransport (UDP).
    pub fn transport_address(&self) -> SocketAddr {
        self.transport_address
    }

    /// Returns SHA-256 of the certificate that browsers are told to accept for WebTransport.
    pub fn certificate_hash(&self) -> Option<[u8; 32]> {
        self.shared.certificate_hash()
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> WebCounters {
        self.shared.counters()
    }

    /// Returns the session behind a synthetic address, as connections report it; none if it is not one of ours or the session is over.
    pub fn session(&self, address: SocketAddr) -> Option<WebSession> {
        self.sessions.get(&address).map(|outgoing| outgoing.session)
    }

    /// Sessions that are open.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Has a datagram sent to the socket at `to` when something arrives while the loop sleeps there.
    pub(crate) fn wake_at(&mut self, to: SocketAddr) -> io::Result<()> {
        let mut to = to;
        if to.ip().is_unspecified() {
            to.set_ip(if to.is_ipv4() {
                std::net::Ipv4Addr::LOCALHOST.into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        let socket = UdpSocket::bind(crate::native::connect::any_address(to))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        self.waker = Some(socket.local_addr()?);
        self.shared.set_waker(socket);
        Ok(())
    }

    /// True if a datagram from there only wakes the loop up.
    fn is_wake(&self, from: SocketAddr) -> bool {
        self.waker.is_some_and(|waker| {
            waker.port() == from.port() && waker.ip().to_canonical() == from.ip().to_canonical()
        })
    }

    /// Asks to be woken up. False if something is here already.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.shared.asleep.store(true, Ordering::SeqCst);
        let quiet = self.from_web.is_empty();
        if !quiet {
            self.wake_up();
        }
        quiet
    }

    pub(crate) fn wake_up(&self) {
        self.shared.asleep.store(false, Ordering::SeqCst);
    }

    /// Gives the machine what has arrived from browsers, but no more than `limit`; returns the number of datagrams.
    pub(crate) fn take_in<M: Machine + ?Sized>(
        &mut self,
        now: Instant,
        machine: &mut M,
        limit: usize,
    ) -> usize {
        let mut count = 0;
        for _ in 0..limit {
            match self.from_web.try_recv() {
                Ok(FromWeb::Opened { address, outgoing }) => {
                    self.sessions.insert(address, outgoing);
                }
                Ok(FromWeb::Closed { address }) => {
                    self.sessions.remove(&address);
                }
                Ok(FromWeb::Datagram {
                    address: from,
                    mut bytes,
                }) => {
                    if let Some(outgoing) = self.sessions.get(&from) {
                        outgoing.waiting.fetch_sub(1, Ordering::Relaxed);
                    }
                    let payload = &mut bytes[..];
                    let ecn = Ecn::NotCapable;
                    machine.handle_datagram(now, Datagram { from, ecn, payload });
                    count += 1;
                }
                Err(_) => break,
            }
        }
        count
    }
}

impl SideLink for WebListener {
    const OFFERS_MAX: usize = FLUSH_MAX;

    fn owns(&self, address: SocketAddr) -> bool {
        is_web_address(address) || self.is_wake(address)
    }

    fn offer(&self, transmit: &Transmit, buffer: &[u8]) -> bool {
        if !is_web_address(transmit.to) {
            return false;
        }
        let Some(outgoing) = self.sessions.get(&transmit.to) else {
            // The browser has gone; its connection has not noticed yet.
            Shared::count(&self.shared.unreachable, 1);
            return true;
        };
        for datagram in transmit.datagrams(buffer) {
            if datagram.len() > self.datagram_max {
                Shared::count(&self.shared.oversized, 1);
            } else if outgoing.queue.try_send(datagram.to_vec()).is_err() {
                Shared::count(&self.shared.dropped_out, 1);
            }
        }
        true
    }
}

impl Driver for WebListener {
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        Ok(self.take_in(now, machine, RECEIVE_MAX))
    }

    /// Datagrams that are for no browser are dropped and counted.
    fn flush<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut count = 0;
        while count < FLUSH_MAX
            && let Some(transmit) = machine.poll_transmit(now, &mut buffer)
        {
            if !self.offer(&transmit, &buffer) {
                Shared::count(&self.shared.unreachable, 1);
            }
            count += 1;
        }
        self.buffer = buffer;
        Ok(count)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for WebListener {
    /// Sends what is queued, closes every session and ends the thread: takes some 100 ms while there are sessions, a second at most.
    fn drop(&mut self) {
        // A session whose queue has no other end sends what is in it, and closes.
        self.sessions.clear();
        self.from_web.close();
        while self.from_web.try_recv().is_ok() {}
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It panicked, and said so; nobody is left to tell.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for WebListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebListener")
            .field("address", &self.address)
            .field("transport_address", &self.transport_address)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// Largest datagram of the transport that a browser's link carries, either way. What does not fit into a datagram of QUIC goes over a stream of its own.
pub(crate) const DATAGRAM_MAX: usize = 1_200;
/// Datagrams from all browsers that may wait for the game loop: 5 MB at most.
const QUEUE_IN: usize = 4_096;
/// The most that one receive takes from the queue.
pub(crate) const RECEIVE_MAX: usize = QUEUE_IN;
/// Datagrams that one flush takes from a machine.
const FLUSH_MAX: usize = 16_384;
