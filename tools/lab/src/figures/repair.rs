//! Messages over a path that loses a twentieth each way, with the three ways to repair it.

use muse_netem::Conditions;
use muse_transport::{ChannelConfig, Delivery, Repair};
use muse_wire::Duration;

use super::flows::Flows;
use crate::plot::*;
use crate::stage::conditions;

pub(super) fn plot() -> Plot {
    let mut panel = Panel::new(
        ("time from sending to delivery (ms)", 50.0, 300.0),
        ("delivered by then (% of messages)", 90.0, 100.2),
    );
    for (name, colour, repair) in [
        ("Repair::Fast", Green, Repair::Fast),
        ("Repair::Balanced (default)", Blue, Repair::Balanced),
        ("Repair::Frugal", Orange, Repair::Frugal),
    ] {
        let (delays, bytes) = run(repair);
        let points = (50..=300).map(|milliseconds| {
            let limit = f64::from(milliseconds);
            let arrived = delays.partition_point(|delay| *delay <= limit);
            (limit, arrived as f64 / delays.len() as f64 * 100.0)
        });
        let points: Vec<(f64, f64)> = points.filter(|(_, share)| *share >= 90.0).collect();
        let name = format!("{name}, {bytes:.0} bytes a message");
        panel = panel.with(&name, colour, Line, points);
    }
    Plot::new(
        "Repair: what a loss costs in time, and what it costs in bytes to have less of it",
        "A message of 100 bytes every 16 ms for two minutes, round trip 110 ms, one packet in twenty lost each way. Nineteen of twenty arrive at once; the others wait for a retransmission, or come \
         out of what was sent besides. Bytes are all that the sender put on the wire, headers of UDP and IP apart.",
    )
    .panel(panel)
}

/// Delays in milliseconds from the shortest on, and bytes sent for each message.
fn run(repair: Repair) -> (Vec<f64>, f64) {
    let channel = ChannelConfig::new(Delivery::ReliableUnordered).repair(repair);
    let way = conditions(110).loss(0.05);
    let mut flows = Flows::new(1, channel, way, Conditions::default());
    flows.begin();
    flows.run(Duration::from_secs(2));
    for _ in 0..MESSAGES {
        flows.send(100, 1, usize::MAX);
        flows.run(Duration::from_millis(16));
    }
    flows.run(Duration::from_secs(3));
    let delays = flows.arrivals.iter();
    let mut delays: Vec<f64> = delays
        .map(|arrival| (arrival.at - arrival.sent).as_millis_f64())
        .collect();
    delays.sort_by(f64::total_cmp);
    (delays, flows.bytes_sent() as f64 / MESSAGES as f64)
}

const MESSAGES: u64 = 7_500;
