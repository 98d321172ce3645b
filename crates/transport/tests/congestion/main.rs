//! Bars for the controllers, met in a packet-level simulation (VC-8, VC-9). `cargo test -p muse-transport --test congestion --
//! --nocapture` prints the tables of `docs/congestion.md`.

mod cubic;
mod sim;

use muse_transport::congestion::{Congestion, Controller};
use muse_wire::{Duration, Instant};
use sim::{Flow, PACKET, Path, run};

fn adaptive() -> Box<dyn Controller> {
    Congestion::adaptive().build(PACKET, Instant::ZERO)
}

fn greedy(controller: Box<dyn Controller>, start_s: u64) -> Flow {
    Flow { controller, start: Duration::from_secs(start_s), demand: None }
}

fn seeds() -> std::ops::Range<u64> {
    1..11
}

fn grid() -> Vec<(u64, u64, f64)> {
    let mut grid = Vec::new();
    for rate in [1, 10, 50] {
        for rtt_ms in [20, 80] {
            for products in [1.0, 4.0] {
                grid.push((rate, rtt_ms, products));
            }
        }
    }
    grid
}

#[test]
fn two_flows_share_a_bottleneck() {
    println!("rate rtt bdp start  ratio util p95");
    for (rate, rtt, bdp) in grid() {
        let path = Path::new(rate * 1_000_000, rtt).buffer_bdp(bdp);
        for start in [0, 5] {
            for seed in seeds() {
                let out = run(&path, vec![greedy(adaptive(), 0), greedy(adaptive(), start)], 60, seed);
                let (a, b) = (out.rate(0, 20, 60), out.rate(1, 20, 60));
                println!(
                    "{rate:4} {rtt:3} {bdp} {start}  {:.2} {:.2} {} drop {:.3}",
                    b / a, (a + b) / path.rate as f64, out.queue_percentile(0.95),
                    out.dropped[0] as f64 / out.sent[0] as f64
                );
            }
        }
    }
}

#[test]
fn beside_cubic_neither_starves() {
    println!("rate rtt bdp start  adaptive cubic (fair shares) p95");
    for (rate, rtt, bdp) in grid() {
        let path = Path::new(rate * 1_000_000, rtt).buffer_bdp(bdp);
        for (s0, s1) in [(0, 0), (0, 5), (5, 0)] {
            for seed in seeds() {
                let out = run(&path, vec![greedy(adaptive(), s0), greedy(cubic::Cubic::boxed(), s1)], 60, seed);
                let fair = path.rate as f64 / 2.0;
                let (a, b) = (out.rate(0, 0, 60) / fair, out.rate(1, 0, 60) / fair);
                println!("{rate:4} {rtt:3} {bdp} {s0}/{s1}  {a:.2} {b:.2} {}", out.queue_percentile(0.95));
            }
        }
    }
}

#[test]
fn two_cubics() {
    for (rate, rtt, bdp) in grid() {
        let path = Path::new(rate * 1_000_000, rtt).buffer_bdp(bdp);
        for seed in seeds() {
            let out = run(&path, vec![greedy(cubic::Cubic::boxed(), 0), greedy(cubic::Cubic::boxed(), 5)], 60, seed);
            let fair = path.rate as f64 / 2.0;
            let (a, b) = (out.rate(0, 0, 60) / fair, out.rate(1, 0, 60) / fair);
            println!("{rate:4} {rtt:3} {bdp} {a:.2} {b:.2} {}", out.queue_percentile(0.95));
        }
    }
}

