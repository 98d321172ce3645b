//! Relay v1 over TCP: addresses, controls, the tick, and clients that come and go.

use crate::common::{Bench, frame, packet};
use muse_relay_v1::{Address, Limits};
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};

#[test]
fn everything_but_the_address_waits_for_the_tick() {
    let mut bench = Bench::new(Limits::default());
    assert!(bench.open(7) && bench.open(3));
    assert_eq!(bench.received(7), [(0, vec![1])]);
    assert_eq!(bench.received(3), [(0, vec![2])]);
    bench.tcp(7, 0x40, b"hello");
    bench.tcp(7, 0x11, b"");
    assert_eq!((bench.received(3), bench.received(7)), (vec![], vec![]));
    bench.tick();
    assert_eq!(bench.received(3), [(0x40, b"hello".to_vec())]);
    assert_eq!(bench.received(7), [(0x11, vec![2])]);
    bench.tick();
    assert_eq!((bench.received(3), bench.received(7)), (vec![], vec![]));
}

#[test]
fn an_answer_has_the_control_of_its_request() {
    let mut bench = Bench::with_clients(3);
    for (control, data, answer) in [
        (0xA1, &b""[..], &[1, 3][..]),
        (0x01, b"ignored", &[1, 3]),
        (0xF3, &[3], &[1]),
        (0x03, &[2], &[1]),
        (0x03, &[0], &[0]),
        (0x03, &[4, 1], &[0]),
    ] {
        bench.tcp(2, control, data);
        bench.tick();
        assert_eq!(bench.received(2), [(control, answer.to_vec())]);
    }
    assert_eq!((bench.received(1), bench.received(3)), (vec![], vec![]));
}

#[test]
fn a_unicast_names_its_sender() {
    let mut bench = Bench::with_clients(3);
    bench.tcp(1, 0x72, &[3, 120, 10]);
    bench.tcp(1, 0x02, &[1]);
    bench.tcp(1, 0x02, &[99, 1]);
    bench.tcp(1, 0x02, &[0, 1]);
    bench.tick();
    assert_eq!(bench.received(3), [(0x72, vec![1, 120, 10])]);
    assert_eq!(bench.received(1), [(0x02, vec![1])]);
    assert_eq!(bench.received(2), []);
    assert_eq!(bench.relay.stats().packets_undeliverable, 2);
}

#[test]
fn unused_controls_and_missing_data_are_counted_and_cost_nothing() {
    let mut bench = Bench::with_clients(2);
    for control in 5..16 {
        bench.tcp(1, control, b"x");
    }
    bench.tcp(1, 2, b"");
    bench.tcp(1, 3, b"");
    bench.tick();
    assert_eq!(bench.received(2), []);
    assert_eq!(bench.relay.stats().packets_ignored, 13);
    assert!(bench.closed.is_empty());
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    let mut bench = Bench::with_clients(2);
    let long = vec![9; 65_535];
    let stream = [frame(0x10, b"a"), frame(0x20, b""), frame(0x30, &long)].concat();
    let (head, tail) = stream.split_at(20);
    for byte in head {
        bench.bytes(1, &[*byte]);
    }
    tail.chunks(60_000).for_each(|part| bench.bytes(1, part));
    bench.tick();
    let expected = [(0x10, b"a".to_vec()), (0x20, vec![]), (0x30, long)];
    assert_eq!(bench.received(2), expected);
}

#[test]
fn different_lengths_end_the_connection_and_what_came_before_counts() {
    let mut bench = Bench::with_clients(2);
    let bad = [frame(0, b"good"), vec![1, 0, 0, 0, 1], frame(0, b"lost")].concat();
    bench.bytes(1, &bad);
    assert_eq!(bench.closed, [StreamAction::Close(StreamId(1))]);
    bench.bytes(1, &frame(0, b"late"));
    bench.tick();
    assert_eq!(bench.received(2), [(0, b"good".to_vec())]);
    assert_eq!(bench.relay.clients(), 1);
    assert_eq!(bench.relay.stats().cut_length, 1);
}

#[test]
fn who_comes_later_gets_nothing_that_was_said_before() {
    let mut bench = Bench::with_clients(2);
    bench.tcp(1, 0, b"before");
    bench.tcp(1, 2, &[2, 5]);
    bench.udp(1, &packet(1, 2, 0, 2, b"before"));
    bench.end(2);
    // The newcomer has the address of the one that went.
    assert!(bench.open(9));
    assert_eq!(bench.relay.address_of(StreamId(9)), Address::new(2));
    bench.udp(2, &packet(0, 8, 0, 2, b""));
    bench.tick();
    assert_eq!(bench.received(9), [(0, vec![2])]);
    assert_eq!(bench.received_udp(2), Vec::<Vec<u8>>::new());
    bench.tcp(1, 0, b"after");
    bench.tick();
    assert_eq!(bench.received(9), [(0, b"after".to_vec())]);
}

#[test]
fn what_a_client_said_before_it_went_still_leaves() {
    let mut bench = Bench::with_clients(2);
    bench.tcp(1, 0, b"goodbye");
    bench.udp(1, &packet(4, 1, 7, 1, b"goodbye"));
    bench.end(1);
    // Another with its address does not replace it, nor get it.
    assert!(bench.open(1));
    bench.udp(1, &packet(4, 1, 3, 1, b"hello"));
    bench.tick();
    assert_eq!(bench.received(2), [(0, b"goodbye".to_vec())]);
    let tick = bench.relay.tick();
    let expected = [b"goodbye".as_slice(), b"hello"].map(|data| packet(4, 1, tick, 1, data));
    assert_eq!(bench.received_udp(2), expected);
    assert_eq!(bench.received_udp(1), Vec::<Vec<u8>>::new());
}

#[test]
fn the_256th_client_is_refused_and_a_free_address_is_used_again() {
    let mut bench = Bench::new(Limits::default());
    assert!((0..255).all(|stream| bench.open(stream)));
    assert!(!bench.open(255));
    assert_eq!(bench.relay.stats().refused, 1);
    bench.end(99);
    assert_eq!(bench.closed, [StreamAction::Close(StreamId(99))]);
    assert!(bench.open(300));
    assert_eq!(bench.relay.address_of(StreamId(300)), Address::new(100));
}

#[test]
fn limits_of_clients_are_kept() {
    let mut bench = Bench::new(Limits::default().clients(2));
    assert!(bench.open(1) && bench.open(2) && !bench.open(3));
    let mut bench = Bench::new(Limits::default().clients_per_ip(1));
    assert!(bench.open(1) && !bench.open(1 + 256) && bench.open(2));
    bench.relay.refuse_clients();
    assert!(!bench.open(3));
}

#[test]
fn a_late_tick_counts_those_that_were_missed() {
    let mut bench = Bench::with_clients(2);
    bench.tick();
    assert_eq!(bench.relay.tick(), 1);
    bench.now += muse_wire::Duration::from_millis(170);
    muse_wire::Machine::handle_timeout(&mut bench.relay, bench.now);
    // 220 ms: ticks 2 and 3 were missed, this is number 4, and the next is on the beat.
    assert_eq!(
        (bench.relay.tick(), bench.relay.stats().ticks_missed),
        (4, 2)
    );
    assert_eq!(
        muse_wire::Machine::poll_timeout(&mut bench.relay),
        Some(muse_wire::Instant::from_millis(250))
    );
    assert_eq!(bench.relay.outgoing(StreamId(1)), []);
}
