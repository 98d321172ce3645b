//! A server that moves bodies along known paths, and a client that draws them at 60 frames a second, over a virtual network.

use std::collections::VecDeque;

use glam::Vec3;
use muse_netcode::interpolation::Shown;
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{
    Client, ClientId, EntityId, Kind, KindOptions, Kinds, Remotes, Server, SessionConfig, Tick,
    TickTime, Update,
};
use muse_netem::{Conditions, Network};
use muse_schema::State;
use muse_wire::{Duration, Ecn, Instant};

use super::motion::{GRAVITY, Motion, Truth};

/// The bodies that are played, and the network.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Of either way.
    pub conditions: Conditions,
    /// Bodies besides the watcher.
    pub bodies: u32,
    /// Bytes that a snapshot may have.
    pub bytes_per_snapshot: usize,
    /// Ticks from one snapshot to the next.
    pub snapshot_ticks: u32,
}

/// Distances between what was shown and the truth, in metres.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    /// Of every body in every frame.
    pub all: Quantiles,
    /// Of those for which states on both sides of the instant shown had arrived, at most two ticks apart.
    pub enclosed: Quantiles,
    /// Of everything else but what rests.
    pub open: Quantiles,
    /// In the same frames: the error of an oracle with the same states, which knows gravity and the floor.
    pub oracle: Quantiles,
    /// In height alone, of every body in every frame.
    pub height: Quantiles,
    /// The worst of bodies that have rested for 250 ms, once anything that was sent since they came to rest has arrived and is smoothed in.
    pub worst_at_rest: f32,
    /// Frames of bodies below the floor.
    pub below_floor: u64,
    /// Frames of bodies whose next state was overdue.
    pub underruns: u64,
    /// Time from the instant shown to now, added up.
    pub age_seconds: f64,
    /// Bytes to the client.
    pub bytes: u64,
    /// Length of all runs.
    pub seconds: f64,
}

/// Values whose quantiles are asked for.
#[derive(Clone, Debug, Default)]
pub struct Quantiles(Vec<f32>);

impl Quantiles {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that this share of all does not exceed; 0 without any.
    pub fn at(&mut self, share: f64) -> f32 {
        let Some(last) = self.0.len().checked_sub(1) else {
            return 0.0;
        };
        let place = (last as f64 * share).round() as usize;
        *self.0.select_nth_unstable_by(place, f32::total_cmp).1
    }
}

impl Errors {
    /// Adds those of another run.
    pub fn add(&mut self, other: Self) {
        self.all.0.extend(other.all.0);
        self.enclosed.0.extend(other.enclosed.0);
        self.open.0.extend(other.open.0);
        self.oracle.0.extend(other.oracle.0);
        self.worst_at_rest = self.worst_at_rest.max(other.worst_at_rest);
        self.height.0.extend(other.height.0);
        self.below_floor += other.below_floor;
        self.underruns += other.underruns;
        self.age_seconds += other.age_seconds;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }

    /// Compares a body on the screen with where it was; `told` is the newest tick that the client has known of for [`SMOOTHED`].
    fn judge(
        &mut self,
        time: TickTime,
        (motion, truth): (Motion, &Truth),
        shown: &Shown<Body>,
        (known, told): (&Known, Tick),
    ) {
        let place = Vec3::from(shown.state.place);
        let error = truth.place.distance(place);
        self.all.0.push(error);
        self.height.0.push((truth.place.y - place.y).abs());
        self.below_floor += u64::from(place.y < -0.001);
        self.underruns += u64::from(shown.source.is_underrun());
        let rests_since = time.ticks() - truth.rested / TICK.as_secs_f64();
        let is_told = f64::from(told.0) >= rests_since;
        if truth.rested >= SETTLED.as_secs_f64() && is_told {
            self.worst_at_rest = self.worst_at_rest.max(error);
        } else if known.encloses(time) {
            self.enclosed.0.push(error);
        } else if let Some(place) = known.oracle(time, motion) {
            self.open.0.push(error);
            self.oracle.0.push(truth.place.distance(place));
        }
    }
}

/// The states of a body that have arrived, in order.
#[derive(Debug, Default)]
struct Known(VecDeque<(Tick, Body)>);

impl Known {
    fn insert(&mut self, tick: Tick, body: Body) {
        let place = self.0.partition_point(|(other, _)| *other < tick);
        if self.0.get(place).is_none_or(|(other, _)| *other != tick) {
            self.0.insert(place, (tick, body));
        }
        if self.0.len() > KNOWN_MAX {
            self.0.pop_front();
        }
    }

