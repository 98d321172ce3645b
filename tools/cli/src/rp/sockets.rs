//! The two sockets of a host, and the loop around it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use muse_drivers::{Clock, Driver, UdpDriver, UdpOptions, fill_random};
use muse_rp::{Channel, Host, HostOptions};
use muse_wire::{Duration, Instant};

/// A host and its two sockets.
pub(super) struct Sockets {
    pub(super) host: Host,
    reliable: UdpDriver,
    partial: UdpDriver,
    clock: Clock,
}

impl Sockets {
    /// Binds both sockets; port 0 lets the system choose.
    pub(super) fn bind(
        address: IpAddr,
        ports: [u16; 2],
        options: HostOptions,
    ) -> anyhow::Result<Self> {
        let bind = |port| {
            let address = SocketAddr::new(address, port);
            UdpDriver::bind(address, &UdpOptions::default())
                .with_context(|| format!("cannot listen at {address}"))
        };
        let (reliable, partial) = (bind(ports[0])?, bind(ports[1])?);
        let mut seed = [0; 8];
        fill_random(&mut seed).context("no randomness")?;
        let ports = [reliable.local_addr()?.port(), partial.local_addr()?.port()];
        let options = options.ports(ports[0], ports[1]);
        Ok(Self {
            host: Host::new(options, u64::from_le_bytes(seed))?,
            reliable,
            partial,
            clock: Clock::start(),
        })
    }

    pub(super) fn ports(&self) -> io::Result<[u16; 2]> {
        let port = |driver: &UdpDriver| driver.local_addr().map(|address| address.port());
        Ok([port(&self.reliable)?, port(&self.partial)?])
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Receives, sends and handles time-outs, without waiting.
    pub(super) fn poll(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.reliable
            .receive(now, &mut self.host.socket(Channel::Reliable))?;
        self.partial
            .receive(now, &mut self.host.socket(Channel::Partial))?;
        self.flush()
    }

    /// Handles time-outs and sends.
    pub(super) fn flush(&mut self) -> io::Result<()> {
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

    /// Sleeps until something arrives at the reliable socket or it is time to look at the other one.
    pub(super) fn wait(&self) -> io::Result<()> {
        let due = self.host.poll_timeout();
        let until = due.map_or(Duration::MAX, |due| self.clock.until(due));
        self.reliable.wait(until.min(self.host.tick()))?;
        Ok(())
    }
}
