//! Duplication, corruption, truncation, MTU and outages.

use std::collections::BTreeMap;

use muse_netem::{Cause, Conditioner, Conditions, Packet};
use muse_wire::{Duration, Ecn, Instant};

const DATAGRAMS: u64 = 100_000;

#[test]
fn copies_come_in_their_share_and_after_their_delay() {
    let delay = Duration::from_millis(3);
    let mut link = Conditioner::new(Conditions::default().duplicate(0.2, delay), 1);
    let mut copies = 0;
    for _ in 0..DATAGRAMS {
        let arrivals: Vec<_> = link.offer(Instant::ZERO, packet(100)).arrivals().collect();
        assert_eq!(arrivals[0].at, Instant::ZERO);
        if let Some(copy) = arrivals.get(1) {
            assert_eq!(copy.at, Instant::ZERO + delay);
            copies += 1;
        }
    }
    assert_share(copies, 0.2);
    assert_eq!(link.counters().duplicated, copies);
    assert_eq!(link.counters().delivered, DATAGRAMS + copies);
}

#[test]
fn corruption_flips_one_to_the_asked_number_of_bits() {
    let mut link = Conditioner::new(Conditions::default().corrupt(0.3, 4), 2);
    let mut by_flips = BTreeMap::<u32, u64>::new();
    for _ in 0..DATAGRAMS {
        let mut payload = [0u8; 16];
        let fate = link
            .offer(Instant::ZERO, packet(16))
            .arrivals()
            .next()
            .expect("it arrives");
        assert_eq!(fate.damage.apply(&mut payload), 16);
        let flips = payload.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert_eq!(fate.damage.is_none(), flips == 0);
        *by_flips.entry(flips).or_default() += 1;
    }
    assert_eq!(
        by_flips.keys().copied().collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
    assert_share(by_flips[&0], 0.7);
    for flips in 1..=4 {
        assert_share(by_flips[&flips], 0.075);
    }
}

#[test]
fn flips_hit_every_bit_alike() {
    let mut link = Conditioner::new(Conditions::default().corrupt(1.0, 1), 3);
    let mut hits = [0u64; 32];
    for _ in 0..DATAGRAMS {
        let mut payload = [0u8; 4];
        let fate = link
            .offer(Instant::ZERO, packet(4))
            .arrivals()
            .next()
            .expect("it arrives");
        fate.damage.apply(&mut payload);
        hits[u32::from_le_bytes(payload).trailing_zeros() as usize] += 1;
    }
    hits.iter().for_each(|&hits| assert_share(hits, 1.0 / 32.0));
}

#[test]
fn more_flips_than_bits_are_as_many_as_the_bits() {
    let mut link = Conditioner::new(Conditions::default().corrupt(1.0, 32), 4);
    let mut all_flipped = 0;
    for _ in 0..1_000 {
        let mut payload = [0u8; 1];
        let fate = link
            .offer(Instant::ZERO, packet(1))
            .arrivals()
            .next()
            .expect("it arrives");
        assert_eq!(fate.damage.apply(&mut payload), 1);
        assert_ne!(payload, [0]);
        all_flipped += usize::from(payload == [0xFF]);
    }
    // Eight or more of up to 32 flips are drawn three times in four.
    assert!((700..860).contains(&all_flipped), "{all_flipped}");
    let empty = link
        .offer(Instant::ZERO, packet(0))
        .arrivals()
        .next()
        .expect("it arrives");
    assert!(empty.damage.is_none());
}

#[test]
fn truncation_always_shortens() {
    let mut link = Conditioner::new(Conditions::default().truncate(0.25), 5);
    let mut shortened = 0;
    let mut kept = 0;
    for _ in 0..DATAGRAMS {
        let fate = link
            .offer(Instant::ZERO, packet(101))
            .arrivals()
            .next()
            .expect("it arrives");
        let len = fate.damage.apply(&mut [0; 101]);
        if !fate.damage.is_none() {
            assert!(len < 101);
            shortened += 1;
            kept += len as u64;
        }
    }
    assert_share(shortened, 0.25);
    let mean = kept as f64 / shortened as f64;
    assert!((mean - 50.0).abs() < 1.0, "{mean}");
}

#[test]
fn only_what_is_larger_than_the_mtu_vanishes() {
    let mut link = Conditioner::new(Conditions::default().mtu(1_400), 6);
    assert_eq!(link.offer(Instant::ZERO, packet(1_372)).lost(), None);
    assert_eq!(
        link.offer(Instant::ZERO, packet(1_373)).lost(),
        Some(Cause::TooLarge)
    );
    let six = |len| {
        Packet::new(
            "[2001:db8::1]:1".parse().expect("an address"),
            len,
            Ecn::NotCapable,
        )
    };
    assert_eq!(link.offer(Instant::ZERO, six(1_352)).lost(), None);
    assert_eq!(
        link.offer(Instant::ZERO, six(1_353)).lost(),
        Some(Cause::TooLarge)
    );
    assert_eq!(link.counters().lost_mtu, 2);
}

#[test]
fn everything_sent_in_an_outage_is_lost_and_nothing_else() {
    let second = Instant::from_secs;
    let conditions = Conditions::default()
        .outage(second(1), second(2))
        .outage(second(4), second(5));
    let mut link = Conditioner::new(conditions, 7);
    for millis in (0..6_000).step_by(10) {
        let lost = link.offer(Instant::from_millis(millis), packet(10)).lost();
        let expected = matches!(millis / 1_000, 1 | 4).then_some(Cause::Outage);
        assert_eq!(lost, expected, "at {millis} ms");
    }
    assert_eq!(link.counters().lost_outage, 200);
}

fn packet(payload_len: usize) -> Packet {
    Packet::new(([192, 0, 2, 1], 9).into(), payload_len, Ecn::NotCapable)
}

/// Within four standard deviations and a bit.
#[track_caller]
fn assert_share(count: u64, expected: f64) {
    let share = count as f64 / DATAGRAMS as f64;
    let tolerance = 4.5 * (expected * (1.0 - expected) / DATAGRAMS as f64).sqrt();
    assert!(
        (share - expected).abs() < tolerance,
        "{share}, expected {expected} +- {tolerance}"
    );
}
