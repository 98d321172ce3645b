//! Shares: whoever stays within theirs gets through, whatever others send.

use std::net::SocketAddr;

use muse_netem::NodeId;
use muse_relay::{Limits, Link, LinkEvent, Refusal};
use muse_wire::Duration;

use crate::crowd::Crowd;

/// A guest that sends so many datagrams of this length each [`TURN`].
struct Sender {
    node: NodeId,
    host: NodeId,
    number: u32,
    len: usize,
    /// In thousandths of a datagram.
    per_turn: u64,
    owed: u64,
    sent: u64,
}

const TURN: Duration = Duration::from_millis(16);
const SECONDS: u64 = 10;
/// Bytes of the relay's header in front of each datagram.
const HEADER: usize = 8;

/// Rooms with guests that each send a share of what is given in packets and bytes a second, as full datagrams or as small ones.
struct Hall {
    crowd: Crowd,
    hosts: Vec<NodeId>,
    senders: Vec<Sender>,
}

impl Hall {
    fn new(limits: Limits, rooms: u8) -> Self {
        let mut crowd = Crowd::new(limits);
        let at = |room| SocketAddr::from(([198, 51, 100, room], 4_000));
        let hosts = (0..rooms)
            .map(|room| crowd.open(at(room), room, false))
            .collect();
        Self {
            crowd,
            hosts,
            senders: Vec::new(),
        }
    }

    /// Adds a guest who sends this much a second, in datagrams of `len` bytes, header included.
    fn add(&mut self, room: u8, len: usize, bytes_per_second: u64) -> usize {
        let number = self.senders.len() as u32;
        let at = SocketAddr::from(([192, 0, 2, number as u8], 4_000));
        let node = self.crowd.join(at, room, false);
        self.senders.push(Sender {
            node,
            host: self.hosts[usize::from(room)],
            number,
            len,
            per_turn: bytes_per_second * TURN.as_millis() / len as u64,
            owed: 0,
            sent: 0,
        });
        number as usize
    }

    /// Lets everybody send.
    fn run(&mut self) {
        let until = self.crowd.simulation.now() + Duration::from_secs(SECONDS);
        while self.crowd.simulation.now() < until {
            for sender in &mut self.senders {
                sender.owed += sender.per_turn;
                let count = sender.owed / 1_000;
                sender.owed %= 1_000;
                sender.sent += count;
                for _ in 0..count {
                    let (number, len) = (sender.number, sender.len - HEADER);
                    self.crowd
                        .say(sender.node, Link::host_address(), number, len);
                }
            }
            self.crowd.simulation.run_for(TURN);
        }
        self.crowd.simulation.run_for(Duration::from_secs(1));
    }

    /// Returns the part of a guest's datagrams that arrived.
    fn arrived(&self, sender: usize) -> f64 {
        let sender = &self.senders[sender];
        let heard = &self.crowd.member(sender.host).machine().heard;
        heard.get(&sender.number).copied().unwrap_or(0) as f64 / sender.sent as f64
    }
}

/// Three rooms with eight honest guests each, and one guest in the first that sends twenty times its share.
fn beside_a_flood(honest_len: usize, flood_len: usize) {
    const GUESTS: u64 = 8;
    let (room_packets, room_bytes) = (20_000, 4_000_000);
    let limits = Limits::default()
        .packets_per_second(room_packets)
        .bytes_per_second(room_bytes);
    // A guest's own limit is 1,000 packets and 500,000 bytes a second, and nine of them share a room.
    let share = |len: u64| {
        let packets = u64::from(room_packets / 9).min(1_000) * len;
        packets.min(u64::from(room_bytes) / 9)
    };
    let mut hall = Hall::new(limits, 3);
    // The flood comes first in every turn, so that what it takes is gone.
    let flooder = hall.add(0, flood_len, 20 * share(flood_len as u64));
    for room in 0..3 {
        for _ in 0..GUESTS {
            let rate = share(honest_len as u64) * 95 / 100;
            hall.add(room, honest_len, rate);
        }
    }
    hall.run();
    for honest in flooder + 1..hall.senders.len() {
        let arrived = hall.arrived(honest);
        assert!(arrived >= 0.99, "guest {honest}: {arrived}");
    }
    let arrived = hall.arrived(flooder);
    assert!(arrived <= 0.1, "the flood: {arrived}");
}

#[test]
fn beside_a_flood_of_full_datagrams_honest_guests_get_through() {
    beside_a_flood(1_000, 1_200);
}

#[test]
fn beside_a_flood_of_tiny_datagrams_honest_guests_get_through() {
    beside_a_flood(200, 20);
}

