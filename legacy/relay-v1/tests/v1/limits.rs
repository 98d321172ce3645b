//! Relay v1 under clients that send too much or read too little.

use crate::common::{Bench, frame, packet};
use muse_relay_v1::Limits;
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};
use muse_wire::Duration;

#[test]
fn datagrams_beyond_the_rate_are_dropped_and_others_are_not() {
    let mut bench = Bench::new(Limits::default().datagrams_per_second(100, 10));
    for number in 1..=3 {
        assert!(bench.open(number));
        bench.udp(number, &packet(0, 8, 0, number as u8, b""));
    }
    for _ in 0..1_000 {
        bench.udp(1, &packet(1, 0, 0, 1, b"flood"));
    }
    bench.udp(2, &packet(1, 0, 0, 2, b"calm"));
    bench.tick();
    let got = bench.received_udp(3);
    assert_eq!(got.len(), 11);
    assert_eq!(got[10], packet(1, 0, 0, 2, b"calm"));
    assert_eq!(bench.relay.stats().datagrams_limited, 990);
    // 50 ms at 100 a second are 5 more.
    for _ in 0..1_000 {
        bench.udp(1, &packet(1, 0, 0, 1, b"flood"));
    }
    bench.tick();
    assert_eq!(bench.received_udp(3).len(), 5);
}

#[test]
fn held_datagrams_are_bounded_in_bytes() {
    let limits = Limits::default().datagrams_per_second(100_000, 100_000);
    let mut bench = Bench::new(limits.held_datagram_bytes(10_000));
    assert!(bench.open(1) && bench.open(2));
    for kind in 0..=255 {
        for time in 0..20 {
            let data = vec![0; usize::from(kind) + time as usize];
            bench.udp(1, &packet(kind, 1, u32::from(kind) * 20 + time, 1, &data));
        }
    }
    assert!(bench.relay.held_bytes() <= 10_000);
    assert!(bench.relay.stats().datagrams_limited > 0);
}

#[test]
fn packets_beyond_the_budget_wait_and_none_is_lost() {
    let mut bench = Bench::new(Limits::default().packets_per_second(1_000, 20));
    assert!(bench.open(1) && bench.open(2));
    bench.streams.clear();
    let sent: Vec<(u8, Vec<u8>)> = (0..=255).map(|n| (0x30, vec![n])).collect();
    let stream: Vec<u8> = sent
        .iter()
        .flat_map(|(control, data)| frame(*control, data))
        .collect();
    bench.bytes(1, &stream);
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(1)), 0);
    assert!(bench.relay.read_limit(bench.now, StreamId(2)) > 0);
    bench.tick();
    assert_eq!(bench.received(2).len(), 20);
    // The peer has gone, but what it said has not all been taken: it stays until then.
    bench.end(1);
    assert_eq!(bench.relay.clients(), 2);
    bench.tick();
    let second = bench.received(2);
    assert_eq!(second, sent[20..40]);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.received(2), sent[40..]);
    assert_eq!(bench.closed, [StreamAction::Close(StreamId(1))]);
}

#[test]
fn bytes_beyond_the_budget_are_left_with_their_sender() {
    let mut bench = Bench::new(Limits::default().bytes_per_second(10_000, 5_000));
    assert!(bench.open(1) && bench.open(2));
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(1)), 5_000);
    bench.tcp(1, 0, &[0; 4_995]);
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(1)), 0);
    bench.wait(Duration::from_millis(450));
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(1)), 4_500);
    // A budget belongs to the address: connecting again does not renew it.
    bench.end(1);
    assert!(bench.open(5));
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(5)), 4_500);
}

#[test]
fn nobody_is_read_while_too_much_is_held() {
    let mut bench = Bench::new(Limits::default().held_stream_bytes(1_000));
    assert!(bench.open(1) && bench.open(2));
    bench.tcp(1, 0, &[0; 2_000]);
    bench.tcp(2, 0, b"waits");
    assert_eq!(bench.relay.read_limit(bench.now, StreamId(2)), 0);
    bench.streams.clear();
    bench.tick();
    assert_eq!(bench.received(1), []);
    bench.tick();
    assert_eq!(bench.received(1), [(0, b"waits".to_vec())]);
}

#[test]
fn a_client_that_does_not_read_is_cut_off_by_bytes() {
    let mut bench = Bench::new(Limits::default().unsent_bytes(10_000));
    assert!((1..=3).all(|number| bench.open(number)));
    bench.deaf.push(2);
    bench.streams.clear();
    for _ in 0..10 {
        bench.tcp(1, 0, &[7; 1_500]);
        bench.tick();
    }
    assert_eq!(bench.closed, [StreamAction::Abort(StreamId(2))]);
    assert_eq!(bench.relay.stats().cut_slow, 1);
    assert_eq!(bench.received(3).len(), 10);
    assert_eq!(bench.relay.unsent_bytes(), 0);
}

#[test]
fn a_client_that_does_not_read_is_cut_off_by_time() {
    let mut bench = Bench::new(Limits::default().stall(Duration::from_secs(2)));
    assert!(bench.open(1) && bench.open(2));
    bench.deaf.push(2);
    bench.wait(Duration::from_secs(5));
    assert!(bench.closed.is_empty(), "nothing waits for it");
    bench.tcp(1, 0, b"x");
    bench.wait(Duration::from_secs(2));
    assert!(bench.closed.is_empty());
    bench.wait(Duration::from_millis(100));
    assert_eq!(bench.closed, [StreamAction::Abort(StreamId(2))]);
}

#[test]
fn datagrams_that_never_left_are_counted_and_dropped() {
    let mut bench = Bench::with_clients(2);
    bench.udp(1, &packet(1, 0, 0, 1, b"x"));
    bench.now += Duration::from_millis(50);
    muse_wire::Machine::handle_timeout(&mut bench.relay, bench.now);
    // The driver's socket is full: it asks for nothing until the next tick.
    bench.tick();
    assert_eq!(bench.datagrams, []);
    assert_eq!(bench.relay.stats().datagrams_unsent, 1);
}
