//! The place of links to relays in a build without the feature `relay`: there are none.

use std::net::SocketAddr;

use muse_transport::ServerPublicKey;
use muse_wire::{Datagram, Instant, Machine, Transmit};

/// A link that cannot exist.
pub(crate) enum Link {}

impl Link {
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match *self {}
    }

    pub(crate) fn is_waiting(&self) -> bool {
        match *self {}
    }

    pub(crate) fn leave(&mut self) {
        match *self {}
    }
}

pub(crate) fn host_key(link: &mut Link) -> Option<Result<ServerPublicKey, String>> {
    match *link {}
}

pub(crate) fn ban(link: &mut Link, _: Instant, _: SocketAddr) -> Vec<SocketAddr> {
    match *link {}
}

/// A machine on a link that cannot exist.
pub(crate) struct Through<'a, M> {
    #[expect(dead_code, reason = "no link, no machine on it")]
    pub(crate) machine: &'a mut M,
    pub(crate) link: &'a mut Link,
}

impl<M> Machine for Through<'_, M> {
    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {
        match *self.link {}
    }

    fn handle_timeout(&mut self, _: Instant) {
        match *self.link {}
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> {
        match *self.link {}
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match *self.link {}
    }
}
