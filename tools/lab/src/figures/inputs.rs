//! The server's buffer of one client's inputs, on three networks one after the other.

use muse_netcode::inputs::InputCounters;
use muse_netem::Jitter;
use muse_wire::Duration;

use crate::plot::*;
use crate::stage::{FIRST_CLIENT, LabStage, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(8);
    stage.join(1, conditions(80));
    let (mut waits, mut missed, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = (InputCounters::default(), 0);
    let mut look = |stage: &mut LabStage| {
        let counters = stage.server().input_counters(FIRST_CLIENT);
        let Some(now) = counters.filter(|_| stage.is_every(Duration::from_millis(500))) else {
            return;
        };
        let (now, sent) = (*now, stage.guest(0).sent_bytes());
        let (before, sent_before) = std::mem::replace(&mut last, (now, sent));
        let middle = stage.seconds() - 0.25;
        let received = now.received - before.received;
        if received > 0 {
            let waited = (now.waited_micros - before.waited_micros) as f64 / 1e3;
            waits.push((middle, waited / received as f64));
            bytes.push((middle, (sent - sent_before) as f64 / 25.0));
        }
        let late = |counters: InputCounters| counters.repeated + counters.missing;
        missed.push((middle, (late(now) - late(before)) as f64));
    };
    let jitter = Jitter::Uniform(Duration::from_millis(50));
    let uneven = conditions(80).jitter(jitter);
    for network in [conditions(80), uneven.clone(), uneven.loss(0.1)] {
        stage.set_conditions(0, network);
        stage.run(Duration::from_secs(10), &mut look);
    }
    let panel = |label, top, pixels| {
        Panel::new(("time (s)", 0.0, 30.0), (label, 0.0, top))
            .tall(pixels)
            .shade("up to 50 ms of jitter", Grey, 10.0, 20.0)
            .shade("and 10 % loss", Red, 20.0, 30.0)
    };
    let sent = "sent by the client, answers to snapshots included";
    let waits = panel("mean wait (ms)", 60.0, 200).with("wait in the buffer", Blue, Line, waits);
    let missed = panel("of 25 ticks", 25.0, 130).with(
        "ticks without their input",
        Red,
        Columns(0.4),
        missed,
    );
    let bytes = panel("bytes a tick", 80.0, 130).with(sent, Orange, Line, bytes);
    Plot::new(
        "Inputs: how long they wait on the server, and how many come too late",
        "The server asks for inputs as early as the measured jitter and loss require, and no earlier. When delays begin to vary, inputs wait longer by about as \
         much; some ticks of the first second go without their input, and hardly any after. Against loss each packet repeats earlier inputs, and goes twice if that \
         is not enough.",
    )
    .panel(waits)
    .panel(missed)
    .panel(bytes)
}
