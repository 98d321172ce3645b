//! Behaviour of the adaptive controller that needs no bottleneck; `tests/congestion` has the rest.

use super::*;

const PACKET: usize = 1_200;

/// Acknowledges `count` packets, one a millisecond, all with one round trip.
struct Feed {
    controller: Adaptive,
    now: Instant,
}

impl Feed {
    fn new(config: AdaptiveConfig) -> Self {
        let now = Instant::from_secs(1);
        Self {
            controller: Adaptive::new(config, PACKET, now),
            now,
        }
    }

    fn acks(&mut self, count: u64, rtt_ms: u64, used: bool) {
        for _ in 0..count {
            self.now += Duration::from_millis(1);
            let rtt = Duration::from_millis(rtt_ms);
            let in_flight = if used {
                self.controller.window()
            } else {
                PACKET
            };
            self.controller.on_ack(&Ack {
                now: self.now,
                sent_at: self.now - rtt,
                bytes: PACKET,
                rtt: Some(rtt),
                rtt_slack: Duration::ZERO,
                rtt_smoothed: rtt,
                in_flight,
                app_limited: !used,
            });
        }
    }

    fn losses(&mut self, count: u64, persistent: bool) {
        for _ in 0..count {
            self.controller.on_loss(&Loss {
                now: self.now,
                sent_at: self.now - Duration::from_millis(50),
                bytes: PACKET,
                in_flight: 0,
                persistent,
            });
        }
    }
}

#[test]
fn state_stays_small() {
    assert!(size_of::<Adaptive>() < 600, "{}", size_of::<Adaptive>());
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(5_000, 50, false);
    assert_eq!(feed.controller.window(), 10 * PACKET);
}

#[test]
fn a_used_window_grows_to_the_maximum_and_no_further() {
    let mut feed = Feed::new(AdaptiveConfig::default().window_max(100_000));
    feed.acks(5_000, 50, true);
    assert_eq!(feed.controller.window(), 100_000);
}

#[test]
fn a_large_window_is_given_up_when_the_application_goes_quiet() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(1_000, 50, true);
    let large = feed.controller.window();
    feed.acks(3_000, 50, false);
    assert!(
        feed.controller.window() < large / 10,
        "{large} {}",
        feed.controller.window()
    );
    assert!(feed.controller.window() >= 10 * PACKET);
}

#[test]
fn what_leaves_after_silence_is_paced() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(200, 50, true);
    let window = feed.controller.window() as u64;
    let rate = feed
        .controller
        .pacing_rate()
        .expect("paced after the first sample");
    assert!(rate <= 2 * window * 20 + 20, "{rate} for {window}");
}

#[test]
fn a_growing_round_trip_ends_the_start_and_shrinks_the_window() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(300, 50, true);
    let before = feed.controller.window();
    feed.acks(300, 250, true);
    assert!(
        feed.controller.window() < before / 2,
        "{before} {}",
        feed.controller.window()
    );
}

#[test]
fn a_dead_path_starts_over_at_the_floor() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(1_000, 50, true);
    feed.losses(100, true);
    let floor = 2 * 32_000 / 20;
    assert_eq!(feed.controller.window(), floor);
    feed.acks(200, 50, true);
    assert!(feed.controller.window() > 4 * floor, "grows again");
}

#[test]
fn a_mark_cuts_once_a_round_trip() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(300, 50, true);
    let before = feed.controller.window();
    for _ in 0..10 {
        feed.controller
            .on_mark(feed.now, feed.now - Duration::from_millis(50));
    }
    let after = feed.controller.window();
    assert!(after < before && after > before / 2, "{before} {after}");
}

#[test]
fn reset_forgets_the_path() {
    let mut feed = Feed::new(AdaptiveConfig::default());
    feed.acks(1_000, 50, true);
    feed.controller.reset(feed.now);
    assert_eq!(feed.controller.window(), 10 * PACKET);
    assert_eq!(feed.controller.pacing_rate(), None);
}

#[test]
fn absurd_numbers_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(1);
    for packet_size in [0, 1, 1_200, usize::MAX] {
        let mut controller = Adaptive::new(AdaptiveConfig::default(), packet_size, Instant::ZERO);
        for _ in 0..20_000 {
            let wild = |random: &mut fastrand::Rng| random.u64(..) >> random.u32(0..64);
            let now = Instant::from_micros(wild(&mut random));
            let sent_at = Instant::from_micros(wild(&mut random));
            let bytes = wild(&mut random) as usize;
            let in_flight = wild(&mut random) as usize;
            match random.u8(0..4) {
                0 => controller.on_sent(now, bytes, in_flight, random.bool()),
                1 => controller.on_loss(&Loss {
                    now,
                    sent_at,
                    bytes,
                    in_flight,
                    persistent: random.bool(),
                }),
                2 => controller.on_mark(now, sent_at),
                _ => controller.on_ack(&Ack {
                    now,
                    sent_at,
                    bytes,
                    rtt: random
                        .bool()
                        .then(|| Duration::from_micros(wild(&mut random))),
                    rtt_slack: Duration::ZERO,
                    rtt_smoothed: Duration::from_micros(wild(&mut random)),
                    in_flight,
                    app_limited: random.bool(),
                }),
            }
            assert!(
                controller.window.is_finite() && controller.window() > 0,
                "{controller:?}"
            );
        }
    }
}
