//! Fuzzing of what lies behind the handshake: packets, and connections with a hostile peer or over a hostile network.

use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::bytes::{Reader, Writer};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

use crate::config::{ChannelConfig, Config, Delivery, Repair};
use crate::connection::{Connection, Shared};
use crate::crypto::{Keys, SECRET_LEN, Secret, SeededEntropy, ServerKey, Suite};
use crate::endpoint::{Connect, Endpoint, ServerOptions};
use crate::event::{ConnectionId, Event};
use crate::packet::{
    ACK_BLOCK_MAX, AckBlock, Frame, HEADER_LEN, Header, PACKET_NUMBER_FIRST, parse_frame,
};

/// Bytes as a packet's header, acknowledgement block and frames: what parses is written again and parses alike.
pub fn packet(data: &[u8]) {
    if let Some(header) = Header::parse(data) {
        assert_eq!(header.emit(), data[..HEADER_LEN]);
    }
    let mut block = AckBlock::default();
    if block.parse(&mut Reader::new(data), 1 << 20).is_ok() {
        let mut bytes = [0; ACK_BLOCK_MAX];
        let mut writer = Writer::new(&mut bytes);
        if block.emit(&mut writer).is_ok() {
            let len = writer.len();
            let mut again = AckBlock::default();
            assert!(
                again
                    .parse(&mut Reader::new(&bytes[..len]), 1 << 20)
                    .is_ok()
            );
            assert_eq!((again.newest, again.delay), (block.newest, block.delay));
        }
    }
    let mut reader = Reader::new(data);
    let numbered = |channel: u8| (channel < 6).then_some(channel != 0);
    while let Ok(Some(frame)) = parse_frame(&mut reader, numbered) {
        if let Frame::Message(message) = frame {
            assert!(
                message.fragment.is_some()
                    || message.number_low.is_some() == (message.channel != 0)
            );
        }
    }
}

/// Runs what a connection does for the fuzzer, which counts its cost.
pub trait Meter {
    /// Runs one thing that a connection does.
    fn run(&mut self, work: Work, act: &mut dyn FnMut());

    /// Told after each packet how many bytes of received messages the connection accounts for.
    fn check(&mut self, _accounted: usize) {}
}

/// The kind of something that a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A datagram of so many bytes arrives.
    Receive(usize),
    /// The application sends a message of so many bytes.
    Send(usize),
    /// Time passes, and packets are sent.
    Pass,
}

