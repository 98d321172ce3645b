//! Joining late, changing the game, resting, and what a client is told of an entity's life.

use muse_netcode::{
    Acknowledgement, ClientId, ClientView, EntityStatus, EventClass, Receiver, Refused, Tick,
    Update, World,
};

use crate::game::{self, Armor, Handles, Private};
use crate::lossy::Conditions;
use crate::simulation::{Client, Simulation};

/// A server and a client without a network between them.
struct Pair {
    world: World,
    handles: Handles,
    view: ClientView,
    receiver: Receiver,
    tick: u32,
}

impl Pair {
    fn new() -> Self {
        let (kinds, handles) = game::kinds();
        let world = World::new(kinds);
        let view = ClientView::new(&world, ClientId(1));
        let mut receiver = Receiver::new(game::kinds().0);
        receiver.set_game(0);
        Self {
            world,
            handles,
            view,
            receiver,
            tick: 0,
        }
    }

    /// A tick in which everything is seen; gives the updates without states, and the bytes it took.
    fn step(&mut self) -> (Vec<Update>, usize) {
        self.tick += 1;
        self.world.commit(Tick(self.tick)).expect("in order");
        let all: Vec<_> = self.world.entities().map(|entity| (entity, 1.0)).collect();
        self.view.set_interest(all);
        let mut buffer = [0; 1_200];
        let len = self
            .receiver
            .emit_acknowledgement(&mut buffer)
            .expect("room");
        assert!(len <= Acknowledgement::LEN_MAX);
        self.view
            .handle_acknowledgement(&buffer[..len])
            .expect("an answer of ours");
        self.view.begin(&self.world, 100_000);
        let mut bytes = 0;
        while let Some(len) = self.view.poll_packet(&self.world, &mut buffer) {
            bytes += len;
            let result = self.receiver.handle_packet(&buffer[..len]);
            assert!(
                matches!(result, Ok(_) | Err(Refused::OtherGame(_))),
                "{result:?}"
            );
        }
        let updates = std::iter::from_fn(|| self.receiver.poll_update())
            .filter(|update| !matches!(update, Update::State { .. }))
            .collect();
        (updates, bytes)
    }
}

#[test]
fn the_life_of_an_entity_is_told() {
    let mut pair = Pair::new();
    let Handles {
        body,
        chest,
        armor,
        private,
    } = pair.handles;
    let mut random = fastrand::Rng::with_seed(1);
    let entity = pair
        .world
        .spawn(body, &game::random_body(&mut random))
        .expect("room for it");
    assert_eq!(pair.receiver.status(entity), EntityStatus::Unknown);
    pair.step();
    let tick = Tick(2);
    pair.world.set_input(entity, b"jump").expect("it exists");
    pair.world
        .set_owner(entity, Some(ClientId(1)))
        .expect("it exists");
    pair.world
        .set(armor, entity, &Armor { strength: 9 })
        .expect("it exists");
    let secret = Private {
        exact: [0.1, -0.0, 1e30],
        ammunition: 4,
    };
    pair.world.set(private, entity, &secret).expect("it exists");
    let (mut updates, _) = pair.step();
    updates.sort_by_key(|update| format!("{update:?}"));
    let kind = armor.id();
    let expected = [
        Update::PartAdded { entity, kind, tick },
        Update::PartAdded {
            entity,
            kind: private.id(),
            tick,
        },
        Update::Related { entity, tick },
    ];
    assert!(updates.iter().all(|update| expected.contains(update)));
    assert_eq!(updates.len(), 3, "{updates:?}");
    assert_eq!(pair.receiver.state(private, entity), Some((tick, secret)));
    assert_eq!(pair.receiver.input(entity), Some((tick, &b"jump"[..])));
    assert_eq!(pair.receiver.owner(entity), Some(ClientId(1)));

    let tick = Tick(3);
    pair.world.set_owner(entity, None).expect("it exists");
    let opened = game::random_crate(&mut random);
    pair.world.set(chest, entity, &opened).expect("it exists");
    let (updates, _) = pair.step();
    let kind = chest.id();
    assert!(updates.contains(&Update::KindChanged { entity, kind, tick }));
    let kind = private.id();
    assert!(updates.contains(&Update::PartRemoved { entity, kind, tick }));
    assert_eq!(pair.receiver.state(private, entity), None);
    assert_eq!(pair.receiver.state(chest, entity), Some((tick, opened)));
    assert!(pair.view.knows(entity));

    let bytes = [1, 2];
    pair.world
        .emit(Some(entity), EventClass::Guaranteed, 8, &bytes)
        .expect("short enough");
    pair.world.despawn(entity).expect("it exists");
    let mut updates = Vec::new();
    for _ in 0..4 {
        updates.extend(pair.step().0);
    }
    assert!(matches!(updates[..], [.., Update::Despawned { .. }]));
    let event = pair.receiver.poll_event().expect("its last words");
    assert_eq!(
        (event.entity, event.tick, event.id),
        (Some(entity), Tick(4), 8)
    );
    assert_eq!(pair.receiver.status(entity), EntityStatus::Gone);
    assert!(pair.view.is_gone(entity));
}

