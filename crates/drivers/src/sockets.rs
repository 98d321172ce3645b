//! The sockets of an [`EndpointDriver`](crate::EndpointDriver) in the browser, where there are none: everything travels in memory.

use std::io;
use std::net::SocketAddr;

use muse_transport::ServerPublicKey;
use muse_wire::{Duration, Instant, Machine};

#[derive(Debug, Default)]
pub(crate) struct Sockets;

impl Sockets {
    pub(crate) fn receive<M: Machine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        Ok(())
    }

    pub(crate) fn flush<M: Machine>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        crate::memory::flush_nowhere(now, machine);
        Ok(())
    }

    /// Returns at once: nothing may sleep here.
    pub(crate) fn wait(&self, _: Duration) -> io::Result<bool> {
        Ok(false)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    pub(crate) fn is_waiting(&self) -> bool {
        false
    }

    pub(crate) fn poll_host_key(&mut self) -> Option<Result<ServerPublicKey, String>> {
        None
    }

    pub(crate) fn leave(&mut self) {}

    pub(crate) fn ban(&mut self, _: Instant, _: SocketAddr) -> Vec<SocketAddr> {
        Vec::new()
    }
}
