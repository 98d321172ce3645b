//! A server whose world changes at random, and clients that must follow. Everything that a client is told is compared with
//! what the server had at that tick.

use std::collections::{BTreeMap, BTreeSet};

use muse_netcode::{
    Acknowledgement, ClientId, ClientView, EntityId, EntityStatus, EventClass, KindId, Receiver,
    Refused, Tick, Update, World,
};

use crate::game::{self, Handles};
use crate::lossy::{Conditions, Link};

/// Rows by entity and kind.
pub(crate) type Rows = BTreeMap<(EntityId, u16), Vec<i32>>;

pub(crate) struct Simulation {
    pub(crate) random: fastrand::Rng,
    pub(crate) world: World,
    pub(crate) handles: Handles,
    pub(crate) tick: u32,
    /// The world at each tick.
    pub(crate) truth: BTreeMap<u32, Rows>,
    pub(crate) bodies: BTreeMap<EntityId, game::Body>,
    pub(crate) clients: Vec<Client>,
    pub(crate) events_sent: u16,
    /// True if all bodies always move.
    pub(crate) restless: bool,
}

pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) view: ClientView,
    pub(crate) receiver: Receiver,
    pub(crate) conditions: Conditions,
    pub(crate) down: Link,
    pub(crate) up: Link,
    pub(crate) budget: usize,
    pub(crate) packet: usize,
    /// The entities that it may see at each tick.
    pub(crate) interest: BTreeMap<u32, BTreeSet<EntityId>>,
    /// Global events it was told, in order: guaranteed, quickest.
    pub(crate) events: [Vec<u16>; 2],
    /// Ids of entities' events, in order.
    pub(crate) entity_events: Vec<(u32, EntityId)>,
    pub(crate) last_state: BTreeMap<EntityId, u32>,
    pub(crate) states: BTreeMap<EntityId, u32>,
    /// From this tick on it looks in one direction.
    pub(crate) settles_at: u32,
    /// True if it may have to ask the server to start over.
    pub(crate) forgetful: bool,
}

impl Simulation {
    pub(crate) fn new(seed: u64, clients: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (kinds, handles) = game::kinds();
        let mut world = World::new(kinds);
        world.set_game(5);
        let clients = (0..clients)
            .map(|id| Client::new(&world, ClientId(id), Conditions::random(&mut random)))
            .collect();
        Self {
            random,
            world,
            handles,
            tick: 0,
            truth: BTreeMap::new(),
            bodies: BTreeMap::new(),
            clients,
            events_sent: 0,
            restless: false,
        }
    }

    pub(crate) fn spawn_body(&mut self) -> EntityId {
        let body = game::random_body(&mut self.random);
        let entity = self
            .world
            .spawn(self.handles.body, &body)
            .expect("room for it");
        self.bodies.insert(entity, body);
        entity
    }

    /// Changes something, or several things.
    pub(crate) fn disturb(&mut self) {
        for _ in 0..self.random.u32(0..4) {
            let all: Vec<EntityId> = self.world.entities().collect();
            let any = self.random.choice(&all).copied();
            let operation = self.random.u32(0..20);
            match (operation, any) {
                (0..=2, _) if all.len() < 60 => {
                    self.spawn_body();
                }
                (3, _) => {
                    let chest = game::random_crate(&mut self.random);
                    self.world
                        .spawn(self.handles.chest, &chest)
                        .expect("room for it");
                }
                (4, Some(entity)) => {
                    self.world.despawn(entity).expect("it exists");
                    self.bodies.remove(&entity);
                }
                (5, Some(entity)) => {
                    // Another main kind.
                    self.bodies.remove(&entity);
                    let chest = game::random_crate(&mut self.random);
                    self.world
                        .set(self.handles.chest, entity, &chest)
                        .expect("it exists");
                }
                (6, Some(entity)) => {
                    let body = game::random_body(&mut self.random);
                    self.world
                        .set(self.handles.body, entity, &body)
                        .expect("it exists");
                    self.bodies.insert(entity, body);
                }
                (7..=9, Some(entity)) => {
                    let owner = self.random.u32(0..4);
                    let owner = (owner < 3).then_some(ClientId(owner));
                    self.world.set_owner(entity, owner).expect("it exists");
                }
                (10 | 11, Some(entity)) => {
                    let parent = self.random.choice(&all).copied();
                    let parent = parent.filter(|parent| *parent != entity);
                    self.world.attach(entity, parent).expect("both exist");
                }
                (12..=14, Some(entity)) => self.change_part(entity),
                (15 | 16, Some(entity)) => {
                    let input = [self.random.u8(..), 1, 2];
                    let len = self.random.u32(0..=3) as usize;
                    self.world
                        .set_input(entity, &input[..len])
                        .expect("it exists");
                }
                (17, Some(entity)) => {
                    let target = self.random.choice(&all).copied();
                    if let Some(body) = self.bodies.get_mut(&entity) {
                        body.target = target;
                    }
                }
                (_, Some(entity)) => {
                    let class = [EventClass::Guaranteed, EventClass::Unreliable];
                    let class = class[self.random.u32(0..2) as usize];
                    self.world
                        .emit(Some(entity), class, 60_000, &entity.bits().to_le_bytes())
                        .expect("short enough");
                }
                _ => {}
            }
        }
        self.emit_global();
    }

