//! The UDP driver inside a tokio runtime, for services that await other things too.

use std::io;
use std::net::SocketAddr;

use muse_wire::{Instant, Machine};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::{Clock, Driver, UdpDriver, UdpOptions};

/// Runs a [`Machine`] over UDP, asleep while there is nothing to do.
///
/// Call [`turn`](AsyncUdp::turn) in a loop, or inside `select!` beside commands: it may be dropped at any await without
/// losing anything. After a command changed the machine, the next turn sends what it has to say.
#[derive(Debug)]
pub struct AsyncUdp {
    driver: UdpDriver,
    /// The same socket once more, to learn from the runtime when it is ready.
    readiness: UdpSocket,
    clock: Clock,
}

impl AsyncUdp {
    /// Binds a socket; see [`UdpDriver::bind`]. Must be called within a runtime that has its IO and time drivers on.
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        Self::new(UdpDriver::bind(address, options)?)
    }

    /// Takes a socket that is bound already. Must be called within a runtime that has its IO driver on.
    pub fn new(driver: UdpDriver) -> io::Result<Self> {
        let readiness = UdpSocket::from_std(driver.socket().try_clone()?)?;
        Ok(Self {
            driver,
            readiness,
            clock: Clock::start(),
        })
    }

    /// Sends what the machine has to say, sleeps until something arrives or the machine's time-out is due, and gives
    /// the machine what came.
    pub async fn turn<M: Machine + ?Sized>(&mut self, machine: &mut M) -> io::Result<()> {
        self.driver.flush(self.clock.now(), machine)?;
        let readable = Interest::READABLE;
        let interest = if self.driver.has_unsent() {
            readable | Interest::WRITABLE
        } else {
            readable
        };
        let ready = self.readiness.ready(interest);
        match machine.poll_timeout() {
            Some(due) => {
                let patience = self.clock.until(due).into();
                // The time-out of the wait is no error: the machine's own time-out is due.
                tokio::time::timeout(patience, ready)
                    .await
                    .unwrap_or(Ok(tokio::io::Ready::EMPTY))?
            }
            None => ready.await?,
        };
        let now = self.clock.now();
        self.receive(now, machine)?;
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        self.driver.flush(now, machine)?;
        if self.driver.has_unsent() {
            // The runtime reports only changes: tell it that the socket is full, to be woken when it no longer is.
            let full = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            unless_blocked(self.readiness.try_io(Interest::WRITABLE, full))?;
        }
        Ok(())
    }

    /// Sends what the machine has to say at once, without waiting for anything.
    pub fn flush<M: Machine + ?Sized>(&mut self, machine: &mut M) -> io::Result<()> {
        self.driver.flush(self.clock.now(), machine)?;
        Ok(())
    }

    /// The driver, for its counters and its address.
    pub fn driver(&self) -> &UdpDriver {
        &self.driver
    }

    /// The clock that the machine's `now` comes from; use it for commands to the machine.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Receives if the runtime says that something came, and tells it when the socket is empty.
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        let driver = &mut self.driver;
        let result = self.readiness.try_io(Interest::READABLE, || {
            match driver.receive(now, machine)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        unless_blocked(result)
    }
}

fn unless_blocked(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        other => other,
    }
}
