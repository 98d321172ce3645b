//! The work that one packet of a peer can cause, counted in steps: records visited and words looked at.

use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::bytes::Writer;

use super::*;
use crate::config::{ChannelConfig, Config, Delivery};
use crate::congestion::Congestion;
use crate::crypto::{Keys, SECRET_LEN, Secret, SeededEntropy, Suite};
use crate::packet::{AckRun, PACKET_NUMBER_FIRST};
use crate::sent::SENT_MAX;
use crate::work;

/// No packet costs more steps than this many times those of an honest packet of its size.
const COST_RATIO_MAX: u64 = 8;

/// A connection, and its peer's keys to write packets with.
struct Victim {
    connection: Connection,
    shared: Shared,
    peer: Keys,
    number: u64,
    now: Instant,
}

impl Victim {
    fn new() -> Self {
        let keys = |send: u8, receive: u8| {
            let secret = |byte: u8| Secret::new([byte; SECRET_LEN]);
            Keys::new(Suite::ChaCha20Poly1305, 9, &secret(send), &secret(receive))
        };
        let partial = Delivery::partially_reliable(4_096, 0).expect("a sensible promise");
        let config = [
            Delivery::ReliableUnordered,
            Delivery::ReliableOrdered,
            partial,
        ]
        .into_iter()
        .fold(Config::new(9), |config, mode| {
            config.channel(ChannelConfig::new(mode))
        })
        .congestion(Congestion::off())
        .build()
        .expect("sensible");
        let id = ConnectionId::new(0, 1);
        let now = Instant::from_secs(1);
        let mut shared = Shared::new(SeededEntropy::danger_seeded(1));
        let (config, entropy) = (Arc::new(config), &mut *shared.entropy);
        let mut connection = Connection::new(id, config, keys(1, 2), 7, PEER, now, entropy);
        // A hostile peer that knows all traps.
        connection.trap_in = u32::MAX;
        Self {
            connection,
            shared,
            peer: keys(2, 1),
            number: PACKET_NUMBER_FIRST,
            now,
        }
    }

    /// The other end of `connection`, as a whole connection.
    fn peer_of(connection: &Connection, shared: &mut Shared, now: Instant) -> Connection {
        let secret = |byte: u8| Secret::new([byte; SECRET_LEN]);
        let keys = Keys::new(Suite::ChaCha20Poly1305, 9, &secret(2), &secret(1));
        let (id, config) = (ConnectionId::new(1, 1), Arc::clone(&connection.config));
        Connection::new(id, config, keys, 7, PEER, now, &mut *shared.entropy)
    }

    /// Sends `count` packets with a reliable message each and returns the newest number.
    fn send(&mut self, count: usize) -> u64 {
        let mut packet = [0; 1_500];
        for _ in 0..count {
            self.connection
                .send(self.now, &mut self.shared, 0, b"a", &Default::default())
                .expect("room");
            let sent = self
                .connection
                .poll_transmit(self.now, &mut self.shared, &mut packet);
            assert!(sent.is_some());
        }
        self.connection.sent.next_number() - 1
    }

    /// Lets a packet of the peer arrive and returns its steps and its length.
    fn receive(&mut self, acks: Option<&AckBlock>, frames: &[u8]) -> (u64, usize) {
        let header = Header {
            phase: self.peer.send.phase(),
            acks: acks.is_some(),
            ack_now: false,
            section: false,
            connection: 7,
            number_low: self.number as u16,
        };
        let mut packet = [0; 1_500];
        packet[..HEADER_LEN].copy_from_slice(&header.emit());
        let mut writer = Writer::new(&mut packet[HEADER_LEN..]);
        if let Some(block) = acks {
            block.emit(&mut writer).expect("room");
        }
        writer.slice(frames).expect("room");
        let plain = writer.len();
        let head = header.emit();
        let sealed = self
            .peer
            .send
            .seal(self.number, &head, &mut packet[HEADER_LEN..], plain);
        self.number += 1;
        let len = HEADER_LEN + sealed;
        let datagram = Datagram {
            from: PEER,
            ecn: Ecn::NotCapable,
            payload: &mut packet[..len],
        };
        let (connection, shared, now) = (&mut self.connection, &mut self.shared, self.now);
        let steps = work::steps_of(|| {
            assert!(connection.handle_packet(now, shared, &header, datagram));
        });
        (steps, len)
    }

