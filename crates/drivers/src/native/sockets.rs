//! The sockets of an [`EndpointDriver`](crate::EndpointDriver): UDP, with a relay and browsers where they are wanted.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use muse_transport::{Config, Entropy, ServerOptions, ServerPublicKey};
use muse_wire::{Duration, Instant, Machine};

use crate::native::relay::{Link, Through, ban, host_key};
use crate::{Driver, EndpointDriver, SystemEntropy, UdpDriver, UdpOptions, bind_shards};
#[cfg(feature = "web")]
use crate::{
    beside::Beside,
    web::{RECEIVE_MAX, WebListener},
};

/// The links of an endpoint that lead out of the process; none for one that is offline.
#[derive(Default)]
pub(crate) struct Sockets {
    udp: Option<UdpDriver>,
    /// The relay that peers may come through.
    pub(crate) relay: Option<Link>,
    /// The listener for browsers.
    #[cfg(feature = "web")]
    web: Option<WebListener>,
}

impl Sockets {
    pub(crate) fn udp(driver: UdpDriver) -> Self {
        Self {
            udp: Some(driver),
            ..Self::default()
        }
    }

    /// Receives what has arrived and handles what has become due.
    pub(crate) fn receive<M: Machine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        #[cfg(feature = "web")]
        if let Some(web) = &mut self.web {
            web.take_in(now, machine, RECEIVE_MAX);
            let mut machine = Beside { link: web, machine };
            return receive(self.udp.as_mut(), self.relay.as_mut(), now, &mut machine);
        }
        receive(self.udp.as_mut(), self.relay.as_mut(), now, machine)
    }

    /// Sends what is to be sent.
    pub(crate) fn flush<M: Machine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        #[cfg(feature = "web")]
        if let Some(web) = &self.web {
            let mut machine = Beside { link: web, machine };
            return flush(self.udp.as_mut(), self.relay.as_mut(), now, &mut machine);
        }
        flush(self.udp.as_mut(), self.relay.as_mut(), now, machine)
    }

    /// Sleeps until something has arrived, for `timeout` at most. False on time-out.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let Some(udp) = &self.udp else {
            std::thread::sleep(timeout.into());
            return Ok(false);
        };
        #[cfg(feature = "web")]
        if let Some(web) = &self.web {
            if !web.fall_asleep() {
                return Ok(true);
            }
            let woken = udp.wait(timeout);
            web.wake_up();
            return woken;
        }
        udp.wait(timeout)
    }

    /// Returns when the relay's link has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.relay.as_ref().and_then(Link::poll_timeout)
    }

    /// True if nothing can be sent before the relay has answered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.relay.as_ref().is_some_and(Link::is_waiting)
    }

    /// The server's key, learned by a short code, or why there is none.
    pub(crate) fn poll_host_key(&mut self) -> Option<Result<ServerPublicKey, String>> {
        host_key(self.relay.as_mut()?)
    }

    /// Leaves the relay's room.
    pub(crate) fn leave(&mut self) {
        if let Some(link) = &mut self.relay {
            link.leave();
        }
    }

    /// Has the relay let a peer in no more. Returns the peer's addresses that are known.
    pub(crate) fn ban(&mut self, now: Instant, peer: SocketAddr) -> Vec<SocketAddr> {
        let link = self.relay.as_mut();
        link.map_or(Vec::new(), |link| ban(link, now, peer))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let offline = || io::Error::new(io::ErrorKind::AddrNotAvailable, "it has no socket");
        self.udp.as_ref().ok_or_else(offline)?.local_addr()
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.udp, f)
    }
}

impl EndpointDriver {
    /// Listens at `address`: `"[::]:7000"` for both IP versions, port 0 for any port.
    pub fn bind(
        address: impl ToSocketAddrs,
        config: Config,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let mut failure = None;
        for address in address.to_socket_addrs()? {
            match UdpDriver::bind(address, &socket_options()) {
                Ok(driver) => return Self::with_driver(driver, config, options),
                Err(error) => {
                    failure = Some(io::Error::new(error.kind(), format!("{address}: {error}")))
                }
            }
        }
        Err(failure.unwrap_or_else(no_address))
    }

    /// Listens at a socket of the caller's choice.
    pub fn with_driver(
        driver: UdpDriver,
        config: Config,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let mut driver = Self::new(Sockets::udp(driver), config)?;
        driver.endpoint.listen(options);
        Ok(driver)
    }

