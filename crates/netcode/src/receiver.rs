//! The client's copy of what it may see: packets in, states and events out.
//!
//! A packet is decoded whole, to exactly the rows that the server had, or refused, and a refused packet changes nothing. What
//! was decoded is told in the answer; the server uses nothing as a baseline that was not answered. Memory is bounded
//! by the number of slots and the length of the history, whatever arrives.

use std::collections::VecDeque;
use std::sync::Arc;

use muse_schema::State;
use muse_wire::bytes::{EndOfBytes, Reader};
use thiserror::Error;

use crate::events::{EVENTS_PENDING_MAX, Event, EventClass, Incoming};
use crate::prediction::SpawnKey;
use crate::snapshot::coding::{Coding, SLOTS_DEFAULT, SLOTS_MAX};
use crate::snapshot::{FormatError, Header};
use crate::world::{ClientId, Kind, KindId, Kinds};
use crate::{EntityId, Tick};

mod decode;
mod entities;
mod history;
mod window;

use decode::Staged;
use entities::Entities;
pub use entities::EntityStatus;
use history::History;
use window::Window;

/// The client's copy of the world. Give it every packet by [`handle_packet`](Self::handle_packet), send what
/// [`emit_acknowledgement`](Self::emit_acknowledgement) writes as often as you send anything, and drain
/// [`poll_update`](Self::poll_update) and [`poll_event`](Self::poll_event). [`ClientView`](crate::ClientView) has an example.
///
/// ```
/// use std::sync::Arc;
/// use muse_netcode::{ClientId, KindOptions, Kinds, Receiver, Tick, Update, ClientView, World};
/// # use muse_schema::State;
/// # #[derive(State, Clone, Debug, PartialEq)]
/// # struct Ship {
/// #     fuel: u8,
/// # }
/// # let mut kinds = Kinds::new();
/// # let ship = kinds.register::<Ship>(KindOptions::new(1))?;
/// # let mut world = World::new(kinds);
/// # let entity = world.spawn(ship, &Ship { fuel: 90 })?;
/// # let mut view = ClientView::new(&world, ClientId(1));
/// # view.set_interest([(entity, 1.0)]);
/// let mut receiver = Receiver::new(Arc::clone(world.kinds()));
/// receiver.set_game(world.game());
/// let mut buffer = [0; 1_200];
/// let len = receiver.emit_acknowledgement(&mut buffer)?;
/// view.handle_acknowledgement(&buffer[..len])?;
///
/// world.commit(Tick(1))?;
/// view.begin(&world, 10_000);
/// while let Some(len) = view.poll_packet(&world, &mut buffer) {
///     assert_eq!(receiver.handle_packet(&buffer[..len]), Ok(Tick(1)));
/// }
/// assert_eq!(receiver.poll_update(), Some(Update::Spawned { entity, tick: Tick(1) }));
/// assert_eq!(receiver.state(ship, entity), Some((Tick(1), Ship { fuel: 90 })));
/// assert_eq!(receiver.tick(), Some(Tick(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Receiver {
    kinds: Arc<Kinds>,
    slots_max: u32,
    /// The game that is loaded, and the one that the server plays.
    game: Option<u32>,
    game_of_server: Option<u32>,
    slots: Vec<Slot>,
    entities: Entities,
    coding: Coding,
    window: Window,
    staged: Staged,
    newest_tick: Option<Tick>,
    complete: bool,
    updates: VecDeque<Update>,
    events: Incoming,
    /// Packets refused in a row for lack of their baselines.
    lacking: u32,
    restart: Option<u16>,
    stats: ReceiverStats,
}

