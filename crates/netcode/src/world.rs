//! The replicated world on the server: entities, their states as rows of integers, and what they were at past ticks.
//!
//! Everything that does not depend on who looks is done here, once a tick: states are quantised into one table of rows per
//! kind, [`World::commit`] finds out which rows changed, and the tables of the last [`Kinds::history`] ticks are kept,
//! because clients' baselines lie there. What a client gets of it is decided by its [`ClientView`](crate::ClientView).

use muse_schema::{RowWriter, State};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::events::{EVENT_BYTES_MAX, EventClass};
use crate::prediction::SpawnKey;
use crate::{EntityId, Tick};

pub mod kinds;
pub(crate) mod mirror;
mod reference;
mod table;

pub use kinds::{Audience, Kind, KindError, KindId, KindOptions, Kinds};
use table::Table;

use thiserror::Error;

/// A client as the game numbers them: the owner of an entity, the receiver of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// The server's entities and their states. In every tick: change it, then [`commit`](Self::commit), then let each client's
/// [`ClientView`](crate::ClientView) make its packets.
///
/// ```
/// use muse_netcode::{KindOptions, Kinds, Tick, World};
/// use muse_schema::State;
///
/// #[derive(State, Clone, PartialEq, Debug)]
/// struct Ship {
///     #[field(range = -100.0..=100.0, step = 0.01)]
///     x: f32,
/// }
///
/// let mut kinds = Kinds::new();
/// let ship = kinds.register::<Ship>(KindOptions::new(1))?;
/// let mut world = World::new(kinds);
/// let entity = world.spawn(ship, &Ship { x: 1.0 })?;
/// world.commit(Tick(1))?;
/// world.set(ship, entity, &Ship { x: 2.0 })?;
/// world.commit(Tick(2))?;
/// assert_eq!(world.state(ship, entity), Some(Ship { x: 2.0 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct World {
    kinds: Arc<Kinds>,
    game: u32,
    tick: Option<Tick>,
    tables: Vec<Table>,
    entities: Vec<Entity>,
    entities_free: VecDeque<u32>,
    count: usize,
    objects: Vec<Object>,
    objects_free: Vec<u32>,
    serial: u32,
    /// Objects whose owner, parent or input changed since the last commit, or that are new.
    pending: Vec<u32>,
    /// Grows whenever entities or parts come or go or change owner: then views look again.
    structure: u64,
    log: VecDeque<Logged>,
    /// Number of the first event in `log`.
    log_start: u64,
}

impl World {
    /// An empty world of these kinds, which server and clients must declare alike.
    pub fn new(kinds: impl Into<Arc<Kinds>>) -> Self {
        let kinds = kinds.into();
        Self {
            tables: kinds
                .iter()
                .map(|kind| Table::new(kind.width, kinds.history()))
                .collect(),
            kinds,
            game: 0,
            tick: None,
            entities: Vec::new(),
            entities_free: VecDeque::new(),
            count: 0,
            objects: Vec::new(),
            objects_free: Vec::new(),
            serial: 0,
            pending: Vec::new(),
            structure: 0,
            log: VecDeque::new(),
            log_start: 0,
        }
    }

    /// Sets the game (map and settings) by a number of your choice. Clients get states only after they have said that it is loaded.
    pub const fn set_game(&mut self, game: u32) {
        self.game = game;
    }

    /// Returns the number of [`set_game`](Self::set_game).
    pub const fn game(&self) -> u32 {
        self.game
    }

    /// The kinds.
    pub const fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    /// The tick of the last [`commit`](Self::commit).
    pub const fn tick(&self) -> Option<Tick> {
        self.tick
    }

