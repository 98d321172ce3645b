//! A shooting range: one client fires at a runner, and the server judges each shot with and without rewind.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use glam::{Vec2, Vec3};
use muse_lagcomp::{
    Admission, Claim, Except, Placement, Pose, Rewind, RewindConfig, Shot, Verdict,
};
use muse_netcode::inputs::InputForTick;
use muse_netcode::{EntityId, Server, Tick, TickTime};
use muse_wire::{Duration, Instant};

use crate::arena::{rig, up};
use crate::character::{Body, Fire, Keys, Rules, TICKS_PER_SECOND, kinds};
use crate::stage::{FIRST_CLIENT, LabStage, Scene, TICK, conditions};

/// The verdict on a shot.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    /// The places where the shooter stood and aimed.
    pub(super) from: Vec2,
    pub(super) towards: Vec2,
    /// The places where the target was drawn when it fired, where the server looked for it, and where it is by now.
    pub(super) drawn: Vec2,
    pub(super) rewound: Vec2,
    pub(super) present: Vec2,
    /// Its places in the last ticks.
    pub(super) trail: Vec<Vec2>,
    /// True if it was a hit: on the shooter's screen, by the server's judgement, and without rewind.
    pub(super) seen: bool,
    pub(super) judged: bool,
    pub(super) judged_in_present: bool,
    pub(super) verdict: Verdict,
    /// The age of the instant at which the server looked for the target.
    pub(super) age: Duration,
}

/// Fires at a runner for so long, over a network with this round trip, and tells every shot.
pub(super) fn run(round_trip_ms: u64, time: Duration, seed: u64) -> Vec<Judged> {
    let mut stage = LabStage::new(seed);
    let target = stage.add_crowd(1, 1.0, seed)[0];
    let trigger: Rc<RefCell<Option<Fire>>> = Rc::default();
    let pulled = Rc::clone(&trigger);
    let play = move |_| Keys {
        fire: pulled.borrow_mut().take(),
        ..Keys::default()
    };
    let network = conditions(round_trip_ms)
        .jitter(muse_netem::Jitter::Uniform(Duration::from_millis(10)))
        .loss(0.02);
    let shooter = stage.join_as(Body::at(0.0, -STAND), network, play);
    let mut rewind = Rewind::new(RewindConfig::new(TICKS_PER_SECOND));
    let rig = rewind.add_rig(rig()).expect("the first rig");
    rewind.add(target, rig).expect("there is room");
    let mut range = Range {
        target,
        shooter,
        trigger,
        random: fastrand::Rng::with_seed(seed),
        rewind,
        drawn: Vec::new(),
        trail: VecDeque::new(),
        fire_at: Instant::from_secs(3),
        judged: Vec::new(),
    };
    stage.run(time, &mut range);
    range.judged
}

struct Range {
    target: EntityId,
    shooter: EntityId,
    trigger: Rc<RefCell<Option<Fire>>>,
    random: fastrand::Rng,
    rewind: Rewind,
    /// The screen when each shot was fired.
    drawn: Vec<(TickTime, Vec2)>,
    trail: VecDeque<Vec2>,
    fire_at: Instant,
    judged: Vec<Judged>,
}

impl Range {
    fn judge(&mut self, server: &Server<Rules>, fire: &Fire) {
        let Some((_, drawn)) = self.drawn.iter().find(|(seen, _)| *seen == fire.seen) else {
            return;
        };
        let Some(known) = server.shooter(FIRST_CLIENT) else {
            return;
        };
        let (from, towards) = (Vec2::from_array(fire.from), Vec2::from_array(fire.towards));
        let shot = Shot::new(up(from), up(towards - from));
        let admission = self.rewind.admit(Claim::at(fire.seen), &known);
        let present = self.rewind.present();
        let hits = |admission: &Admission| {
            let mut scope = Except(self.shooter);
            self.rewind.hitscan(admission, &shot, &mut scope).is_some()
        };
        let place = |admission: &Admission| {
            let pose = self.rewind.pose(self.target, admission);
            pose.map_or(Vec2::ZERO, |pose| flat(pose.position))
        };
        self.judged.push(Judged {
            from,
            towards,
            drawn: *drawn,
            rewound: place(&admission),
            present: place(&present),
            trail: self.trail.iter().copied().collect(),
            seen: is_seen(self.target, *drawn, &shot),
            judged: hits(&admission),
            judged_in_present: hits(&present),
            verdict: admission.verdict(),
            age: admission.age(),
        });
    }
}

impl Scene for Range {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        let body = server.world().state(kinds().1, self.target);
        let body = body.expect("it runs");
        self.rewind.advance(tick).expect("ticks are in order");
        let placement = Placement::new(Pose::at(up(body.place())));
        let recorded = self.rewind.record(self.target, placement);
        recorded.expect("it was added");
        self.trail.push_back(body.place());
        if self.trail.len() > TRAIL_TICKS {
            self.trail.pop_front();
        }
        if let Some(InputForTick::Received(keys)) = server.input(FIRST_CLIENT).cloned()
            && let Some(fire) = keys.fire
        {
            self.judge(server, &fire);
        }
    }

    fn look(&mut self, stage: &mut LabStage) {
        let now = stage.now();
        // It pulls the trigger in the frame before its next tick.
        let client = stage.guest(0).client();
        let due = client
            .poll_timeout()
            .is_some_and(|at| at <= now + TICK / 20);
        if now < self.fire_at || !due {
            return;
        }
        let Some(seen) = client.shown_time() else {
            return;
        };
        let Some(own) = client.predicted().map(Body::place) else {
            return;
        };
        let shown = stage
            .guest_mut(0)
            .show()
            .find(|(entity, _)| *entity == self.target);
        let Some((_, shown)) = shown else {
            return;
        };
        self.fire_at = now + Duration::from_millis(200);
        let drawn = shown.state.place();
        let across = (drawn - own).perp().normalize_or_zero();
        // Half of the shots are near misses, at a radius of 0.4 m.
        let towards = drawn + across * (self.random.f32() - 0.5) * 1.6;
        self.drawn.push((seen, drawn));
        *self.trigger.borrow_mut() = Some(Fire {
            seen,
            from: own.to_array(),
            towards: towards.to_array(),
        });
    }
}

/// True if the shot hits what was drawn: asked of a rewind that knows nothing else.
fn is_seen(target: EntityId, drawn: Vec2, shot: &Shot) -> bool {
    let mut screen = Rewind::new(RewindConfig::new(TICKS_PER_SECOND));
    let rig = screen.add_rig(rig()).expect("the first rig");
    let pose = Placement::new(Pose::at(up(drawn)));
    screen.add(target, rig).expect("there is room");
    screen.advance(Tick(1)).expect("the first tick");
    screen.record(target, pose).expect("it was added");
    screen.hitscan(&screen.present(), shot, &mut ()).is_some()
}

fn flat(place: Vec3) -> Vec2 {
    Vec2::new(place.x, place.z)
}

/// The distance of the shooter from the origin.
const STAND: f32 = 20.0;
/// Ticks of the target's way that are told with a shot.
const TRAIL_TICKS: usize = 20;
