//! A machine whose datagrams for browsers are taken out on the way to another driver.

use muse_wire::{Datagram, Instant, Machine, Transmit};

use super::{FLUSH_MAX, WebListener, is_web_address};

/// A machine as the driver beside a [`WebListener`] sees it.
#[derive(Debug)]
pub(crate) struct WithWeb<'a, M: ?Sized> {
    pub(crate) machine: &'a mut M,
    pub(crate) web: &'a WebListener,
}

impl<M: Machine + ?Sized> Machine for WithWeb<'_, M> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        // Nobody but a browser has such an address, whatever a packet says.
        if !is_web_address(datagram.from) && !self.web.is_wake(datagram.from) {
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
        for _ in 0..FLUSH_MAX {
            let transmit = self.machine.poll_transmit(now, buffer)?;
            if !self.web.offer(&transmit, buffer) {
                return Some(transmit);
            }
        }
        None
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.machine.poll_timeout()
    }
}
