//! Joining a match that is under way, within a budget.

use muse_netcode::{Server, SessionConfig, Tick};
use muse_wire::Duration;

use crate::character::Rules;
use crate::crowd::Crowd;
use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};
use crate::stage::{LabStage, Scene, TICK, conditions};

pub(super) fn plot() -> Plot {
    let budgets = [
        (300, "300 bytes a snapshot (120 kbit/s)", Colour::Red),
        (600, "600 bytes", Colour::Orange),
        (2_400, "2,400 bytes", Colour::Green),
    ];
    let mut panel = Panel::new(
        Axis::new("time since it began to connect (s)", 0.0, 1.0),
        Axis::new("entities known (%)", 0.0, 105.0),
    );
    for (budget, name, colour) in budgets {
        panel = panel.with(Series::new(name, colour, Mark::Line, join_late(budget)));
    }
    Plot::new(
        "Modes: three spectators join late",
        "800 characters are running about, round trip 80 ms, 2 % loss. A newcomer is sent everything whole, over as many packets as its budget takes; \
         the match does not wait for it.",
    )
    .panel(panel)
}

/// A spectator joins after two seconds; gives the share of entities that it knows over time.
fn join_late(budget: usize) -> Vec<(f64, f64)> {
    let config = SessionConfig::new(TICK).bytes_per_snapshot(budget);
    let mut stage = LabStage::with_config(17, config);
    let crowd = Crowd::spawn(stage.server_mut(), COUNT, 300.0, 30);
    let known = Vec::new();
    let mut scene = Watch { crowd, known };
    stage.run(Duration::from_secs(2), &mut scene);
    stage.watch(conditions(80).loss(0.02));
    stage.run(Duration::from_millis(1_000), &mut scene);
    scene.known
}

struct Watch {
    crowd: Crowd,
    known: Vec<(f64, f64)>,
}

impl Scene for Watch {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        self.crowd.step(server, tick);
    }

    fn look(&mut self, stage: &mut LabStage) {
        let now = stage.seconds() - 2.0;
        if now < 0.0 || !stage.is_every(Duration::from_millis(10)) {
            return;
        }
        let receiver = stage.guest(0).client().receiver();
        let count = receiver.entities().count() as f64;
        self.known.push((now, count / COUNT as f64 * 100.0));
    }
}

const COUNT: u64 = 800;
