//! The quality of the connection that the player is told.

use muse_netcode::quality::{Liveness, QualityLevel};
use muse_netem::Jitter;
use muse_wire::{Duration, Instant};

use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};
use crate::stage::{LabStage, Scene, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(13);
    stage.join(1, conditions(50));
    let mut scene = Watch::default();
    stage.run(Duration::from_secs(6), &mut scene);
    let jitter = Jitter::Uniform(Duration::from_millis(60));
    stage.set_conditions(0, conditions(90).jitter(jitter).loss(0.04));
    stage.run(Duration::from_secs(8), &mut scene);
    let (out, back) = (Instant::from_secs(20), Instant::from_secs(25));
    stage.set_conditions(0, conditions(50).outage(out, back));
    stage.run(Duration::from_secs(26), &mut scene);
    let time = || Axis::new("time (s)", 0.0, 40.0);
    let shades = |top| {
        let (bad, out) = ([(6.0, 0.0), (14.0, top)], [(20.0, 0.0), (25.0, top)]);
        [
            Series::new("slow, uneven, lossy", Colour::Orange, Mark::Shade, bad),
            Series::new("no connection", Colour::Red, Mark::Shade, out),
        ]
    };
    let [bad, out] = shades(400.0);
    let figures = Panel::new(time(), Axis::new("ms, %", 0.0, 400.0))
        .tall(200)
        .with(bad)
        .with(out)
        .with(Series::new(
            "ping (ms)",
            Colour::Blue,
            Mark::Line,
            scene.ping,
        ))
        .with(Series::new(
            "jitter (ms)",
            Colour::Purple,
            Mark::Line,
            scene.jitter,
        ))
        .with(Series::new(
            "loss of the last 512 packets (%)",
            Colour::Red,
            Mark::Dashed,
            scene.loss,
        ));
    let names = [(0.0, "good"), (1.0, "fair"), (2.0, "poor")];
    let [bad, out] = shades(2.2);
    let icon = Panel::new(time(), Axis::new("icon", -0.2, 2.2).named(names))
        .tall(110)
        .with(bad)
        .with(out)
        .with(Series::new(
            "what the icon shows",
            Colour::Green,
            Mark::Thick,
            scene.level,
        ));
    let names = [
        (0.0, "here"),
        (1.0, "frozen"),
        (2.0, "reconnect"),
        (3.0, "gone"),
    ];
    let [bad, out] = shades(3.2);
    let presence = Panel::new(time(), Axis::new("server", -0.2, 3.2).named(names))
        .tall(110)
        .with(bad)
        .with(out)
        .with(Series::new(
            "whether the server can be heard",
            Colour::Blue,
            Mark::Thick,
            scene.presence,
        ));
    Plot::new(
        "Quality: figures, an icon, and whether the server is there",
        "The connection gets worse, recovers, and breaks for five seconds. The icon changes only when the figures have been worse for one second or better for three; silence freezes \
         the game after half a second and asks for a new connection after three. Afterwards the loss of the last 512 packets keeps the icon poor for a while.",
    )
    .panel(figures)
    .panel(icon)
    .panel(presence)
}

#[derive(Default)]
struct Watch {
    ping: Vec<(f64, f64)>,
    jitter: Vec<(f64, f64)>,
    loss: Vec<(f64, f64)>,
    level: Vec<(f64, f64)>,
    presence: Vec<(f64, f64)>,
}

impl Scene for Watch {
    fn look(&mut self, stage: &mut LabStage) {
        if !stage.is_every(Duration::from_millis(100)) {
            return;
        }
        let now = stage.seconds();
        let quality = stage.guest(0).client().quality();
        let ping = quality.ping().map(|ping| (now, ping.as_millis_f64()));
        self.ping.extend(ping);
        self.jitter.push((now, quality.jitter().as_millis_f64()));
        self.loss.push((now, quality.loss() * 100.0));
        let level = match quality.level() {
            QualityLevel::Good => 0.0,
            QualityLevel::Fair => 1.0,
            QualityLevel::Poor => 2.0,
        };
        step(&mut self.level, (now, level));
        let presence = match quality.liveness() {
            Liveness::Here => 0.0,
            Liveness::Frozen => 1.0,
            Liveness::Reconnecting => 2.0,
            Liveness::Gone => 3.0,
        };
        step(&mut self.presence, (now, presence));
    }
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
