//! The common part of a client and a server: an endpoint, its socket, and the clock of both.

use std::io;
use std::net::SocketAddr;

use muse_relay::{Link, LinkEvent, Through};
use muse_transport::{Config, ConfigError, ConnectionId, Endpoint, Event};
use muse_wire::{Duration, Instant, Machine};

#[cfg(feature = "web")]
use crate::web::{RECEIVE_MAX, WebListener, WithWeb};
use crate::{Clock, Driver, SystemEntropy, UdpDriver};

/// An endpoint that runs over a UDP socket in a game loop.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) driver: UdpDriver,
    /// The relay that peers may come through.
    link: Option<Link>,
    /// The listener for browsers.
    #[cfg(feature = "web")]
    web: Option<WebListener>,
    clock: Clock,
    /// Time of the last poll or flush: one reading serves everything that happens in between.
    now: Instant,
    /// The time at which it was last known what had arrived: at the last poll, or when a datagram ended a wait.
    looked_at: Instant,
    /// The buffer into which `tick` puts payloads.
    buffer: Vec<u8>,
}

impl Host {
    pub(crate) fn new(driver: UdpDriver, config: Config) -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            endpoint: endpoint(clock, config)?,
            driver,
            link: None,
            #[cfg(feature = "web")]
            web: None,
            clock,
            now: clock.now(),
            looked_at: clock.now(),
            buffer: Vec::new(),
        })
    }

    /// Receives what has arrived and handles what has become due.
    pub(crate) fn poll(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        self.endpoint.looked_away(self.now - self.looked_at);
        self.looked_at = self.now;
        let (now, machine, link) = (self.now, &mut self.endpoint, self.link.as_mut());
        #[cfg(feature = "web")]
        if let Some(web) = &mut self.web {
            web.receive_up_to(now, machine, RECEIVE_MAX);
            let mut machine = WithWeb { machine, web };
            return receive(&mut self.driver, link, now, &mut machine);
        }
        receive(&mut self.driver, link, now, machine)
    }

    pub(crate) fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.endpoint.poll_event(buffer)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        let (now, machine, link) = (self.now, &mut self.endpoint, self.link.as_mut());
        #[cfg(feature = "web")]
        if let Some(web) = &mut self.web {
            let mut machine = WithWeb { machine, web };
            return send_out(&mut self.driver, link, now, &mut machine);
        }
        send_out(&mut self.driver, link, now, machine)
    }

    /// Sends what is to be sent, then sleeps until something arrives or becomes due, for `timeout` at most.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        // Only after a flush does the endpoint know what comes next.
        self.flush()?;
        let link = self.link.as_ref().and_then(Link::poll_timeout);
        let due = [self.endpoint.poll_timeout(), link].into_iter().flatten();
        let due = due.min().map(|due| self.clock.until(due));
        let timeout = due.unwrap_or(timeout).min(timeout);
        #[cfg(feature = "web")]
        if let Some(web) = &self.web {
            if !web.fall_asleep() {
                return Ok(true);
            }
            let woken = self.driver.wait(timeout);
            web.wake_up();
            self.looked_at = self.clock.now();
            return woken;
        }
        let woken = self.driver.wait(timeout);
        self.looked_at = self.clock.now();
        woken
    }

    /// Lets browsers come as well.
    #[cfg(feature = "web")]
    pub(crate) fn set_web(&mut self, mut web: WebListener) -> io::Result<()> {
        web.wake_at(self.driver.local_addr()?)?;
        self.web = Some(web);
        Ok(())
    }

    /// Returns the listener for browsers.
    #[cfg(feature = "web")]
    pub(crate) fn web(&self) -> Option<&WebListener> {
        self.web.as_ref()
    }

    /// Lets peers come through a relay as well.
    pub(crate) fn set_link(&mut self, link: Link) {
        self.link = Some(link);
    }

    /// The relay that peers may come through.
    pub(crate) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    /// Returns the next event of the relay.
    pub(crate) fn poll_relay_event(&mut self) -> Option<LinkEvent> {
        self.link.as_mut()?.poll_event()
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.driver.local_addr()
    }

    /// The buffer of `tick`, which gives it back with [`keep_buffer`](Self::keep_buffer).
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    pub(crate) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(BUFFER_KEPT_MAX);
        self.buffer = buffer;
    }
}

impl Drop for Host {
    /// Says goodbye, so that peers need not wait for a silence to know. One packet each: if it is lost they wait after all.
    fn drop(&mut self) {
        say_goodbye(self.clock.now(), &mut self.endpoint);
        // What was said goes first: a relay that is left passes nothing on.
        let _ = self.flush();
        if let Some(link) = &mut self.link {
            link.leave();
        }
        // Nobody is left to report an error to.
        let _ = self.flush();
    }
}

/// Receives what has arrived, through a relay as well, and handles what has become due.
fn receive<M: Machine>(
    driver: &mut UdpDriver,
    link: Option<&mut Link>,
    now: Instant,
    machine: &mut M,
) -> io::Result<()> {
    fn take<M: Machine>(driver: &mut UdpDriver, now: Instant, machine: &mut M) -> io::Result<()> {
        driver.receive(now, machine)?;
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        Ok(())
    }
    match link {
        None => take(driver, now, machine),
        Some(link) => take(driver, now, &mut Through { machine, link }),
    }
}

/// Sends what is to be sent, through a relay as well.
fn send_out<M: Machine>(
    driver: &mut UdpDriver,
    link: Option<&mut Link>,
    now: Instant,
    machine: &mut M,
) -> io::Result<()> {
    match link {
        None => driver.flush(now, machine)?,
        Some(link) => driver.flush(now, &mut Through { machine, link })?,
    };
    Ok(())
}

/// An endpoint with the system's randomness and wall clock.
pub(crate) fn endpoint(clock: Clock, config: Config) -> io::Result<Endpoint> {
    let config = config.build().map_err(invalid_config)?;
    let mut endpoint = Endpoint::new(config, SystemEntropy::new()?);
    endpoint.set_unix_time(
        clock.now(),
        crate::clock::unix_time().as_micros() / 1_000_000,
    );
    Ok(endpoint)
}

pub(crate) fn say_goodbye(now: Instant, endpoint: &mut Endpoint) {
    let connections: Vec<ConnectionId> = endpoint.connections().collect();
    for connection in connections {
        endpoint.close(now, connection, 0, "the program let go of the connection");
    }
}

fn invalid_config(error: ConfigError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// Largest buffer that `tick` keeps: one huge message should not hold its memory for ever.
const BUFFER_KEPT_MAX: usize = 1 << 20;
