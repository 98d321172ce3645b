//! A body on a curve, shown without waiting for its next state.

use glam::Vec3;
use muse_netcode::extrapolation::{Extrapolator, Motion, Path, derive_motion};
use muse_netcode::{EntityId, Server, SessionConfig, Tick};
use muse_wire::{Duration, Instant};

use crate::character::{Body, Keys, Rules, kinds};
use crate::plot::*;
use crate::stage::{LabStage, Scene, TICK, conditions};

pub(super) fn plot() -> Plot {
    let config = SessionConfig::new(TICK).snapshot_interval(INTERVAL_TICKS);
    let mut stage = LabStage::with_config(3, config);
    let body = on_circle(Tick(0));
    let spawned = stage.server_mut().world_mut().spawn(kinds().1, &body);
    let bot = spawned.expect("there is room");
    let silence = (Instant::from_millis(6_000), Instant::from_millis(6_300));
    let network = conditions(80).outage(silence.0, silence.1);
    stage.join_as(Body::at(0.0, 0.0), network, |_| Keys::default());
    let paths = [Path::Straight, Path::Accelerated, Path::Curved];
    let mut scene = Watch {
        bot,
        seen: 0,
        last: None,
        tracks: paths.map(Track::new),
        truth: Vec::new(),
    };
    stage.run(Duration::from_millis(7_600), &mut scene);
    let names = ["straight on", "with acceleration", "as it turned (default)"];
    let colours = [Red, Orange, Green];
    let mut map = Panel::new(("x (m)", MAP.0, MAP.1), ("z (m)", MAP.2, MAP.3))
        .tall(323)
        .with("on the server", Blue, Thick, scene.truth);
    let mut errors = Panel::new(("time (s)", 4.0, 7.6), ("error (m)", 0.0, 2.5))
        .tall(180)
        .shade("no packet arrives", Grey, 6.12, 6.44);
    for ((track, name), colour) in scene.tracks.into_iter().zip(names).zip(colours) {
        map = map.with(name, colour, Line, track.places);
        errors = errors.with(name, colour, Line, track.errors);
    }
    Plot::new(
        "Extrapolation: shown where it should be by now",
        "A car on a circle at 8 m/s, a state every 160 ms, which is 40 ms old when it comes. Going straight on errs on every curve, going on as it turned hardly at all, once three states have told how. When \
         no state comes for longer than 250 ms the body stops, and when the next one comes it is led back within an interval.",
    )
    .panel(map)
    .panel(errors)
}

struct Watch {
    bot: EntityId,
    seen: usize,
    last: Option<(Tick, Motion)>,
    tracks: [Track; 3],
    truth: Vec<(f64, f64)>,
}

struct Track {
    path: Path,
    body: Option<Extrapolator>,
    places: Vec<(f64, f64)>,
    errors: Vec<(f64, f64)>,
}

impl Track {
    fn new(path: Path) -> Self {
        Self {
            path,
            body: None,
            places: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// A state came that is `age` seconds old.
    fn update(&mut self, now: Instant, motion: &Motion, age: f32) {
        let motion = motion.after(age, self.path);
        if let Some(body) = &mut self.body {
            body.handle_update(now, motion, |_, to| to);
            return;
        }
        let interval = TICK * u64::from(INTERVAL_TICKS);
        self.body = Some(Extrapolator::new(self.path, interval, now, motion));
    }
}

impl Scene for Watch {
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        let moved = server
            .world_mut()
            .set(kinds().1, self.bot, &on_circle(tick));
        moved.expect("it was spawned");
    }

    fn look(&mut self, stage: &mut LabStage) {
        self.take(stage);
        let now = stage.seconds();
        if !stage.is_every(Duration::from_millis(10)) || !(4.0..7.6).contains(&now) {
            return;
        }
        // Where it is between two ticks, too.
        let truth = circle(now as f32);
        self.truth.extend(on_map(now, truth));
        for track in &mut self.tracks {
            let Some(body) = &mut track.body else {
                continue;
            };
            let place = body.show(stage.now(), |_, to| to).position;
            track.places.extend(on_map(now, place));
            let error = place.distance(truth);
            track.errors.push((now, f64::from(error)));
        }
    }
}

impl Watch {
    /// Gives new states to all three.
    fn take(&mut self, stage: &LabStage) {
        let guest = stage.guest(0);
        let new = &guest.states()[self.seen..];
        self.seen = guest.states().len();
        for (_, _, tick) in new.iter().filter(|(_, entity, _)| *entity == self.bot) {
            let client = guest.client();
            let state = client.receiver().state_at(kinds().1, self.bot, *tick);
            let (Some(state), Some(time)) = (state, client.clock().server_time()) else {
                continue;
            };
            let mut motion = Motion::new(state.position.into(), state.velocity.into());
            if let Some((last, earlier)) = &self.last {
                let seconds = (*tick - *last) as f32 * TICK.as_secs_f64() as f32;
                motion = derive_motion(earlier, motion, seconds);
            }
            self.last = Some((*tick, motion));
            let age = (time.ticks() - f64::from(tick.0)) * TICK.as_secs_f64();
            for track in &mut self.tracks {
                track.update(stage.now(), &motion, age as f32);
            }
        }
    }
}

/// A place around the silence, if it is on the map.
fn on_map(now: f64, place: Vec3) -> Option<(f64, f64)> {
    let (x, z) = (f64::from(place.x), f64::from(place.z));
    let inside = (MAP.0..MAP.1).contains(&x) && (MAP.2..MAP.3).contains(&z);
    (inside && (5.6..7.2).contains(&now)).then_some((x, z))
}

/// The car at the beginning of a tick.
fn on_circle(tick: Tick) -> Body {
    let seconds = tick.0 as f32 * TICK.as_secs_f64() as f32;
    let (place, ahead) = (circle(seconds), circle(seconds + 0.001));
    Body {
        position: place.to_array(),
        velocity: ((ahead - place) / 0.001).to_array(),
    }
}

fn circle(seconds: f32) -> Vec3 {
    let way = glam::Vec2::from_angle(seconds * SPEED / RADIUS) * RADIUS;
    Vec3::new(way.x, 0.0, way.y)
}

const INTERVAL_TICKS: u32 = 8;
const RADIUS: f32 = 5.0;
const SPEED: f32 = 8.0;
/// The part that the map shows: its limits in x and in z.
const MAP: (f64, f64, f64, f64) = (-7.5, 2.5, -5.6, -0.95);