    fn emit_global(&mut self) {
        for _ in 0..self.random.u32(0..3) {
            let bytes = vec![7; self.random.u32(0..40) as usize];
            for class in [EventClass::Guaranteed, EventClass::Quickest] {
                self.world
                    .emit(None, class, self.events_sent, &bytes)
                    .expect("short enough");
            }
            self.events_sent += 1;
        }
    }

    fn change_part(&mut self, entity: EntityId) {
        let Handles { armor, private, .. } = self.handles;
        if self.random.bool() {
            let state = game::Armor {
                strength: self.random.u16(..),
            };
            self.world.set(armor, entity, &state).expect("it exists");
        } else if self.random.bool() {
            let state = game::Private {
                exact: [self.random.f32(), f32::MAX, -0.0],
                ammunition: self.random.u32(..),
            };
            self.world.set(private, entity, &state).expect("it exists");
        } else {
            let kind = [armor.id(), private.id()][self.random.u32(0..2) as usize];
            // It may not have the part.
            let _ = self.world.remove(kind, entity);
        }
    }

    /// One tick: bodies move, then everyone is told.
    pub(crate) fn step(&mut self) {
        self.tick += 1;
        for (entity, body) in &mut self.bodies {
            // Some rest for a while.
            if self.restless || !(self.tick / 90 + entity.index()).is_multiple_of(3) {
                game::step(body, &mut self.random);
            }
            self.world
                .set(self.handles.body, *entity, body)
                .expect("it exists");
        }
        self.world.commit(Tick(self.tick)).expect("in order");
        self.remember();
        for client in &mut self.clients {
            client.serve(&self.world, self.tick, &mut self.random);
            client.hear(self.tick, &mut self.random);
            client.check(&self.truth, &self.world);
        }
    }

    fn remember(&mut self) {
        let Handles {
            body,
            chest,
            armor,
            private,
        } = self.handles;
        let kinds: [KindId; 4] = [body.id(), chest.id(), armor.id(), private.id()];
        let mut rows = Rows::new();
        for entity in self.world.entities() {
            for kind in kinds {
                if let Some(row) = self.world.row(kind, entity) {
                    rows.insert((entity, kind.id()), row.to_vec());
                }
            }
        }
        self.truth.insert(self.tick, rows);
        self.truth.retain(|tick, _| tick + 200 > self.tick);
    }

    /// Everyone knows exactly what it may see, no more and no less.
    pub(crate) fn assert_converged(&self) {
        for client in &self.clients {
            let expected = client.interest.last_key_value().map(|(_, set)| set.clone());
            let found: BTreeSet<EntityId> = client.receiver.entities().collect();
            assert_eq!(Some(found), expected, "client {:?}", client.id);
            assert!(client.receiver.is_complete() && client.view.is_complete());
            let rows = &self.truth[&self.tick];
            for entity in client.receiver.entities() {
                client.assert_entity(&self.world, self.handles, rows, entity);
            }
            for events in &client.events {
                assert_eq!(*events, (0..self.events_sent).collect::<Vec<_>>());
            }
            assert!(!client.view.has_overflowed());
        }
    }
}

impl Client {
    pub(crate) fn new(world: &World, id: ClientId, conditions: Conditions) -> Self {
        let mut receiver = Receiver::new(game::kinds().0);
        receiver.set_game(world.game());
        Self {
            id,
            view: ClientView::new(world, id),
            receiver,
            conditions,
            down: Link::default(),
            up: Link::default(),
            budget: 20_000,
            packet: 1_200,
            interest: BTreeMap::new(),
            events: [Vec::new(), Vec::new()],
            entity_events: Vec::new(),
            last_state: BTreeMap::new(),
            states: BTreeMap::new(),
            settles_at: u32::MAX,
            forgetful: false,
        }
    }

    /// Lets the client see these from now on.
    pub(crate) fn look(&mut self, tick: u32, set: BTreeSet<EntityId>) {
        let weights = set
            .iter()
            .map(|entity| (*entity, 1.0 + (entity.index() % 5) as f32));
        self.view.set_interest(weights);
        self.interest.insert(tick, set);
    }

