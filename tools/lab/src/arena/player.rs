//! A client, its player, and its screen.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use glam::Vec2;
use muse_lagcomp::{Placement, Pose, Rewind, RewindConfig, RigId, Shot};
use muse_netcode::inputs::InputCounters;
use muse_netcode::prediction::PredictionCounters;
use muse_netcode::{Client, EntityId, SessionConfig, Tick, TickTime};
use muse_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::notes::{Journal, Mean, Movement, Track, Truth};
use super::views::Views;
use super::{rig, up};
use crate::character::{Body, Fire, Keys, Rules, TICKS_PER_SECOND, kinds};
use crate::sides::ClientSide;
use crate::stage::TICK;

/// Which mechanisms are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Switches {
    /// Others are interpolated and extrapolated; otherwise their newest state is shown.
    pub interpolation: bool,
    /// The own player is predicted; otherwise its newest state is shown.
    pub prediction: bool,
    /// Shots are judged by what the shooter saw; otherwise by the present.
    pub lag_compensation: bool,
}

impl Switches {
    /// Everything on.
    pub const ALL: Self = Self {
        interpolation: true,
        prediction: true,
        lag_compensation: true,
    };

    /// Without interpolation alone.
    pub const NO_INTERPOLATION: Self = Self {
        interpolation: false,
        ..Self::ALL
    };

    /// Without prediction alone.
    pub const NO_PREDICTION: Self = Self {
        prediction: false,
        ..Self::ALL
    };

    /// Without lag compensation alone.
    pub const NO_LAG_COMPENSATION: Self = Self {
        lag_compensation: false,
        ..Self::ALL
    };

    /// Everything off.
    pub const NONE: Self = Self {
        interpolation: false,
        prediction: false,
        lag_compensation: false,
    };
}

/// The decisions of a player.
pub trait Mind {
    /// Returns its keys for a tick. A shot is added by [`look`](Self::look).
    fn keys(&mut self, tick: Tick, own: Option<&Body>) -> Keys;

    /// A frame was drawn: where it aims if it pulls the trigger.
    fn look(&mut self, sight: &Sight<'_>) -> Option<Vec2>;
}

/// The view of a player in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// When.
    pub now: Instant,
    /// Its own player as drawn.
    pub own: &'a Body,
    /// Other players as drawn.
    pub others: &'a [(EntityId, Body)],
}

/// A client and what stands around it.
pub struct ArenaPlayer {
    entity: EntityId,
    side: ClientSide,
    switches: Switches,
    mind: Box<dyn Mind>,
    views: Option<Views>,
    /// The contents of the screen.
    own: Option<Body>,
    others: Vec<(EntityId, Body)>,
    next_frame: Instant,
    drift_ppm: i64,
    /// A shot that the next input carries, and what was on the screen when it was aimed.
    pending: Option<Fire>,
    aimed: Vec<(EntityId, Body)>,
    shots: BTreeMap<Tick, SeenShot>,
    eye: Eye,
    pressed: Vec<Option<Instant>>,
    foreseen: BTreeMap<Tick, Vec2>,
    /// The last tick of each entity whose keys are on the screen.
    until: BTreeMap<EntityId, Tick>,
    tracks: BTreeMap<EntityId, Track>,
    notes: Notes,
}

/// A shot as its shooter saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenShot {
    pub(super) at: Instant,
    pub(super) target: Option<EntityId>,
}

/// The figures that count.
#[derive(Default)]
struct Notes {
    distance: Mean,
    distance_now: Option<f64>,
    distances: Vec<f32>,
    trace: Vec<f64>,
    others: Movement,
    own: Movement,
    own_error: Mean,
    key_to_own: Vec<u32>,
    key_to_other: Vec<u32>,
    shown_late: Mean,
    depth_most: u64,
    bytes_down: u64,
    bytes_up: u64,
    predictions_before: PredictionCounters,
    inputs_before: InputCounters,
}

impl ArenaPlayer {
    pub(super) fn new(
        number: usize,
        entity: EntityId,
        config: SessionConfig,
        switches: Switches,
        seed: u64,
        server: SocketAddr,
        mind: Box<dyn Mind>,
    ) -> Self {
        let seed = fastrand::Rng::with_seed(seed ^ number as u64).u64(..);
        let drift_ppm = (seed % 5) as i64 * 40 - 80;
        let start = local(Instant::ZERO, drift_ppm);
        Self {
            entity,
            side: ClientSide::new(number, seed, config, server, start),
            switches,
            mind,
            views: None,
            own: None,
            others: Vec::new(),
            next_frame: Instant::from_micros(seed % FRAME.as_micros()),
            drift_ppm,
            pending: None,
            aimed: Vec::new(),
            shots: BTreeMap::new(),
            eye: Eye::new(),
            pressed: Vec::new(),
            foreseen: BTreeMap::new(),
            until: BTreeMap::new(),
            tracks: BTreeMap::new(),
            notes: Notes::default(),
        }
    }

