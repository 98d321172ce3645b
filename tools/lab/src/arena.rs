//! A match that is measured: one server and its clients over a [`Carrier`], mostly a virtual network, each mechanism switched on or off, every frame and every
//! shot noted down. Both sides run the shipped session, transport included.
//!
//! Unlike [`LabStage`](crate::stage::LabStage), which serves pictures, it goes from event to event: packets arrive to the microsecond, clients
//! have clocks that drift, and frames are drawn 60 times a second. What is switched off is not shown: without interpolation the
//! screen has the newest state that arrived, without prediction the own player is where the server last said, without lag
//! compensation shots are judged in the present.

mod carrier;
mod notes;
mod player;
mod views;

pub use carrier::{Arrived, Carrier, Virtual};
pub use notes::{Journal, Mean, Movement};
pub use player::{ArenaPlayer, Mind, Sight, Switches};
pub use views::{VIEWS, ViewTally};

use std::collections::BTreeMap;

use glam::{Vec2, Vec3};
use muse_lagcomp::{Except, HitVolume, Hits, Pose, RewindConfig, Rig, Shot, Verdict, Volume};
use muse_netcode::inputs::InputCounters;
use muse_netcode::{EntityId, SessionConfig, Tick};
use muse_netem::Conditions;
use muse_wire::{Duration, Instant};