#[test]
fn what_leaves_the_relay_is_capped_and_rooms_within_their_share_get_through() {
    let egress = 1_000_000;
    let limits = Limits::default().egress_bytes_per_second(egress);
    let mut hall = Hall::new(limits, 4);
    let share = u64::from(egress) / 4;
    // Guests of one room each send as much as all rooms may together.
    for _ in 0..4 {
        hall.add(0, 1_000, u64::from(egress));
    }
    // A room whose guests send alike, one in which one guest sends most, and one with a single guest.
    for _ in 0..4 {
        hall.add(1, 1_000, share * 95 / 400);
    }
    hall.add(2, 1_000, share * 80 / 100);
    for _ in 0..3 {
        hall.add(2, 100, share * 4 / 100);
    }
    hall.add(3, 1_000, share * 95 / 100);
    hall.run();
    for honest in 4..hall.senders.len() {
        let arrived = hall.arrived(honest);
        assert!(arrived >= 0.99, "guest {honest}: {arrived}");
    }
    let most = u64::from(egress) * (SECONDS + 1);
    let sent = hall.crowd.relay().stats().bytes_out;
    assert!(sent <= most, "{sent} bytes");
    assert!(sent >= u64::from(egress) * SECONDS * 9 / 10, "{sent} bytes");
}

#[test]
fn a_guest_alone_may_take_what_others_leave() {
    let limits = Limits::default().guest_bytes_per_second(10_000_000);
    let limits = limits.guest_packets_per_second(100_000);
    let mut hall = Hall::new(limits, 1);
    let heavy = hall.add(0, 1_000, 3_000_000);
    for _ in 0..4 {
        hall.add(0, 100, 2_000);
    }
    hall.run();
    let arrived = hall.arrived(heavy);
    assert!(arrived >= 0.99, "{arrived}");
}

#[test]
fn a_guest_that_floods_the_relay_itself_is_not_answered_beyond_its_rate() {
    let mut crowd = Crowd::new(Limits::default());
    crowd.open(SocketAddr::from(([198, 51, 100, 1], 4_000)), 1, false);
    let at = SocketAddr::from(([192, 0, 2, 1], 4_000));
    let guest = crowd.join(at, 1, false);
    let id = crowd.member(guest).link().id().expect("it is in the room");
    let mut buffer = [0; muse_relay::packet::PACKET_LEN_MAX];
    let len = muse_relay::packet::Packet::Keep { id }.emit(&mut buffer);
    for _ in 0..1_000 {
        for _ in 0..20 {
            let now = crowd.simulation.now();
            let network = crowd.simulation.network_mut();
            let relay = crate::world::RELAY;
            network.send(now, at, relay, muse_wire::Ecn::NotCapable, &buffer[..len]);
        }
        crowd.simulation.run_for(Duration::from_millis(1));
    }
    crowd.simulation.run_for(Duration::from_millis(50));
    let throttled = crowd.relay().stats().throttled;
    // A thousand a second, and a quarter of a second's worth at once.
    assert!(throttled >= 20_000 - 1_300, "{throttled}");
}

fn refused(crowd: &mut Crowd, node: NodeId, reason: Refusal) -> bool {
    crowd.events(node).contains(&LinkEvent::Refused(reason))
}

#[test]
fn one_network_cannot_take_all_rooms_nor_fill_one() {
    let limits = Limits::default()
        .rooms_per_prefix(3)
        .guests_per_prefix(4)
        .all_guests_per_prefix(6);
    let mut crowd = Crowd::new(limits);
    // Each from a /64 of its own.
    let at = |network: u16, customer: u16| {
        SocketAddr::from(([0x2001, 0xdb8, network, customer, 0, 0, 0, 1], 4_000))
    };
    for room in 0..4 {
        let host = crowd.open(at(1, room), room as u8, false);
        let full = refused(&mut crowd, host, Refusal::NoPlace);
        assert_eq!(full, room == 3, "room {room}");
    }
    let other = crowd.open(at(2, 0), 9, false);
    assert!(!refused(&mut crowd, other, Refusal::NoPlace));
    for number in 0..5 {
        let guest = crowd.join(at(3, number), 9, false);
        let full = refused(&mut crowd, guest, Refusal::RoomFull);
        assert_eq!(full, number == 4, "guest {number}");
    }
    for number in 5..8 {
        let guest = crowd.join(at(3, number), 0, false);
        let full = refused(&mut crowd, guest, Refusal::NoPlace);
        assert_eq!(full, number == 7, "guest {number}");
    }
    let guest = crowd.join(at(4, 0), 9, false);
    assert!(!refused(&mut crowd, guest, Refusal::RoomFull));
}
