//! A machine whose datagrams for one link are taken out on the way to another driver.

use std::net::SocketAddr;

use muse_wire::{Datagram, Instant, Machine, Transmit};

/// A link beside the one that a driver carries, with addresses of its own.
pub(crate) trait SideLink {
    /// Transmissions that are taken out in a row, so that a machine that repeats itself lets go.
    const OFFERS_MAX: usize;

    /// True if nobody but a peer of this link has such an address, whatever a packet says.
    fn owns(&self, address: SocketAddr) -> bool;

    /// Sends what is for a peer of this link. False if it is not.
    fn offer(&self, transmit: &Transmit, buffer: &[u8]) -> bool;
}

/// A machine as the driver beside a [`SideLink`] sees it.
pub(crate) struct Beside<'a, L, M: ?Sized> {
    pub(crate) link: &'a L,
    pub(crate) machine: &'a mut M,
}

impl<L: SideLink, M: Machine + ?Sized> Machine for Beside<'_, L, M> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        if !self.link.owns(datagram.from) {
            self.machine.handle_datagram(now, datagram);
        }
    }

    fn prepare(&self, payload: &[u8]) {
        self.machine.prepare(payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        for _ in 0..L::OFFERS_MAX {
            let transmit = self.machine.poll_transmit(now, buffer)?;
            if !self.link.offer(&transmit, buffer) {
                return Some(transmit);
            }
        }
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.machine.poll_timeout()
    }
}
