//! The quality of the connection that the player is told.

use muse_netcode::quality::{Liveness, QualityLevel};
use muse_netem::Jitter;
use muse_wire::{Duration, Instant};

use crate::plot::*;
use crate::stage::{LabStage, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(13);
    stage.join(1, conditions(50));
    let (mut ping, mut jitter, mut loss) = (Vec::new(), Vec::new(), Vec::new());
    let (mut level, mut presence) = (Vec::new(), Vec::new());
    let mut look = |stage: &mut LabStage| {
        if !stage.is_every(Duration::from_millis(100)) {
            return;
        }
        let now = stage.seconds();
        let quality = stage.guest(0).client().quality();
        ping.extend(quality.ping().map(|ping| (now, ping.as_millis_f64())));
        jitter.push((now, quality.jitter().as_millis_f64()));
        loss.push((now, quality.loss() * 100.0));
        let shown = match quality.level() {
            QualityLevel::Good => 0.0,
            QualityLevel::Fair => 1.0,
            QualityLevel::Poor => 2.0,
        };
        step(&mut level, (now, shown));
        let heard = match quality.liveness() {
            Liveness::Here => 0.0,
            Liveness::Frozen => 1.0,
            Liveness::Reconnecting => 2.0,
            Liveness::Gone => 3.0,
        };
        step(&mut presence, (now, heard));
    };
    stage.run(Duration::from_secs(6), &mut look);
    let uneven = Jitter::Uniform(Duration::from_millis(60));
    stage.set_conditions(0, conditions(90).jitter(uneven).loss(0.04));
    stage.run(Duration::from_secs(8), &mut look);
    let (out, back) = (Instant::from_secs(20), Instant::from_secs(25));
    stage.set_conditions(0, conditions(50).outage(out, back));
    stage.run(Duration::from_secs(26), &mut look);
    let panel = |y: Axis, pixels| {
        Panel::new(("time (s)", 0.0, 40.0), y)
            .tall(pixels)
            .shade("slow, uneven, lossy", Orange, 6.0, 14.0)
            .shade("no connection", Red, 20.0, 25.0)
    };
    let figures = panel(Axis::new("ms, %", 0.0, 400.0), 200)
        .with("ping (ms)", Blue, Line, ping)
        .with("jitter (ms)", Purple, Line, jitter)
        .with("loss of the last 512 packets (%)", Red, Dashed, loss);
    let names = [(0.0, "good"), (1.0, "fair"), (2.0, "poor")];
    let icon = panel(Axis::new("icon", -0.2, 2.2).named(names), 110).with(
        "what the icon shows",
        Green,
        Thick,
        level,
    );
    let names = ["here", "frozen", "reconnect", "gone"];
    let names = [0.0, 1.0, 2.0, 3.0].into_iter().zip(names);
    let presence = panel(Axis::new("server", -0.2, 3.2).named(names), 110).with(
        "whether the server can be heard",
        Blue,
        Thick,
        presence,
    );
    Plot::new(
        "Quality: figures, an icon, and whether the server is there",
        "The connection gets worse, recovers, and breaks for five seconds. The icon changes only when the figures have been worse for one second or better for three; silence freezes \
         the game after half a second and asks for a new connection after three. Afterwards the loss of the last 512 packets keeps the icon poor for a while.",
    )
    .panel(figures)
    .panel(icon)
    .panel(presence)
}

/// Adds a point, and a corner before it if it is on another level.
fn step(line: &mut Vec<(f64, f64)>, (x, y): (f64, f64)) {
    if let Some((_, before)) = line.last().copied()
        && before != y
    {
        line.push((x, before));
    }
    line.push((x, y));
}