use crate::character::{Body, TICK_SECONDS, TICKS_PER_SECOND, kinds};
use crate::sides::ServerSide;
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
    server: ServerSide,
    hits: Hits<Body>,
    players: Vec<ArenaPlayer>,
    carrier: Box<dyn Carrier>,
    seed: u64,
    truth: BTreeMap<EntityId, Truth>,
    verdicts: BTreeMap<(usize, Tick), Judged>,
    /// The time since which events count; `None` before that.
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
    /// An empty match with the usual settings. All randomness follows from the seed.
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
        let rewind = RewindConfig::new(TICKS_PER_SECOND);
        let hits = Hits::new(rewind, kinds().1, rig(), pose);
        Self {
            now: Instant::ZERO,
            switches,
            config,
            server: ServerSide::new(seed, config),
            hits: hits.expect("one rig"),
            players: Vec::new(),
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
        let entity = self.server.expect_player(&start);
        self.carrier.join(&conditions);
        let player = ArenaPlayer::new(
            self.players.len(),
            entity,
            self.config,
            self.switches,
            self.seed,
            self.carrier.server(),
            Box::new(mind),
        );
        self.players.push(player);
        entity
    }

    /// Tries the other ways to show remote players beside the one that is shown; see [`VIEWS`].
    pub fn compare_views(&mut self) {
        for player in &mut self.players {
            player.compare_views();
        }
    }

    /// From now on what happens counts.
    pub fn begin(&mut self) {
        self.since = Some(self.now);
        for number in 0..self.players.len() {
            let counters = self.input_counters(number);
            self.players[number].begin(counters);
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.deliver();
            self.serve();
            for index in 0..self.players.len() {
                self.play(index);
            }
            let mut next = self.server.poll_timeout();
            for player in &mut self.players {
                next = next.min(player.next_wake());
            }
            let next = self.carrier.wait(self.now, next.min(end));
            self.now = next.max(self.now + Duration::from_micros(1)).min(end);
        }
    }

    /// Returns the clients, in the order in which they joined.
    pub fn players(&self) -> &[ArenaPlayer] {
        &self.players
    }

    /// Everything that was noted since [`begin`](Self::begin), of all clients together.
    pub fn finish(&self) -> Journal {
        let all: Vec<usize> = (0..self.players.len()).collect();
        self.finish_of(&all)
    }

    /// Everything that was noted of these clients.
    pub fn finish_of(&self, players: &[usize]) -> Journal {
        let mut journal = Journal {
            course: self.course.clone(),
            seconds: (self.now - self.since.unwrap_or(self.now)).as_secs_f64(),
            ..Journal::default()
        };
        for number in players {
            let Some(player) = self.players.get(*number) else {
                continue;
            };
            journal.clients += 1;
            player.tell(&mut journal, self.input_counters(*number));
            self.judge_shots(*number, player, &mut journal);
        }
        journal.settle();
        journal
    }

    fn input_counters(&self, number: usize) -> Option<InputCounters> {
        let client = self.server.client(number)?;
        self.server.game.input_counters(client).copied()
    }

    fn deliver(&mut self) {
        let mut datagram = Vec::new();
        while let Some(arrived) = self.carrier.poll(self.now, &mut datagram) {
            match arrived {
                Arrived::AtClient(index) => {
                    let from = self.carrier.server();
                    self.players[index].handle_datagram(self.now, from, &mut datagram);
                    self.play(index);
                }
                Arrived::AtServer(from) => {
                    self.server.handle_datagram(self.now, from, &mut datagram);
                }
            }
        }
    }

    fn serve(&mut self) {
        self.server.handle_time(self.now);
        while let Some(tick) = self.server.poll_tick(self.now) {
            self.judge(tick);
            self.server.send_snapshots(self.now);
            self.look_at_truth(tick);
        }
        self.server.flush(self.now, |to, datagram| {
            self.carrier.send_down(self.now, to, datagram);
        });
    }

    /// The shots of a tick.
    fn judge(&mut self, tick: Tick) {
        let game = &self.server.game;
        self.hits.record(game.world(), tick).expect("sane poses");
        for (number, player) in self.players.iter().enumerate() {
            let Some(client) = self.server.client(number) else {
                continue;
            };
            let taken = game.input(client).filter(|taken| taken.is_received());
            let Some(fire) = taken.and_then(|taken| taken.input().fire) else {
                continue;
            };
            let Some(own) = game.world().state(kinds().1, player.entity()) else {
                continue;
            };
            let admission = match self.switches.lag_compensation {
                true => {
                    let claim = muse_netcode::Claim::at(fire.seen);
                    self.hits.admit(game, client, claim)
                }
                false => Some(self.hits.rewind().present()),
            };
            let Some(admission) = admission else {
                continue;
            };
            let way = Vec2::from_array(fire.towards) - Vec2::from_array(fire.from);
            let shot = Shot::new(up(own.place()), up(way)).range(RANGE);
            let mut others = Except(player.entity());
            let hit = self.hits.rewind().hitscan(&admission, &shot, &mut others);
            let judged = Judged {
                hit: hit.map(|hit| hit.entity),
                verdict: admission.verdict(),
            };
            self.verdicts.insert((number, tick), judged);
        }
    }

    /// Notes where everybody is, and how far from there everybody is shown at this very instant.
    fn look_at_truth(&mut self, tick: Tick) {
        let kind = kinds().1;
        for player in &self.players {
            let Some(body) = self.server.game.world().state(kind, player.entity()) else {
                continue;
            };
            self.truth
                .entry(player.entity())
                .or_default()
                .note(body, TICK_SECONDS);
        }
        for index in 0..self.players.len() {
            self.play(index);
            let counts = self.since.is_some();
            self.players[index].compare(self.now, tick, &self.truth, counts);
        }
        if self.since.is_some() {
            let means = self.players.iter().filter_map(ArenaPlayer::distance_now);
            let mut mean = Mean::default();
            means.for_each(|distance| mean.add(distance));
            self.course.push(mean.mean());
        }
    }

    fn play(&mut self, index: usize) {
        let player = &mut self.players[index];
        player.play(self.now);
        player.flush(self.now, |datagram| {
            self.carrier.send_up(self.now, index, datagram);
        });
        if player.draws_at() > self.now {
            return;
        }
        player.draw(self.now, &self.truth, self.since.is_some());
        if self.since.is_none() {
            return;
        }
        // Whose key presses are on the screen for the first time?
        let reached = self.players[index].reached();
        for (entity, from, to) in reached {
            let is_played = |player: &ArenaPlayer| player.entity() == entity;
            let Some(other) = self.players.iter().position(is_played) else {
                continue;
            };
            let waits: Vec<Duration> = (from.0..=to.0)
                .filter_map(|tick| self.players[other].pressed_at(Tick(tick)))
                .map(|at| self.now.saturating_since(at))
                .collect();
            self.players[index].note_reached(other == index, &waits);
        }
    }

    fn judge_shots(&self, number: usize, player: &ArenaPlayer, journal: &mut Journal) {
        // Those just fired are still on their way.
        let until = self.now - Duration::from_secs(1);
        let fired = player.shots().iter().filter(|(_, shot)| shot.at < until);
        for (tick, shot) in fired {
            let judged = self.verdicts.get(&(number, *tick));
            let hit = judged.and_then(|judged| judged.hit);
            journal.shots += 1;
            journal.hits += u64::from(hit.is_some());
            journal.shots_agreed += u64::from(hit == shot.target);
            let late = judged.is_some_and(|judged| judged.verdict == Verdict::Late);
            journal.shots_late += u64::from(late);
        }
    }
}

/// Returns the hit volume of a player: a capsule as wide as shoulders.
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

/// A player's radius.
pub const RADIUS: f32 = 0.4;
/// Longest shot.
const RANGE: f32 = 200.0;