/// The client's states of one slot.
#[derive(Debug, Default)]
struct Slot {
    occupant: Option<Occupant>,
    /// States of this tick and before are of an occupant that is gone.
    gone_at: Option<u32>,
    history: History,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Occupant {
    entity: EntityId,
    kind: KindId,
    part: u8,
}

impl Receiver {
    /// Makes a receiver that knows nothing yet. Nothing is taken before [`set_game`](Self::set_game).
    pub fn new(kinds: impl Into<Arc<Kinds>>) -> Self {
        let kinds = kinds.into();
        Self {
            coding: Coding::new(&kinds),
            kinds,
            slots_max: SLOTS_DEFAULT,
            game: None,
            game_of_server: None,
            slots: Vec::new(),
            entities: Entities::default(),
            window: Window::default(),
            staged: Staged::default(),
            newest_tick: None,
            complete: false,
            updates: VecDeque::new(),
            events: Incoming::default(),
            lacking: 0,
            restart: None,
            stats: ReceiverStats::default(),
        }
    }

    /// Limits the entities (parts of them) that it holds at a time, 65,536 by default; must be at least what the server's
    /// [`ClientView::with_entities_max`](crate::ClientView::with_entities_max) allows. Bounds memory: each takes up to the history's length of rows.
    #[must_use]
    pub fn with_entities_max(mut self, count: u32) -> Self {
        self.slots_max = count.clamp(1, SLOTS_MAX);
        self
    }

    /// Says that this game is loaded, so that its states can come. What was known of another is forgotten.
    pub fn set_game(&mut self, game: u32) {
        // States of the last game would be taken for baselines of this one.
        if self.game.is_some_and(|loaded| loaded != game) {
            for slot in 0..self.slots.len() as u32 {
                self.vacate(slot, self.newest_tick.unwrap_or_default());
            }
        }
        self.game = Some(game);
    }

    /// The kinds.
    pub(crate) const fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    /// The game that the server plays, as soon as a packet told. Load it, then call [`set_game`](Self::set_game).
    pub const fn game_of_server(&self) -> Option<u32> {
        self.game_of_server
    }

    /// Handles a packet. On error nothing has changed but counters.
    pub fn handle_packet(&mut self, bytes: &[u8]) -> Result<Tick, Refused> {
        let result = self.try_packet(bytes);
        match &result {
            Ok(_) => self.stats.packets += 1,
            Err(Refused::Duplicate) => self.stats.packets_duplicate += 1,
            Err(_) => self.stats.packets_refused += 1,
        }
        result
    }

    /// Writes the answer to the front of `buffer` ([`Acknowledgement::LEN_MAX`](crate::Acknowledgement::LEN_MAX) suffices)
    /// and says how long it is. Answers may be lost; each repeats what those before it said.
    pub fn emit_acknowledgement(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        // Before any game is loaded, answer with a number that is not the server's.
        let game = self
            .game
            .unwrap_or_else(|| self.game_of_server.map_or(u32::MAX, |game| !game));
        self.window.answer(game, self.restart).emit(buffer)
    }

    /// Returns the next change, in the order in which they arrived.
    pub fn poll_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    /// Returns the next event, each exactly once.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    /// The newest tick of the server that a packet told.
    pub const fn tick(&self) -> Option<Tick> {
        self.newest_tick
    }

    /// True if everything in the client's interest has arrived: the end of joining.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// All entities that are known, in the order of their index.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.entities.iter()
    }

    /// Tells whether a name, perhaps out of another entity's state, is that of an entity here, of one that is gone, or of one that
    /// may still come.
    pub fn status(&self, entity: EntityId) -> EntityStatus {
        self.entities.status(entity)
    }

    /// The newest state of an entity and its tick, exactly as the server has it.
    pub fn state<S: State>(&self, kind: Kind<S>, entity: EntityId) -> Option<(Tick, S)> {
        let (tick, row) = self.row(kind.id(), entity)?;
        Some((tick, S::from_row(row).ok()?))
    }

    /// The state of an entity at an earlier tick, if a packet brought that and it is not too long ago.
    pub fn state_at<S: State>(&self, kind: Kind<S>, entity: EntityId, tick: Tick) -> Option<S> {
        let slot = self.slot_of(kind.id(), entity)?;
        S::from_row(slot.history.find(tick.0)?.1).ok()
    }

