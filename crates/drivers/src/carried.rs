//! A machine whose datagrams the program carries itself, such as a page with its WebTransport or WebSocket session.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};

use muse_wire::{Datagram, Ecn, Instant, Link, Machine};

/// The address that stands for the other end of the session: it only has to be the same each time.
pub const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// A browser's session: WebTransport's and WebSocket's datagrams have at most so many bytes.
pub const LINK: Link = Link {
    datagram_min: 1_200,
    datagram_max: 1_200,
    ..Link::UDP
};

/// A machine that speaks with [`REMOTE`], over a session that the program has. The machine is reached through it.
///
/// After anything was given to it: [`advance`](Self::advance), then [`next_datagram`](Self::next_datagram) until it returns nothing; again when
/// the machine's time-out has passed.
#[derive(Debug)]
pub struct Carried<M> {
    machine: M,
    /// The rest of a transmission that holds several datagrams.
    waiting: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
}

impl<M: Machine> Carried<M> {
    /// Carries the datagrams of this machine.
    pub fn new(machine: M) -> Self {
        Self {
            machine,
            waiting: VecDeque::new(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Handles a datagram that the session received.
    pub fn receive(&mut self, now: Instant, mut bytes: Vec<u8>) {
        let datagram = Datagram {
            from: REMOTE,
            ecn: Ecn::NotCapable,
            payload: &mut bytes,
        };
        self.machine.handle_datagram(now, datagram);
    }

    /// Does what has become due.
    pub fn advance(&mut self, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
    }

    /// Returns the next datagram that the session is to send.
    pub fn next_datagram(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.waiting.is_empty() {
            let transmit = self.machine.poll_transmit(now, &mut self.buffer)?;
            let datagrams = transmit.datagrams(&self.buffer);
            self.waiting.extend(datagrams.map(<[u8]>::to_vec));
        }
        self.waiting.pop_front()
    }
}

impl<M> Deref for Carried<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M> DerefMut for Carried<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.machine
    }
}

/// One datagram, and the room that a link to a relay keeps for its headers.
const BUFFER_BYTES: usize = 1_300;
