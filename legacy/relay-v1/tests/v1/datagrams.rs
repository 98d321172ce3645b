//! Relay v1 over UDP: who may speak, grouping, the counter, and keep-alive.

use std::net::SocketAddr;

use crate::common::{Bench, packet, udp_peer};
use muse_relay_v1::{Address, Limits};
use muse_wire::Duration;

const NOTHING: [Vec<u8>; 0] = [];
const GROUP: u8 = 1;
const UNICAST: u8 = 2;

/// The data of each grouped broadcast of client 1 that client 2 gets, when these are sent within a tick.
fn grouped(bench: &mut Bench, packets: &[(u8, u32, &[u8])]) -> Vec<Vec<u8>> {
    for (kind, time, data) in packets {
        bench.udp(1, &packet(*kind, GROUP, *time, 1, data));
    }
    bench.tick();
    let received = bench.received_udp(2);
    received
        .iter()
        .map(|packet| packet[11..].to_vec())
        .collect()
}

#[test]
fn a_packet_without_flags_passes_unchanged_to_all_but_its_sender() {
    let mut bench = Bench::with_clients(3);
    let sent: Vec<Vec<u8>> = (0..40)
        .map(|n| packet(n % 3, n << 4 | 4, 99 - u32::from(n), 1, &vec![n; n.into()]))
        .collect();
    sent.iter().for_each(|packet| bench.udp(1, packet));
    assert_eq!(bench.received_udp(2), NOTHING);
    bench.tick();
    assert_eq!(bench.received_udp(2), sent);
    assert_eq!(bench.received_udp(3), sent);
    assert_eq!(bench.received_udp(1), NOTHING);
    bench.tick();
    assert_eq!(bench.received_udp(2), NOTHING);
}

#[test]
fn the_example_of_the_protocol_leaves_one_of_each_type() {
    let mut bench = Bench::with_clients(2);
    let got = grouped(&mut bench, &[(32, 8, b"A"), (32, 9, b"B"), (16, 10, b"C")]);
    assert_eq!(got, [b"B", b"C"]);
}

#[test]
fn a_grouped_packet_carries_the_tick_and_nothing_else_changes() {
    let mut bench = Bench::with_clients(2);
    bench.wait(Duration::from_secs(1));
    bench.udp(1, &packet(32, 0xB1, 77, 1, b"data"));
    bench.tick();
    assert_eq!(bench.relay.tick(), 21);
    assert_eq!(bench.received_udp(2), [packet(32, 0xB1, 21, 1, b"data")]);
}

#[test]
fn the_counter_is_the_clients_and_not_the_types() {
    let mut bench = Bench::with_clients(2);
    let sent: [(u8, u32, &[u8]); 5] = [
        (32, 8, b"A"),
        (16, 10, b"C"),
        (32, 9, b"older than C"),
        (32, 10, b"as old as C"),
        (16, 11, b"E, longer than C"),
    ];
    let got = grouped(&mut bench, &sent);
    assert_eq!(got, [&b"A"[..], b"E, longer than C"]);
    // With none held, anything is taken, and the counter follows it down.
    let got = grouped(&mut bench, &[(32, 1, b"low"), (32, 2, b"above low")]);
    assert_eq!(got, [b"above low"]);
}

#[test]
fn unicasts_are_grouped_by_destination_and_hide_their_sender() {
    let mut bench = Bench::with_clients(3);
    let flags = GROUP | UNICAST;
    for (time, to, data) in [(1, 2, "b1"), (2, 3, "c2"), (3, 2, "b3"), (2, 3, "old")] {
        bench.udp(1, &packet(9, flags, time, to, data.as_bytes()));
    }
    bench.udp(1, &packet(9, GROUP, 4, 1, b"all"));
    bench.udp(1, &packet(9, UNICAST, 9, 1, b"me"));
    bench.tick();
    let all = packet(9, GROUP, 1, 1, b"all");
    let for_two = packet(9, flags, 1, 2, b"b3");
    let for_three = packet(9, flags, 1, 3, b"c2");
    assert_eq!(bench.received_udp(2), [for_two, all.clone()]);
    assert_eq!(bench.received_udp(3), [for_three, all]);
    assert_eq!(bench.received_udp(1), [packet(9, UNICAST, 9, 1, b"me")]);
}

#[test]
fn left_over_packets_are_known_by_their_huge_counters() {
    let leap = 2_147_483_647;
    let mut bench = Bench::with_clients(2);
    // The very first sets the counter, whatever it is, also after a reset that had nothing to reset.
    bench.tcp(1, 4, b"");
    assert_eq!(grouped(&mut bench, &[(1, u32::MAX, b"first")]).len(), 1);
    bench.tcp(1, 4, b"");
    for (time, taken) in [
        (u32::MAX, 0),
        (leap, 0),
        (leap - 1, 1),
        (u32::MAX - 3, 1),
        (5, 1),
        (5 + leap, 0),
        (4 + leap, 1),
    ] {
        assert_eq!(
            grouped(&mut bench, &[(1, time, b"x")]).len(),
            taken,
            "{time}"
        );
    }
    assert_eq!(bench.relay.stats().datagrams_stale, 3);
    // Without the flag the counter means nothing.
    bench.udp(1, &packet(1, 0, u32::MAX, 1, b"x"));
    bench.tick();
    assert_eq!(bench.received_udp(2).len(), 1);
}