    /// The newest row of an entity and its tick.
    pub fn row(&self, kind: KindId, entity: EntityId) -> Option<(Tick, &[i32])> {
        let (tick, row) = self.slot_of(kind, entity)?.history.last()?;
        Some((Tick(tick), row))
    }

    /// The row of an entity at an earlier tick, if a packet brought that and it is not too long ago.
    pub fn row_at(&self, kind: KindId, entity: EntityId, tick: Tick) -> Option<&[i32]> {
        Some(self.slot_of(kind, entity)?.history.find(tick.0)?.1)
    }

    /// The main kind of an entity.
    pub fn kind(&self, entity: EntityId) -> Option<KindId> {
        let slot = self.entities.get(entity)?.slot(crate::world::MAIN)?;
        Some(self.slots.get(slot as usize)?.occupant?.kind)
    }

    /// Returns the owner of the entity.
    pub fn owner(&self, entity: EntityId) -> Option<ClientId> {
        self.entities.get(entity)?.relation.owner
    }

    /// Returns the entity that this one is attached to; that may not be known here (yet).
    pub fn parent(&self, entity: EntityId) -> Option<EntityId> {
        self.entities.get(entity)?.relation.parent
    }

    /// Returns the key of an entity that a step of the own player spawned; see [`StepContext::spawn`](crate::prediction::StepContext::spawn).
    pub fn spawn_key(&self, entity: EntityId) -> Option<SpawnKey> {
        self.entities.get(entity)?.spawn_key
    }

    /// The latest input of the player that the entity is, and the tick at which it was told.
    pub fn input(&self, entity: EntityId) -> Option<(Tick, &[u8])> {
        let record = self.entities.get(entity)?;
        Some((record.input_tick?, &record.input))
    }

    /// Returns the counters.
    pub const fn stats(&self) -> ReceiverStats {
        self.stats
    }

    fn slot_of(&self, kind: KindId, entity: EntityId) -> Option<&Slot> {
        let part = self.kinds.kind(kind)?.part;
        let slot = self
            .slots
            .get(self.entities.get(entity)?.slot(part)? as usize)?;
        slot.occupant
            .is_some_and(|occupant| occupant.kind == kind)
            .then_some(slot)
    }

    fn try_packet(&mut self, bytes: &[u8]) -> Result<Tick, Refused> {
        let mut reader = Reader::new(bytes);
        let header = Header::parse(&mut reader)?;
        let number = self.window.number(header.number);
        if !self.window.admits(number) {
            return Err(Refused::Duplicate);
        }
        // Told even if the packet is refused: so the client learns what it has to load.
        self.game_of_server = Some(header.game);
        if self.game != Some(header.game) {
            return Err(Refused::OtherGame(header.game));
        }
        // A program that does not poll must not fill memory. The packet is not answered, so the server sends it all
        // again.
        if self.updates.len() > UPDATES_MAX || self.events.len() > EVENTS_WAITING_MAX {
            return Err(Refused::Backlog);
        }
        // Everything is decoded aside first: the world here changes by a whole packet or not at all.
        let decoded = self.decode(&header, reader.rest());
        // A single late packet may lack its baseline; several new ones in a row mean that the sides have lost each
        // other.
        if decoded == Err(Refused::NoBaseline) && self.newest_tick < Some(header.tick) {
            self.lacking += 1;
            if self.lacking >= LACKING_MAX {
                self.restart = Some(header.number);
            }
        }
        decoded?;
        self.lacking = 0;
        self.restart = None;
        self.window.insert(number, header.tick.0);
        // A late packet says nothing about the present.
        if self.newest_tick.is_none_or(|newest| newest <= header.tick) {
            self.newest_tick = Some(header.tick);
            self.complete = header.complete;
        }
        self.apply(header.tick);
        Ok(header.tick)
    }

