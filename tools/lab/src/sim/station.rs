//! An endpoint at an address: by itself, or with a link to a relay under it.

use std::net::SocketAddr;

use muse_relay::{Link, Through};
use muse_transport::Endpoint;
use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};

use super::aid::Posted;

/// An endpoint, and the way it is reached.
pub(super) struct Station {
    pub(super) endpoint: Endpoint,
    link: Option<Link>,
}

impl Station {
    pub(super) const fn new(endpoint: Endpoint, link: Option<Link>) -> Self {
        Self { endpoint, link }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        let ecn = Ecn::NotCapable;
        let datagram = Datagram { from, ecn, payload };
        match self.through() {
            Ok(mut through) => through.handle_datagram(now, datagram),
            Err(endpoint) => endpoint.handle_datagram(now, datagram),
        }
    }

    /// Does what is due.
    pub(super) fn handle_time(&mut self, now: Instant) {
        match self.through() {
            Ok(mut through) => {
                if through.poll_timeout().is_some_and(|at| at <= now) {
                    through.handle_timeout(now);
                }
            }
            Err(endpoint) => {
                if endpoint.poll_timeout().is_some_and(|at| at <= now) {
                    endpoint.handle_timeout(now);
                }
            }
        }
        // The transport says what matters; what the link tells of itself is let go.
        while self.link.as_mut().and_then(Link::poll_event).is_some() {}
    }

    /// Sends everything that is to be sent, from this address.
    pub(super) fn send(&mut self, now: Instant, address: SocketAddr, post: &mut Posted) {
        let mut buffer = [0; 1_500];
        while let Some(transmit) = self.poll_transmit(now, &mut buffer) {
            post.send(address, transmit.to, &buffer[..transmit.len]);
        }
    }

    /// Tells the relay that it is over.
    pub(super) fn leave(&mut self, now: Instant, address: SocketAddr, post: &mut Posted) {
        if let Some(link) = &mut self.link {
            link.leave();
            self.send(now, address, post);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        match self.through() {
            Ok(mut through) => through.poll_transmit(now, buffer),
            Err(endpoint) => endpoint.poll_transmit(now, buffer),
        }
    }

    fn through(&mut self) -> Result<Through<'_, Endpoint>, &mut Endpoint> {
        let machine = &mut self.endpoint;
        match &mut self.link {
            Some(link) => Ok(Through { machine, link }),
            None => Err(machine),
        }
    }
}
