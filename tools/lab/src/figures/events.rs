//! Events of the three classes over a network that loses a fifth.

use muse_netcode::{EventClass, Server, Tick};
use muse_wire::Duration;

use crate::character::{Rules, TICKS_PER_SECOND};
use crate::plot::*;
use crate::stage::{LabStage, Scene, conditions};

pub(super) fn plot() -> Plot {
    let mut stage = LabStage::new(6);
    stage.join(1, conditions(100).loss(0.2));
    stage.run(Duration::from_secs(12), &mut Raise);
    let mut panel = Panel::new(
        ("time at which it happened (s)", 2.0, 10.0),
        ("time until the client was told (ms)", 0.0, 520.0),
    );
    let mut never = Vec::new();
    let classes = [
        ("guaranteed", Orange, Dots, EventClass::Guaranteed),
        ("guaranteed quickest", Green, Dots, EventClass::Quickest),
        ("unreliable", Purple, Rings, EventClass::Unreliable),
    ];
    for (name, colour, mark, class) in classes {
        let told = stage.guest(0).events().iter();
        let told = told.filter(|(_, event)| event.class == class);
        let delays: Vec<(f64, f64)> = told
            .map(|(at, event)| {
                let happened = f64::from(event.tick.0) / f64::from(TICKS_PER_SECOND);
                (happened, (at.as_secs_f64() - happened) * 1e3)
            })
            .filter(|(happened, _)| (2.0..10.0).contains(happened))
            .collect();
        let raised = raised().filter(|tick| {
            let told = |(_, event): &(_, muse_netcode::Event)| {
                event.class == class && event.tick.0 == *tick
            };
            !stage.guest(0).events().iter().any(told)
        });
        never.extend(raised.map(|tick| (f64::from(tick) / f64::from(TICKS_PER_SECOND), 12.0)));
        panel = panel.with(name, colour, mark, delays);
    }
    never.retain(|(happened, _)| (2.0..10.0).contains(happened));
    let name = format!("never told: {}, all of them unreliable", never.len());
    let panel = panel.with(&name, Red, Crosses, never);
    Plot::new(
        "Events: each is told once, or never if it is unreliable",
        "Every 0.1 s something happens, in each of the three classes; the way takes 50 ms and every fifth packet is lost. Unreliable events are sent once. Guaranteed ones are sent \
         again when the loss is noticed, and later ones wait for them. The quickest are in every packet until one has arrived.",
    )
    .panel(panel)
}

struct Raise;

impl Scene for Raise {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        if !tick.0.is_multiple_of(EVERY) {
            return;
        }
        for class in [
            EventClass::Unreliable,
            EventClass::Guaranteed,
            EventClass::Quickest,
        ] {
            let bytes = tick.0.to_le_bytes();
            let raised = server.world_mut().emit(None, class, 1, &bytes);
            raised.expect("few bytes");
        }
    }
}

fn raised() -> impl Iterator<Item = u32> {
    (0..12 * TICKS_PER_SECOND).step_by(EVERY as usize)
}

const EVERY: u32 = 5;
