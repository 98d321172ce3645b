//! Ways to show others, tried beside each other on the same packets: the newest state, the prototype's fixed delay, the measured
//! one, and four ways to show where they should be by now.

use std::collections::BTreeMap;

use glam::Vec3;
use muse_netcode::extrapolation::{Extrapolator, Motion, Path, derive_motion};
use muse_netcode::interpolation::Interpolated;
use muse_netcode::{Client, EntityId, Remotes, Tick, TickTime, Update};
use muse_wire::Instant;

use super::notes::{Mean, Movement, Track, Truth};
use crate::character::{Body, Rules, kinds};
use crate::stage::TICK;

/// The ways, in the order of their tallies.
pub const VIEWS: [&str; 7] = [
    "newest",
    "fixed_60_ms",
    "adaptive",
    "straight",
    "accelerated",
    "turning",
    "curved",
];

/// The figures of one way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ViewTally {
    /// From where the server has them at that instant, in metres.
    pub distance: Mean,
    /// The same while they run along curves.
    pub on_curves: Mean,
    /// Their movement.
    pub movement: Movement,
    /// The delay behind the newest state that has arrived, in milliseconds.
    pub late: Mean,
}

impl ViewTally {
    /// Adds what another saw.
    pub fn merge(&mut self, other: &Self) {
        self.distance.merge(&other.distance);
        self.on_curves.merge(&other.on_curves);
        self.movement.merge(&other.movement);
        self.late.merge(&other.late);
    }
}

/// All ways, on one client.
pub(super) struct Views {
    adaptive: Remotes<Body>,
    entities: BTreeMap<EntityId, Entity>,
    pub(super) tallies: [ViewTally; VIEWS.len()],
    places: Vec<Place>,
}

struct Entity {
    fixed: Interpolated<Body>,
    /// By each of [`PATHS`].
    ahead: [Option<Extrapolator>; PATHS.len()],
    last: Option<(Tick, Motion)>,
    tracks: [Track; VIEWS.len()],
}

/// The place at which one way draws an entity.
struct Place {
    entity: EntityId,
    view: usize,
    at: Vec3,
    is_underrun: bool,
}

impl Views {
    pub(super) fn new(client: &Client<Rules>) -> Self {
        Self {
            adaptive: Remotes::new(kinds().1, client.interpolation(), Body::distance),
            entities: BTreeMap::new(),
            tallies: Default::default(),
            places: Vec::new(),
        }
    }

    pub(super) fn handle_update(&mut self, now: Instant, client: &Client<Rules>, update: &Update) {
        self.adaptive.handle_update(client, update);
        let Update::State { entity, tick, .. } = *update else {
            return;
        };
        let state = client.receiver().state_at(kinds().1, entity, tick);
        let (Some(state), Some(time)) = (state, client.clock().server_time()) else {
            return;
        };
        let known = self.entities.entry(entity).or_insert_with(|| Entity {
            fixed: Interpolated::new(client.interpolation(), Body::distance),
            ahead: Default::default(),
            last: None,
            tracks: Default::default(),
        });
        let age = (time.ticks() - f64::from(tick.0)) * TICK.as_secs_f64();
        known.go_on(now, tick, &state, age as f32);
        known.fixed.handle_state(tick, state);
    }

    /// Notes how far from the truth everything is shown at the instant of a tick.
    pub(super) fn compare(
        &mut self,
        now: Instant,
        client: &Client<Rules>,
        truth: &BTreeMap<EntityId, Truth>,
    ) {
        self.show(now, client);
        for place in &self.places {
            let Some(truth) = truth.get(&place.entity) else {
                continue;
            };
            let Some(body) = &truth.body else {
                continue;
            };
            let distance = f64::from(place.at.distance(Vec3::from_array(body.position)));
            let tally = &mut self.tallies[place.view];
            tally.distance.add(distance);
            if truth.turns {
                tally.on_curves.add(distance);
            }
        }
    }

