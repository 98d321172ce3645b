//! What a client and a server have in common: an endpoint, its socket, and the clock that both go by.

use std::io;
use std::net::SocketAddr;

use muse_transport::{Config, ConfigError, ConnectionId, Endpoint, Event};
use muse_wire::{Duration, Instant, Machine};

use crate::{Clock, Driver, SystemEntropy, UdpDriver};

/// An endpoint that runs over a UDP socket in a game loop.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) driver: UdpDriver,
    clock: Clock,
    /// Time of the last poll or flush: one reading serves everything that happens in between.
    now: Instant,
    /// Where `tick` puts payloads.
    buffer: Vec<u8>,
}

impl Host {
    pub(crate) fn new(driver: UdpDriver, config: Config) -> io::Result<Self> {
        let clock = Clock::start();
        Ok(Self {
            endpoint: endpoint(clock, config)?,
            driver,
            clock,
            now: clock.now(),
            buffer: Vec::new(),
        })
    }

    /// Takes in what has arrived and what has become due.
    pub(crate) fn poll(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        self.driver.receive(self.now, &mut self.endpoint)?;
        if self
            .endpoint
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.endpoint.handle_timeout(self.now);
        }
        Ok(())
    }

    pub(crate) fn poll_event<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        self.endpoint.poll_event(buffer)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.now = self.clock.now();
        self.driver.flush(self.now, &mut self.endpoint)?;
        Ok(())
    }

    /// Sends what is to be sent, then sleeps until something arrives or becomes due, for `timeout` at most.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        // Only after a flush does the endpoint know what comes next.
        self.flush()?;
        let due = self
            .endpoint
            .poll_timeout()
            .map(|due| self.clock.until(due));
        self.driver.wait(due.unwrap_or(timeout).min(timeout))
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
        // Nobody is left to report an error to.
        let _ = self.flush();
    }
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
