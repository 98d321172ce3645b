//! One machine for players over UDP and for browsers: what a relay needs, which is no endpoint.

use std::io;
use std::net::SocketAddr;

use muse_wire::{Duration, Instant, Machine};

use super::WebListener;
use crate::beside::Beside;
use crate::{Driver, UdpDriver};

/// A UDP socket, and beside it a listener for browsers if one is given.
///
/// The machine knows browsers by addresses that nobody else has ([`is_web_address`](crate::is_web_address)), and speaks to them as to
/// anybody.
#[derive(Debug)]
pub struct UdpWebDriver {
    udp: UdpDriver,
    web: Option<WebListener>,
}

impl UdpWebDriver {
    /// UDP alone, at no cost.
    pub fn new(udp: UdpDriver) -> Self {
        Self { udp, web: None }
    }

    /// Lets browsers in as well. [`wait`](Self::wait) wakes up for them too.
    pub fn with_web(mut self, mut web: WebListener) -> io::Result<Self> {
        web.wake_at(self.udp.local_addr()?)?;
        self.web = Some(web);
        Ok(self)
    }

    /// The socket, for its counters.
    pub fn udp(&self) -> &UdpDriver {
        &self.udp
    }

    /// Returns the listener for browsers, for its addresses and counters.
    pub fn web(&self) -> Option<&WebListener> {
        self.web.as_ref()
    }

    /// Sleeps until something has arrived, or until unsent datagrams can go, for `timeout` at most. False on time-out.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let Some(web) = &self.web else {
            return self.udp.wait(timeout);
        };
        if !web.fall_asleep() {
            return Ok(true);
        }
        let woken = self.udp.wait(timeout);
        web.wake_up();
        woken
    }
}

impl Driver for UdpWebDriver {
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        let Some(web) = &mut self.web else {
            return self.udp.receive(now, machine);
        };
        let count = web.take_in(now, machine, RECEIVE_AT_ONCE);
        let link = &*web;
        Ok(count + self.udp.receive(now, &mut Beside { link, machine })?)
    }

    fn flush<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize> {
        match &self.web {
            None => self.udp.flush(now, machine),
            Some(link) => self.udp.flush(now, &mut Beside { link, machine }),
        }
    }

    /// The address of the UDP socket.
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }
}

/// The most that one receive takes from browsers: 600 kB, so that a machine which holds what it passes on until the flush need not hold much.
const RECEIVE_AT_ONCE: usize = 512;