/// Bytes as the packets of an authenticated peer that breaks every rule: nothing panics, and what it can make us hold
/// is bounded. The first byte says whether the application reads messages after each packet or never.
pub fn hostile_peer(data: &[u8], meter: &mut dyn Meter) {
    let Some((&mode, mut rest)) = data.split_first() else {
        return;
    };
    let mut there = Keys::new(SUITE, PROTOCOL, &secret(2), &secret(1));
    let mut end = End::new(1, 2);
    let mut number = PACKET_NUMBER_FIRST;
    let mut packet = [0; 1_500];
    while let Some((&[flags, ahead, len], after)) = rest.split_first_chunk::<3>() {
        let (payload, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        number += u64::from(ahead % 5);
        let header = Header {
            phase: there.send.phase(),
            acks: flags & 1 != 0,
            ack_now: flags & 2 != 0,
            section: flags & 4 != 0,
            connection: 7,
            number_low: number as u16,
        };
        let bytes = header.emit();
        packet[..HEADER_LEN].copy_from_slice(&bytes);
        packet[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
        let sealed = there
            .send
            .seal(number, &bytes, &mut packet[HEADER_LEN..], payload.len());
        end.receive(&mut packet[..HEADER_LEN + sealed], meter);
        if flags & 8 != 0 {
            end.send(ahead % 6, payload, meter);
        }
        end.now += Duration::from_millis(u64::from(flags >> 4) * 20);
        end.pass(meter, |_| {});
        let is_read = mode & 1 == 0;
        if is_read {
            end.read();
        }
        let held = end.shared.inbox.ledger.held(end.id);
        let in_channels = end.connection.held();
        assert!(held >= in_channels, "all of it is counted");
        // Otherwise messages wait for the application as well.
        assert!(!is_read || held == in_channels, "nothing else is counted");
        assert!(held <= config().budgets().connection);
        meter.check(held);
        if end.connection.is_dead() {
            return;
        }
    }
}

/// Two honest peers that send each other messages of all kinds and sizes over a network that loses some packets: what the packets of a
/// hostile one are measured by. Only what the first end does is metered.
pub fn honest_peer(meter: &mut dyn Meter) {
    let mut ends = [End::new(1, 2), End::new(2, 1)];
    let mut packets = Vec::new();
    for round in 0..HONEST_ROUNDS {
        for end in &mut ends {
            // Many small messages, some of a packet's size, few that need many packets, one.
            let (count, len) = match round % 8 {
                0 => (60, 1),
                1 => (12, 100),
                2 => (2, 8_000),
                3 => (30, round % 40),
                4 => (4, 1_000),
                5 => (90, round % 3),
                _ => (1, round % 200),
            };
            for message in 0..count {
                end.send((message % 6) as u8, &vec![7; len], &mut Unmetered);
            }
        }
        for index in 0..2 {
            let [first, second] = &mut ends;
            let (from, to) = if index == 0 {
                (first, second)
            } else {
                (second, first)
            };
            packets.clear();
            from.pass(&mut Unmetered, |bytes| packets.push(bytes.to_vec()));
            for (number, packet) in packets.iter_mut().enumerate() {
                if (round + number) % 9 != 5 {
                    match index {
                        0 => to.receive(packet, &mut Unmetered),
                        _ => to.receive(packet, meter),
                    }
                }
            }
        }
        for end in &mut ends {
            end.now += Duration::from_millis(if round % 16 < 8 { 10 } else { 2 });
            end.read();
            assert!(
                !end.connection.is_dead(),
                "honest peers understand each other"
            );
        }
    }
}

/// Runs everything, and counts nothing.
struct Unmetered;

impl Meter for Unmetered {
    fn run(&mut self, _: Work, act: &mut dyn FnMut()) {
        act();
    }
}

/// One end of a connection, with what an endpoint has for it.
struct End {
    id: ConnectionId,
    connection: Connection,
    shared: Shared,
    now: Instant,
    message: Vec<u8>,
}

impl End {
    fn new(send: u8, receive: u8) -> Self {
        let keys = Keys::new(SUITE, PROTOCOL, &secret(send), &secret(receive));
        let id = ConnectionId::new(0, 1);
        let mut shared = Shared::new(SeededEntropy::danger_seeded(u64::from(send)));
        let (agreed, entropy) = (Arc::new(config()), &mut *shared.entropy);
        Self {
            id,
            connection: Connection::new(id, agreed, keys, 7, PEER, Instant::ZERO, entropy),
            shared,
            now: Instant::ZERO,
            message: Vec::new(),
        }
    }

    fn receive(&mut self, packet: &mut [u8], meter: &mut dyn Meter) {
        let len = packet.len();
        let Some(header) = Header::parse(packet) else {
            return;
        };
        meter.run(Work::Receive(len), &mut || {
            let datagram = Datagram {
                from: PEER,
                ecn: Ecn::NotCapable,
                payload: &mut *packet,
            };
            self.connection
                .handle_packet(self.now, &mut self.shared, &header, datagram);
        });
    }

    fn send(&mut self, channel: u8, message: &[u8], meter: &mut dyn Meter) {
        meter.run(Work::Send(message.len()), &mut || {
            let options = Default::default();
            // A queue that is full refuses it.
            let _ = self
                .connection
                .send(self.now, &mut self.shared, channel, message, &options);
        });
    }

    /// Does what is due, and hands out at most [`PACKETS_AT_ONCE`] packets.
    fn pass(&mut self, meter: &mut dyn Meter, mut sent: impl FnMut(&[u8])) {
        meter.run(Work::Pass, &mut || {
            if self.connection.next_timeout() <= self.now {
                self.connection.handle_timeout(self.now, &mut self.shared);
            }
        });
        let mut buffer = [0; 1_500];
        for _ in 0..PACKETS_AT_ONCE {
            let mut transmit = None;
            meter.run(Work::Pass, &mut || {
                transmit = self
                    .connection
                    .poll_transmit(self.now, &mut self.shared, &mut buffer);
            });
            let Some(transmit) = transmit else { return };
            transmit.datagrams(&buffer).for_each(&mut sent);
        }
    }

    fn read(&mut self) {
        while self.shared.inbox.pop(&mut self.message).is_some() {}
    }
}

/// Bytes as a sequence of operations on two honest endpoints and the network between them: messages of every kind are
/// sent, packets are lost, doubled, changed and reordered, time passes. What arrives in order on the reliable ordered
/// channel is what was sent, without gap or repetition. Says how much of it arrived.
pub fn operations(data: &[u8]) -> u64 {
    let mut world = World::new();
    for &[operation, argument] in data.as_chunks::<2>().0.iter().take(2_000) {
        world.step(operation, argument);
    }
    world.received
}

const ORDERED: u8 = 4;
/// Packets of a connection between two that it receives.
const PACKETS_AT_ONCE: usize = 16;
/// Enough that the round trip, the rate and the share of parity have settled.
const HONEST_ROUNDS: usize = 1_000;
const SUITE: Suite = Suite::ChaCha20Poly1305;
const PROTOCOL: u64 = 9;
const PEER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    7,
);
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 8)),
    8,
);

fn secret(byte: u8) -> Secret {
    Secret::new([byte; SECRET_LEN])
}

fn config() -> Config {
    let partial = Delivery::partially_reliable(10, 70).expect("a sensible promise");
    let modes = [
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableSequenced,
        Delivery::ReliableOrdered,
        partial,
    ];
    let config = modes
        .into_iter()
        .fold(Config::new(PROTOCOL), |config, mode| {
            config.channel(ChannelConfig::new(mode).repair(Repair::Fast))
        });
    config
        .message_max(1 << 16)
        .build()
        .expect("six sensible channels")
}