    /// Draws a frame.
    pub(super) fn draw(
        &mut self,
        now: Instant,
        client: &Client<Rules>,
        truth: &BTreeMap<EntityId, Truth>,
        frame_seconds: f32,
    ) {
        self.show(now, client);
        for place in &self.places {
            let speed_most = truth.get(&place.entity).map_or(0.0, Truth::speed_most);
            let Some(entity) = self.entities.get_mut(&place.entity) else {
                continue;
            };
            let movement = &mut self.tallies[place.view].movement;
            let at = glam::Vec2::new(place.at.x, place.at.z);
            entity.tracks[place.view].draw(at, frame_seconds, speed_most, movement);
            movement.underruns += u64::from(place.is_underrun);
        }
        let newest = client.receiver().tick().map(|tick| f64::from(tick.0));
        for (view, shown) in [(FIXED, fixed_time(client)), (ADAPTIVE, client.shown_time())] {
            if let (Some(newest), Some(shown)) = (newest, shown) {
                let late = (newest - shown.ticks()) * TICK.as_millis_f64();
                self.tallies[view].late.add(late);
            }
        }
    }

    fn show(&mut self, now: Instant, client: &Client<Rules>) {
        self.places.clear();
        for (entity, shown) in self.adaptive.show(client) {
            self.places.push(Place {
                entity,
                view: ADAPTIVE,
                at: Vec3::from_array(shown.state.position),
                is_underrun: shown.source.is_underrun(),
            });
        }
        let fixed_time = fixed_time(client);
        for (entity, known) in &mut self.entities {
            if Some(*entity) == client.player() {
                continue;
            }
            let mut place = |view, at, is_underrun| {
                self.places.push(Place {
                    entity: *entity,
                    view,
                    at,
                    is_underrun,
                });
            };
            if let Some((_, newest)) = client.receiver().state(kinds().1, *entity) {
                place(NEWEST, Vec3::from_array(newest.position), false);
            }
            if let Some(shown) = fixed_time.and_then(|time| known.fixed.show(time)) {
                let at = Vec3::from_array(shown.state.position);
                place(FIXED, at, shown.source.is_underrun());
            }
            for (number, body) in known.ahead.iter_mut().enumerate() {
                if let Some(body) = body {
                    let at = body.show(now, |_, to| to).position;
                    place(AHEAD + number, at, body.is_stopped(now));
                }
            }
        }
    }
}

impl Entity {
    /// Leads the ways to show it in the present on by a state that is `age` seconds old.
    fn go_on(&mut self, now: Instant, tick: Tick, state: &Body, age: f32) {
        if self.last.as_ref().is_some_and(|(last, _)| *last >= tick) {
            return;
        }
        let mut motion = Motion::new(state.position.into(), state.velocity.into());
        if let Some((last, earlier)) = &self.last {
            let seconds = (tick - *last) as f32 * TICK.as_secs_f64() as f32;
            motion = derive_motion(earlier, motion, seconds);
        }
        self.last = Some((tick, motion));
        for (path, body) in PATHS.into_iter().zip(&mut self.ahead) {
            let motion = motion.after(age, path);
            match body {
                Some(body) => body.handle_update(now, motion, |_, to| to),
                None => *body = Some(Extrapolator::new(path, TICK, now, motion)),
            }
        }
    }
}

/// The instant that the prototype would show: three ticks later than states arrive in the mean.
fn fixed_time(client: &Client<Rules>) -> Option<TickTime> {
    let clock = client.clock();
    let way = clock.round_trip()?.as_secs_f64() / 2.0 / TICK.as_secs_f64();
    let ticks = clock.server_time()?.ticks() - way - FIXED_TICKS;
    Some(TickTime::from_ticks(ticks))
}

const NEWEST: usize = 0;
const FIXED: usize = 1;
const ADAPTIVE: usize = 2;
const AHEAD: usize = 3;
const PATHS: [Path; 4] = [
    Path::Straight,
    Path::Accelerated,
    Path::Turning,
    Path::Curved,
];
/// The prototype's delay of interpolation.
const FIXED_TICKS: f64 = 3.0;
