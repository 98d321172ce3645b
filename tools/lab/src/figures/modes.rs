//! Joining a match that is under way, within a budget.

use muse_netcode::SessionConfig;
use muse_wire::Duration;

use crate::plot::*;
use crate::stage::{LabStage, TICK, conditions};

pub(super) fn plot() -> Plot {
    let budgets = [
        (300, "300 bytes a snapshot (120 kbit/s)", Red),
        (600, "600 bytes", Orange),
        (2_400, "2,400 bytes", Green),
    ];
    let mut panel = Panel::new(
        ("time since it began to connect (s)", 0.0, 1.0),
        ("entities known (%)", 0.0, 105.0),
    );
    for (budget, name, colour) in budgets {
        panel = panel.with(name, colour, Line, join_late(budget));
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
    stage.add_crowd(COUNT, 300.0, 30);
    stage.run(Duration::from_secs(2), &mut |_: &mut LabStage| ());
    stage.watch(conditions(80).loss(0.02));
    let mut known = Vec::new();
    stage.run(Duration::from_secs(1), &mut |stage: &mut LabStage| {
        if stage.is_every(Duration::from_millis(10)) {
            let receiver = stage.guest(0).client().receiver();
            let count = receiver.entities().count() as f64;
            known.push((stage.seconds() - 2.0, count / COUNT as f64 * 100.0));
        }
    });
    known
}

const COUNT: u64 = 800;