    /// Takes over what was decoded.
    fn apply(&mut self, tick: Tick) {
        let mut staged = std::mem::take(&mut self.staged);
        // Despawned entities first, because a slot may be given to another entity in the same packet.
        for slot in staged.gone.drain(..) {
            let newer = |slot: &Slot| {
                let newest = slot.history.last().map(|(newest, _)| newest);
                slot.occupant.is_some() && newest.is_some_and(|newest| newest > tick.0)
            };
            // A late despawn must not remove what a later packet has put into the slot.
            if !self.slots.get(slot as usize).is_some_and(newer) {
                self.vacate(slot, tick);
            }
        }
        for index in 0..staged.rows.len() {
            self.apply_row(tick, &staged, index);
        }
        for event in staged.events.drain(..) {
            // An unreliable event does not hold its entity back: in a late packet that may have gone already.
            let orphan = event
                .entity()
                .is_some_and(|entity| self.entities.status(entity) == EntityStatus::Unknown);
            if event.class != EventClass::Unreliable || !orphan {
                self.events.take(event);
            }
        }
        self.staged = staged;
    }

    fn apply_row(&mut self, tick: Tick, staged: &Staged, index: usize) {
        let row = &staged.rows[index];
        self.make_slot(row.slot);
        let slot = &mut self.slots[row.slot as usize];
        let newest = slot.history.last().map(|(newest, _)| newest);
        // A late packet about someone who has gone since, or who has become something else.
        let stale = slot.gone_at.is_some_and(|gone| tick.0 <= gone);
        let replaces = slot.occupant != Some(row.occupant);
        if stale || replaces && slot.occupant.is_some() && newest > Some(tick.0) {
            return;
        }
        let Occupant { entity, kind, part } = row.occupant;
        if !self.entities.admits(entity, tick) {
            return;
        }
        if replaces {
            self.settle(row.slot, row.occupant, tick);
        }
        let now = self.newest_tick.unwrap_or(tick).0;
        let history = &mut self.slots[row.slot as usize].history;
        let values = &staged.values[row.values.clone()];
        let depth = self.kinds.history();
        // A body that rested and went on was at rest until a tick of which no packet told, and one that came to rest did so before this row.
        let held = row.until < tick.0 && history.hold(row.until, now, depth);
        let settled = row.since < tick.0 && history.insert(row.since, values, now, depth);
        let news = history.insert(tick.0, values, now, depth);
        self.stats.rows += u64::from(news);
        for (is_new, at) in [(held, row.until), (settled, row.since), (news, tick.0)] {
            if is_new {
                let tick = Tick(at);
                self.updates.push_back(Update::State { entity, kind, tick });
            }
        }
        let Some(record) = self.entities.get_mut(entity) else {
            return;
        };
        record.spawn_key = row.key.or(record.spawn_key);
        if let Some(relation) = row.relation
            && record.relate(tick, relation)
        {
            self.updates.push_back(Update::Related { entity, tick });
        }
        if let Some(input) = &row.input
            && part == crate::world::MAIN
            && record.input_tick.is_none_or(|last| last < tick)
        {
            record.input_tick = Some(tick);
            record.input.clear();
            record
                .input
                .extend_from_slice(&staged.inputs[input.clone()]);
        }
    }

    /// Gives a slot to another occupant.
    fn settle(&mut self, number: u32, occupant: Occupant, tick: Tick) {
        let Occupant { entity, kind, part } = occupant;
        let before = self.slots[number as usize].occupant;
        let same = before.is_some_and(|before| before.entity == entity && before.part == part);
        if !same {
            self.vacate(number, tick);
        }
        // Another generation at the same index, or another slot of the same part, has gone without our noticing.
        for slot in self.entities.displaced(entity, part) {
            if slot != number {
                self.vacate(slot, tick);
            }
        }
        let slot = &mut self.slots[number as usize];
        slot.occupant = Some(occupant);
        slot.gone_at = None;
        slot.history
            .clear(self.kinds.kind(kind).map_or(0, |kind| kind.width));
        let fresh = self.entities.add(entity, part, number, tick);
        self.updates.push_back(if fresh {
            Update::Spawned { entity, tick }
        } else if same {
            Update::KindChanged { entity, kind, tick }
        } else {
            Update::PartAdded { entity, kind, tick }
        });
    }