    /// Returns the number of entities.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// True if there is no entity.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if this entity exists.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.record(entity).is_some()
    }

    /// All entities, in the order of their index.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.entities
            .iter()
            .filter(|record| record.alive)
            .map(|record| record.id)
    }

    /// All entities that have a state of this kind.
    pub(crate) fn entities_of(&self, kind: KindId) -> impl Iterator<Item = EntityId> + '_ {
        let objects = self.tables[kind.place()].objects();
        objects.filter_map(|object| Some(self.object(object)?.entity))
    }

    /// Spawns an entity in this state. It is seen from the next [`commit`](Self::commit) on.
    pub fn spawn<S: State>(&mut self, kind: Kind<S>, state: &S) -> Result<EntityId, WorldError> {
        let entity = self.allocate()?;
        if let Err(error) = self.set(kind, entity, state) {
            // An entity without a main part must not be seen.
            self.despawn(entity)?;
            return Err(error);
        }
        Ok(entity)
    }

    /// Spawns an entity in this row for a player whose step named it: that client owns it, and is told the key.
    pub(crate) fn spawn_keyed(
        &mut self,
        kind: KindId,
        row: &[i32],
        owner: ClientId,
        key: SpawnKey,
    ) -> Result<EntityId, WorldError> {
        let entity = self.allocate()?;
        if let Err(error) = self.set_row(kind, entity, row) {
            self.despawn(entity)?;
            return Err(error);
        }
        self.set_owner(entity, Some(owner))?;
        self.entities[entity.index() as usize].spawn_key = Some(key);
        Ok(entity)
    }

    /// Gives the entity this state. If it had none of the kind, it gets this part; if the kind is a main one and it had
    /// another main kind, it changes kind.
    pub fn set<S: State>(
        &mut self,
        kind: Kind<S>,
        entity: EntityId,
        state: &S,
    ) -> Result<(), WorldError> {
        let kinds = Arc::clone(&self.kinds);
        let declared = kinds.kind(kind.id()).ok_or(WorldError::NoSuchKind)?;
        let row = self.row_to_write(kind.id(), entity)?;
        state.store(&mut RowWriter::new(row));
        // Derived states are legal by themselves; those by hand may not be.
        declared.legalise(row);
        Ok(())
    }

    /// As [`set`](Self::set), for states that are rows already. What the kind's columns do not allow becomes the nearest
    /// that they do.
    pub fn set_row(
        &mut self,
        kind: KindId,
        entity: EntityId,
        row: &[i32],
    ) -> Result<(), WorldError> {
        let kinds = Arc::clone(&self.kinds);
        let declared = kinds.kind(kind).ok_or(WorldError::NoSuchKind)?;
        if row.len() != declared.width {
            return Err(WorldError::Width);
        }
        let target = self.row_to_write(kind, entity)?;
        target.copy_from_slice(row);
        declared.legalise(target);
        Ok(())
    }

    /// The state last set, on its grid.
    pub fn state<S: State>(&self, kind: Kind<S>, entity: EntityId) -> Option<S> {
        S::from_row(self.row(kind.id(), entity)?).ok()
    }

    /// The row last set.
    pub fn row(&self, kind: KindId, entity: EntityId) -> Option<&[i32]> {
        let declared = self.kinds.kind(kind)?;
        let object = self
            .objects
            .get(self.part(entity, declared.part)? as usize)?;
        (object.kind == kind).then(|| self.tables[kind.place()].current(object.row))
    }

    /// Removes a part. The main part stays until the entity is despawned.
    pub fn remove(&mut self, kind: KindId, entity: EntityId) -> Result<(), WorldError> {
        let part = self.kinds.kind(kind).ok_or(WorldError::NoSuchKind)?.part;
        if part == MAIN {
            return Err(WorldError::MainPart);
        }
        let object = self.part(entity, part).ok_or(WorldError::NoSuchPart)?;
        self.free_object(object);
        self.entities[entity.index() as usize].parts[part as usize] = NONE;
        self.structure += 1;
        Ok(())
    }

    /// Removes the entity with all its parts.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), WorldError> {
        let index = self.index(entity)?;
        for part in self.entities[index].parts {
            if part != NONE {
                self.free_object(part);
            }
        }
        self.adopt(index, None);
        // Counted, so that the search is only made for entities that something is attached to.
        if self.entities[index].children > 0 {
            for child in 0..self.entities.len() {
                if self.entities[child].alive && self.entities[child].parent == Some(entity) {
                    self.entities[child].parent = None;
                    self.touch(child);
                }
            }
        }
        let record = &mut self.entities[index];
        record.alive = false;
        record.parts = [NONE; PARTS_MAX];
        record.input.clear();
        // Taken from the other end: an index rests as long as possible, so that late packets cannot mean its next owner.
        self.entities_free.push_back(index as u32);
        self.count -= 1;
        self.structure += 1;
        Ok(())
    }

    /// Sets the owner of the entity: it alone gets parts for [`Audience::Owner`], the others those for [`Audience::Others`].
    pub fn set_owner(
        &mut self,
        entity: EntityId,
        owner: Option<ClientId>,
    ) -> Result<(), WorldError> {
        let index = self.index(entity)?;
        if self.entities[index].owner != owner {
            self.entities[index].owner = owner;
            // It means nothing to another one.
            self.entities[index].spawn_key = None;
            self.touch(index);
            self.structure += 1;
        }
        Ok(())
    }

    /// Returns the owner of the entity.
    pub fn owner(&self, entity: EntityId) -> Option<ClientId> {
        self.record(entity)?.owner
    }

    /// True if a step of this client's player spawned the entity.
    pub(crate) fn is_spawn_of(&self, entity: EntityId, client: ClientId) -> bool {
        let record = self.record(entity);
        record.is_some_and(|record| record.owner == Some(client) && record.spawn_key.is_some())
    }

    /// Attaches the entity to another, such as a platform or a hand, or detaches it. A parent that goes takes the attachment with it.
    pub fn attach(&mut self, entity: EntityId, parent: Option<EntityId>) -> Result<(), WorldError> {
        let index = self.index(entity)?;
        if parent.is_some_and(|parent| !self.contains(parent) || parent == entity) {
            return Err(WorldError::NoSuchEntity);
        }
        if self.entities[index].parent != parent {
            self.adopt(index, parent);
            self.touch(index);
        }
        Ok(())
    }

    /// Returns the entity that this one is attached to.
    pub fn parent(&self, entity: EntityId) -> Option<EntityId> {
        self.record(entity)?.parent
    }

    /// Sets the latest input of the player that the entity is, so that others can predict it by that. Its main kind
    /// must allow [`inputs`](KindOptions::inputs).
    pub fn set_input(&mut self, entity: EntityId, input: &[u8]) -> Result<(), WorldError> {
        let index = self.index(entity)?;
        if input.len() > INPUT_BYTES_MAX {
            return Err(WorldError::InputTooLong);
        }
        let record = &mut self.entities[index];
        if record.input != input {
            record.input.clear();
            record.input.extend_from_slice(input);
            if let Some(object) = self.objects.get_mut(record.parts[MAIN as usize] as usize) {
                object.news |= NEWS_INPUT;
                self.pending.push(record.parts[MAIN as usize]);
            }
        }
        Ok(())
    }

    /// Emits an event to everyone who sees the entity, or, without one, to every client. For an event at a place use
    /// [`ClientView::emit`](crate::ClientView::emit) with the clients that are near.
    pub fn emit(
        &mut self,
        entity: Option<EntityId>,
        class: EventClass,
        id: u16,
        bytes: &[u8],
    ) -> Result<(), WorldError> {
        if bytes.len() > EVENT_BYTES_MAX {
            return Err(WorldError::EventTooLong);
        }
        if self.log.len() == EVENTS_LOGGED_MAX {
            self.log.pop_front();
            self.log_start += 1;
        }
        self.log.push_back(Logged {
            entity,
            class,
            id,
            // Put right by the commit, which knows the tick.
            tick: self.tick.map_or(Tick(0), |tick| tick + 1),
            bytes: bytes.into(),
            committed: false,
        });
        Ok(())
    }

    /// Makes everything set since the last commit the state of `tick`, which must be later. Costs a pass over all rows.
    pub fn commit(&mut self, tick: Tick) -> Result<(), WorldError> {
        if self.tick.is_some_and(|last| tick <= last) || tick.0 == NEVER {
            return Err(WorldError::OldTick);
        }
        let last = self.tick;
        for (place, table) in self.tables.iter_mut().enumerate() {
            debug_assert!(place < self.kinds.len());
            table.commit(tick, last, |object| {
                if let Some(object) = self.objects.get_mut(object as usize) {
                    if let Some(last) = last.filter(|last| last.0 > object.changed) {
                        object.rested = (object.changed, last.0);
                    }
                    object.changed = tick.0;
                    object.touched = tick.0;
                }
            });
        }
        for object in self.pending.drain(..) {
            let Some(object) = self.objects.get_mut(object as usize) else {
                continue;
            };
            if object.news & NEWS_KIND != 0 {
                object.since = tick.0;
                object.changed = tick.0;
                object.rested = (NEVER, 0);
            }
            if object.news & (NEWS_KIND | NEWS_RELATION) != 0 {
                object.related = tick.0;
            }
            if object.news & (NEWS_KIND | NEWS_INPUT) != 0 {
                object.steered = tick.0;
            }
            object.news = 0;
            object.touched = tick.0;
        }
        for event in self
            .log
            .iter_mut()
            .rev()
            .take_while(|event| !event.committed)
        {
            event.committed = true;
            event.tick = tick;
        }
        self.tick = Some(tick);
        Ok(())
    }

    /// The row of an object at a past tick, if that is still known.
    #[inline]
    pub(crate) fn past(&self, object: &Object, tick: u32) -> Option<&[i32]> {
        self.tables[object.kind.place()].past(object.row, tick)
    }

    /// All rows of a kind at a past tick, one after the other, if they are still known.
    pub(crate) fn rows(&self, kind: KindId, tick: u32) -> Option<&[i32]> {
        self.tables[kind.place()].rows(tick)
    }

    #[inline]
    pub(crate) fn object(&self, object: u32) -> Option<&Object> {
        self.objects.get(object as usize)
    }

    pub(crate) const fn structure(&self) -> u64 {
        self.structure
    }

    pub(crate) fn record(&self, entity: EntityId) -> Option<&Entity> {
        self.entities
            .get(entity.index() as usize)
            .filter(|record| record.alive && record.id == entity)
    }

    /// Events from the number `from` on that have been committed, and the number of the first.
    pub(crate) fn events_from(&self, from: u64) -> (u64, impl Iterator<Item = &Logged>) {
        let skip = from.saturating_sub(self.log_start);
        let first = self.log_start + skip;
        let events = self.log.iter().skip(skip.min(u64::from(u32::MAX)) as usize);
        (first, events.take_while(|event| event.committed))
    }

    /// The number that the next event gets.
    pub(crate) fn events_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    fn index(&self, entity: EntityId) -> Result<usize, WorldError> {
        self.record(entity).ok_or(WorldError::NoSuchEntity)?;
        Ok(entity.index() as usize)
    }

    fn part(&self, entity: EntityId, part: u8) -> Option<u32> {
        let object = self.record(entity)?.parts[part as usize];
        (object != NONE).then_some(object)
    }

    /// Changes the parent and keeps count of children.
    fn adopt(&mut self, index: usize, parent: Option<EntityId>) {
        if let Some(before) = std::mem::replace(&mut self.entities[index].parent, parent) {
            self.entities[before.index() as usize].children -= 1;
        }
        if let Some(now) = parent {
            self.entities[now.index() as usize].children += 1;
        }
    }

    fn touch(&mut self, index: usize) {
        for part in self.entities[index].parts {
            if let Some(object) = self.objects.get_mut(part as usize) {
                object.news |= NEWS_RELATION;
                self.pending.push(part);
            }
        }
    }

    fn allocate(&mut self) -> Result<EntityId, WorldError> {
        // An index rests for a while, so that its generations do not come round while clients may remember.
        let rested = self.entities_free.len() > ENTITIES_RESTING;
        let full = self.entities.len() as u32 >= EntityId::COUNT_MAX;
        let reused = if rested || full {
            self.entities_free.pop_front()
        } else {
            None
        };
        let id = if let Some(index) = reused {
            self.entities[index as usize].id.next_generation()
        } else {
            EntityId::new(self.entities.len() as u32, 0).ok_or(WorldError::TooMany)?
        };
        let record = Entity {
            id,
            alive: true,
            owner: None,
            parent: None,
            children: 0,
            parts: [NONE; PARTS_MAX],
            input: Vec::new(),
            spawn_key: None,
        };
        match self.entities.get_mut(id.index() as usize) {
            Some(place) => *place = record,
            None => self.entities.push(record),
        }
        self.count += 1;
        self.structure += 1;
        Ok(id)
    }

    /// The working row of the entity's part of this kind, which is made if need be.
    fn row_to_write(&mut self, kind: KindId, entity: EntityId) -> Result<&mut [i32], WorldError> {
        let part = self.kinds.kind(kind).ok_or(WorldError::NoSuchKind)?.part;
        let index = self.index(entity)?;
        let mut number = self.entities[index].parts[part as usize];
        if number == NONE {
            number = self.add_object(entity, kind);
            self.entities[index].parts[part as usize] = number;
            self.structure += 1;
        } else if self.objects[number as usize].kind != kind {
            let object = &mut self.objects[number as usize];
            self.tables[object.kind.place()].free(object.row);
            object.kind = kind;
            object.row = self.tables[kind.place()].allocate(number);
            object.news |= NEWS_KIND;
            object.since = NEVER;
            object.touched = NEVER;
            self.pending.push(number);
        }
        let row = self.objects[number as usize].row;
        Ok(self.tables[kind.place()].current_mut(row))
    }

    fn add_object(&mut self, entity: EntityId, kind: KindId) -> u32 {
        let number = self.objects_free.pop().unwrap_or(self.objects.len() as u32);
        self.serial = self.serial.wrapping_add(1).max(1);
        let object = Object {
            serial: self.serial,
            entity,
            kind,
            row: self.tables[kind.place()].allocate(number),
            since: NEVER,
            changed: NEVER,
            rested: (NEVER, 0),
            related: NEVER,
            steered: NEVER,
            touched: NEVER,
            news: NEWS_KIND,
        };
        match self.objects.get_mut(number as usize) {
            Some(place) => *place = object,
            None => self.objects.push(object),
        }
        self.pending.push(number);
        number
    }

    fn free_object(&mut self, number: u32) {
        let object = &mut self.objects[number as usize];
        self.tables[object.kind.place()].free(object.row);
        object.serial = 0;
        self.objects_free.push(number);
    }
}

