//! Delta snapshots over a network that fails for a while.

use muse_wire::{Duration, Instant};

use crate::character::TICKS_PER_SECOND;
use crate::plot::*;
use crate::stage::{LabStage, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(2);
    stage.add_crowd(100, 100.0, 5);
    stage.join(1, conditions(40));
    let out = (Instant::from_millis(3_000), Instant::from_millis(3_400));
    stage.join(2, conditions(160).outage(out.0, out.1));
    let mut ages = [Vec::new(), Vec::new()];
    stage.run(Duration::from_secs(6), &mut |stage: &mut LabStage| {
        if !stage.is_every(Duration::from_millis(10)) {
            return;
        }
        for (number, ages) in ages.iter_mut().enumerate() {
            if let Some(tick) = stage.guest(number).client().receiver().tick() {
                let sent = f64::from(tick.0) / f64::from(TICKS_PER_SECOND);
                ages.push((stage.seconds(), (stage.seconds() - sent) * 1e3));
            }
        }
    });
    let sizes = |guest: usize| {
        let mut sizes: Vec<(f64, f64)> = Vec::new();
        for arrival in stage.guest(guest).arrivals() {
            let at = arrival.at.as_secs_f64();
            match sizes.last_mut() {
                Some((last, bytes)) if *last == at => *bytes += arrival.bytes as f64,
                _ => sizes.push((at, arrival.bytes as f64)),
            }
        }
        sizes
    };
    let [near, far] = ages;
    let panel = |label, top| {
        Panel::new(("time (s)", 0.0, 6.0), (label, 0.0, top)).shade(
            "nothing gets through to the second",
            Grey,
            3.08,
            3.48,
        )
    };
    let sizes = panel("bytes in a snapshot of 102 entities", 1_200.0)
        .with("round trip 40 ms", Blue, Specks, sizes(0))
        .with("round trip 160 ms", Orange, Specks, sizes(1));
    let ages = panel("age of the newest state (ms)", 600.0)
        .tall(170)
        .with("round trip 40 ms", Blue, Line, near)
        .with("round trip 160 ms", Orange, Line, far);
    Plot::new(
        "Snapshots: what arrives, and how old it is",
        "States are whole until the client has acknowledged one; from then on they are differences to the newest that it has acknowledged, and a longer round trip makes those a little larger. After \
         0.4 s without a packet the next packet is understood at once. Congestion control, which heard nothing for so long, has room for few bytes during a round trip; then differences are larger for a moment, because what they build \
         upon is older.",
    )
    .panel(sizes)
    .panel(ages)
}
