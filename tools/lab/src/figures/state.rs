//! The cost of a field's declaration: the same movement, declared in nine ways.

use std::net::SocketAddr;

use muse_netcode::prediction::{StepContext, run_step};
use muse_netcode::{
    ClientId, ClientView, EntityId, Kind, KindOptions, Kinds, Receiver, Tick, World,
};
use muse_netem::Network;
use muse_schema::State;
use muse_wire::{Ecn, Instant};

use crate::character::{Body, Rules, TICKS_PER_SECOND, play};
use crate::plot::*;
use crate::stage::{TICK, conditions};

/// A body whose position is declared like this.
macro_rules! declare {
    ($($name:ident($($attribute:tt)+))+) => {
        $(
            #[derive(State, Clone, Debug, PartialEq)]
            struct $name {
                #[field(range = -1000.0..=1000.0, $($attribute)+)]
                position: [f32; 3],
                #[field(range = -60.0..=60.0, step = 0.01)]
                velocity: [f32; 3],
            }
            impl From<&Body> for $name {
                fn from(body: &Body) -> Self {
                    Self { position: body.position, velocity: body.velocity }
                }
            }
        )+
    };
}

declare! {
    HeldFine(step = 0.001, predict = hold)
    HeldMiddle(step = 0.01, predict = hold)
    HeldCoarse(step = 0.1, predict = hold)
    LinearFine(step = 0.001)
    LinearMiddle(step = 0.01)
    LinearCoarse(step = 0.1)
    KnownFine(step = 0.001, velocity = velocity)
    KnownMiddle(step = 0.01, velocity = velocity)
    KnownCoarse(step = 0.1, velocity = velocity)
}

pub(super) fn plot() -> Plot {
    let held = [
        bytes::<HeldFine>(),
        bytes::<HeldMiddle>(),
        bytes::<HeldCoarse>(),
    ];
    let linear = [
        bytes::<LinearFine>(),
        bytes::<LinearMiddle>(),
        bytes::<LinearCoarse>(),
    ];
    let known = [
        bytes::<KnownFine>(),
        bytes::<KnownMiddle>(),
        bytes::<KnownCoarse>(),
    ];
    let steps = [(0.0, "1 mm"), (1.0, "1 cm"), (2.0, "10 cm")];
    let costs = |bytes: [f64; 3]| [0.0, 1.0, 2.0].into_iter().zip(bytes);
    let panel = Panel::new(
        Axis::new("step of the position", -0.25, 2.25).named(steps),
        ("bytes per entity and tick", 0.0, 6.0),
    )
    .with("predict = hold", Red, Joined, costs(held))
    .with("predict = linear (default)", Orange, Joined, costs(linear))
    .with("velocity = velocity", Blue, Joined, costs(known));
    Plot::new(
        "State: what a declaration costs on the wire",
        "64 characters that run about, 50 ticks a second, round trip 80 ms, 24 bytes of floats each. A coarser step saves bytes; so does saying that one \
         field is the velocity of another, because what can be foreseen is not sent.",
    )
    .panel(panel)
}

/// Bytes per entity and tick of ten seconds, all headers of the snapshot included, after the first second.
fn bytes<S: State + for<'a> From<&'a Body>>() -> f64 {
    let mut replica = Replica::<S>::new();
    let mut start = 0;
    for tick in 0..SECONDS * TICKS_PER_SECOND {
        if tick == TICKS_PER_SECOND {
            start = replica.bytes;
        }
        replica.tick(Tick(tick));
    }
    let ticks = (SECONDS - 1) * TICKS_PER_SECOND;
    (replica.bytes - start) as f64 / f64::from(ticks) / BODIES as f64
}

/// A world, one client's view of it, and that client, with a network between them.
struct Replica<S> {
    kind: Kind<S>,
    world: World,
    view: ClientView,
    receiver: Receiver,
    bodies: Vec<(EntityId, Body)>,
    network: Network,
    bytes: u64,
}

impl<S: State + for<'a> From<&'a Body>> Replica<S> {
    fn new() -> Self {
        let (kinds, kind) = declared::<S>();
        let mut world = World::new(kinds);
        let mut random = fastrand::Rng::with_seed(3);
        let bodies: Vec<(EntityId, Body)> = (0..BODIES)
            .map(|_| {
                let mut place = || (random.f32() - 0.5) * 200.0;
                let body = Body::at(place(), place());
                let entity = world.spawn(kind, &S::from(&body));
                (entity.expect("there is room"), body)
            })
            .collect();
        let mut view = ClientView::new(&world, ClientId(1));
        view.set_interest(bodies.iter().map(|(entity, _)| (*entity, 1.0)));
        let mut receiver = Receiver::new(declared::<S>().0);
        receiver.set_game(0);
        let mut network = Network::new(1);
        let (server, client) = (network.add_node(ends().0), network.add_node(ends().1));
        network.set_links(server, client, conditions(80));
        Self {
            kind,
            world,
            view,
            receiver,
            bodies,
            network,
            bytes: 0,
        }
    }

    fn tick(&mut self, tick: Tick) {
        let now = Instant::ZERO + TICK * u64::from(tick.0);
        let (server, client) = ends();
        let mut buffer = [0; 1_200];
        while let Some(delivery) = self.network.poll_deliver(now) {
            if delivery.to == client {
                let taken = self.receiver.handle_packet(delivery.payload);
                taken.expect("packets come whole and in order");
            } else {
                let taken = self.view.handle_acknowledgement(delivery.payload);
                taken.expect("answers come whole");
            }
        }
        for (number, (entity, body)) in (0..).zip(&mut self.bodies) {
            let raise = &mut |()| ();
            let mut context = StepContext::new(tick, true, raise);
            run_step(&mut Rules, body, &play(number, tick), &mut context);
            let set = self.world.set(self.kind, *entity, &S::from(body));
            set.expect("it exists");
        }
        self.world.commit(tick).expect("ticks are in order");
        self.view.begin(&self.world, 100_000);
        while let Some(len) = self.view.poll_packet(&self.world, &mut buffer) {
            self.bytes += len as u64;
            self.network
                .send(now, server, client, Ecn::NotCapable, &buffer[..len]);
        }
        let len = self.receiver.emit_acknowledgement(&mut buffer);
        let len = len.expect("there is room for an answer");
        self.network
            .send(now, client, server, Ecn::NotCapable, &buffer[..len]);
    }
}

fn declared<S: State>() -> (Kinds, Kind<S>) {
    let mut kinds = Kinds::new().with_tick_rate(f64::from(TICKS_PER_SECOND));
    let kind = kinds.register(KindOptions::new(1));
    (kinds, kind.expect("the first kind of its id"))
}

fn ends() -> (SocketAddr, SocketAddr) {
    (([192, 0, 2, 1], 1).into(), ([192, 0, 2, 2], 2).into())
}

const BODIES: u64 = 64;
const SECONDS: u32 = 11;