    /// Whom it plays.
    pub const fn entity(&self) -> EntityId {
        self.entity
    }

    /// The client.
    pub fn client(&self) -> &Client<Rules> {
        &self.side.game
    }

    pub(super) const fn draws_at(&self) -> Instant {
        self.next_frame
    }

    pub(super) const fn shots(&self) -> &BTreeMap<Tick, SeenShot> {
        &self.shots
    }

    pub(super) const fn distance_now(&self) -> Option<f64> {
        self.notes.distance_now
    }

    pub(super) fn pressed_at(&self, tick: Tick) -> Option<Instant> {
        *self.pressed.get(tick.0 as usize)?
    }

    pub(super) fn compare_views(&mut self) {
        self.views = Some(Views::new(&self.side.game));
    }

    pub(super) fn begin(&mut self, inputs: Option<InputCounters>) {
        self.notes = Notes {
            predictions_before: self.side.game.prediction(),
            inputs_before: inputs.unwrap_or_default(),
            ..Notes::default()
        };
        self.shots.clear();
        if let Some(views) = &mut self.views {
            views.tallies = Default::default();
        }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        self.notes.bytes_down += payload.len() as u64 + HEADER_BYTES;
        let local = local(now, self.drift_ppm);
        let depth_most = &mut self.notes.depth_most;
        let mut before = self.side.game.prediction().steps_again;
        self.side.handle_datagram(local, from, payload, |game, _| {
            let after = game.prediction().steps_again;
            *depth_most = (*depth_most).max(after - before);
            before = after;
        });
    }

    /// Lets time pass, plays the ticks that are due, and sends their inputs.
    pub(super) fn play(&mut self, now: Instant) {
        self.side.handle_time(local(now, self.drift_ppm));
        while self.send_packet(now) {}
    }

    /// Gives every datagram that is due to `send`.
    pub(super) fn flush(&mut self, now: Instant, mut send: impl FnMut(&[u8])) {
        let bytes_up = &mut self.notes.bytes_up;
        self.side.flush(local(now, self.drift_ppm), |datagram| {
            *bytes_up += datagram.len() as u64 + HEADER_BYTES;
            send(datagram);
        });
    }

    fn send_packet(&mut self, now: Instant) -> bool {
        let local = local(now, self.drift_ppm);
        let (mind, pending, pressed) = (&mut self.mind, &mut self.pending, &mut self.pressed);
        let (own, mut fired) = (self.side.game.predicted().cloned(), None);
        let mut played = None;
        let input = |tick: Tick| {
            let at = tick.0 as usize;
            if pressed.len() <= at {
                pressed.resize(at + 1, None);
            }
            pressed[at] = Some(now);
            played = Some(tick);
            let fire = pending.take();
            fired = fire.clone().map(|fire| (tick, fire));
            Keys {
                fire,
                ..mind.keys(tick, own.as_ref())
            }
        };
        let sent = self.side.send_packet(local, input).is_some();
        if let (Some(tick), Some(body)) = (played, self.side.game.predicted()) {
            self.foreseen.insert(tick, body.place());
        }
        if let Some((tick, fire)) = fired {
            self.see_shot(now, tick, &fire);
        }
        while let Some(update) = self.side.game.poll_update() {
            self.side.remotes.handle_update(&self.side.game, &update);
            if let Some(views) = &mut self.views {
                views.handle_update(local, &self.side.game, &update);
            }
        }
        while self.side.game.poll_event().is_some() {}
        sent
    }

    pub(super) fn next_wake(&mut self) -> Instant {
        let due = self.side.poll_timeout();
        let due = due.map(|at| unlocal(at, self.drift_ppm));
        due.map_or(self.next_frame, |due| due.min(self.next_frame))
    }