    /// The states around an instant.
    fn around(&self, time: TickTime) -> [Option<&(Tick, Body)>; 2] {
        let at = time.ticks();
        let next = self.0.partition_point(|(tick, _)| f64::from(tick.0) <= at);
        let before = next.checked_sub(1).and_then(|place| self.0.get(place));
        [before, self.0.get(next)]
    }

    fn encloses(&self, time: TickTime) -> bool {
        match self.around(time) {
            [Some((before, _)), Some((after, _))] => *after - *before <= 2,
            _ => false,
        }
    }

    /// The best guess by these states: along the curve that their velocities give where there is one on either side; otherwise on by velocity and gravity. Never
    /// below the floor.
    fn oracle(&self, time: TickTime, motion: Motion) -> Option<Vec3> {
        let [before, after] = self.around(time);
        let (tick, body) = before?;
        let from = Vec3::from(body.place);
        let passed = (time.ticks() - f64::from(tick.0)) as f32 * TICK.as_secs_f64() as f32;
        if let Some((next, after)) = after {
            let seconds = (*next - *tick) as f32 * TICK.as_secs_f64() as f32;
            let mut place = curve((body, after), passed / seconds, seconds);
            place.y = place.y.max(0.0);
            return Some(place);
        }
        let mut place = from + Vec3::from(body.velocity) * passed;
        if motion.falls() && (from.y > 0.0 || body.velocity[1] > 0.0) {
            place.y -= 0.5 * GRAVITY as f32 * passed * passed;
        }
        place.y = place.y.max(0.0);
        Some(place)
    }
}

/// The cubic between two bodies that begins and ends with their velocities.
fn curve((from, to): (&Body, &Body), share: f32, seconds: f32) -> Vec3 {
    let [start, end] = [from, to].map(|body| Vec3::from(body.place));
    let [before, after] = [from, to].map(|body| Vec3::from(body.velocity) * seconds);
    let (square, cube) = (share * share, share * share * share);
    start * (2.0 * cube - 3.0 * square + 1.0)
        + before * (cube - 2.0 * square + share)
        + end * (3.0 * square - 2.0 * cube)
        + after * (cube - square)
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Body {
    #[field(range = -200.0..=200.0, step = 0.001, velocity = velocity, interpolate = hermite)]
    place: [f32; 3],
    #[field(range = -20.0..=20.0, step = 0.001)]
    velocity: [f32; 3],
}

struct Rules;

impl Game for Rules {
    type Player = Body;
    type Input = bool;
    type Event = ();

    fn step(&mut self, _: &mut Body, _: &bool, _: &mut StepContext<'_, ()>) {}
}

fn kinds() -> (Kinds, Kind<Body>) {
    let mut kinds = Kinds::new();
    let body = kinds.register(KindOptions::new(1)).expect("the first");
    (kinds, body)
}

fn distance(a: &Body, b: &Body) -> f32 {
    Vec3::from(a.place).distance(b.place.into())
}

/// The game's geometry: nothing goes through the floor.
fn stop(_: &Body, mut ahead: Body) -> Body {
    ahead.place[1] = ahead.place[1].max(0.0);
    ahead
}

/// Plays a scene for so many seconds.
pub fn play(seed: u64, motion: Motion, scene: &Scene, seconds: u32) -> Errors {
    let config = SessionConfig::new(TICK)
        .bytes_per_snapshot(scene.bytes_per_snapshot)
        .snapshot_interval(scene.snapshot_ticks);
    let mut network = Network::new(seed);
    let (server_at, client_at) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 1).into());
    let (server_node, client_node) = (network.add_node(server_at), network.add_node(client_at));
    network.set_links(server_node, client_node, scene.conditions.clone());

    let (all, kind) = kinds();
    let mut server = Server::<Rules>::new(config, all, kind, Instant::ZERO);
    server.watch(WATCHER);
    let path = |number: u32, tick: f64| motion.at(number, tick * TICK.as_secs_f64());
    let state = |number: u32, tick: u32| {
        let truth = path(number, f64::from(tick));
        Body {
            place: truth.place.into(),
            velocity: truth.velocity.into(),
        }
    };
    let bodies: Vec<EntityId> = (0..scene.bodies)
        .map(|number| {
            server
                .world_mut()
                .spawn(kind, &state(number, 0))
                .expect("room")
        })
        .collect();
    let mut screen = Screen::new(config, bodies.len());

    let mut errors = Errors::default();
    let mut buffer = [0; 1_200];
    let mut now = Instant::ZERO;
    let mut next_frame = Instant::from_micros(seed * 1_237 % 16_000);
    let end = Instant::ZERO + WARM_UP + Duration::from_secs(seconds.into());
    while now < end {
        while let Some(delivery) = network.poll_deliver(now) {
            // Duplicates and late packets are refused.
            if delivery.to == server_at {
                let _ = server.handle_packet(now, WATCHER, delivery.payload);
            } else {
                screen.handle_packet(now, delivery.payload);
            }
        }
        while let Some(tick) = server.poll_tick(now, &mut Rules, |_, ()| ()) {
            for (number, body) in (0..).zip(&bodies) {
                let set = server.world_mut().set(kind, *body, &state(number, tick.0));
                set.expect("it is there");
            }
            server.commit();
            while let Some((_, len)) = server.poll_packet(now, &mut buffer) {
                errors.bytes += len as u64;
                network.send(now, server_at, client_at, Ecn::NotCapable, &buffer[..len]);
            }
        }
        if now >= next_frame {
            next_frame += FRAME;
            let client = &mut screen.client;
            while let Some(len) = client.poll_packet(now, &mut Rules, |_| false, &mut buffer) {
                network.send(now, client_at, server_at, Ecn::NotCapable, &buffer[..len]);
            }
            screen.draw(now, motion, &bodies, &mut errors);
        }
        let next = server.poll_timeout().min(next_frame);
        now = network
            .next_delivery()
            .map_or(next, |at| at.min(next))
            .max(now + Duration::from_micros(1));
    }
    errors.seconds = (end - Instant::ZERO).as_secs_f64();
    errors
}

