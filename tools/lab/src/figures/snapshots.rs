//! Delta snapshots over a network that fails for a while.

use muse_netcode::{Server, Tick};
use muse_wire::{Duration, Instant};

use crate::character::{Rules, TICKS_PER_SECOND};
use crate::crowd::Crowd;
use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};
use crate::stage::{LabStage, Scene, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(2);
    let crowd = Crowd::spawn(stage.server_mut(), 100, 100.0, 5);
    stage.join(1, conditions(40));
    let out = (Instant::from_millis(3_000), Instant::from_millis(3_400));
    stage.join(2, conditions(160).outage(out.0, out.1));
    let mut scene = Watch {
        crowd,
        ages: [Vec::new(), Vec::new()],
    };
    stage.run(Duration::from_secs(6), &mut scene);
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
    let [near, far] = scene.ages;
    let shade = |top| {
        let points = [(3.08, 0.0), (3.48, top)];
        Series::new(
            "nothing gets through to the second",
            Colour::Grey,
            Mark::Shade,
            points,
        )
    };
    Plot::new(
        "Snapshots: what arrives, and how old it is",
        "States are whole until the client has acknowledged one; from then on they are differences to the newest that it has acknowledged, and a longer round trip makes those a little larger. After \
         0.4 s without a packet the next packet is understood at once. Congestion control, which heard nothing for so long, has room for few bytes during a round trip; then differences are larger for a moment, because what they build \
         upon is older.",
    )
    .panel(
        Panel::new(
            Axis::new("time (s)", 0.0, 6.0),
            Axis::new("bytes in a snapshot of 102 entities", 0.0, 1_200.0),
        )
        .with(shade(1_200.0))
        .with(Series::new("round trip 40 ms", Colour::Blue, Mark::Specks, sizes(0)))
        .with(Series::new("round trip 160 ms", Colour::Orange, Mark::Specks, sizes(1))),
    )
    .panel(
        Panel::new(
            Axis::new("time (s)", 0.0, 6.0),
            Axis::new("age of the newest state (ms)", 0.0, 600.0),
        )
        .tall(170)
        .with(shade(600.0))
        .with(Series::new("round trip 40 ms", Colour::Blue, Mark::Line, near))
        .with(Series::new("round trip 160 ms", Colour::Orange, Mark::Line, far)),
    )
}

struct Watch {
    crowd: Crowd,
    ages: [Vec<(f64, f64)>; 2],
}

impl Scene for Watch {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        self.crowd.step(server, tick);
    }

    fn look(&mut self, stage: &mut LabStage) {
        if !stage.is_every(Duration::from_millis(10)) {
            return;
        }
        for (number, ages) in self.ages.iter_mut().enumerate() {
            let Some(tick) = stage.guest(number).client().receiver().tick() else {
                continue;
            };
            let sent = f64::from(tick.0) / f64::from(TICKS_PER_SECOND);
            ages.push((stage.seconds(), (stage.seconds() - sent) * 1e3));
        }
    }
}
