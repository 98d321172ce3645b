//! The work that one packet of a peer can cause, counted in steps: records visited and words looked at.

use std::net::SocketAddr;
use std::sync::Arc;

use muse_wire::bytes::Writer;

use super::*;
use crate::config::{ChannelConfig, Config, Delivery};
use crate::congestion::Congestion;
use crate::crypto::{Keys, SECRET_LEN, Secret, Suite};
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
        let connection = Connection::new(id, Arc::new(config), keys(1, 2), 7, PEER, now);
        Self {
            connection,
            shared: Shared::default(),
            peer: keys(2, 1),
            number: PACKET_NUMBER_FIRST,
            now,
        }
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
            assert!(connection.handle_packet(now, shared, &header, datagram, [0; 8]));
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
    // Everything since the first packet, and before it, is said to be recovered.
    let hostile = victim.acknowledge(
        newest,
        &[arrived(0, false, 1), arrived(newest - 1, true, 0)],
    );
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