    fn acknowledge(&mut self, newest: u64, runs: &[AckRun]) -> u64 {
        let block = AckBlock {
            newest,
            delay: None,
            marks: None,
            runs: runs.to_vec(),
        };
        self.receive(Some(&block), &[]).0
    }
}

/// Lets a packet arrive at `connection`.
fn deliver(connection: &mut Connection, shared: &mut Shared, now: Instant, packet: &mut [u8]) {
    let header = Header::parse(packet).expect("a data packet");
    let datagram = Datagram {
        from: PEER,
        ecn: Ecn::NotCapable,
        payload: packet,
    };
    assert!(connection.handle_packet(now, shared, &header, datagram));
}

const PEER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    7,
);

fn arrived(missing: u64, recovered: bool, arrived: u64) -> AckRun {
    AckRun {
        missing,
        recovered,
        arrived,
    }
}

#[test]
fn a_recovered_run_costs_no_more_the_older_the_connection() {
    let mut victim = Victim::new();
    let mut newest = 0;
    for _ in 0..100 {
        newest = victim.send(100);
        victim.acknowledge(newest, &[arrived(0, false, 100)]);
    }
    let newest = {
        victim.send(4);
        newest + 4
    };
    let honest = victim.acknowledge(newest, &[arrived(0, false, 1), arrived(1, true, 2)]);
    // Everything since the first packet is said to be recovered.
    let all = newest - PACKET_NUMBER_FIRST;
    let hostile = victim.acknowledge(newest, &[arrived(0, false, 1), arrived(all, true, 0)]);
    assert!(victim.connection.is_open());
    assert!(
        hostile <= COST_RATIO_MAX * honest,
        "{hostile} steps, {honest} for an honest packet"
    );
}

#[test]
fn repeating_an_acknowledgement_of_all_that_is_remembered_is_cheap() {
    for recovered in [false, true] {
        let mut victim = Victim::new();
        let count = SENT_MAX as u64 / 2 - 2;
        let newest = victim.send(count as usize);
        // The oldest packet never arrives, so that everything after it stays remembered.
        let all = if recovered {
            [arrived(0, false, 1), arrived(count - 2, true, 0)]
        } else {
            [arrived(0, false, count - 1), arrived(1, false, 0)]
        };
        let first = victim.acknowledge(newest, &all);
        assert!(first >= count, "each packet is news once");
        let again = victim.acknowledge(newest, &all);
        // A look at a word of 64 packets for each of the sets that are searched.
        let words = COST_RATIO_MAX * SENT_MAX as u64 / 64;
        assert!(again <= words, "{again} steps, recovered: {recovered}");
    }
}

#[test]
fn a_second_parity_frame_in_a_packet_breaks_the_protocol() {
    // Kind and length; distance, mask, and a symbol of three bytes.
    const PARITY: [u8; 7] = [5, 5 << 2, 1, 0, 1, 2, 3];
    for (count, lawful) in [(1, true), (2, false)] {
        let mut victim = Victim::new();
        victim.receive(None, &PARITY.repeat(count));
        assert_eq!(victim.connection.is_open(), lawful, "{count} frames");
    }
}

/// A peer that acknowledges `block` after `count` packets of ours, of which the last number was left out, and what we think of it.
fn judged(count: u32, block: impl FnOnce(u64) -> Vec<AckRun>) -> (Victim, u64) {
    let mut victim = Victim::new();
    victim.connection.trap_in = count;
    victim.send(count as usize);
    victim.connection.trap_in = u32::MAX;
    let newest = victim.send(2);
    let runs = block(newest);
    victim.acknowledge(newest, &runs);
    (victim, newest)
}

