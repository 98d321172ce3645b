//! Rate, queue and congestion marks.

use muse_netem::{Cause, Conditioner, Conditions, Packet, Queue};
use muse_wire::{Duration, Ecn, Instant};

#[test]
fn a_saturated_link_delivers_exactly_its_rate() {
    for rate in [56_000u64, 1_000_000, 7_777_777, 123_456_789] {
        let conditions = Conditions::default()
            .rate(rate)
            .queue(Queue::Bytes(100_000));
        let mut link = Conditioner::new(conditions, 1);
        let mut now = Instant::ZERO;
        let end = Instant::from_secs(20);
        let mut bytes = 0u64;
        while now < end {
            for fate in link.offer(now, packet(1_172, Ecn::NotCapable)).arrivals() {
                bytes += if fate.at <= end { 1_200 } else { 0 };
            }
            // Twice as fast as the link.
            now += Duration::from_micros((1_200 * 8 * 1_000_000 / rate / 2).max(1));
        }
        let measured = bytes as f64 * 8.0 / 20.0;
        assert!(
            (measured / rate as f64 - 1.0).abs() < 0.01,
            "{measured} of {rate}"
        );
    }
}

#[test]
fn the_queue_never_holds_more_than_its_bytes() {
    let mut link = Conditioner::new(
        Conditions::default()
            .rate(1_000_000)
            .queue(Queue::Bytes(10_000)),
        1,
    );
    let mut backlog_max = 0;
    for micros in (0..2_000_000).step_by(500) {
        let now = Instant::from_micros(micros);
        link.offer(now, packet(472, Ecn::NotCapable));
        backlog_max = backlog_max.max(link.backlog_bytes(now));
    }
    assert!((9_500..=10_000).contains(&backlog_max), "{backlog_max}");
    let counters = link.counters();
    assert!(
        counters.lost_queue > 3_000 && counters.lost() == counters.lost_queue,
        "{counters:?}"
    );
    // 10,000 bytes take 80 ms; the last accepted one of 500 bytes begins 4 ms before.
    assert!(
        counters.queue_delay_max <= Duration::from_millis(76),
        "{counters:?}"
    );
}

#[test]
fn a_queue_by_time_bounds_the_delay() {
    let limit = Duration::from_millis(250);
    let mut link = Conditioner::new(
        Conditions::default()
            .rate(500_000)
            .queue(Queue::Time(limit)),
        1,
    );
    let mut delay_max = Duration::ZERO;
    for micros in (0..3_000_000).step_by(1_000) {
        let now = Instant::from_micros(micros);
        for fate in link.offer(now, packet(972, Ecn::NotCapable)).arrivals() {
            delay_max = delay_max.max(fate.at - now);
        }
    }
    assert!(
        delay_max <= limit && delay_max >= limit - Duration::from_millis(20),
        "{delay_max}"
    );
    assert!(link.counters().lost_queue > 0);
}

#[test]
fn an_idle_link_takes_a_datagram_larger_than_its_queue() {
    let mut link = Conditioner::new(Conditions::default().rate(1_000).queue(Queue::Bytes(10)), 1);
    assert_eq!(
        link.offer(Instant::ZERO, packet(972, Ecn::NotCapable))
            .lost(),
        None
    );
    let second = link.offer(Instant::from_millis(1), packet(0, Ecn::NotCapable));
    assert_eq!(second.lost(), Some(Cause::QueueFull));
}

#[test]
fn headers_count_towards_the_rate_by_the_kind_of_address() {
    let arrival = |to: &str| {
        let mut link = Conditioner::new(Conditions::default().rate(8_000_000), 1);
        let packet = Packet::new(to.parse().expect("an address"), 1_000, Ecn::NotCapable);
        link.offer(Instant::ZERO, packet)
            .arrivals()
            .next()
            .expect("it arrives")
            .at
    };
    assert_eq!(arrival("192.0.2.1:1"), Instant::from_micros(1_028));
    assert_eq!(arrival("[2001:db8::1]:1"), Instant::from_micros(1_048));
}

#[test]
fn capable_datagrams_are_marked_from_the_threshold_on() {
    let conditions = Conditions::default()
        .rate(1_000_000)
        .queue(Queue::Time(Duration::from_millis(100)))
        .mark_congestion(Duration::from_millis(20));
    let mut link = Conditioner::new(conditions, 1);
    let marks = |link: &mut Conditioner, ecn| -> Vec<Ecn> {
        // One millisecond of the link's time each, all at once.
        (0..40)
            .flat_map(|_| link.offer(Instant::ZERO, packet(97, ecn)).arrivals())
            .map(|fate| fate.ecn)
            .collect()
    };
    let capable = marks(&mut link, Ecn::Capable0);
    assert_eq!(capable[..20], [Ecn::Capable0; 20]);
    assert_eq!(capable[20..], [Ecn::Congested; 20]);
    assert_eq!(link.counters().marked, 20);
    assert_eq!(marks(&mut link, Ecn::NotCapable), [Ecn::NotCapable; 40]);
}

#[test]
fn a_change_of_rate_keeps_the_bytes_that_wait() {
    let conditions = |rate| {
        Conditions::default()
            .rate(rate)
            .queue(Queue::Bytes(1_000_000))
    };
    let mut link = Conditioner::new(conditions(1_000_000), 1);
    for _ in 0..10 {
        link.offer(Instant::ZERO, packet(1_222, Ecn::NotCapable));
    }
    let now = Instant::from_millis(20);
    assert_eq!(link.backlog_bytes(now), 10_000);
    link.set_conditions(now, conditions(100_000));
    assert_eq!(link.backlog_bytes(now), 10_000);
    assert_eq!(link.queue_delay(now), Duration::from_millis(800));
    link.set_conditions(now, Conditions::default());
    assert_eq!(link.queue_delay(now), Duration::ZERO);
}

fn packet(payload_len: usize, ecn: Ecn) -> Packet {
    Packet::new(([192, 0, 2, 1], 9).into(), payload_len, ecn)
}
