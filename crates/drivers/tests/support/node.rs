//! A machine that sends what it is told and remembers what came.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use std::net::SocketAddr;

use muse_drivers::{Driver, UdpDriver};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

/// Time that a test waits for what must come; nothing depends on it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) outgoing: VecDeque<Outgoing>,
    pub(crate) received: Vec<Received>,
    pub(crate) timeout: Option<Instant>,
    pub(crate) timeouts_handled: usize,
    /// Sends every datagram back.
    pub(crate) echo: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) to: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    pub(crate) segment: Option<usize>,
    pub(crate) ecn: Ecn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) from: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

impl Node {
    pub(crate) fn say(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.say_with(to, bytes, None, Ecn::NotCapable);
    }

    pub(crate) fn say_with(
        &mut self,
        to: SocketAddr,
        bytes: &[u8],
        segment: Option<usize>,
        ecn: Ecn,
    ) {
        self.outgoing.push_back(Outgoing {
            to,
            bytes: bytes.to_vec(),
            segment,
            ecn,
        });
    }

    /// Receives until `count` datagrams are there, however many wakings that takes.
    pub(crate) fn receive_until(&mut self, driver: &mut UdpDriver, count: usize) {
        while self.received.len() < count {
            let ready = driver.wait(PATIENCE).expect("waiting works");
            assert!(ready, "{} of {count} datagrams came", self.received.len());
            driver
                .receive(Instant::ZERO, self)
                .expect("receiving works");
        }
    }

    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.received
            .iter()
            .map(|received| received.bytes.as_slice())
            .collect()
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        let Datagram { from, ecn, payload } = datagram;
        if self.echo {
            self.say_with(from, payload, None, ecn);
        }
        self.received.push(Received {
            from,
            ecn,
            bytes: payload.to_vec(),
        });
    }

    fn handle_timeout(&mut self, _: Instant) {
        self.timeout = None;
        self.timeouts_handled += 1;
    }

    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let Outgoing {
            to,
            bytes,
            segment,
            ecn,
        } = self.outgoing.pop_front()?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit {
            to,
            len: bytes.len(),
            segment,
            ecn,
        })
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.timeout
    }
}