/// A client, a server, and the packets between them.
struct World {
    ends: [Endpoint; 2],
    connections: [Option<ConnectionId>; 2],
    /// Packets on their way, with the end that gets them.
    packets: Vec<(usize, Vec<u8>)>,
    now: Instant,
    sent: u64,
    received: u64,
}

impl World {
    fn new() -> Self {
        let key = ServerKey::from_bytes([3; 32]);
        let mut client = Endpoint::new(config(), SeededEntropy::danger_seeded(1));
        let how = Connect::pinned(key.public());
        let connection = client
            .connect(Instant::ZERO, SERVER, how)
            .expect("a free slot");
        let mut server = Endpoint::new(config(), SeededEntropy::danger_seeded(2));
        server.listen(ServerOptions::new(key));
        let mut world = Self {
            ends: [client, server],
            connections: [Some(connection), None],
            packets: Vec::new(),
            now: Instant::ZERO,
            sent: 0,
            received: 0,
        };
        for _ in 0..4 {
            world.run_ends();
            while !world.packets.is_empty() {
                world.deliver(0);
            }
        }
        world
    }

    fn step(&mut self, operation: u8, argument: u8) {
        let choice = usize::from(argument) % self.packets.len().max(1);
        match operation % 8 {
            0 | 1 => self.send(argument),
            2 if !self.packets.is_empty() => drop(self.packets.swap_remove(choice)),
            3 if self.packets.len() < 64 && !self.packets.is_empty() => {
                let copy = self.packets[choice].clone();
                self.packets.push(copy);
            }
            4 if !self.packets.is_empty() => {
                let (_, bytes) = &mut self.packets[choice];
                let at = usize::from(argument) % bytes.len();
                bytes[at] ^= operation | 1;
            }
            5 => {
                self.now += Duration::from_millis(u64::from(argument));
                self.run_ends();
            }
            _ if !self.packets.is_empty() => self.deliver(choice),
            _ => self.run_ends(),
        }
    }

    /// The client sends a message; on the ordered channel it is the next number, padded to various lengths.
    fn send(&mut self, argument: u8) {
        let Some(connection) = self.connections[0] else {
            return;
        };
        let channel = argument % 6;
        let mut message = self.sent.to_le_bytes().to_vec();
        message.resize(8 + usize::from(argument) * 11, argument);
        let taken = self.ends[0]
            .send(self.now, connection, channel, &message)
            .is_ok();
        self.sent += u64::from(taken && channel == ORDERED);
    }

    /// Lets both ends do what is due and collects what they send.
    fn run_ends(&mut self) {
        let mut buffer = [0; 1_500];
        for (index, end) in self.ends.iter_mut().enumerate() {
            end.handle_timeout(self.now);
            while self.packets.len() < 64 {
                let Some(transmit) = end.poll_transmit(self.now, &mut buffer) else {
                    break;
                };
                self.packets.extend(
                    transmit
                        .datagrams(&buffer)
                        .map(|bytes| (1 - index, bytes.to_vec())),
                );
            }
        }
    }

    /// One packet arrives.
    fn deliver(&mut self, choice: usize) {
        let (to, mut bytes) = self.packets.remove(choice);
        let from = if to == 0 { SERVER } else { PEER };
        let datagram = Datagram {
            from,
            ecn: Ecn::NotCapable,
            payload: &mut bytes,
        };
        self.ends[to].handle_datagram(self.now, datagram);
        let mut message = Vec::new();
        while let Some(event) = self.ends[1].poll_event(&mut message) {
            if let Event::Message {
                channel: ORDERED,
                payload,
                ..
            } = event
            {
                let number = payload
                    .first_chunk()
                    .map(|bytes| u64::from_le_bytes(*bytes));
                assert_eq!(number, Some(self.received), "in order, once each");
                self.received += 1;
                assert!(self.received <= self.sent, "nothing that was not sent");
            }
        }
        while let Some(event) = self.ends[0].poll_event(&mut message) {
            if let Event::Closed { .. } = event {
                self.connections[0] = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..len)
            .map(|_| if rng.bool() { rng.u8(..) } else { rng.u8(..8) })
            .collect()
    }

    #[test]
    fn noise_breaks_nothing() {
        for seed in 0..3_000 {
            let data = noise(seed, 300);
            packet(&data);
            hostile_peer(&data, &mut Unmetered);
        }
    }

    #[test]
    fn honest_peers_stay_connected() {
        let mut longest = 0;
        struct Longest<'a>(&'a mut usize);
        impl Meter for Longest<'_> {
            fn run(&mut self, work: Work, act: &mut dyn FnMut()) {
                if let Work::Receive(len) = work {
                    *self.0 = len.max(*self.0);
                }
                act();
            }
        }
        honest_peer(&mut Longest(&mut longest));
        assert!(longest > 1_000, "full packets arrive: {longest}");
    }

    #[test]
    fn operations_keep_the_order_and_get_somewhere() {
        let received: u64 = (0..300).map(|seed| operations(&noise(seed, 1_000))).sum();
        assert!(received > 1_000, "{received}");
    }
}
