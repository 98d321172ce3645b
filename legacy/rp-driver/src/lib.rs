//! The two UDP sockets of a MUSE-RP host, run from a game loop.
//!
//! A [`Host`] of `muse-rp` has no IO: [`HostDriver`] gives it its sockets, one for each channel, a clock and a seed that nobody can
//! guess. `muse rp serve` and `muse rp send` are programs around it, and the example `hunt` is a game.
//!
//! ```
//! use muse_rp::{Channel, Event, HostOptions};
//! use muse_rp_driver::HostDriver;
//! use muse_wire::Duration;
//!
//! let here = "127.0.0.1".parse()?;
//! let mut server = HostDriver::bind(here, [0, 0], HostOptions::default())?;
//! server.host().listen(true);
//! let mut client = HostDriver::bind(here, [0, 0], HostOptions::default())?;
//! let connection = client.connect((here, server.ports()?[0]).into())?;
//!
//! let arrived = 'game: loop {
//!     for driver in [&mut server, &mut client] {
//!         driver.poll()?;
//!         while let Some(event) = driver.host().poll_event() {
//!             match event {
//!                 Event::Connected { connection: opened } if opened == connection => {
//!                     driver.host().send(connection, Channel::Reliable, 300, b"hello")?;
//!                 }
//!                 Event::Message(message) => break 'game message,
//!                 _ => (),
//!             }
//!         }
//!         driver.flush()?;
//!         driver.wait(Duration::from_millis(5))?;
//!     }
//! };
//! assert_eq!((arrived.kind, &*arrived.payload), (300, &b"hello"[..]));
//! client.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::net::{IpAddr, SocketAddr};

use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions, fill_random};
use muse_rp::{Channel, ConnectError, ConnectionId, Host, HostOptions, OptionsError};
use muse_wire::{Duration, Instant};
use thiserror::Error;

/// A [`Host`] with its two sockets.
///
/// In each turn of the loop: [`poll`](Self::poll), then the host's events and what the game sends ([`host`](Self::host)), then
/// [`flush`](Self::flush). A program that has nothing else to do sleeps in [`wait`](Self::wait). Errors are those of our own
/// sockets: no peer can cause one.
#[derive(Debug)]
pub struct HostDriver {
    host: Host,
    reliable: UdpDriver,
    partial: UdpDriver,
    clock: Clock,
}

impl HostDriver {
    /// Binds the sockets of the reliable and the partially reliable channel; port 0 lets the system choose. The ports in `options`
    /// are set to theirs.
    pub fn bind(address: IpAddr, ports: [u16; 2], options: HostOptions) -> Result<Self, BindError> {
        let bind = |port| {
            let address = SocketAddr::new(address, port);
            UdpDriver::bind(address, &UdpOptions::default())
                .map_err(|source| BindError::Socket { address, source })
        };
        let (reliable, partial) = (bind(ports[0])?, bind(ports[1])?);
        let mut seed = [0; 8];
        fill_random(&mut seed).map_err(BindError::System)?;
        let [first, second] = ports_of(&reliable, &partial).map_err(BindError::System)?;
        let options = options.ports(first, second);
        Ok(Self {
            host: Host::new(options, u64::from_le_bytes(seed))?,
            reliable,
            partial,
            clock: Clock::start(),
        })
    }

    /// The host: its events, what to send, its connections.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Begins a connection to the reliable port of a server; see [`Host::connect`].
    pub fn connect(&mut self, server: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.host.connect(self.clock.now(), server)
    }

    /// Returns the ports of the two sockets, the reliable one's first.
    pub fn ports(&self) -> io::Result<[u16; 2]> {
        ports_of(&self.reliable, &self.partial)
    }

    /// Returns the time on the host's clock.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Receives, handles time-outs and sends, without waiting.
    pub fn poll(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.reliable
            .receive(now, &mut self.host.socket(Channel::Reliable))?;
        self.partial
            .receive(now, &mut self.host.socket(Channel::Partial))?;
        self.flush()
    }

    /// Handles time-outs and sends.
    pub fn flush(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        if self.host.poll_timeout().is_some_and(|due| due <= now) {
            self.host.handle_timeout(now);
        }
        self.reliable
            .flush(now, &mut self.host.socket(Channel::Reliable))?;
        self.partial
            .flush(now, &mut self.host.socket(Channel::Partial))?;
        Ok(())
    }

    /// Sleeps until something arrives at the reliable socket, the host has something to do, or it is time to look at the other
    /// socket ([`HostOptions::tick`]): for `limit` at most.
    pub fn wait(&self, limit: Duration) -> io::Result<()> {
        let due = self.host.poll_timeout();
        let until = due.map_or(limit, |due| self.clock.until(due).min(limit));
        self.reliable.wait(until.min(self.host.tick()))?;
        Ok(())
    }

    /// Ends every connection and tells the peers. The events of it are left in the host.
    pub fn close(&mut self) -> io::Result<()> {
        self.host.disconnect_all();
        self.flush()
    }
}

fn ports_of(reliable: &UdpDriver, partial: &UdpDriver) -> io::Result<[u16; 2]> {
    Ok([reliable.local_addr()?.port(), partial.local_addr()?.port()])
}

/// The reason that a host could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// A socket: the port is taken, or the address is not one of this machine.
    #[error("cannot listen at {address}: {source}")]
    Socket {
        /// The address at which it was to listen.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The system gave no randomness, or does not know the port of a socket that it has bound.
    #[error("the system fails: {0}")]
    System(io::Error),
    /// The options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
}
