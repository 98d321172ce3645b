//! The changes of a world at a tick, and another world that follows them: spectators see the past.

use std::sync::Arc;

use super::{ClientId, Entity, KindId, MAIN, NONE, PARTS_MAX, World};
use crate::events::EventClass;
use crate::{EntityId, Tick};

/// A change of a world, as another world can make it.
#[derive(Debug)]
pub(crate) enum Change {
    Game(u32),
    Despawned(EntityId),
    Spawned(EntityId),
    Row(EntityId, KindId, Box<[i32]>),
    Removed(EntityId, KindId),
    Relation(EntityId, Option<ClientId>, Option<EntityId>),
    Input(EntityId, Box<[u8]>),
    Event {
        entity: Option<EntityId>,
        class: EventClass,
        id: u16,
        bytes: Arc<[u8]>,
    },
}

/// The sum of the changes found so far: only which entities are there and with which parts.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    game: u32,
    entities: Vec<Option<(EntityId, [Option<KindId>; PARTS_MAX])>>,
    events_seen: u64,
}

impl World {
    /// True if entities of this kind carry their players' inputs.
    pub(crate) fn tells_inputs(&self, kind: KindId) -> bool {
        self.kinds.kind(kind).is_some_and(|kind| kind.inputs())
    }

    /// Returns the changes of the commit of `tick`, which was the last.
    pub(crate) fn changes(&self, tick: Tick, noted: &mut Noted) -> Vec<Change> {
        let mut changes = Vec::new();
        if noted.game != self.game {
            noted.game = self.game;
            changes.push(Change::Game(self.game));
        }
        // Compared with what was noted, rather than logged as it happens: what came and went within a tick leaves no
        // trace, as for any client.
        let known = noted.entities.len().max(self.entities.len());
        noted.entities.resize(known, None);
        let mut relations = Vec::new();
        for (index, noted) in noted.entities.iter_mut().enumerate() {
            let record = self.entities.get(index).filter(|record| record.alive);
            if let Some((old, _)) =
                noted.take_if(|(old, _)| record.is_none_or(|record| record.id != *old))
            {
                changes.push(Change::Despawned(old));
            }
            if let Some(record) = record {
                let noted = noted.get_or_insert_with(|| {
                    changes.push(Change::Spawned(record.id));
                    (record.id, [None; PARTS_MAX])
                });
                self.changes_of(record, tick, &mut noted.1, &mut changes, &mut relations);
            }
        }
        // A parent may have come after its child.
        changes.append(&mut relations);
        let (first, events) = self.events_from(noted.events_seen);
        noted.events_seen = first;
        for event in events {
            noted.events_seen += 1;
            changes.push(Change::Event {
                entity: event.entity,
                class: event.class,
                id: event.id,
                bytes: Arc::clone(&event.bytes),
            });
        }
        changes
    }

    fn changes_of(
        &self,
        record: &Entity,
        tick: Tick,
        noted: &mut [Option<KindId>; PARTS_MAX],
        changes: &mut Vec<Change>,
        relations: &mut Vec<Change>,
    ) {
        let entity = record.id;
        for (part, (noted, number)) in noted.iter_mut().zip(record.parts).enumerate() {
            let object = self.objects.get(number as usize);
            let Some(object) = object.filter(|_| number != NONE) else {
                changes.extend(noted.take().map(|kind| Change::Removed(entity, kind)));
                continue;
            };
            if object.changed == tick.0 || *noted != Some(object.kind) {
                let row = self.tables[object.kind.place()].current(object.row);
                changes.push(Change::Row(entity, object.kind, row.into()));
                *noted = Some(object.kind);
            }
            if part == usize::from(MAIN) && object.related == tick.0 {
                relations.push(Change::Relation(entity, record.owner, record.parent));
            }
            if part == usize::from(MAIN) && object.steered == tick.0 && !record.input.is_empty() {
                relations.push(Change::Input(entity, record.input.as_slice().into()));
            }
        }
    }