#[test]
fn only_a_broadcast_teaches_an_endpoint() {
    let mut bench = Bench::new(Limits::default());
    assert!(bench.open(1) && bench.open(2));
    bench.udp(1, &packet(1, UNICAST, 0, 2, b"who am I"));
    assert_eq!(bench.relay.stats().datagrams_unknown, 1);
    bench.udp(1, &packet(1, 0, 0, 1, b"me"));
    bench.tick();
    assert_eq!(bench.datagrams, []);
    assert_eq!(bench.relay.endpoints(), 1);
    bench.udp(2, &packet(1, 8, 0, 2, b"discarded"));
    bench.udp(1, &packet(1, UNICAST, 0, 2, b"now"));
    bench.tick();
    assert_eq!(bench.received_udp(2), [packet(1, UNICAST, 0, 2, b"now")]);
    assert_eq!(bench.datagrams, []);
}

#[test]
fn the_newest_endpoint_counts_and_the_old_one_is_nobodys() {
    let mut bench = Bench::with_clients(2);
    let moved = SocketAddr::from(([192, 0, 2, 2], 50_001));
    bench.udp_from(moved, &packet(0, 8, 0, 2, b""));
    let two = Address::new(2).expect("not zero");
    assert_eq!(bench.relay.endpoint_of(two), Some(moved));
    bench.udp(2, &packet(1, UNICAST, 0, 1, b"from the old one"));
    bench.tick();
    assert_eq!(bench.received_udp(1), NOTHING);
}

#[test]
fn nobody_speaks_for_another() {
    let mut bench = Bench::with_clients(2);
    let elsewhere = SocketAddr::from(([198, 51, 100, 1], 50_000));
    bench.udp_from(elsewhere, &packet(1, 0, 0, 1, b"lie"));
    bench.udp_from(elsewhere, &packet(1, UNICAST, 0, 1, b"lie"));
    bench.udp(1, &packet(1, 0, 0, 0, b"nobody"));
    bench.udp(1, &packet(1, 0, 0, 200, b"nobody"));
    bench.tick();
    assert_eq!(bench.datagrams, []);
    let stats = bench.relay.stats();
    assert_eq!((stats.datagrams_spoofed, stats.datagrams_unknown), (1, 3));
}

#[test]
fn an_endpoint_changes_hands_only_when_its_owner_is_silent() {
    let mut bench = Bench::new(Limits::default().danger_any_source(true));
    assert!(bench.open(1) && bench.open(2) && bench.open(3));
    bench.udp(1, &packet(0, 8, 0, 1, b""));
    bench.udp(3, &packet(0, 8, 0, 3, b""));
    bench.udp(1, &packet(0, 0, 0, 2, b"as 2"));
    bench.tick();
    assert_eq!(bench.received_udp(3), NOTHING);
    bench.wait(Duration::from_secs(6));
    bench.udp(1, &packet(0, 0, 0, 2, b"as 2"));
    bench.tick();
    assert_eq!(bench.received_udp(3), [packet(0, 0, 0, 2, b"as 2")]);
    let address = |number| Address::new(number).expect("not zero");
    assert_eq!(bench.relay.endpoint_of(address(1)), None);
    assert_eq!(bench.relay.endpoint_of(address(2)), Some(udp_peer(1)));
}

#[test]
fn without_a_connection_there_is_no_udp() {
    let mut bench = Bench::with_clients(2);
    bench.end(2);
    bench.udp(2, &packet(1, 0, 0, 2, b"ghost"));
    bench.udp(1, &packet(1, 0, 0, 1, b"to a ghost"));
    bench.udp(1, &packet(1, UNICAST, 0, 2, b"to a ghost"));
    bench.tick();
    assert_eq!(bench.datagrams, []);
}

#[test]
fn known_endpoints_are_kept_alive_every_30_seconds() {
    let mut bench = Bench::with_clients(2);
    assert!(bench.open(3));
    bench.wait(Duration::from_secs(29));
    assert_eq!(bench.datagrams, []);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.received_udp(1), [packet(0, 8, 600, 1, b"")]);
    assert_eq!(bench.received_udp(2), [packet(0, 8, 600, 2, b"")]);
    assert_eq!(bench.datagrams, []);
    bench.wait(Duration::from_secs(30));
    assert_eq!(bench.received_udp(1), [packet(0, 8, 1_200, 1, b"")]);
}