    /// Notes how far from the truth others are shown at the instant of a tick, and the own player in that tick.
    pub(super) fn compare(
        &mut self,
        now: Instant,
        tick: Tick,
        truth: &BTreeMap<EntityId, Truth>,
        counts: bool,
    ) {
        let foreseen = self.foreseen.remove(&tick);
        self.foreseen.retain(|other, _| *other > tick);
        self.look();
        if !counts {
            return;
        }
        let at = |entity: EntityId| truth.get(&entity).and_then(|truth| truth.body.as_ref());
        let mut mean = Mean::default();
        for (entity, body) in &self.others {
            if let Some(truth) = at(*entity) {
                let distance = truth.distance(body);
                if mean.count() == 0 && self.notes.trace.len() < TRACE_TICKS {
                    self.notes.trace.push(f64::from(distance));
                }
                mean.add(f64::from(distance));
                self.notes.distances.push(distance);
            }
        }
        self.notes.distance.merge(&mean);
        self.notes.distance_now = (mean.count() > 0).then(|| mean.mean());
        if let (Some(foreseen), Some(body)) = (foreseen, at(self.entity)) {
            let error = foreseen.distance(body.place());
            self.notes.own_error.add(f64::from(error));
        }
        if let Some(views) = &mut self.views {
            views.compare(local(now, self.drift_ppm), &self.side.game, truth);
        }
    }

    /// Draws a frame, and lets the player look at it.
    pub(super) fn draw(&mut self, now: Instant, truth: &BTreeMap<EntityId, Truth>, counts: bool) {
        self.next_frame += FRAME;
        let underruns = self.look();
        let seconds = FRAME.as_secs_f64() as f32;
        let (mut others, mut own) = (Movement::default(), Movement::default());
        let own_body = self.own.as_ref().map(|body| (self.entity, body));
        let drawn = self.others.iter().map(|(entity, body)| (*entity, body));
        for (entity, body) in drawn.chain(own_body) {
            let was = truth.get(&entity).map_or(0.0, Truth::speed_most);
            let (movement, speed_most) = match entity == self.entity {
                // It is ahead of the server, and may have begun to run.
                true => (&mut own, was.max(body.speed())),
                false => (&mut others, was),
            };
            let track = self.tracks.entry(entity).or_default();
            track.draw(body.place(), seconds, speed_most, movement);
        }
        if counts {
            others.underruns = underruns;
            self.notes.others.merge(&others);
            self.notes.own.merge(&own);
            if let (Some(newest), Some(shown)) = (self.side.game.receiver().tick(), self.seen()) {
                let late = (f64::from(newest.0) - shown.ticks()) * TICK.as_millis_f64();
                self.notes.shown_late.add(late);
            }
            if let Some(views) = &mut self.views {
                let local = local(now, self.drift_ppm);
                views.draw(local, &self.side.game, truth, seconds);
            }
        }
        self.aim(now);
    }

    /// Entities whose keys of these ticks are on the screen for the first time.
    pub(super) fn reached(&mut self) -> Vec<(EntityId, Tick, Tick)> {
        let receiver = self.side.game.receiver();
        let newest = |entity| Some(receiver.state(kinds().1, entity)?.0);
        let own = match self.switches.prediction {
            true => self.side.game.clock().play_time().map(|time| time.tick),
            false => newest(self.entity),
        };
        let shown = self.side.game.shown_time().map(|time| time.tick);
        let others = self.others.iter().filter_map(|(entity, _)| {
            let tick = match self.switches.interpolation {
                true => shown,
                false => newest(*entity),
            };
            Some((*entity, tick?))
        });
        let own = own.map(|tick| (self.entity, tick));
        let until: Vec<(EntityId, Tick)> = others.chain(own).collect();
        let mut reached = Vec::new();
        for (entity, tick) in until {
            let last = self.until.insert(entity, tick).unwrap_or(tick);
            if tick > last {
                reached.push((entity, last + 1, tick));
            }
        }
        reached
    }

    pub(super) fn note_reached(&mut self, is_own: bool, waits: &[Duration]) {
        let notes = match is_own {
            true => &mut self.notes.key_to_own,
            false => &mut self.notes.key_to_other,
        };
        notes.extend(waits.iter().map(|wait| wait.as_micros() as u32));
    }

    pub(super) fn tell(&self, journal: &mut Journal, inputs: Option<InputCounters>) {
        let notes = &self.notes;
        journal.distance.merge(&notes.distance);
        journal.distances.extend(&notes.distances);
        if journal.trace.is_empty() {
            journal.trace.clone_from(&notes.trace);
        }
        journal.others.merge(&notes.others);
        journal.own.merge(&notes.own);
        journal.own_error.merge(&notes.own_error);
        journal.key_to_own.extend(&notes.key_to_own);
        journal.key_to_other.extend(&notes.key_to_other);
        journal.shown_late.merge(&notes.shown_late);
        let (now, before) = (self.side.game.prediction(), &notes.predictions_before);
        journal.confirmed += now.confirmed - before.confirmed;
        journal.corrected += now.corrected - before.corrected;
        journal.steps_again += now.steps_again - before.steps_again;
        journal.depth_most = journal.depth_most.max(notes.depth_most);
        if let Some(now) = inputs {
            let before = &notes.inputs_before;
            journal.inputs_received += now.received - before.received;
            journal.inputs_missed += now.repeated + now.missing - before.repeated - before.missing;
            journal.inputs_waited += now.waited_micros - before.waited_micros;
        }
        journal.bytes_down += notes.bytes_down;
        journal.bytes_up += notes.bytes_up;
        if let Some(views) = &self.views {
            let all = journal.views.get_or_insert_default();
            for (sum, tally) in all.iter_mut().zip(&views.tallies) {
                sum.merge(tally);
            }
        }
    }

