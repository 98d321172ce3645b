//! A match that is measured: one server and its clients over a [`Carrier`], mostly a virtual network, each mechanism switched on or off, every frame and every
//! shot noted down.
//!
//! Unlike [`Stage`](crate::stage::Stage), which serves pictures, it goes from event to event: packets arrive to the microsecond, clients
//! have clocks that drift, and frames are drawn 60 times a second. What is switched off is not shown: without interpolation the
//! screen has the newest state that arrived, without prediction the own player is where the server last said, without lag
//! compensation shots are judged in the present.

mod carrier;
mod notes;
mod seat;
mod views;

pub use carrier::{Carrier, Virtual, Way};
pub use notes::{Journal, Mean, Movement};
pub use seat::{Mind, Seat, Sight, Switches};
pub use views::{VIEWS, ViewTally};

use std::collections::BTreeMap;

use glam::{Vec2, Vec3};
use muse_lagcomp::{Except, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Verdict, Volume};
use muse_netcode::{ClientId, EntityId, Server, SessionConfig, Tick};
use muse_netem::Conditions;
use muse_wire::{Duration, Instant};

use crate::character::{Body, Rules, TICK_SECONDS, TICKS_PER_SECOND, kinds};
use crate::stage::TICK;
use notes::Truth;

/// A server, its clients, the network between them, and what is noted of it all.
///
/// ```
/// use muse_lab::arena::{Arena, Switches};
/// use muse_lab::grid::Replay;
/// use muse_lab::recording::Recording;
/// use muse_lab::stage::conditions;
/// use muse_wire::Duration;
/// let mut arena = Arena::new(7, Switches::ALL);
/// for recording in Recording::shipped() {
///     arena.join(recording.start(), conditions(80), Replay::new(recording, 7));
/// }
/// arena.run(Duration::from_secs(3));
/// arena.begin();
/// arena.run(Duration::from_secs(5));
/// let journal = arena.finish();
/// assert!(journal.distance.mean() > 0.1 && journal.corrected == 0);
/// ```
pub struct Arena {
    now: Instant,
    switches: Switches,
    config: SessionConfig,
    server: Server<Rules>,
    hits: Hits<Body>,
    seats: Vec<Seat>,
    carrier: Box<dyn Carrier>,
    seed: u64,
    truth: BTreeMap<EntityId, Truth>,
    verdicts: BTreeMap<(ClientId, Tick), Judged>,
    /// Whether what happens counts, and since when.
    since: Option<Instant>,
    course: Vec<f64>,
}

/// A shot as the server judged it.
#[derive(Clone, Copy, Debug)]
struct Judged {
    hit: Option<EntityId>,
    verdict: Verdict,
}

impl Arena {
    /// An empty match with the usual settings. Everything by chance follows from the seed.
    pub fn new(seed: u64, switches: Switches) -> Self {
        Self::with_config(seed, switches, SessionConfig::new(TICK))
    }

    /// As [`new`](Self::new), with settings for both sides.
    pub fn with_config(seed: u64, switches: Switches, config: SessionConfig) -> Self {
        Self::over(Box::new(Virtual::new(seed)), seed, switches, config)
    }

    /// As [`with_config`](Self::with_config), over something else than a virtual network.
    pub fn over(
        carrier: Box<dyn Carrier>,
        seed: u64,
        switches: Switches,
        config: SessionConfig,
    ) -> Self {
        let (all, body) = kinds();
        let hits = Hits::new(RewindConfig::new(TICKS_PER_SECOND), body, rig(), pose);
        Self {
            now: Instant::ZERO,
            switches,
            config,
            server: Server::new(config, all, body, Instant::ZERO),
            hits: hits.expect("one rig"),
            seats: Vec::new(),
            carrier,
            seed,
            truth: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            since: None,
            course: Vec::new(),
        }
    }

    /// A client comes, whose player starts there; its packets take these conditions on both ways.
    pub fn join(
        &mut self,
        start: Body,
        conditions: Conditions,
        mind: impl Mind + 'static,
    ) -> EntityId {
        let number = self.seats.len() as u32;
        let id = ClientId(number);
        let entity = self.server.join(id, &start).expect("there is room");
        self.carrier.join(&conditions);
        let seat = Seat::new(
            id,
            entity,
            self.config,
            self.switches,
            self.seed,
            Box::new(mind),
        );
        self.seats.push(seat);
        entity
    }

    /// Whether the other ways to show others are tried beside the one that is shown; see [`VIEWS`].
    pub fn compare_views(&mut self) {
        for seat in &mut self.seats {
            seat.compare_views();
        }
    }

    /// From now on what happens counts.
    pub fn begin(&mut self) {
        self.since = Some(self.now);
        for seat in &mut self.seats {
            seat.begin(self.server.input_counters(seat.id()));
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.deliver();
            self.serve();
            for index in 0..self.seats.len() {
                self.play(index);
            }
            let mut next = self.server.poll_timeout();
            for seat in &self.seats {
                next = next.min(seat.next_wake());
            }
            let next = self.carrier.wait(self.now, next.min(end));
            self.now = next.max(self.now + Duration::from_micros(1)).min(end);
        }
    }

    /// The clients, in the order in which they came.
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// Everything that was noted since [`begin`](Self::begin), of all clients together.
    pub fn finish(&self) -> Journal {
        let all: Vec<usize> = (0..self.seats.len()).collect();
        self.finish_of(&all)
    }

    /// Everything that was noted of these clients.
    pub fn finish_of(&self, seats: &[usize]) -> Journal {
        let mut journal = Journal {
            course: self.course.clone(),
            seconds: (self.now - self.since.unwrap_or(self.now)).as_secs_f64(),
            ..Journal::default()
        };
        for seat in seats.iter().filter_map(|number| self.seats.get(*number)) {
            journal.clients += 1;
            seat.tell(&mut journal, self.server.input_counters(seat.id()));
            self.judge_shots(seat, &mut journal);
        }
        journal.settle();
        journal
    }