    /// Nobody is in the slot any more.
    fn vacate(&mut self, number: u32, tick: Tick) {
        self.make_slot(number);
        let Some(slot) = self.slots.get_mut(number as usize) else {
            return;
        };
        slot.gone_at = slot.gone_at.max(Some(tick.0));
        slot.history.clear(0);
        if let Some(Occupant { entity, kind, part }) = slot.occupant.take() {
            let last = self.entities.remove(entity, part, number);
            self.updates.push_back(if last {
                Update::Despawned { entity, tick }
            } else {
                Update::PartRemoved { entity, kind, tick }
            });
        }
    }

    fn make_slot(&mut self, number: u32) {
        if number < self.slots_max && self.slots.len() <= number as usize {
            self.slots.resize_with(number as usize + 1, Slot::default);
        }
    }
}

/// A change at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// An entity came into view. Its state follows.
    Spawned {
        /// The entity.
        entity: EntityId,
        /// The tick in which the server told it.
        tick: Tick,
    },
    /// A state arrived. Usually the newest; a late one is told, too, for interpolation, and so is one of a tick of which a later packet says that
    /// nothing had changed.
    State {
        /// The entity.
        entity: EntityId,
        /// Of its main kind, or of a part.
        kind: KindId,
        /// The tick of the state.
        tick: Tick,
    },
    /// An entity is of another main kind now.
    KindChanged {
        /// The entity.
        entity: EntityId,
        /// The new kind.
        kind: KindId,
        /// From when on.
        tick: Tick,
    },
    /// An entity has another part.
    PartAdded {
        /// The entity.
        entity: EntityId,
        /// The part.
        kind: KindId,
        /// From when on.
        tick: Tick,
    },
    /// An entity has lost a part, or it is not for this client any more.
    PartRemoved {
        /// The entity.
        entity: EntityId,
        /// The part.
        kind: KindId,
        /// From when on.
        tick: Tick,
    },
    /// Owner or parent of an entity changed.
    Related {
        /// The entity.
        entity: EntityId,
        /// From when on.
        tick: Tick,
    },
    /// An entity is gone, or out of view.
    Despawned {
        /// The entity.
        entity: EntityId,
        /// From when on.
        tick: Tick,
    },
}

/// The reason for which a packet was refused. The server notices by itself, since it is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// It was decoded before, or is too old to tell.
    #[error("the packet was decoded before")]
    Duplicate,
    /// It is of a game that is not loaded.
    #[error("the packet is of game {0}, which is not loaded")]
    OtherGame(u32),
    /// A state in it builds on one that is not here: it is very late.
    #[error("a state in the packet builds on one that is not known")]
    NoBaseline,
    /// Updates or events have not been polled for too long.
    #[error("too many updates or events wait to be polled")]
    Backlog,
    /// It is damaged, or made by someone else.
    #[error("the packet is malformed")]
    Malformed,
    /// Not even its header is one.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Counters of a [`Receiver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStats {
    /// Packets decoded.
    pub packets: u64,
    /// Packets that had been decoded before.
    pub packets_duplicate: u64,
    /// Packets refused for other reasons.
    pub packets_refused: u64,
    /// States taken.
    pub rows: u64,
}

/// Updates that may wait to be polled before packets are refused; one packet can add a few thousand.
pub const UPDATES_MAX: usize = 65_536;
/// Events that may wait before packets are refused.
const EVENTS_WAITING_MAX: usize = 4 * EVENTS_PENDING_MAX;
/// New packets that may lack their baseline in a row before the server is asked to start over. It does not happen unless
/// one side lost its memory.
const LACKING_MAX: u32 = 4;
