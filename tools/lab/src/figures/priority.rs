//! The entities that are sent when not everything fits.

use std::collections::BTreeMap;

use muse_netcode::{EntityId, Server, SessionConfig, Tick};
use muse_wire::{Duration, Instant};

use crate::character::{Body, Keys, Rules, kinds};
use crate::plot::*;
use crate::stage::{FIRST_CLIENT, LabStage, Scene, TICK, conditions};

pub(super) fn plot() -> Plot {
    let runs = [
        (300, "300 bytes a snapshot", Orange),
        (600, "600 bytes", Purple),
        (1_200, "1,200 bytes", Blue),
    ];
    let waits = runs.map(|(budget, _, _)| run(budget));
    let panel = |label, top, of: fn(&Wait) -> f64| {
        let mut panel = Panel::new(
            ("distance from the player (m)", 0.0, 150.0),
            (label, 0.0, top),
        );
        for ((_, name, colour), waits) in runs.iter().zip(&waits) {
            let points = waits.iter().map(|wait| (wait.distance, of(wait)));
            panel = panel.with(name, *colour, Specks, points);
        }
        panel
    };
    Plot::new(
        "Priority: time between two states of an entity, by distance",
        "150 characters move in every tick, and a snapshot has room for some of them. Near ones come more often because they weigh more; what has \
         waited for 0.3 s comes first whatever it weighs, so that even with 2 % loss nobody waits for a second.",
    )
    .panel(panel("mean time (ms)", 200.0, |wait| wait.mean).tall(240))
    .panel(panel("longest time (ms)", 500.0, |wait| wait.longest).tall(240))
}

/// The time that the client waited for states of one entity, in milliseconds.
struct Wait {
    distance: f64,
    mean: f64,
    longest: f64,
}

fn run(budget: usize) -> Vec<Wait> {
    let config = SessionConfig::new(TICK).bytes_per_snapshot(budget);
    let mut stage = LabStage::with_config(4, config);
    let crowd = stage.add_crowd(150, 200.0, 9);
    let still = |_| Keys::default();
    stage.join_as(Body::at(0.0, 0.0), conditions(60).loss(0.02), still);
    stage.run(Duration::from_secs(12), &mut Weighed(crowd));
    let mut times: BTreeMap<EntityId, Vec<Instant>> = BTreeMap::new();
    for (at, entity, _) in stage.guest(0).states() {
        if *at >= Instant::from_secs(2) {
            times.entry(*entity).or_default().push(*at);
        }
    }
    let own = stage.guest(0).client().player();
    let waits = times.iter().filter(|(entity, _)| Some(**entity) != own);
    waits
        .map(|(entity, times)| {
            let gaps: Vec<f64> = times
                .windows(2)
                .map(|pair| (pair[1] - pair[0]).as_millis_f64())
                .collect();
            let body = stage.truth(*entity).expect("bots stay");
            Wait {
                distance: f64::from(body.place().length()),
                mean: gaps.iter().sum::<f64>() / gaps.len().max(1) as f64,
                longest: gaps.iter().copied().fold(0.0, f64::max),
            }
        })
        .collect()
}

/// Nearby entities weigh more.
struct Weighed(Vec<EntityId>);

impl Scene for Weighed {
    fn tick(&mut self, server: &mut Server<Rules>, _: Tick) {
        let weighed = self.0.iter().filter_map(|entity| {
            let body = server.world().state(kinds().1, *entity)?;
            Some((*entity, 20.0 / (20.0 + body.place().length())))
        });
        let weighed: Vec<(EntityId, f32)> = weighed.collect();
        server.set_interest(FIRST_CLIENT, weighed);
    }
}
