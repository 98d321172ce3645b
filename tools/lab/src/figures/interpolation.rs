//! Another player as it is shown, and how late.

use muse_netcode::{EntityId, Server, SessionConfig, Tick};
use muse_netem::Jitter;
use muse_wire::Duration;

use crate::character::{Keys, Rules};
use crate::crowd::Crowd;
use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};
use crate::stage::{LabStage, Scene, TICK, conditions};

pub(super) fn plot() -> Plot {
    let config = SessionConfig::new(TICK).snapshot_interval(3);
    let mut stage = LabStage::with_config(12, config);
    let crowd = Crowd::spawn(stage.server_mut(), 1, 1.0, 21);
    let bot = crowd.entities().next().expect("there is one");
    stage.join_as(crate::character::Body::at(0.0, 0.0), conditions(80), |_| {
        Keys::default()
    });
    let mut scene = Watch {
        crowd,
        bot,
        seen: 0,
        truth: Vec::new(),
        arrived: Vec::new(),
        shown: Vec::new(),
        behind: Vec::new(),
    };
    stage.run(Duration::from_secs(10), &mut scene);
    let jitter = Jitter::Uniform(Duration::from_millis(60));
    stage.set_conditions(0, conditions(80).jitter(jitter).loss(0.05));
    stage.run(Duration::from_secs(20), &mut scene);
    let bounds = scene.truth.iter().map(|(_, x)| *x);
    let low = bounds.clone().fold(f64::INFINITY, f64::min).floor();
    let high = bounds.fold(f64::NEG_INFINITY, f64::max).ceil();
    Plot::new(
        "Interpolation: others are shown a little in the past",
        "17 snapshots a second; from 10 s on delays vary by up to 60 ms and 5 % are lost. Dots are states as they arrive, late, unevenly and not at all; the drawn line \
         goes through all of them without a jump. Below: how much later than the truth it is drawn follows what the network needs.",
    )
    .panel(
        Panel::new(Axis::new("time (s)", FROM, TO), Axis::new("position (m)", low, high))
            .tall(270)
            .with(Series::new("on the server", Colour::Blue, Mark::Line, scene.truth))
            .with(Series::new("states as they arrive", Colour::Grey, Mark::Dots, scene.arrived))
            .with(Series::new("as it is drawn", Colour::Orange, Mark::Line, scene.shown)),
    )
    .panel(
        Panel::new(Axis::new("time (s)", 0.0, 30.0), Axis::new("drawn later by (ms)", 0.0, 250.0))
            .tall(150)
            .with(Series::new("jitter and loss", Colour::Grey, Mark::Shade, [(10.0, 0.0), (30.0, 250.0)]))
            .with(Series::new("40 ms for the way, the rest for interpolation", Colour::Purple, Mark::Line, scene.behind)),
    )
}

struct Watch {
    crowd: Crowd,
    bot: EntityId,
    seen: usize,
    truth: Vec<(f64, f64)>,
    arrived: Vec<(f64, f64)>,
    shown: Vec<(f64, f64)>,
    behind: Vec<(f64, f64)>,
}

impl Scene for Watch {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        self.crowd.step(server, tick);
    }

    fn look(&mut self, stage: &mut LabStage) {
        if !stage.is_every(Duration::from_millis(5)) {
            return;
        }
        let now = stage.seconds();
        let truth = stage.truth(self.bot).map(|body| body.position[0]);
        let guest = stage.guest_mut(0);
        let drawn = guest.show().find(|(entity, _)| *entity == self.bot);
        let drawn = drawn.map(|(_, shown)| shown.state.position[0]);
        let kind = crate::character::kinds().1;
        let receiver = guest.client().receiver();
        let new = guest.states()[self.seen..].iter();
        let of_bot = new.filter(|(_, entity, _)| *entity == self.bot);
        let states = of_bot.filter_map(|(at, entity, tick)| {
            let body = receiver.state_at(kind, *entity, *tick)?;
            Some((at.as_secs_f64(), f64::from(body.position[0])))
        });
        let inside = |(at, _): &(f64, f64)| (FROM..TO).contains(at);
        self.arrived.extend(states.filter(inside));
        self.seen = guest.states().len();
        if let Some(time) = guest.client().shown_time()
            && now.fract() < 0.001
        {
            let shown = time.ticks() * TICK.as_secs_f64();
            self.behind.push((now, (now - shown) * 1e3));
        }
        if (FROM..TO).contains(&now) {
            self.truth.extend(truth.map(|x| (now, f64::from(x))));
            self.shown.extend(drawn.map(|x| (now, f64::from(x))));
        }
    }
}

const FROM: f64 = 20.0;
const TO: f64 = 22.4;