    /// Puts on the screen what is to be seen now. Says how many others are shown without a next state.
    fn look(&mut self) -> u64 {
        let receiver = self.side.game.receiver();
        let newest = |entity| Some(receiver.state(kinds().1, entity)?.1);
        self.own = match self.switches.prediction {
            true => self.side.game.shown_player(),
            false => newest(self.entity),
        };
        self.others.clear();
        let mut underruns = 0;
        if self.switches.interpolation {
            for (entity, shown) in self.side.remotes.show(&self.side.game) {
                underruns += u64::from(shown.source.is_underrun());
                self.others.push((entity, shown.state));
            }
        } else {
            let others = receiver.entities().filter(|other| *other != self.entity);
            let shown = others.filter_map(|entity| Some((entity, newest(entity)?)));
            self.others.extend(shown);
        }
        underruns
    }

    /// The instant of the server's world that is on the screen.
    fn seen(&self) -> Option<TickTime> {
        match self.switches.interpolation {
            true => self.side.game.shown_time(),
            false => self.side.game.receiver().tick().map(TickTime::from),
        }
    }

    fn aim(&mut self, now: Instant) {
        let (Some(own), Some(seen)) = (&self.own, self.seen()) else {
            return;
        };
        let sight = Sight {
            now,
            own,
            others: &self.others,
        };
        if let Some(towards) = self.mind.look(&sight) {
            self.aimed.clone_from(&self.others);
            self.pending = Some(Fire {
                seen,
                from: own.place().to_array(),
                towards: towards.to_array(),
            });
        }
    }

    /// Whom the shot hits by what is on the screen.
    fn see_shot(&mut self, now: Instant, tick: Tick, fire: &Fire) {
        let own = match self.switches.prediction {
            true => self.side.game.predicted().map(Body::place),
            false => Some(Vec2::from_array(fire.from)),
        };
        let Some(own) = own else {
            return;
        };
        let way = Vec2::from_array(fire.towards) - Vec2::from_array(fire.from);
        let shot = Shot::new(up(own), up(way)).range(super::RANGE);
        let target = self.eye.sees_hit(&self.aimed, &shot);
        self.shots.insert(tick, SeenShot { at: now, target });
    }
}

/// Judges shots by what is on the screen: asked of a history that knows nothing else.
struct Eye {
    past: Rewind,
    rig: RigId,
    known: Vec<EntityId>,
}

impl Eye {
    fn new() -> Self {
        let mut past = Rewind::new(RewindConfig::new(TICKS_PER_SECOND));
        let rig = past.add_rig(rig()).expect("the first rig");
        Self {
            past,
            rig,
            known: Vec::new(),
        }
    }

    fn sees_hit(&mut self, others: &[(EntityId, Body)], shot: &Shot) -> Option<EntityId> {
        let next = self.past.now() + 1;
        self.past.advance(next).expect("ticks are in order");
        for (entity, body) in others {
            if !self.known.contains(entity) {
                self.past.add(*entity, self.rig).expect("there is room");
                self.known.push(*entity);
            }
            let placement = Placement::new(Pose::at(up(body.place())));
            self.past.record(*entity, placement).expect("it was added");
        }
        let hit = self.past.hitscan(&self.past.present(), shot, &mut ());
        hit.map(|hit| hit.entity)
    }
}

/// A client's own clock: another origin, and a little faster or slower.
fn local(now: Instant, drift_ppm: i64) -> Instant {
    let micros = now.as_micros() as i64;
    Instant::from_micros((micros + micros * drift_ppm / 1_000_000) as u64 + ORIGIN)
}

fn unlocal(local: Instant, drift_ppm: i64) -> Instant {
    let micros = local.as_micros().saturating_sub(ORIGIN) as i64;
    Instant::from_micros((micros * 1_000_000 / (1_000_000 + drift_ppm) + 1) as u64)
}

/// The start of the clients' clocks, in microseconds.
const ORIGIN: u64 = 77_000_000;
/// From one frame to the next.
const FRAME: Duration = Duration::from_micros(16_667);
/// Eight seconds.
const TRACE_TICKS: usize = 400;
/// Of UDP and IP.
const HEADER_BYTES: u64 = 28;