    /// Listens with up to `count` servers at one address, each to be run by a thread of its own; see [`bind_shards`]
    /// for when there are fewer. `options` is asked for each shard's options: give all of them the same key.
    ///
    /// A connection stays with the shard that accepted it, whatever address its packets come from, and all that is done with one connect token is
    /// done at one shard ([`steering`](muse_transport::steering)): it is good once, and a player who comes back takes over their session. Shards share
    /// nothing but a secret, so that a cookie of one is good at all. Limits count per shard: connections and handshakes.
    pub fn bind_shards(
        address: impl ToSocketAddrs,
        config: Config,
        count: usize,
        mut options: impl FnMut(usize) -> ServerOptions,
    ) -> io::Result<Vec<Self>> {
        let address = address.to_socket_addrs()?.next().ok_or_else(no_address)?;
        let drivers = bind_shards(address, count, &socket_options())?;
        let count = drivers.len();
        let mut secret = [0; 32];
        SystemEntropy::new()?.fill(&mut secret);
        let shard = |(number, driver): (usize, UdpDriver)| {
            let options = options(number).cookie_secret(secret);
            Self::with_driver(driver, config.clone().shard(number, count), options)
        };
        drivers.into_iter().enumerate().map(shard).collect()
    }

    /// Admits browsers as well: the same connections, events and channels, whatever the link of a client is. One listener; a new
    /// one replaces the one before. [`wait`](Self::wait) wakes up for browsers too.
    ///
    /// ```
    /// use muse_drivers::{EndpointDriver, WebListener, WebOptions, new_key};
    /// use muse_transport::{ChannelConfig, Config, Delivery, ServerOptions};
    /// let config = Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered));
    /// let server = EndpointDriver::bind("127.0.0.1:0", config, ServerOptions::new(new_key()?))?;
    /// let mut server = server.with_web(WebListener::bind(WebOptions::new("127.0.0.1:0".parse().expect("an address")))?)?;
    /// println!("browsers ask http://{}/link", server.web().expect("just given").address());
    /// server.tick(|_, _| {})?;
    /// assert_eq!(server.web().map(WebListener::sessions), Some(0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "web")]
    pub fn with_web(mut self, mut web: WebListener) -> io::Result<Self> {
        web.wake_at(self.local_addr()?)?;
        self.sockets.web = Some(web);
        Ok(self)
    }

    /// Returns the listener for browsers, for its addresses and counters.
    #[cfg(feature = "web")]
    pub fn web(&self) -> Option<&WebListener> {
        self.sockets.web.as_ref()
    }

    /// Returns the socket's own address.
    ///
    /// # Errors
    /// There is no socket: it is offline.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.sockets.local_addr()
    }

    /// Returns the socket, for its counters; `None` offline.
    pub fn udp(&self) -> Option<&UdpDriver> {
        self.sockets.udp.as_ref()
    }
}

/// Receives what has arrived, through a relay as well, and handles what has become due.
fn receive<M: Machine>(
    driver: Option<&mut UdpDriver>,
    link: Option<&mut Link>,
    now: Instant,
    machine: &mut M,
) -> io::Result<()> {
    fn receive<M: Machine>(
        driver: Option<&mut UdpDriver>,
        now: Instant,
        machine: &mut M,
    ) -> io::Result<()> {
        if let Some(driver) = driver {
            driver.receive(now, machine)?;
        }
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        Ok(())
    }
    match link {
        None => receive(driver, now, machine),
        Some(link) => receive(driver, now, &mut Through { machine, link }),
    }
}

/// Sends what is to be sent, through a relay as well.
fn flush<M: Machine>(
    driver: Option<&mut UdpDriver>,
    link: Option<&mut Link>,
    now: Instant,
    machine: &mut M,
) -> io::Result<()> {
    match (driver, link) {
        (None, _) => crate::memory::flush_nowhere(now, machine),
        (Some(driver), None) => driver.flush(now, machine)?,
        (Some(driver), Some(link)) => driver.flush(now, &mut Through { machine, link })?,
    };
    Ok(())
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

/// A server's socket drops what cannot be the protocol's before it is looked at.
fn socket_options() -> UdpOptions {
    UdpOptions::default().sieve(true)
}
