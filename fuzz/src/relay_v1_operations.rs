//! Sequences of operations on a relay v1: clients come, speak well or badly, read or do not, and go; ticks pass.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muse_relay_v1::packet::{DatagramHeader, STREAM_HEADER, StreamHeader};
use muse_relay_v1::{Client, Limits, Relay};
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

use crate::{Bound, Target, no_setup};

/// Operations on a relay.
pub const TARGET: Target = Target {
    name: "relay_v1_operations",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 300_000,
        per_byte: 400,
    },
    steps: Bound {
        base: 100_000,
        per_byte: 3_000,
    },
};

/// Runs the bytes: each operation is a byte that says which, and what it needs.
fn run(data: &[u8]) {
    let mut world = World::new();
    let mut rest = data;
    while let Some((&operation, after)) = rest.split_first() {
        let (&who, after) = after.split_first().unwrap_or((&0, after));
        let len = after.len().min(usize::from(who >> 3) * 2);
        let (bytes, after) = after.split_at(len);
        rest = after;
        world.step(operation, u16::from(who & 7), bytes);
        world.check();
    }
    client(data);
}

/// A client that hears anything at all.
fn client(data: &[u8]) {
    let mut client = Client::new();
    let peer = SocketAddr::from(([192, 0, 2, 1], 7));
    client.handle_open(Instant::ZERO, StreamId(0), peer);
    client.handle_bytes(Instant::ZERO, StreamId(0), &[1, 0, 0, 1, 0, 9]);
    let mut datagram = data.to_vec();
    client.handle_datagram(
        Instant::ZERO,
        Datagram {
            from: peer,
            ecn: Ecn::NotCapable,
            payload: &mut datagram,
        },
    );
    client.handle_bytes(Instant::ZERO, StreamId(0), data);
    while client.poll_event().is_some() {}
}

struct World {
    relay: Relay,
    now: Instant,
    /// Streams that the relay has not closed, and what each got.
    open: BTreeMap<u16, Vec<u8>>,
    deaf: u16,
}

impl World {
    fn new() -> Self {
        let limits = Limits::default()
            .clients(5)
            .datagrams_per_second(200, 20)
            .packets_per_second(200, 20)
            .bytes_per_second(20_000, 2_000)
            .held_stream_bytes(1_000)
            .held_datagram_bytes(HELD_DATAGRAM_BYTES)
            .unsent_bytes(500)
            .stall(Duration::from_secs(1));
        Self {
            relay: Relay::new(Instant::ZERO, limits),
            now: Instant::ZERO,
            open: BTreeMap::new(),
            deaf: 0,
        }
    }

    fn step(&mut self, operation: u8, who: u16, bytes: &[u8]) {
        let stream = StreamId(who);
        let ip = [192, 0, 2, who as u8 & 1];
        match operation & 7 {
            0 if !self.open.contains_key(&who) => {
                let peer = SocketAddr::from((ip, 4_000 + who));
                if self.relay.handle_open(self.now, stream, peer) {
                    self.open.insert(who, Vec::new());
                }
            }
            1 => self.relay.handle_end(self.now, stream),
            2 => self.relay.handle_bytes(self.now, stream, bytes),
            // A well-formed TCP packet.
            3 => {
                let (length, control) = (bytes.len() as u16, operation >> 3);
                let header = StreamHeader { length, control };
                let packet = [&header.emit()[..], bytes].concat();
                self.relay.handle_bytes(self.now, stream, &packet);
            }
            4 | 5 => {
                let header = DatagramHeader {
                    kind: bytes.first().copied().unwrap_or(0),
                    control: operation >> 3,
                    time: bytes.get(1).map_or(0, |&byte| u32::from(byte) << 24),
                    address: bytes.get(2).copied().unwrap_or(who as u8 + 1),
                };
                let mut packet = [&header.emit(bytes.len() as u16)[..], bytes].concat();
                let from = SocketAddr::from((ip, 5_000 + who));
                let (ecn, payload) = (Ecn::NotCapable, &mut packet[..]);
                self.relay
                    .handle_datagram(self.now, Datagram { from, ecn, payload });
            }
            6 => self.deaf = who,
            _ => {
                self.now += Duration::from_millis(u64::from(operation >> 3) * 10);
                self.relay.handle_timeout(self.now);
            }
        }
        self.service();
    }

    fn service(&mut self) {
        while let Some(action) = self.relay.poll_stream(self.now) {
            match action {
                StreamAction::Write(stream) => {
                    let bytes = self.relay.outgoing(stream).to_vec();
                    let taken = if stream.0 == self.deaf {
                        bytes.len() / 3
                    } else {
                        bytes.len()
                    };
                    if let Some(got) = self.open.get_mut(&stream.0) {
                        got.extend_from_slice(&bytes[..taken]);
                    }
                    self.relay.handle_written(self.now, stream, taken);
                }
                StreamAction::Close(stream) | StreamAction::Abort(stream) => {
                    let closed = self.open.remove(&stream.0);
                    assert!(closed.is_some(), "a stream is closed once");
                }
                _ => (),
            }
        }
        let mut buffer = [0; 8_192];
        while let Some(transmit) = self.relay.poll_transmit(self.now, &mut buffer) {
            for datagram in transmit.datagrams(&buffer) {
                assert!(DatagramHeader::parse(datagram).is_ok());
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.relay.clients(), self.open.len());
        assert!(self.relay.clients() <= 5 && self.relay.endpoints() <= self.relay.clients());
        // One packet more than the limit may have been taken, and what each client may have held.
        assert!(self.relay.held_bytes() <= 1_000 + 1_000 + 5 * HELD_DATAGRAM_BYTES * 2);
        for got in self.open.values() {
            let mut rest = &got[..];
            while let Some((&header, behind)) = rest.split_first_chunk::<STREAM_HEADER>() {
                let header = StreamHeader::parse(header).expect("whole packets leave");
                rest = behind.get(usize::from(header.length)..).unwrap_or_default();
            }
        }
    }
}

const HELD_DATAGRAM_BYTES: usize = 500;
