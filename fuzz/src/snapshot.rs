//! Snapshot packets at the client and answers at the server: damaged ones, invented ones, and sound ones between.

use muse_netcode::{
    Acknowledgement, ClientId, ClientView, EventClass, Kind, KindOptions, Kinds, Receiver, Tick,
    World,
};
use muse_schema::State;

use crate::{Bound, Target, no_setup};

/// Packets and answers.
pub const TARGET: Target = Target {
    name: "snapshot",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 200_000,
        per_byte: 400,
    },
    steps: Bound {
        base: 100_000,
        per_byte: 1_000,
    },
};

#[derive(State, Clone)]
struct Thing {
    #[field(range = -100.0..=100.0, step = 0.01, predict = linear)]
    place: [f32; 2],
    #[field(max = 4)]
    name: String,
    target: Option<muse_netcode::EntityId>,
}

fn kinds() -> (Kinds, Kind<Thing>) {
    let mut kinds = Kinds::new();
    let thing = kinds
        .register(KindOptions::new(2).inputs())
        .expect("the first kind");
    (kinds, thing)
}

/// Runs the bytes as a list of operations.
fn run(data: &[u8]) {
    let (declared, thing) = kinds();
    let mut world = World::new(declared);
    let mut view = ClientView::new(&world, ClientId(1));
    let mut receiver = Receiver::new(kinds().0).with_entities_max(ENTITIES_MAX as u32);
    receiver.set_game(0);
    let mut tick = 0;
    let mut rest = data;
    while let [operation, len, tail @ ..] = rest {
        let (bytes, tail) = tail.split_at(tail.len().min(usize::from(*len)));
        rest = tail;
        match operation % 6 {
            0 => {
                let _ = receiver.handle_packet(bytes);
            }
            1 => {
                let _ = view.handle_acknowledgement(bytes);
            }
            2 if world.len() < ENTITIES_MAX => {
                let state = Thing {
                    place: [f32::from(*len), -1.0],
                    name: String::new(),
                    target: world.entities().next(),
                };
                let entity = world.spawn(thing, &state).expect("room for it");
                world
                    .set_input(entity, &bytes[..bytes.len().min(9)])
                    .expect("it exists");
            }
            3 => {
                let any = world.entities().nth(usize::from(*len) % 8);
                if let Some(entity) = any {
                    let id = u16::from(*len);
                    let told = world.emit(Some(entity), EventClass::Guaranteed, id, bytes);
                    told.expect("short enough");
                    if len & 1 == 0 {
                        world.despawn(entity).expect("it exists");
                    }
                }
            }
            _ => {
                tick += 1;
                exchange(&mut world, &mut view, &mut receiver, tick, bytes);
            }
        }
        while receiver.poll_update().is_some() {}
        while receiver.poll_event().is_some() {}
        assert!(receiver.entities().count() <= ENTITIES_MAX);
    }
}

/// A tick with packets and an answer, damaged by `noise`.
fn exchange(
    world: &mut World,
    view: &mut ClientView,
    receiver: &mut Receiver,
    tick: u32,
    noise: &[u8],
) {
    world.commit(Tick(tick)).expect("in order");
    let visible: Vec<_> = world.entities().map(|entity| (entity, 1.0)).collect();
    view.set_interest(visible);
    view.begin(world, 2_000);
    let mut buffer = [0; 600];
    while let Some(len) = view.poll_packet(world, &mut buffer) {
        damage(&mut buffer[..len], noise);
        let _ = receiver.handle_packet(&buffer[..len]);
    }
    let mut answer = [0; Acknowledgement::LEN_MAX];
    let len = receiver
        .emit_acknowledgement(&mut answer)
        .expect("room for the longest");
    damage(&mut answer[..len], noise);
    let _ = view.handle_acknowledgement(&answer[..len]);
}

/// Pairs of a place and what to flip there.
fn damage(bytes: &mut [u8], noise: &[u8]) {
    for pair in noise.chunks_exact(2) {
        let place = usize::from(pair[0]) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= pair[1];
        }
    }
}

const ENTITIES_MAX: usize = 64;