    fn serve(&mut self, world: &World, tick: u32, random: &mut fastrand::Rng) {
        // Everything changes sides now and then.
        let side = (tick.min(self.settles_at) / 70 + self.id.0) % 3;
        let visible: BTreeSet<EntityId> = world
            .entities()
            .filter(|entity| side == 0 || entity.index() % 3 != side)
            .collect();
        self.look(tick, visible);
        self.interest.retain(|old, _| old + 200 > tick);
        for bytes in self.up.receive(tick) {
            self.view
                .handle_acknowledgement(&bytes)
                .expect("an answer of ours");
        }
        self.view.begin(world, self.budget);
        let mut buffer = vec![0; self.packet];
        let mut total = 0;
        while let Some(len) = self.view.poll_packet(world, &mut buffer) {
            total += len;
            self.down
                .send(tick, &buffer[..len], &self.conditions, random);
        }
        assert!(total <= self.budget, "{total} bytes of {}", self.budget);
    }

    fn hear(&mut self, tick: u32, random: &mut fastrand::Rng) {
        for bytes in self.down.receive(tick) {
            let result = self.receiver.handle_packet(&bytes);
            let sound = matches!(
                result,
                Ok(_) | Err(Refused::Duplicate | Refused::NoBaseline)
            );
            // A client that lies gets what it cannot decode.
            assert!(sound || self.forgetful, "{result:?}");
        }
        let mut buffer = [0; Acknowledgement::LEN_MAX];
        let len = self
            .receiver
            .emit_acknowledgement(&mut buffer)
            .expect("room for the longest");
        self.up.send(tick, &buffer[..len], &self.conditions, random);
    }

    /// Everything that the client was told since last time was so.
    fn check(&mut self, truth: &BTreeMap<u32, Rows>, world: &World) {
        while let Some(update) = self.receiver.poll_update() {
            let Update::State { entity, kind, tick } = update else {
                continue;
            };
            assert!(
                self.interest[&tick.0].contains(&entity),
                "{entity:?} was none of its business at {tick:?}"
            );
            let newest = self.last_state.entry(entity).or_default();
            *newest = (*newest).max(tick.0);
            *self.states.entry(entity).or_default() += 1;
            // It may have gone or changed again within the same packets.
            if let Some(row) = self.receiver.row_at(kind, entity, tick) {
                let expected = truth[&tick.0].get(&(entity, kind.id()));
                assert_eq!(
                    Some(row),
                    expected.map(Vec::as_slice),
                    "{entity:?} {tick:?}"
                );
            }
        }
        while let Some(event) = self.receiver.poll_event() {
            if let Some(entity) = event.entity {
                assert_eq!(*event.bytes, entity.bits().to_le_bytes());
                assert_ne!(self.receiver.status(entity), EntityStatus::Unknown);
                self.assert_event_has_state(truth, entity, event.tick);
                self.entity_events.push((event.tick.0, entity));
            } else {
                assert_eq!(event.bytes.iter().filter(|byte| **byte != 7).count(), 0);
                self.events[usize::from(event.class == EventClass::Quickest)].push(event.id);
            }
        }
        if !self.forgetful {
            assert_eq!(self.view.stats().restarts, 0, "in {:?}", world.tick());
        }
    }

    /// The state of the entity is that of the event's tick, or a later one.
    fn assert_event_has_state(&self, truth: &BTreeMap<u32, Rows>, entity: EntityId, tick: Tick) {
        let Some(kind) = self.receiver.kind(entity) else {
            return;
        };
        let (newest, row) = self.receiver.row(kind, entity).expect("it is here");
        let then = truth
            .get(&tick.0)
            .and_then(|rows| rows.get(&(entity, kind.id())));
        let left = |tick: u32| {
            self.interest
                .range(tick..)
                .any(|(_, set)| !set.contains(&entity))
        };
        assert!(
            newest >= tick || then.map(Vec::as_slice) == Some(row) || left(tick.0),
            "{entity:?} is at {newest:?} when its event of {tick:?} arrives"
        );
    }

    fn assert_entity(&self, world: &World, handles: Handles, rows: &Rows, entity: EntityId) {
        let Handles {
            body,
            chest,
            armor,
            private,
        } = handles;
        let owned = world.owner(entity) == Some(self.id);
        let kinds: [KindId; 4] = [body.id(), chest.id(), armor.id(), private.id()];
        for kind in kinds {
            let visible = kind != private.id() || owned;
            let expected = rows.get(&(entity, kind.id())).filter(|_| visible);
            let found = self.receiver.row(kind, entity).map(|(_, row)| row);
            assert_eq!(found, expected.map(Vec::as_slice), "{entity:?} {kind:?}");
        }
        assert_eq!(self.receiver.owner(entity), world.owner(entity));
        assert_eq!(self.receiver.parent(entity), world.parent(entity));
    }
}
