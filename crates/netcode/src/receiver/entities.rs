//! The entities that the client knows.

use crate::prediction::SpawnKey;
use crate::snapshot::coding::Relation;
use crate::world::{NONE, PARTS_MAX};
use crate::{EntityId, Tick};

/// The entities by index; at most one generation of each at a time.
#[derive(Debug, Default)]
pub(super) struct Entities {
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    record: Option<Box<Record>>,
    /// The last generation that has gone, and when.
    gone: Option<(EntityId, Tick)>,
}

/// Everything that is known of an entity besides its states.
#[derive(Debug)]
pub(super) struct Record {
    id: EntityId,
    /// Slots of its parts.
    parts: [u32; PARTS_MAX],
    since: Tick,
    pub relation: Relation,
    relation_tick: Option<Tick>,
    pub input: Vec<u8>,
    pub input_tick: Option<Tick>,
    /// The key by which the own player's step named it.
    pub spawn_key: Option<SpawnKey>,
}

/// The state of an entity's name at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityStatus {
    /// Nothing has been heard of it yet; it may still come.
    Unknown,
    /// It is here.
    Here,
    /// It was here and is gone, or out of view. An entity that comes back into view is here again.
    Gone,
}

impl Entities {
    pub(crate) fn iter(&self) -> impl Iterator<Item = EntityId> {
        let records = self.places.iter().filter_map(|place| place.record.as_ref());
        records.map(|record| record.id)
    }

    #[inline]
    pub(crate) fn get(&self, entity: EntityId) -> Option<&Record> {
        let record = self
            .places
            .get(entity.index() as usize)?
            .record
            .as_deref()?;
        (record.id == entity).then_some(record)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, entity: EntityId) -> Option<&mut Record> {
        let place = self.places.get_mut(entity.index() as usize)?;
        place
            .record
            .as_deref_mut()
            .filter(|record| record.id == entity)
    }

    pub(crate) fn status(&self, entity: EntityId) -> EntityStatus {
        let Some(place) = self.places.get(entity.index() as usize) else {
            return EntityStatus::Unknown;
        };
        if place
            .record
            .as_ref()
            .is_some_and(|record| record.id == entity)
        {
            return EntityStatus::Here;
        }
        // Generations count up; those behind the newest heard of will not come any more.
        let newest = match (&place.record, place.gone) {
            (Some(record), _) => record.id,
            (None, Some((gone, _))) => gone,
            (None, None) => return EntityStatus::Unknown,
        };
        let behind = newest.generation().wrapping_sub(entity.generation()) % GENERATIONS;
        if behind < GENERATIONS / 2 {
            EntityStatus::Gone
        } else {
            EntityStatus::Unknown
        }
    }

    /// True if a state of this entity at `tick` may be taken: not if another generation came since.
    pub(crate) fn admits(&self, entity: EntityId, tick: Tick) -> bool {
        let place = self.places.get(entity.index() as usize);
        let record = place.and_then(|place| place.record.as_ref());
        record.is_none_or(|record| record.id == entity || record.since < tick)
    }

    /// Slots that are no longer what they were when this entity's part gets a new one.
    pub(crate) fn displaced(&self, entity: EntityId, part: u8) -> Vec<u32> {
        let place = self.places.get(entity.index() as usize);
        let Some(record) = place.and_then(|place| place.record.as_ref()) else {
            return Vec::new();
        };
        let parts = if record.id == entity {
            &record.parts[usize::from(part)..=usize::from(part)]
        } else {
            &record.parts[..]
        };
        parts.iter().copied().filter(|slot| *slot != NONE).collect()
    }

    /// A part of an entity has this slot now. Whether the entity is new here.
    pub(crate) fn add(&mut self, entity: EntityId, part: u8, slot: u32, tick: Tick) -> bool {
        let index = entity.index() as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, Place::default);
        }
        let place = &mut self.places[index].record;
        let fresh = place.is_none();
        let record = place.get_or_insert_with(|| {
            Box::new(Record {
                id: entity,
                parts: [NONE; PARTS_MAX],
                since: tick,
                relation: Relation::default(),
                relation_tick: None,
                input: Vec::new(),
                input_tick: None,
                spawn_key: None,
            })
        });
        record.parts[usize::from(part)] = slot;
        fresh
    }

    /// A part has gone from its slot. Whether the entity is gone with it.
    pub(crate) fn remove(&mut self, entity: EntityId, part: u8, slot: u32) -> bool {
        let Some(record) = self.get_mut(entity) else {
            return false;
        };
        let place = &mut record.parts[usize::from(part)];
        if *place == slot {
            *place = NONE;
        }
        if record.parts.iter().any(|slot| *slot != NONE) {
            return false;
        }
        let tick = record.since;
        let place = &mut self.places[entity.index() as usize];
        place.record = None;
        place.gone = Some((entity, tick));
        true
    }
}

impl Record {
    /// The slot of a part.
    pub(crate) fn slot(&self, part: u8) -> Option<u32> {
        let slot = *self.parts.get(usize::from(part))?;
        (slot != NONE).then_some(slot)
    }

    /// Sets owner and parent as of `tick`. True if they changed.
    pub(crate) fn relate(&mut self, tick: Tick, relation: Relation) -> bool {
        if self.relation_tick.is_some_and(|last| last > tick) {
            return false;
        }
        self.relation_tick = Some(tick);
        std::mem::replace(&mut self.relation, relation) != relation
    }
}

const GENERATIONS: u32 = 4_096;
