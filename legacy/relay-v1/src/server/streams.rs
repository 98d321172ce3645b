//! TCP: packets out of a stream, what each asks for, and who gets it at the tick.

use muse_wire::Instant;

use super::{End, PAST_LAST, Relay, addresses};
use crate::StreamId;
use crate::packet::{
    Address, BROADCAST, LIST, RESET, STATE, STREAM_DATA_MAX, STREAM_HEADER, StreamHeader, UNICAST,
};

impl Relay {
    pub(super) fn stream_read_limit(&mut self, now: Instant, stream: StreamId) -> usize {
        let Some(address) = self.address_of(stream) else {
            return 0;
        };
        let limits = &self.limits;
        let env = &mut self.environments[address.index()];
        if env.waits_for_budget || self.frames.len() >= limits.held_stream_bytes {
            return 0;
        }
        let available = env.bytes.available(now, limits.byte_rate);
        // Not byte by byte as the budget fills: the next tick is soon.
        if available < limits.byte_rate.burst().min(READ_MIN) {
            return 0;
        }
        usize::try_from(available).unwrap_or(READ_MAX).min(READ_MAX)
    }

    /// Takes whole packets from a client's input, as many as its budget allows.
    pub(super) fn take_packets(&mut self, now: Instant, address: Address) {
        let mut input = std::mem::take(&mut self.environments[address.index()].input);
        let mut taken = 0;
        let mut waits = false;
        let broken = loop {
            let rest = &input[taken..];
            let Some(&header) = rest.first_chunk::<STREAM_HEADER>() else {
                break false;
            };
            let Ok(header) = StreamHeader::parse(header) else {
                break true;
            };
            let end = STREAM_HEADER + usize::from(header.length);
            let Some(packet) = rest.get(..end) else {
                break false;
            };
            let limits = &self.limits;
            let env = &mut self.environments[address.index()];
            if !env.packets.has(now, limits.packet_rate, 1)
                || self.frames.len() >= limits.held_stream_bytes
            {
                waits = true;
                break false;
            }
            env.packets.take(1);
            env.bytes.take(packet.len() as u64);
            self.stats.packets_in += 1;
            self.take_packet(address, header, packet);
            taken += end;
        };
        input.drain(..taken);
        let env = &mut self.environments[address.index()];
        if input.is_empty() {
            input.shrink_to(INPUT_KEPT_MAX);
        }
        env.input = input;
        env.waits_for_budget = waits;
        let ended = env.ended && !waits;
        if broken && self.drop_client(address, End::Close) {
            self.stats.cut_length += 1;
        } else if ended && self.drop_client(address, End::Close) {
            self.stats.left += 1;
        }
    }

    fn take_packet(&mut self, from: Address, header: StreamHeader, packet: &[u8]) {
        let data = &packet[STREAM_HEADER..];
        match (header.affecting(), data.first()) {
            (BROADCAST, _) => self.frames.push(Destination::AllBut(from), packet),
            (UNICAST, Some(&to)) => match Address::new(to) {
                Some(to) if self.is_active(to) => {
                    self.frames.push(Destination::One(to), packet);
                    // The receiver learns whom to answer.
                    self.frames.overwrite_last(STREAM_HEADER, from.get());
                }
                _ => self.stats.packets_undeliverable += 1,
            },
            (LIST, _) => {
                let others = addresses().filter(|&address| address != from);
                let active: Vec<u8> = others
                    .filter(|&address| self.is_active(address))
                    .map(Address::get)
                    .collect();
                self.reply(from, header.control, &active);
            }
            (STATE, Some(&address)) => {
                let active = Address::new(address).is_some_and(|address| self.is_active(address));
                self.reply(from, header.control, &[u8::from(active)]);
            }
            (RESET, _) => {
                // Before the first grouped packet there is nothing to start again from.
                let counter = &mut self.environments[from.index()].counter;
                *counter = counter.map(|_| 0);
            }
            _ => self.stats.packets_ignored += 1,
        }
    }

    /// An answer of the server's own. It leaves at the tick like everything else.
    fn reply(&mut self, to: Address, control: u8, data: &[u8]) {
        let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
        let header = StreamHeader { length, control };
        let destination = Destination::One(to);
        self.frames.push(destination, &header.emit());
        self.frames.extend_last(data);
    }

    /// The next client that has not got its share of the last tick.
    pub(super) fn next_to_hand_out(&mut self) -> Option<Address> {
        if self.leaving.count() == 0 {
            self.hand_out_from = PAST_LAST;
        }
        while self.hand_out_from < PAST_LAST {
            let address = u8::try_from(self.hand_out_from).ok().and_then(Address::new);
            self.hand_out_from += 1;
            if let Some(address) = address.filter(|&address| self.is_active(address)) {
                return Some(address);
            }
        }
        self.leaving.clear();
        None
    }

    /// Queues what the last tick has for a client, and says whether there was anything.
    ///
    /// One client at a time, so that all clients' copies do not exist at once.
    pub(super) fn hand_out(&mut self, now: Instant, to: Address) -> bool {
        let env = &mut self.environments[to.index()];
        let mut any = false;
        for packet in self.leaving.for_client(to, env.first_leaving) {
            env.queue(now, packet);
            self.stats.packets_out += 1;
            any = true;
        }
        any
    }
}

/// TCP packets side by side, and who gets each.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    start: usize,
    to: Destination,
}

#[derive(Clone, Copy, Debug)]
enum Destination {
    AllBut(Address),
    One(Address),
}

impl Frames {
    pub(super) fn count(&self) -> usize {
        self.frames.len()
    }

    /// Bytes of all packets.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(FRAMES_KEPT_MAX);
        self.frames.clear();
    }

    fn push(&mut self, to: Destination, packet: &[u8]) {
        let start = self.bytes.len();
        self.frames.push(Frame { start, to });
        self.bytes.extend_from_slice(packet);
    }

    fn extend_last(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
    }

    /// Overwrites one byte of the last packet.
    fn overwrite_last(&mut self, offset: usize, byte: u8) {
        let start = self.frames.last().map_or(0, |frame| frame.start);
        if let Some(place) = self.bytes.get_mut(start + offset) {
            *place = byte;
        }
    }

    /// The packets for a client, from number `first` on.
    fn for_client(&self, to: Address, first: usize) -> impl Iterator<Item = &[u8]> {
        let ends = self.frames.iter().skip(first + 1).map(|frame| frame.start);
        let ends = ends.chain([self.bytes.len()]);
        let frames = self.frames.iter().skip(first).zip(ends);
        frames
            .filter(move |(frame, _)| match frame.to {
                Destination::AllBut(from) => from != to,
                Destination::One(one) => one == to,
            })
            .map(|(frame, end)| &self.bytes[frame.start..end])
    }
}

/// Most bytes that are read at once from one client. With the longest packet before it, the most that a client's input holds.
const READ_MAX: usize = STREAM_DATA_MAX + STREAM_HEADER;
/// Fewer bytes are not read at a time.
const READ_MIN: u64 = 4 << 10;
/// Buffers that stay when they are empty.
const INPUT_KEPT_MAX: usize = 4 << 10;
const FRAMES_KEPT_MAX: usize = 1 << 20;