    fn deliver(&mut self) {
        let mut packet = Vec::new();
        while let Some(way) = self.carrier.poll(self.now, &mut packet) {
            match way {
                Way::Down(index) => {
                    self.seats[index].handle_packet(self.now, &packet);
                    self.play(index);
                }
                Way::Up(index) => {
                    let id = self.seats[index].id();
                    // Late and doubled ones are refused, as they should be.
                    let _ = self.server.handle_packet(self.now, id, &packet);
                }
            }
        }
    }

    fn serve(&mut self) {
        while let Some(tick) = self.server.poll_tick(self.now, &mut Rules, |_, ()| ()) {
            self.judge(tick);
            self.server.commit();
            let mut buffer = [0; PACKET_BYTES];
            while let Some((client, len)) = self.server.poll_packet(self.now, &mut buffer) {
                let way = Way::Down(client.0 as usize);
                self.carrier.send(self.now, way, &buffer[..len]);
            }
            self.look_at_truth(tick);
        }
    }

    /// The shots of a tick.
    fn judge(&mut self, tick: Tick) {
        let world = self.server.world();
        self.hits.record(world, tick).expect("sane poses");
        for seat in &self.seats {
            let client = seat.id();
            let taken = self
                .server
                .input(client)
                .filter(|taken| taken.is_received());
            let Some(fire) = taken.and_then(|taken| taken.input().fire) else {
                continue;
            };
            let Some(own) = self.server.world().state(kinds().1, seat.entity()) else {
                continue;
            };
            let admission = match self.switches.lag_compensation {
                true => {
                    let claim = muse_netcode::Claim::at(fire.seen);
                    self.hits.admit(&self.server, client, claim)
                }
                false => Some(self.hits.rewind().present()),
            };
            let Some(admission) = admission else {
                continue;
            };
            let way = Vec2::from_array(fire.towards) - Vec2::from_array(fire.from);
            let shot = Shot::new(up(own.place()), up(way)).range(RANGE);
            let mut others = Except(seat.entity());
            let hit = self.hits.rewind().hitscan(&admission, &shot, &mut others);
            let judged = Judged {
                hit: hit.map(|hit| hit.entity),
                verdict: admission.verdict(),
            };
            self.verdicts.insert((client, tick), judged);
        }
    }

    /// Notes where everybody is, and how far from there everybody is shown at this very instant.
    fn look_at_truth(&mut self, tick: Tick) {
        let kind = kinds().1;
        for seat in &self.seats {
            let Some(body) = self.server.world().state(kind, seat.entity()) else {
                continue;
            };
            self.truth
                .entry(seat.entity())
                .or_default()
                .note(body, TICK_SECONDS);
        }
        for index in 0..self.seats.len() {
            self.play(index);
            let counts = self.since.is_some();
            self.seats[index].compare(self.now, tick, &self.truth, counts);
        }
        if self.since.is_some() {
            let means = self.seats.iter().filter_map(Seat::distance_now);
            let mut mean = Mean::default();
            means.for_each(|distance| mean.add(distance));
            self.course.push(mean.mean());
        }
    }

    fn play(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        let mut buffer = [0; PACKET_BYTES];
        while let Some(len) = seat.poll_packet(self.now, &mut buffer) {
            self.carrier.send(self.now, Way::Up(index), &buffer[..len]);
        }
        if seat.draws_at() > self.now {
            return;
        }
        seat.draw(self.now, &self.truth, self.since.is_some());
        if self.since.is_none() {
            return;
        }
        // Whose key presses are on the screen for the first time?
        let reached = self.seats[index].reached();
        for (entity, from, to) in reached {
            let Some(other) = self.seats.iter().position(|seat| seat.entity() == entity) else {
                continue;
            };
            let waits: Vec<Duration> = (from.0..=to.0)
                .filter_map(|tick| self.seats[other].pressed_at(Tick(tick)))
                .map(|at| self.now.saturating_since(at))
                .collect();
            self.seats[index].note_reached(other == index, &waits);
        }
    }

    fn judge_shots(&self, seat: &Seat, journal: &mut Journal) {
        // Those just fired are still on their way.
        let until = self.now - Duration::from_secs(1);
        let fired = seat.shots().iter().filter(|(_, shot)| shot.at < until);
        for (tick, shot) in fired {
            let judged = self.verdicts.get(&(seat.id(), *tick));
            let hit = judged.and_then(|judged| judged.hit);
            journal.shots += 1;
            journal.hits += u64::from(hit.is_some());
            journal.seen_hits += u64::from(shot.target.is_some());
            journal.shots_agreed += u64::from(hit == shot.target);
            journal.shots_unheard += u64::from(judged.is_none());
            let late = judged.is_some_and(|judged| judged.verdict == Verdict::Late);
            journal.shots_late += u64::from(late);
        }
    }
}

/// What can be hit of a player: a capsule as wide as shoulders.
pub(crate) fn rig() -> Rig {
    let capsule = Volume::Capsule {
        half_length: 0.6,
        radius: RADIUS,
    };
    Rig::new([HitVolume::new(capsule)]).expect("a sane volume")
}

fn pose(body: &Body) -> Pose {
    Pose::at(up(body.place()))
}

pub(crate) fn up(place: Vec2) -> Vec3 {
    Vec3::new(place.x, 0.0, place.y)
}

/// How wide a player is, from the middle.
pub const RADIUS: f32 = 0.4;
/// Longest shot.
const RANGE: f32 = 200.0;
/// Largest packet.
const PACKET_BYTES: usize = 1_200;