#[test]
fn alone() {
    for seed in seeds() {
        let mbit = |m: f64| (m * 1e6) as u64;
        let show = |name: &str, path: Path, s: u64| {
            let out = run(&path, vec![greedy(adaptive(), 0)], s, seed);
            let end = path.change.map_or(path.rate, |c| c.1);
            println!("{name:24} util {:.2} end {:.2} p50 {} p95 {} p99 {} drop {:.3}", out.rate(0, 0, s) / path.rate as f64,
                out.rate(0, s - s.min(5), s) / end as f64,
                out.queue_percentile(0.5), out.queue_percentile(0.95), out.queue_percentile(0.99),
                out.dropped[0] as f64 / out.sent[0] as f64);
        };
        show("1 Mbit 1 s buffer", Path::new(mbit(1.0), 50).buffer_ms(1_000), 60);
        show("10 Mbit 1 s buffer", Path::new(mbit(10.0), 50).buffer_ms(1_000), 60);
        let mut p = Path::new(mbit(10.0), 50);
        p.loss = 0.02;
        show("2 % loss", p.clone(), 60);
        p.loss = 0.10;
        show("10 % loss", p, 60);
        let mut p = Path::new(mbit(10.0), 50).buffer_ms(1_000);
        p.change = Some((Duration::from_secs(20), mbit(20.0)));
        show("doubled", p.clone(), 25);
        p.change = Some((Duration::from_secs(20), mbit(5.0)));
        show("halved", p, 25);
        for r in [1.0, 4.0, 10.0, 50.0] {
            let mut p = Path::new(mbit(r), 50);
            p.jitter = Duration::from_millis(10);
            show(&format!("jitter {r}"), p.clone(), 60);
            p.reorder = true;
            show(&format!("jitter reorder {r}"), p, 60);
        }
        let mut p = Path::new(mbit(10_000.0), 1).buffer_ms(10);
        p.rtt = Duration::from_micros(100);
        p.jitter = Duration::from_millis(1);
        show("loopback", p, 2);
    }
}

#[derive(Debug)]
struct Traced(Box<dyn Controller>, Instant, &'static str);
impl Controller for Traced {
    fn on_sent(&mut self, a: Instant, b: usize, c: usize, d: bool) { self.0.on_sent(a, b, c, d) }
    fn on_ack(&mut self, ack: &muse_transport::congestion::Ack) {
        self.0.on_ack(ack);
        if ack.now - self.1 > Duration::from_millis(500) {
            self.1 = ack.now;
            let s = format!("{:?}", self.0);
            let mode = &s[s.find("mode:").unwrap()..s.find(", delay:").unwrap()];
            let base = &s[s.find("base:").unwrap()..s.find(", recent").unwrap()];
            let noise = &s[s.find("noise:").unwrap()..s.find("}, losses").unwrap()];
            println!("{} {} W {:.0} srtt {} {base} {noise} {mode}", self.2, ack.now, self.0.window() as f64 / 1200.0, ack.rtt_smoothed);
        }
    }
    fn on_loss(&mut self, l: &muse_transport::congestion::Loss) { self.0.on_loss(l) }
    fn window(&self) -> usize { self.0.window() }
    fn pacing_rate(&self) -> Option<u64> { self.0.pacing_rate() }
    fn reset(&mut self, n: Instant) { self.0.reset(n) }
}
#[test]
fn trace() {
    let Ok(s) = std::env::var("TRACE") else { return };
    let v: Vec<f64> = s.split(',').map(|x| x.parse().unwrap()).collect();
    let path = Path::new((v[0] * 1e6) as u64, v[1] as u64).buffer_bdp(v[2]);
    let a = Box::new(Traced(adaptive(), Instant::ZERO, "A"));
    let mut flows = vec![greedy(a, v[3] as u64)];
    if v[4] >= 0.0 {
        let b: Box<dyn Controller> = if v[5] > 0.0 { cubic::Cubic::boxed() } else { Box::new(Traced(adaptive(), Instant::ZERO, "B")) };
        flows.push(greedy(b, v[4] as u64));
    }
    let out = run(&path, flows, 60, 3);
    println!("rate {:?}", out.delivered.iter().enumerate().map(|(i, _)| (0..12).map(|t| (out.rate(i, t * 5, t * 5 + 5) / path.rate as f64 * 100.0) as u64).collect::<Vec<_>>()).collect::<Vec<_>>());
}