#[test]
fn who_acknowledges_a_number_that_was_left_out_is_caught() {
    // All but what was left out: honest, and nothing is missing.
    let (victim, newest) = judged(100, |_| vec![arrived(0, false, 2), arrived(1, false, 100)]);
    let Victim { connection, .. } = &victim;
    assert!(connection.is_open());
    assert_eq!(newest, PACKET_NUMBER_FIRST + 102);
    let stats = connection.stats();
    assert_eq!((stats.packets_sent, stats.packets_lost), (102, 0));
    assert!(stats.loss < 1e-6 && connection.sent.in_flight() == 0);
    for claims in [
        vec![arrived(0, false, 103)],
        vec![arrived(0, false, 3)],
        vec![arrived(0, false, 1), arrived(1, false, 1)],
        vec![arrived(0, false, 2), arrived(1, true, 0)],
    ] {
        let (mut victim, _) = judged(100, |_| claims);
        let Victim {
            connection,
            shared,
            now,
            ..
        } = &mut victim;
        assert!(!connection.is_open());
        let timeout = connection.next_timeout();
        let mut packet = [0; 1_500];
        while connection
            .poll_transmit(*now, shared, &mut packet)
            .is_some()
        {}
        connection.handle_timeout(timeout + Duration::from_secs(9), shared);
        let mut buffer = Vec::new();
        let event = shared.inbox.pop(&mut buffer);
        let reason = CloseReason::FalseAck;
        assert!(
            matches!(&event, Some(crate::Event::Closed { reason: told, .. }) if *told == reason),
            "{event:?}"
        );
    }
}

#[test]
fn who_acknowledges_what_comes_before_the_first_packet_is_caught() {
    let first = |runs: &[AckRun]| {
        let mut victim = Victim::new();
        let newest = victim.send(3);
        victim.acknowledge(newest, runs);
        victim.connection.is_open()
    };
    // Three packets were sent. That something before them is missing says nothing.
    assert!(first(&[arrived(0, false, 3)]));
    assert!(first(&[arrived(0, false, 1), arrived(2, true, 0)]));
    assert!(first(&[arrived(0, false, 3), arrived(5, false, 0)]));
    for claims in [
        vec![arrived(0, false, 4)],
        vec![arrived(0, false, 1), arrived(3, true, 0)],
        vec![arrived(0, false, 3), arrived(9, true, 0)],
        vec![arrived(0, false, 3), arrived(9, false, 1)],
    ] {
        assert!(!first(&claims), "{claims:?}");
    }
}

/// Forgeries of the suite of hostile clients, at a server that leaves out a number.
#[test]
fn forged_recoveries_are_caught_unless_they_name_what_arrived() {
    use crate::connection::forge::Forgery;
    for (forgery, lawful) in [
        (Forgery::RecoveredArrived, true),
        (Forgery::Recovered, false),
    ] {
        let mut victim = Victim::new();
        victim.connection.trap_in = 100;
        let Victim {
            connection: server,
            shared,
            now,
            ..
        } = &mut victim;
        let mut client = Victim::peer_of(server, shared, *now);
        let mut packet = [0; 1_500];
        for _ in 0..300 {
            server
                .send(*now, shared, 0, b"a", &Default::default())
                .expect("room");
            let sent = server.poll_transmit(*now, shared, &mut packet);
            deliver(
                &mut client,
                shared,
                *now,
                &mut packet[..sent.expect("sent").len],
            );
        }
        for _ in 0..3 {
            let len = client.forge(*now, forgery, &mut packet[..1_200]);
            deliver(server, shared, *now, &mut packet[..len.expect("room")]);
        }
        assert_eq!(server.is_open(), lawful, "{forgery:?}");
    }
}

#[test]
fn an_acknowledgement_of_what_is_left_out_last_is_caught() {
    let mut victim = Victim::new();
    victim.connection.trap_in = 10;
    let trap = victim.send(10);
    assert_eq!(trap, PACKET_NUMBER_FIRST + 10);
    victim.acknowledge(trap, &[arrived(0, false, 1)]);
    assert!(!victim.connection.is_open());
}

#[test]
fn the_challenge_of_an_address_is_secret_randomness() {
    struct Constant;
    impl crate::Entropy for Constant {
        fn fill(&mut self, bytes: &mut [u8]) {
            bytes.fill(0xA5);
        }
    }
    let mut victim = Victim::new();
    victim.shared.entropy = Box::new(Constant);
    let from = SocketAddr::new(PEER.ip(), PEER.port() + 1);
    victim
        .connection
        .on_other_address(victim.now, &mut victim.shared, from, 100);
    let candidate = victim.connection.candidate.as_ref().expect("asked");
    assert_eq!(candidate.challenge, [0xA5; 8]);
}