#[test]
fn a_world_at_rest_costs_a_header() {
    let mut pair = Pair::new();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..500 {
        pair.world
            .spawn(pair.handles.body, &game::random_body(&mut random))
            .expect("room for it");
    }
    for _ in 0..5 {
        pair.step();
    }
    assert!(pair.receiver.is_complete());
    for _ in 0..200 {
        let (_, bytes) = pair.step();
        assert!(bytes <= 10, "{bytes} bytes");
    }
    // A body that begins to move after a long rest is still coded against its old state.
    let first = pair.world.entities().next().expect("there are some");
    let mut state = pair
        .world
        .state(pair.handles.body, first)
        .expect("it is a body");
    let whole = pair.view.stats().rows_whole;
    for _ in 0..70 {
        state.position[0] += 0.05;
        pair.world
            .set(pair.handles.body, first, &state)
            .expect("it exists");
        let (_, bytes) = pair.step();
        assert!(bytes < 30, "{bytes} bytes");
    }
    assert_eq!(pair.view.stats().rows_whole, whole);
}

#[test]
fn another_game_begins_when_it_is_loaded() {
    let mut pair = Pair::new();
    let mut random = fastrand::Rng::with_seed(2);
    let entity = pair
        .world
        .spawn(pair.handles.body, &game::random_body(&mut random))
        .expect("room for it");
    pair.step();
    pair.step();
    assert!(pair.receiver.is_complete());
    pair.world.set_game(77);
    for _ in 0..3 {
        let (_, bytes) = pair.step();
        assert!(bytes <= 12, "only the time while it loads");
    }
    assert_eq!(pair.receiver.game_of_server(), Some(77));
    pair.receiver.set_game(77);
    assert_eq!(pair.receiver.entities().count(), 0);
    pair.step();
    let row = pair.receiver.row(pair.handles.body.id(), entity);
    let expected = pair.world.row(pair.handles.body.id(), entity);
    assert_eq!(row.map(|(_, row)| row), expected);
    assert_eq!(pair.view.stats().restarts, 0);
}

#[test]
fn a_late_client_is_let_in_over_many_packets() {
    let mut simulation = Simulation::new(4, 1);
    simulation.restless = true;
    for _ in 0..300 {
        simulation.spawn_body();
    }
    for _ in 0..20 {
        simulation.disturb();
        simulation.step();
    }
    let sent_before = simulation.events_sent;
    let conditions = Conditions {
        loss: 0.1,
        duplicates: 0.0,
        delay: 2,
        jitter: 1,
    };
    let mut late = Client::new(&simulation.world, ClientId(0), conditions);
    late.settles_at = 0;
    late.budget = 1_500;
    late.packet = 600;
    simulation.clients = vec![late];
    let mut joined = None;
    for tick in 1..=200 {
        simulation.step();
        let client = &simulation.clients[0];
        let all = client.receiver.entities().count() == simulation.world.len();
        if client.receiver.is_complete() {
            assert!(all);
            joined = joined.or(Some(tick));
        }
    }
    let joined = joined.expect("it joined");
    assert!(joined > 4, "at once, over such a link?");
    // Only what happened since it came.
    let events = &simulation.clients[0].events[0];
    assert!(events.iter().all(|event| *event >= sent_before));
}