/// The reason for which the world refused a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorldError {
    /// No such entity, or it is gone.
    #[error("there is no such entity")]
    NoSuchEntity,
    /// The kind is not one of this world's.
    #[error("the kind is not registered with this world")]
    NoSuchKind,
    /// The entity has no such part.
    #[error("the entity has no such part")]
    NoSuchPart,
    /// The main part cannot be taken away.
    #[error("the main part of an entity goes with the entity; despawn it")]
    MainPart,
    /// A row has as many values as its kind has columns.
    #[error("the row is not as long as its kind has columns")]
    Width,
    /// There are [`EntityId::COUNT_MAX`] entities.
    #[error("there are too many entities")]
    TooMany,
    /// The tick was committed before, or a later one.
    #[error("ticks must be committed in order")]
    OldTick,
    /// Inputs have at most [`INPUT_BYTES_MAX`] bytes.
    #[error("the input is longer than {INPUT_BYTES_MAX} bytes")]
    InputTooLong,
    /// A spectator is to watch later than it happens, and nothing says how much later.
    #[error("there is no delay for spectators: set SessionConfig::spectator_delay")]
    NoDelay,
    /// Events have at most [`EVENT_BYTES_MAX`] bytes.
    #[error("the event is longer than {EVENT_BYTES_MAX} bytes")]
    EventTooLong,
}

