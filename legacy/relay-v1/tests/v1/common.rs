//! A relay in virtual time, with streams and datagrams that a test writes and reads by hand.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_relay_v1::packet::{DatagramHeader, STREAM_HEADER, StreamHeader};
use muse_relay_v1::{Limits, Relay};
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

/// A relay and everything that it sent.
pub(crate) struct Bench {
    pub(crate) relay: Relay,
    pub(crate) now: Instant,
    /// Bytes that each stream got; a stream in `deaf` takes none.
    pub(crate) streams: BTreeMap<u16, Vec<u8>>,
    pub(crate) deaf: Vec<u16>,
    pub(crate) closed: Vec<StreamAction>,
    pub(crate) datagrams: Vec<(SocketAddr, Vec<u8>)>,
}

impl Bench {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            relay: Relay::new(Instant::ZERO, limits),
            now: Instant::ZERO,
            streams: BTreeMap::new(),
            deaf: Vec::new(),
            closed: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    /// A relay with clients 1 to `count` at streams of the same numbers, all with a UDP endpoint.
    pub(crate) fn with_clients(count: u16) -> Self {
        let mut bench = Self::new(Limits::default());
        for number in 1..=count {
            assert!(bench.open(number));
            bench.udp(number, &packet(0, 8, 0, number as u8, b""));
        }
        bench.streams.clear();
        bench
    }

    pub(crate) fn open(&mut self, stream: u16) -> bool {
        let taken = self
            .relay
            .handle_open(self.now, StreamId(stream), tcp_peer(stream));
        self.service();
        taken
    }

    pub(crate) fn tcp(&mut self, stream: u16, control: u8, data: &[u8]) {
        self.bytes(stream, &frame(control, data));
    }

    pub(crate) fn bytes(&mut self, stream: u16, bytes: &[u8]) {
        self.relay.handle_bytes(self.now, StreamId(stream), bytes);
        self.service();
    }

    pub(crate) fn end(&mut self, stream: u16) {
        self.relay.handle_end(self.now, StreamId(stream));
        self.service();
    }

    /// A datagram from a client's usual endpoint.
    pub(crate) fn udp(&mut self, number: u16, bytes: &[u8]) {
        self.udp_from(udp_peer(number), bytes);
    }

    pub(crate) fn udp_from(&mut self, from: SocketAddr, bytes: &[u8]) {
        let payload = &mut bytes.to_vec()[..];
        let ecn = Ecn::NotCapable;
        self.relay
            .handle_datagram(self.now, Datagram { from, ecn, payload });
        self.service();
    }

    /// The next tick, on time.
    pub(crate) fn tick(&mut self) {
        self.now = self.relay.poll_timeout().expect("there is a next tick");
        self.relay.handle_timeout(self.now);
        self.service();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.tick();
        }
    }

    /// Returns what a stream received since the last call, as control and data.
    pub(crate) fn received(&mut self, stream: u16) -> Vec<(u8, Vec<u8>)> {
        let bytes = self.streams.remove(&stream).unwrap_or_default();
        frames(&bytes)
    }

    /// Returns what a client's usual endpoint received since the last call.
    pub(crate) fn received_udp(&mut self, number: u16) -> Vec<Vec<u8>> {
        let to = udp_peer(number);
        let (mine, others) = std::mem::take(&mut self.datagrams)
            .into_iter()
            .partition(|(address, _)| *address == to);
        self.datagrams = others;
        let mine: Vec<(SocketAddr, Vec<u8>)> = mine;
        mine.into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn service(&mut self) {
        while let Some(action) = self.relay.poll_stream(self.now) {
            match action {
                StreamAction::Write(stream) => {
                    let bytes = self.relay.outgoing(stream).to_vec();
                    let taken = match self.deaf.contains(&stream.0) {
                        true => 0,
                        false => bytes.len(),
                    };
                    self.streams
                        .entry(stream.0)
                        .or_default()
                        .extend_from_slice(&bytes[..taken]);
                    self.relay.handle_written(self.now, stream, taken);
                }
                other => self.closed.push(other),
            }
        }
        let mut buffer = vec![0; 65_487];
        while let Some(transmit) = self.relay.poll_transmit(self.now, &mut buffer) {
            for datagram in transmit.datagrams(&buffer) {
                self.datagrams.push((transmit.to, datagram.to_vec()));
            }
        }
    }
}

pub(crate) fn tcp_peer(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number as u8], 40_000))
}

pub(crate) fn udp_peer(number: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number as u8], 50_000))
}

pub(crate) fn frame(control: u8, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u16;
    [&StreamHeader { length, control }.emit()[..], data].concat()
}

pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((&header, rest)) = bytes.split_first_chunk::<STREAM_HEADER>() {
        let header = StreamHeader::parse(header).expect("the relay writes whole packets");
        let (data, next) = rest.split_at(usize::from(header.length));
        frames.push((header.control, data.to_vec()));
        bytes = next;
    }
    assert!(bytes.is_empty(), "the relay writes whole packets");
    frames
}

pub(crate) fn packet(kind: u8, control: u8, time: u32, address: u8, data: &[u8]) -> Vec<u8> {
    let header = DatagramHeader {
        kind,
        control,
        time,
        address,
    };
    [&header.emit(data.len() as u16)[..], data].concat()
}
