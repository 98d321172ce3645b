//! The server's buffer of one client's inputs, on three networks one after the other.

use muse_netem::Jitter;
use muse_wire::Duration;

use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};
use crate::stage::{FIRST_CLIENT, LabStage, Scene, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(8);
    stage.join(1, conditions(80));
    let mut scene = Watch::default();
    stage.run(Duration::from_secs(10), &mut scene);
    let jitter = Jitter::Uniform(Duration::from_millis(50));
    stage.set_conditions(0, conditions(80).jitter(jitter));
    stage.run(Duration::from_secs(10), &mut scene);
    stage.set_conditions(0, conditions(80).jitter(jitter).loss(0.1));
    stage.run(Duration::from_secs(10), &mut scene);
    let panel = |label, top, pixels| {
        let jitter = [(10.0, 0.0), (20.0, top)];
        let both = [(20.0, 0.0), (30.0, top)];
        Panel::new(Axis::new("time (s)", 0.0, 30.0), Axis::new(label, 0.0, top))
            .tall(pixels)
            .with(Series::new(
                "up to 50 ms of jitter",
                Colour::Grey,
                Mark::Shade,
                jitter,
            ))
            .with(Series::new("and 10 % loss", Colour::Red, Mark::Shade, both))
    };
    Plot::new(
        "Inputs: how long they wait on the server, and how many come too late",
        "The server asks for inputs as early as the measured jitter and loss require, and no earlier. When delays begin to vary, inputs wait longer by about as \
         much; some ticks of the first second go without their input, and hardly any after. Against loss each packet repeats earlier inputs, and goes twice if that \
         is not enough.",
    )
    .panel(
        panel("mean wait (ms)", 60.0, 200).with(Series::new(
            "wait in the buffer",
            Colour::Blue,
            Mark::Line,
            scene.waits,
        )),
    )
    .panel(
        panel("of 25 ticks", 25.0, 130).with(Series::new(
            "ticks without their input",
            Colour::Red,
            Mark::Columns(0.4),
            scene.missed,
        )),
    )
    .panel(
        panel("bytes a tick", 80.0, 130).with(Series::new(
            "sent by the client, answers to snapshots included",
            Colour::Orange,
            Mark::Line,
            scene.bytes,
        )),
    )
}

#[derive(Default)]
struct Watch {
    last: Counts,
    waits: Vec<(f64, f64)>,
    missed: Vec<(f64, f64)>,
    bytes: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    received: u64,
    missed: u64,
    waited_micros: u64,
    bytes: u64,
}

impl Scene for Watch {
    fn look(&mut self, stage: &mut LabStage) {
        if !stage.is_every(Duration::from_millis(500)) {
            return;
        }
        let Some(counters) = stage.server().input_counters(FIRST_CLIENT) else {
            return;
        };
        let counts = Counts {
            received: counters.received,
            missed: counters.repeated + counters.missing,
            waited_micros: counters.waited_micros,
            bytes: stage.guest(0).sent_bytes(),
        };
        let last = std::mem::replace(&mut self.last, counts);
        let middle = stage.seconds() - 0.25;
        let received = counts.received - last.received;
        if received > 0 {
            let waited = (counts.waited_micros - last.waited_micros) as f64 / 1e3;
            self.waits.push((middle, waited / received as f64));
            self.bytes
                .push((middle, (counts.bytes - last.bytes) as f64 / 25.0));
        }
        self.missed
            .push((middle, (counts.missed - last.missed) as f64));
    }
}