/// The client, and everything that it could know.
struct Screen {
    client: Client<Rules>,
    remotes: Remotes<Body>,
    kind: Kind<Body>,
    known: Vec<Known>,
    /// The newest tick that the client was told of, with the time from which on it knew.
    told: VecDeque<(Instant, Tick)>,
}

impl Screen {
    fn new(config: SessionConfig, bodies: usize) -> Self {
        let (all, kind) = kinds();
        let client = Client::<Rules>::new(config, all, kind, distance, Instant::ZERO);
        Self {
            remotes: Remotes::new(kind, client.interpolation(), distance),
            client,
            kind,
            known: std::iter::repeat_with(Known::default)
                .take(bodies)
                .collect(),
            told: VecDeque::from([(Instant::ZERO, Tick(0))]),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let _ = self.client.handle_packet(now, &mut Rules, packet);
        let newest = self.client.receiver().tick().unwrap_or_default();
        self.told.push_back((now, newest));
    }

    /// Draws a frame, and compares it with the truth.
    fn draw(&mut self, now: Instant, motion: Motion, bodies: &[EntityId], errors: &mut Errors) {
        let number = |entity| bodies.iter().position(|body| *body == entity);
        while let Some(update) = self.client.poll_update() {
            self.remotes.handle_update(&self.client, &update);
            if let Update::State { entity, tick, .. } = update
                && let Some(state) = self.client.receiver().state_at(self.kind, entity, tick)
                && let Some(number) = number(entity)
            {
                self.known[number].insert(tick, state);
            }
        }
        let smoothed = |(since, _): &(Instant, Tick)| *since + SMOOTHED <= now;
        while self.told.get(1).is_some_and(smoothed) {
            self.told.pop_front();
        }
        let Some(time) = self.client.shown_time() else {
            return;
        };
        if now < Instant::ZERO + WARM_UP {
            return;
        }
        for (entity, shown) in self.remotes.show_within(&self.client, stop) {
            let number = number(entity).expect("there are no others");
            let truth = motion.at(number as u32, time.ticks() * TICK.as_secs_f64());
            let known = (&self.known[number], self.told[0].1);
            errors.judge(time, (motion, &truth), &shown, known);
            errors.age_seconds += now.as_secs_f64() - time.ticks() * TICK.as_secs_f64();
        }
    }
}

const WATCHER: ClientId = ClientId(1);
const TICK: Duration = Duration::from_millis(20);
/// After so long at rest a body is shown where it is.
const SETTLED: Duration = Duration::from_millis(250);
/// Time in which an error that news reveal is blended away.
const SMOOTHED: Duration = Duration::from_millis(250);
const FRAME: Duration = Duration::from_micros(16_667);
const WARM_UP: Duration = Duration::from_secs(3);
/// States of a body that are kept for the oracle: more than a second of them.
const KNOWN_MAX: usize = 64;