    /// Makes a change that another world of the same kinds went through. In order, none can fail.
    pub(crate) fn apply(&mut self, change: Change) {
        let _ = match change {
            Change::Game(game) => {
                self.set_game(game);
                Ok(())
            }
            Change::Despawned(entity) => self.despawn(entity),
            Change::Spawned(entity) => {
                self.insert(entity);
                Ok(())
            }
            Change::Row(entity, kind, row) => self.set_row(kind, entity, &row),
            Change::Removed(entity, kind) => self.remove(kind, entity),
            Change::Relation(entity, owner, parent) => self
                .set_owner(entity, owner)
                .and_then(|()| self.attach(entity, parent)),
            Change::Input(entity, input) => self.set_input(entity, &input),
            Change::Event {
                entity,
                class,
                id,
                bytes,
            } => self.emit(entity, class, id, &bytes),
        };
    }

    /// An entity of exactly this name, without a state yet.
    fn insert(&mut self, entity: EntityId) {
        let vacant = |id| Entity {
            id,
            alive: false,
            owner: None,
            parent: None,
            children: 0,
            parts: [NONE; PARTS_MAX],
            input: Vec::new(),
            // The past is for those who own nothing.
            spawn_key: None,
        };
        let index = entity.index() as usize;
        while self.entities.len() <= index {
            let id = EntityId::from_bits(self.entities.len() as u32);
            self.entities.push(vacant(id));
        }
        self.entities[index] = Entity {
            alive: true,
            ..vacant(entity)
        };
        self.count += 1;
        self.structure += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Audience, Kind, KindOptions, Kinds};
    use muse_schema::State;

    #[derive(State, Clone, Debug, PartialEq)]
    struct Body(u16);

    #[derive(State, Clone, Debug, PartialEq)]
    struct Shield(u8);

    fn same(a: &World, b: &World, body: Kind<Body>, shield: Kind<Shield>) -> bool {
        let all = |world: &World| -> Vec<_> {
            let entities = world.entities();
            let describe = |entity| {
                let states = (world.state(body, entity), world.state(shield, entity));
                let input = world.record(entity).map(|record| record.input.clone());
                let relation = (world.owner(entity), world.parent(entity));
                (entity, states, relation, input)
            };
            entities.map(describe).collect()
        };
        all(a) == all(b) && a.game() == b.game()
    }

    #[test]
    fn a_mirror_follows_whatever_happens() {
        let mut kinds = Kinds::new();
        let options = KindOptions::new(1).inputs();
        let body = kinds.register(options).expect("new");
        let shield = kinds
            .register(KindOptions::new(2).part(Audience::All))
            .expect("new");
        let mut world = World::new(kinds);
        let mut mirror = World::new(Arc::clone(world.kinds()));
        let mut noted = Noted::default();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut entities = Vec::new();
        for tick in 1..2_000 {
            for _ in 0..rng.u32(..4) {
                let any = (!entities.is_empty())
                    .then(|| entities[rng.u32(..entities.len() as u32) as usize]);
                match (rng.u8(..8), any) {
                    (0, _) => {
                        let entity = world.spawn(body, &Body(rng.u16(..)));
                        entities.push(entity.expect("room"));
                    }
                    (1 | 2, Some(one)) if entities.len() > 8 => {
                        world.despawn(one).expect("it is there");
                        entities.retain(|other| *other != one);
                    }
                    (3, Some(one)) => world.set(shield, one, &Shield(rng.u8(..))).expect("alive"),
                    (4, Some(one)) => drop(world.remove(shield.id(), one)),
                    (5, Some(one)) => {
                        let parent = entities.iter().copied().find(|other| *other > one);
                        world.attach(one, parent).expect("alive");
                        let owner = rng.bool().then_some(ClientId(3));
                        world.set_owner(one, owner).expect("alive");
                    }
                    (6, Some(one)) => world.set_input(one, &[rng.u8(..)]).expect("alive"),
                    (_, Some(one)) => world.set(body, one, &Body(rng.u16(..))).expect("alive"),
                    _ => {}
                }
            }
            world.set_game(tick / 500);
            world.commit(Tick(tick)).expect("in order");
            for change in world.changes(Tick(tick), &mut noted) {
                mirror.apply(change);
            }
            mirror.commit(Tick(tick)).expect("in order");
            assert!(same(&world, &mirror, body, shield), "at {tick}");
        }
        let used = world.entities.len();
        assert!((8..20).contains(&entities.len()) && used < 200, "{used}");
    }
}
