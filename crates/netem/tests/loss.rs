//! Loss: its share, its correlation and the length of its bursts, measured over many datagrams.

use muse_netem::{Cause, Conditioner, Conditions, GilbertElliott, Packet};
use muse_wire::{Ecn, Instant};

const DATAGRAMS: u64 = 400_000;

#[test]
fn independent_loss_has_its_share_and_no_memory() {
    let lost = losses(Conditions::default().loss(0.05), 1);
    assert_near("share", share(&lost), 0.05, 0.002);
    assert_near("run", mean_run(&lost), 1.0 / 0.95, 0.02);
    assert_near("correlation", correlation(&lost, 1), 0.0, 0.01);
}

#[test]
fn correlated_loss_keeps_its_share_and_fades_geometrically() {
    let lost = losses(Conditions::default().correlated_loss(0.1, 0.6), 2);
    assert_near("share", share(&lost), 0.1, 0.004);
    assert_near("run", mean_run(&lost), 1.0 / (0.4 * 0.9), 0.08);
    assert_near("lag 1", correlation(&lost, 1), 0.6, 0.02);
    assert_near("lag 2", correlation(&lost, 2), 0.36, 0.02);
}

#[test]
fn bursts_have_the_asked_share_and_length() {
    for (seed, (loss, burst)) in [(0.05, 4.0), (0.2, 1.5), (0.01, 10.0), (0.5, 3.0)]
        .into_iter()
        .enumerate()
    {
        let lost = losses(Conditions::default().burst_loss(loss, burst), seed as u64);
        assert_near("share", share(&lost), loss, loss * 0.1);
        assert_near("burst", mean_run(&lost), burst, burst * 0.06);
    }
}

#[test]
fn all_four_parameters_of_the_chain_count() {
    let chain = GilbertElliott {
        enter_bad: 0.02,
        leave_bad: 0.2,
        loss_good: 0.01,
        loss_bad: 0.5,
    };
    let lost = losses(Conditions::default().gilbert_elliott(chain), 3);
    assert_near(
        "mean",
        chain.mean_loss(),
        0.01 * 10.0 / 11.0 + 0.5 / 11.0,
        1e-9,
    );
    assert_near("share", share(&lost), chain.mean_loss(), 0.002);
}

#[test]
fn burst_and_independent_loss_add_up_and_are_counted_apart() {
    let mut link = Conditioner::new(Conditions::default().loss(0.1).burst_loss(0.2, 3.0), 4);
    for _ in 0..DATAGRAMS {
        link.offer(Instant::ZERO, packet());
    }
    let counters = *link.counters();
    let total = counters.lost() as f64 / DATAGRAMS as f64;
    assert_near("total", total, 1.0 - 0.9 * 0.8, 0.005);
    assert_near(
        "random",
        counters.lost_random as f64 / DATAGRAMS as f64,
        0.1,
        0.003,
    );
    assert_near(
        "burst",
        counters.lost_burst as f64 / DATAGRAMS as f64,
        0.9 * 0.2,
        0.005,
    );
    assert_eq!(counters.offered, counters.delivered + counters.lost());
}

#[test]
fn certain_and_impossible_loss_are_exact() {
    assert!(
        losses(Conditions::default().loss(1.0), 5)
            .iter()
            .all(|&lost| lost)
    );
    assert!(losses(Conditions::default(), 5).iter().all(|&lost| !lost));
    let mut link = Conditioner::new(Conditions::default().loss(1.0), 6);
    assert_eq!(
        link.offer(Instant::ZERO, packet()).lost(),
        Some(Cause::Random)
    );
}

fn packet() -> Packet {
    Packet::new(([192, 0, 2, 1], 9).into(), 100, Ecn::NotCapable)
}

fn losses(conditions: Conditions, seed: u64) -> Vec<bool> {
    let mut link = Conditioner::new(conditions, seed);
    (0..DATAGRAMS)
        .map(|_| link.offer(Instant::ZERO, packet()).lost().is_some())
        .collect()
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
}

/// Mean length of the runs of losses.
fn mean_run(lost: &[bool]) -> f64 {
    let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    lost.iter().filter(|&&lost| lost).count() as f64 / runs as f64
}

fn correlation(lost: &[bool], lag: usize) -> f64 {
    let mean = share(lost);
    let value = |lost: bool| f64::from(u8::from(lost)) - mean;
    let products = lost
        .iter()
        .zip(&lost[lag..])
        .map(|(&a, &b)| value(a) * value(b))
        .sum::<f64>();
    products / (lost.len() - lag) as f64 / (mean * (1.0 - mean))
}

#[track_caller]
fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{what}: {value}, expected {expected} +- {tolerance}"
    );
}
