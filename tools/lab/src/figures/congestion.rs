//! Flows that share a bottleneck.

use muse_netem::{Jitter, Queue};
use muse_transport::{ChannelConfig, Delivery};
use muse_wire::Duration;

use super::flows::Flows;
use crate::plot::*;
use crate::stage::conditions;

pub(super) fn plot() -> Plot {
    let noise = Jitter::Uniform(Duration::from_micros(500));
    let mut flows = Flows::new(
        3,
        ChannelConfig::new(Delivery::ReliableOrdered),
        conditions(50).jitter(noise).keep_order(true),
        muse_netem::Conditions::default()
            .rate(4_000_000)
            .queue(Queue::Time(Duration::from_secs(1))),
    );
    let mut queue = Vec::new();
    for round in 0..SECONDS * 200 {
        if BEGINNINGS_S.map(|second| second * 200).contains(&round) {
            flows.begin();
        }
        flows.send(1_000, 1_000, 1_000);
        flows.run(Duration::from_millis(5));
        if round % 10 == 0 {
            let delay = flows.queue_delay().as_millis_f64();
            queue.push((flows.simulation.now().as_secs_f64(), delay));
        }
    }
    let time = || Axis::new("time (s)", 0.0, SECONDS as f64);
    let mut rates = Panel::new(time(), ("received (Mbit/s)", 0.0, 4.2)).tall(240);
    for (sender, (name, colour)) in [
        ("the first", Blue),
        ("the second", Orange),
        ("the third", Green),
    ]
    .into_iter()
    .enumerate()
    {
        let points = (BEGINNINGS_S[sender] * 2..SECONDS * 2).map(|half| {
            let arrivals = flows.arrivals.iter().filter(|arrival| {
                arrival.sender == sender && arrival.at.as_micros() / 500_000 == half
            });
            let bytes: usize = arrivals.map(|arrival| arrival.bytes).sum();
            (half as f64 / 2.0 + 0.25, bytes as f64 * 16.0 / 1e6)
        });
        let points: Vec<(f64, f64)> = points.collect();
        rates = rates.with(name, colour, Line, points);
    }
    Plot::new(
        "Congestion control: downloads that share a link of 4 Mbit/s",
        "One connection that always has something to send, a second from 10 s on, a third from 20 s on; the round trip is 50 ms, and the router could hold a second's worth of \
         packets. The link is full, each gets its share within seconds, and the queue that others would have to wait in stays short.",
    )
    .panel(rates)
    .panel(
        Panel::new(time(), ("wait in the queue (ms)", 0.0, 120.0))
            .tall(130)
            .with("a packet that comes now waits", Purple, Line, queue),
    )
}

const SECONDS: u64 = 40;
const BEGINNINGS_S: [u64; 3] = [0, 10, 20];
