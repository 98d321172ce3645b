//! Another player as it is shown, and how late.

use muse_netcode::SessionConfig;
use muse_netem::Jitter;
use muse_wire::Duration;

use crate::character::{Body, Keys, kinds};
use crate::plot::*;
use crate::stage::{LabStage, TICK, conditions};

pub(super) fn plot() -> Plot {
    let config = SessionConfig::new(TICK).snapshot_interval(3);
    let mut stage = LabStage::with_config(12, config);
    let bot = stage.add_crowd(1, 1.0, 21)[0];
    let still = |_| Keys::default();
    stage.join_as(Body::at(0.0, 0.0), conditions(80), still);
    let (mut on_server, mut arrived) = (Vec::new(), Vec::new());
    let (mut as_drawn, mut behind) = (Vec::new(), Vec::new());
    let mut seen = 0;
    let mut look = |stage: &mut LabStage| {
        if !stage.is_every(Duration::from_millis(5)) {
            return;
        }
        let now = stage.seconds();
        let truth = stage.truth(bot).map(|body| body.position[0]);
        let guest = stage.guest_mut(0);
        let drawn = guest.show().find(|(entity, _)| *entity == bot);
        let drawn = drawn.map(|(_, shown)| shown.state.position[0]);
        let receiver = guest.client().receiver();
        let new = guest.states()[seen..].iter();
        let of_bot = new.filter(|(_, entity, _)| *entity == bot);
        let states = of_bot.filter_map(|(at, entity, tick)| {
            let body = receiver.state_at(kinds().1, *entity, *tick)?;
            Some((at.as_secs_f64(), f64::from(body.position[0])))
        });
        arrived.extend(states.filter(|(at, _)| (FROM..TO).contains(at)));
        seen = guest.states().len();
        if let Some(time) = guest.client().shown_time()
            && now.fract() < 0.001
        {
            let shown = time.ticks() * TICK.as_secs_f64();
            behind.push((now, (now - shown) * 1e3));
        }
        if (FROM..TO).contains(&now) {
            on_server.extend(truth.map(|x| (now, f64::from(x))));
            as_drawn.extend(drawn.map(|x| (now, f64::from(x))));
        }
    };
    stage.run(Duration::from_secs(10), &mut look);
    let jitter = Jitter::Uniform(Duration::from_millis(60));
    stage.set_conditions(0, conditions(80).jitter(jitter).loss(0.05));
    stage.run(Duration::from_secs(20), &mut look);
    let bounds = on_server.iter().map(|(_, x)| *x);
    let low = bounds.clone().fold(f64::INFINITY, f64::min).floor();
    let high = bounds.fold(f64::NEG_INFINITY, f64::max).ceil();
    Plot::new(
        "Interpolation: others are shown a little in the past",
        "17 snapshots a second; from 10 s on delays vary by up to 60 ms and 5 % are lost. Dots are states as they arrive, late, unevenly and not at all; the drawn line \
         goes through all of them without a jump. Below: how much later than the truth it is drawn follows what the network needs.",
    )
    .panel(
        Panel::new(("time (s)", FROM, TO), ("position (m)", low, high))
            .tall(270)
            .with("on the server", Blue, Line, on_server)
            .with("states as they arrive", Grey, Dots, arrived)
            .with("as it is drawn", Orange, Line, as_drawn),
    )
    .panel(
        Panel::new(("time (s)", 0.0, 30.0), ("drawn later by (ms)", 0.0, 250.0))
            .tall(150)
            .shade("jitter and loss", Grey, 10.0, 30.0)
            .with("40 ms for the way, the rest for interpolation", Purple, Line, behind),
    )
}

const FROM: f64 = 20.0;
const TO: f64 = 22.4;
