//! A server that moves bodies along known paths, and a client that draws them at 60 frames a second, over a virtual network.

use std::collections::VecDeque;

use glam::Vec3;
use muse_netcode::interpolation::Shown;
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{
    Client, ClientId, Kind, KindOptions, Kinds, Remotes, Server, SessionConfig, Tick, TickTime,
};
use muse_netem::{Conditions, Network};
use muse_schema::State;
use muse_wire::{Duration, Ecn, Instant};

use crate::motion::{Motion, Truth};

/// The bodies that are played, and the network.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) conditions: Conditions,
    pub(crate) bodies: u32,
    pub(crate) bytes_per_snapshot: usize,
}

/// Distances between what was shown and the truth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    all: Vec<f32>,
    /// Of bodies that have rested for 250 ms, and since the client could have been told.
    pub(crate) worst_at_rest: f32,
    pub(crate) below_floor: u64,
    pub(crate) underruns: u64,
    pub(crate) age_seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

impl Errors {
    pub(crate) fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.worst_at_rest = self.worst_at_rest.max(other.worst_at_rest);
        self.below_floor += other.below_floor;
        self.underruns += other.underruns;
        self.age_seconds += other.age_seconds;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }

    /// Compares a body on the screen with where it was; `told` is the newest tick that the client has known of for [`SETTLED`].
    fn judge(&mut self, time: TickTime, truth: &Truth, shown: &Shown<Body>, told: Tick) {
        let error = truth.place.distance(shown.state.place.into());
        self.all.push(error);
        let rests_since = time.ticks() - truth.rested / TICK.as_secs_f64();
        let is_told = f64::from(told.0) >= rests_since;
        if truth.rested >= SETTLED.as_secs_f64() && is_told {
            self.worst_at_rest = self.worst_at_rest.max(error);
        }
        self.below_floor += u64::from(shown.state.place[1] < -0.001);
        self.underruns += u64::from(shown.source.is_underrun());
    }

    pub(crate) fn shown(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn worst(&mut self) -> f32 {
        self.quantile(1.0)
    }

    pub(crate) fn quantile(&mut self, share: f64) -> f32 {
        let last = self.all.len() - 1;
        let place = (last as f64 * share).round() as usize;
        *self.all.select_nth_unstable_by(place, f32::total_cmp).1
    }
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

/// Plays a scene for [`LENGTH`].
pub(crate) fn play(seed: u64, motion: Motion, scene: &Scene) -> Errors {
    let config = SessionConfig::new(TICK).bytes_per_snapshot(scene.bytes_per_snapshot);
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
    let bodies: Vec<_> = (0..scene.bodies)
        .map(|number| {
            server
                .world_mut()
                .spawn(kind, &state(number, 0))
                .expect("room")
        })
        .collect();
    let (all, kind) = kinds();
    let mut client = Client::<Rules>::new(config, all, kind, distance, Instant::ZERO);
    let mut remotes = Remotes::new(kind, client.interpolation(), distance);

    let mut errors = Errors::default();
    // The newest tick that the client was told of, with the time from which on it knew.
    let mut told = VecDeque::from([(Instant::ZERO, Tick(0))]);
    let mut buffer = [0; 1_200];
    let mut now = Instant::ZERO;
    let mut next_frame = Instant::from_micros(seed * 1_237 % 16_000);
    while now < Instant::ZERO + LENGTH {
        while let Some(delivery) = network.poll_deliver(now) {
            // Duplicates and late packets are refused.
            if delivery.to == server_at {
                let _ = server.handle_packet(now, WATCHER, delivery.payload);
            } else {
                let _ = client.handle_packet(now, &mut Rules, delivery.payload);
                told.push_back((now, client.receiver().tick().unwrap_or_default()));
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
            while let Some(len) = client.poll_packet(now, &mut Rules, |_| false, &mut buffer) {
                network.send(now, client_at, server_at, Ecn::NotCapable, &buffer[..len]);
            }
            while let Some(update) = client.poll_update() {
                remotes.handle_update(&client, &update);
            }
            while told
                .get(1)
                .is_some_and(|(since, _)| *since + SETTLED <= now)
            {
                told.pop_front();
            }
            if now >= Instant::ZERO + WARM_UP
                && let Some(time) = client.shown_time()
            {
                for (entity, shown) in remotes.show(&client) {
                    let number = bodies
                        .iter()
                        .position(|body| *body == entity)
                        .expect("known");
                    let truth = path(number as u32, time.ticks());
                    errors.judge(time, &truth, &shown, told[0].1);
                    errors.age_seconds += now.as_secs_f64() - time.ticks() * TICK.as_secs_f64();
                }
            }
        }
        let next = server.poll_timeout().min(next_frame);
        now = network
            .next_delivery()
            .map_or(next, |at| at.min(next))
            .max(now + Duration::from_micros(1));
    }
    errors.seconds = LENGTH.as_secs_f64();
    errors
}

const WATCHER: ClientId = ClientId(1);
const TICK: Duration = Duration::from_millis(20);
/// After so long at rest a body is shown where it is.
const SETTLED: Duration = Duration::from_millis(250);
const FRAME: Duration = Duration::from_micros(16_667);
const WARM_UP: Duration = Duration::from_secs(3);
const LENGTH: Duration = Duration::from_secs(30);