/// A part of an entity: what has a row. Ticks are plain numbers here, because views compare them for every row they send.
#[derive(Debug)]
pub(crate) struct Object {
    /// Never the same twice; 0 when free.
    pub serial: u32,
    /// Last tick at which anything about it changed.
    pub touched: u32,
    pub kind: KindId,
    pub row: u32,
    /// Tick from which on it has been of this kind.
    pub since: u32,
    /// Last tick at which the row changed.
    pub changed: u32,
    /// First and last tick of the last time before that in which the row stayed the same.
    pub rested: (u32, u32),
    /// Last tick at which owner or parent changed.
    pub related: u32,
    /// Last tick at which the input changed.
    pub steered: u32,
    pub entity: EntityId,
    /// The changes that the next commit will find, besides the row.
    news: u8,
}

#[derive(Debug)]
pub(crate) struct Entity {
    pub id: EntityId,
    alive: bool,
    pub owner: Option<ClientId>,
    pub parent: Option<EntityId>,
    /// Entities whose parent this is.
    children: u32,
    /// Objects by number of the part.
    pub parts: [u32; PARTS_MAX],
    pub input: Vec<u8>,
    /// The name that the owner's step gave it.
    pub spawn_key: Option<SpawnKey>,
}

/// An event as it waits for views to take it.
#[derive(Debug)]
pub(crate) struct Logged {
    pub entity: Option<EntityId>,
    pub class: EventClass,
    pub id: u16,
    pub tick: Tick,
    pub bytes: Arc<[u8]>,
    committed: bool,
}

/// Parts that an entity can have: the main one and one for each kind that is not.
pub const PARTS_MAX: usize = 8;
/// Longest input that travels with a player's entity.
pub const INPUT_BYTES_MAX: usize = 63;
/// Events kept for views that are not asked in every tick; a view that lags by more misses some and says so.
pub const EVENTS_LOGGED_MAX: usize = 8_192;
/// Number of the part that main kinds are.
pub(crate) const MAIN: u8 = 0;
/// No object, no slot.
pub(crate) const NONE: u32 = u32::MAX;
/// No tick.
pub(crate) const NEVER: u32 = u32::MAX;
const NEWS_KIND: u8 = 1;
const NEWS_RELATION: u8 = 2;
const NEWS_INPUT: u8 = 4;
/// Freed indices that are kept before one is used again.
const ENTITIES_RESTING: usize = 64;
