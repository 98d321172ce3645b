//! Delay: the distributions of jitter, and when datagrams may overtake each other.

use muse_netem::{Conditioner, Conditions, Jitter, Packet};
use muse_wire::{Duration, Ecn, Instant};

const DATAGRAMS: u64 = 200_000;

#[test]
fn without_jitter_every_delay_is_the_same_and_order_is_kept() {
    let delays = delays_ms(
        Conditions::default().delay(Duration::from_millis(40)),
        Duration::ZERO,
    );
    assert!(delays.iter().all(|&delay| delay == 40.0));
}

#[test]
fn uniform_jitter_fills_its_range_evenly() {
    let jitter = Jitter::Uniform(Duration::from_millis(10));
    let delays = sorted(delays_ms(base(50).jitter(jitter), Duration::ZERO));
    assert!(delays[0] >= 50.0 && delays[delays.len() - 1] <= 60.0);
    for (quantile, expected) in [
        (0.0, 50.0),
        (0.25, 52.5),
        (0.5, 55.0),
        (0.75, 57.5),
        (1.0, 60.0),
    ] {
        assert_near(quantile, at_quantile(&delays, quantile), expected, 0.1);
    }
}

#[test]
fn jitter_around_the_delay_is_even_to_both_sides_and_stops_at_zero() {
    let around = |delay, spread| {
        let jitter = Jitter::Around(Duration::from_millis(spread));
        sorted(delays_ms(base(delay).jitter(jitter), Duration::ZERO))
    };
    let delays = around(50, 10);
    for (quantile, expected) in [(0.0, 40.0), (0.25, 45.0), (0.5, 50.0), (1.0, 60.0)] {
        assert_near(quantile, at_quantile(&delays, quantile), expected, 0.1);
    }
    let delays = around(5, 10);
    for (quantile, expected) in [(0.0, 0.0), (0.5, 7.5), (1.0, 15.0)] {
        assert_near(quantile, at_quantile(&delays, quantile), expected, 0.1);
    }
}

#[test]
fn normal_jitter_has_the_normal_quantiles() {
    let jitter = Jitter::Normal {
        mean: Duration::from_millis(30),
        deviation: Duration::from_millis(5),
    };
    let delays = sorted(delays_ms(base(20).jitter(jitter), Duration::ZERO));
    for (quantile, expected) in [
        (0.0228, 40.0),
        (0.1587, 45.0),
        (0.5, 50.0),
        (0.8413, 55.0),
        (0.9772, 60.0),
    ] {
        assert_near(quantile, at_quantile(&delays, quantile), expected, 0.15);
    }
}

#[test]
fn normal_jitter_around_zero_is_cut_off_not_folded_up_at_zero() {
    let jitter = Jitter::Normal {
        mean: Duration::ZERO,
        deviation: Duration::from_millis(10),
    };
    let delays = sorted(delays_ms(base(5).jitter(jitter), Duration::ZERO));
    // Half a normal distribution: its median is at 0.6745 deviations; hardly any draw is exactly zero.
    assert_near(0.5, at_quantile(&delays, 0.5), 5.0 + 6.745, 0.1);
    let at_zero = delays.iter().filter(|&&delay| delay == 5.0).count();
    assert!(at_zero < 100, "{at_zero} draws at exactly zero");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the last bits of an expected value do not matter"
)]
fn pareto_jitter_has_the_tail_of_its_shape_and_a_limit() {
    let (scale, shape, max) = (Duration::from_millis(6), 2.0, Duration::from_millis(150));
    let delays = sorted(delays_ms(
        base(0).jitter(Jitter::Pareto { scale, shape, max }),
        Duration::ZERO,
    ));
    for quantile in [0.1, 0.5, 0.9, 0.99] {
        let expected = 6.0 * ((1.0f64 - quantile).powf(-1.0 / shape) - 1.0);
        assert_near(
            quantile,
            at_quantile(&delays, quantile),
            expected,
            expected * 0.05,
        );
    }
    assert_eq!(delays[delays.len() - 1], 150.0);
}

#[test]
fn jitter_reorders_unless_order_is_kept() {
    let jittery = base(20).jitter(Jitter::Uniform(Duration::from_millis(30)));
    let step = Duration::from_millis(5);
    let inversions = |conditions| {
        let arrivals = arrivals(conditions, step);
        arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count()
    };
    // The next is earlier when its draw is over 5 ms less: (25 / 30)^2 / 2 of all.
    assert_near(
        0.0,
        inversions(jittery.clone()) as f64 / DATAGRAMS as f64,
        0.347,
        0.01,
    );
    assert_eq!(inversions(jittery.keep_order(true)), 0);
}

#[test]
fn held_back_datagrams_are_overtaken_even_where_order_is_kept() {
    let conditions = base(10)
        .keep_order(true)
        .reorder(0.1, Duration::from_millis(12));
    let arrivals = arrivals(conditions, Duration::from_millis(5));
    let late = arrivals.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64;
    // Held back while its follower is not.
    assert_near(0.0, late / DATAGRAMS as f64, 0.1 * 0.9, 0.003);
}

fn base(delay_ms: u64) -> Conditions {
    Conditions::default().delay(Duration::from_millis(delay_ms))
}

fn arrivals(conditions: Conditions, step: Duration) -> Vec<Instant> {
    let mut link = Conditioner::new(conditions, 11);
    let packet = Packet::new(([192, 0, 2, 1], 9).into(), 100, Ecn::NotCapable);
    (0..DATAGRAMS)
        .map(|index| {
            let fates = link.offer(Instant::ZERO + step * index, packet);
            fates.arrivals().next().expect("nothing is lost").at
        })
        .collect()
}

fn delays_ms(conditions: Conditions, step: Duration) -> Vec<f64> {
    let arrivals = arrivals(conditions, step);
    arrivals
        .iter()
        .zip(0..)
        .map(|(&at, index)| (at - (Instant::ZERO + step * index)).as_millis_f64())
        .collect()
}

fn sorted(mut delays: Vec<f64>) -> Vec<f64> {
    delays.sort_by(f64::total_cmp);
    delays
}

fn at_quantile(sorted: &[f64], quantile: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * quantile) as usize]
}

#[track_caller]
fn assert_near(quantile: f64, value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "at {quantile}: {value}, expected {expected} +- {tolerance}"
    );
}
