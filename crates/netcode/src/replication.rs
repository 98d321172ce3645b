//! The replication of the world to one client: a delta of each entity against the newest state of it that the client has
//! acknowledged, within a number of bytes.
//!
//! A [`ClientView`] costs what is in the client's interest, not what there is in the world. Its parts:
//! `slots` (what the client has), `sent` (what is on its way), `priority` (what comes first), `packet` (how a packet is
//! filled).

use std::sync::Arc;

use crate::events::{EVENT_BYTES_MAX, EventClass, Outgoing};
use crate::priority::{Plan, Urgency};
use crate::snapshot::coding::{Coding, SLOTS_DEFAULT, SLOTS_MAX};
use crate::snapshot::{Acknowledgement, FormatError, WORDS, widen};
use crate::world::{Audience, ClientId, NEVER, NONE, Object, World, WorldError};
use crate::{EntityId, Tick};

mod acknowledged;
mod packet;
mod pattern;
mod sent;
mod slots;

pub use acknowledged::AcknowledgedTicks;
use sent::{Entry, Sent};
use slots::{Life, Slot, Slots};

/// One client's side of the [`World`], on the server.
///
/// In every tick, or every few: [`handle_acknowledgement`](Self::handle_acknowledgement) for what arrived,
/// [`set_interest`](Self::set_interest) if it changed, [`begin`](Self::begin), then [`poll_packet`](Self::poll_packet) until it
/// returns `None`.
///
/// ```
/// use muse_netcode::{ClientId, KindOptions, Kinds, Receiver, Tick, ClientView, World};
/// use muse_schema::State;
///
/// #[derive(State, Clone, PartialEq, Debug)]
/// struct Ship {
///     #[field(range = -100.0..=100.0, step = 0.01)]
///     x: f32,
/// }
/// let declare = || {
///     let mut kinds = Kinds::new();
///     let ship = kinds.register::<Ship>(KindOptions::new(1)).expect("a new id");
///     (kinds, ship)
/// };
///
/// let (kinds, ship) = declare();
/// let mut world = World::new(kinds);
/// let entity = world.spawn(ship, &Ship { x: 1.0 })?;
/// let mut view = ClientView::new(&world, ClientId(1));
/// view.set_interest([(entity, 1.0)]);
/// let mut receiver = Receiver::new(declare().0);
/// receiver.set_game(0);
///
/// let mut buffer = [0; 1_200];
/// for tick in 1..4 {
///     world.set(ship, entity, &Ship { x: tick as f32 })?;
///     world.commit(Tick(tick))?;
///     let len = receiver.emit_acknowledgement(&mut buffer)?;
///     view.handle_acknowledgement(&buffer[..len])?;
///     view.begin(&world, 10_000);
///     while let Some(len) = view.poll_packet(&world, &mut buffer) {
///         receiver.handle_packet(&buffer[..len])?;
///     }
/// }
/// assert_eq!(receiver.state(ship, entity), Some((Tick(3), Ship { x: 3.0 })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ClientView {
    client: ClientId,
    slots_max: usize,
    player: Option<EntityId>,
    /// The other entities that the client predicts, in order.
    predicted: Vec<EntityId>,
    slots: Slots,
    interest: Vec<(EntityId, u32)>,
    interest_changed: bool,
    structure: u64,
    stamp: u32,
    plan: Plan,
    sent: Sent,
    events: Outgoing,
    events_seen: u64,
    coding: Coding,
    round: Round,
    game: u32,
    game_loaded: bool,
    complete: bool,
    restarted_at: u32,
    /// Smoothed ticks from sending a packet until the answer, times 8.
    delay: u32,
    newest_arrived: u32,
    acknowledged: AcknowledgedTicks,
    attempts: u32,
    scratch: Vec<Entry>,
    stats: ViewStats,
}

/// The packets of one tick.
#[derive(Debug, Default)]
struct Round {
    tick: u32,
    active: bool,
    bytes_left: usize,
    packets: u32,
    /// Slots to be told gone, those at the end first.
    gone: Vec<u32>,
}

impl ClientView {
    /// A view for a client that knows nothing yet. It sees what [`set_interest`](Self::set_interest) says.
    pub fn new(world: &World, client: ClientId) -> Self {
        Self {
            client,
            slots_max: SLOTS_DEFAULT as usize,
            player: None,
            predicted: Vec::new(),
            slots: Slots::default(),
            interest: Vec::new(),
            interest_changed: false,
            structure: world.structure(),
            stamp: 0,
            plan: Plan::default(),
            sent: Sent::default(),
            events: Outgoing::default(),
            events_seen: world.events_end(),
            coding: Coding::new(world.kinds()),
            round: Round::default(),
            game: world.game(),
            game_loaded: false,
            complete: false,
            restarted_at: 0,
            delay: 0,
            newest_arrived: 0,
            acknowledged: AcknowledgedTicks::default(),
            attempts: 0,
            scratch: Vec::new(),
            stats: ViewStats::default(),
        }
    }

    /// Limits the entities (parts of them) that a client is told of at a time, 65,536 by default; others have to wait until some
    /// leave its interest. Costs about a hundred bytes each.
    #[must_use]
    pub fn with_entities_max(mut self, count: usize) -> Self {
        self.slots_max = count.clamp(1, SLOTS_MAX as usize);
        self
    }

    /// Sets the entities that the client may see from now on, with a weight each: how much faster than others of weight 1 its priority grows
    /// when bytes are scarce, 1/256 to 65,536. Stays until set again.
    pub fn set_interest(&mut self, interest: impl IntoIterator<Item = (EntityId, f32)>) {
        self.interest.clear();
        // A cast takes what is too large or no number to an end.
        let weights = interest
            .into_iter()
            .map(|(entity, weight)| (entity, ((weight * 256.0) as u32).clamp(1, WEIGHT_MAX)));
        self.interest.extend(weights);
        self.interest_changed = true;
    }

    /// Sets the entity that the client plays, if it does. It is in every snapshot, changed or not, as long as it is in the client's
    /// interest: the client compares its predictions with it.
    pub const fn set_player(&mut self, player: Option<EntityId>) {
        self.player = player;
    }

    /// Sets what the client predicts besides its player: it is in every snapshot as well.
    pub(crate) fn set_predicted(&mut self, predicted: impl Iterator<Item = EntityId>) {
        self.predicted.clear();
        self.predicted.extend(predicted);
        self.predicted.sort_unstable();
    }

    /// Emits an event of the last committed tick to this client alone.
    pub fn emit(
        &mut self,
        world: &World,
        entity: Option<EntityId>,
        class: EventClass,
        id: u16,
        bytes: &[u8],
    ) -> Result<(), WorldError> {
        if bytes.len() > EVENT_BYTES_MAX {
            return Err(WorldError::EventTooLong);
        }
        let tick = world.tick().unwrap_or_default();
        self.push_event(class, tick, entity, id, bytes.into());
        Ok(())
    }

    /// Handles an acknowledgement of the client. Returns how many bytes of `bytes` that was; more may follow.
    pub fn handle_acknowledgement(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        let (answer, len) = Acknowledgement::parse(bytes)?;
        self.game_loaded = answer.game == self.game;
        let last = self.sent.next().wrapping_sub(1);
        let Some(newest) = answer.newest.map(|newest| widen(newest, last)) else {
            self.handle_restart(answer.restart);
            return Ok(len);
        };
        if newest.wrapping_sub(last).cast_signed() > 0 {
            return Err(FormatError::TooLarge);
        }
        self.handle_arrival(newest);
        for (word, bits) in (0..WORDS as u32).zip(answer.received) {
            let mut rest = bits;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                self.handle_arrival(newest.wrapping_sub(1 + word * 64 + bit));
            }
        }
        self.handle_restart(answer.restart);
        // Those two ticks older than one that arrived are probably lost; if not, only bytes are.
        self.give_up_before(self.newest_arrived.saturating_sub(REORDERING_TICKS));
        Ok(len)
    }

    /// Starts the packets for the world's last committed tick: at most `bytes` in all of them.
    pub fn begin(&mut self, world: &World, bytes: usize) {
        self.round.active = false;
        let Some(Tick(tick)) = world.tick() else {
            return;
        };
        // Without a new commit there is nothing to say.
        if self.stats.rounds > 0 && tick <= self.round.tick {
            return;
        }
        self.stats.rounds += 1;
        self.round.active = true;
        self.round.tick = tick;
        self.round.bytes_left = bytes;
        self.round.packets = 0;
        if self.game != world.game() {
            self.game = world.game();
            self.game_loaded = false;
            self.forget_all();
        }
        if self.interest_changed || self.structure != world.structure() {
            self.reconcile(world);
        }
        // After the slots, because events go to those who see their entity.
        self.take_events(world);
        // Twice the usual delay, which is kept in eighths of a tick.
        let timeout = self.delay / 4 + TIMEOUT_TICKS_MIN;
        self.give_up_before(tick.saturating_sub(timeout));
        self.sent
            .forget_before(tick.saturating_sub(world.kinds().history()));
        self.survey(world);
    }

    /// Writes the next packet to the front of `buffer` and says how long it is; `None` when this tick has no more. Every
    /// tick has at least one, which tells the client the time, unless the bytes given do not even suffice for that.
    pub fn poll_packet(&mut self, world: &World, buffer: &mut [u8]) -> Option<usize> {
        let limit = buffer.len().min(self.round.bytes_left);
        if !self.round.active || limit < PACKET_BYTES_MIN {
            return None;
        }
        if self.round.packets > 0 && !self.has_more() {
            self.round.active = false;
            return None;
        }
        let Some(len) = self.fill_packet(world, &mut buffer[..limit]) else {
            self.round.active = false;
            return None;
        };
        self.round.packets += 1;
        self.round.bytes_left -= len;
        self.stats.packets += 1;
        self.stats.bytes += len as u64;
        Some(len)
    }

    /// True if the client has acknowledged a state of the entity, and none that says it is gone.
    pub fn knows(&self, entity: EntityId) -> bool {
        self.slots
            .of(entity)
            .any(|(_, slot)| slot.baseline != NEVER)
    }

    /// True if the client has nothing of the entity: it never did, or it acknowledged that it is gone.
    pub fn is_gone(&self, entity: EntityId) -> bool {
        self.slots.of(entity).next().is_none()
    }

    /// True if the client has acknowledged some state of everything in its interest: it has joined.
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// True if guaranteed events were lost because the client did not keep up: it should be disconnected.
    pub const fn has_overflowed(&self) -> bool {
        self.events.has_overflowed()
    }

    /// Returns the ticks from sending a packet until its acknowledgement, smoothed.
    pub fn delay_ticks(&self) -> f32 {
        self.delay as f32 / 8.0
    }

    /// Returns the last ticks of which the client acknowledged a packet.
    pub const fn acknowledged(&self) -> AcknowledgedTicks {
        self.acknowledged
    }

    /// Returns the counters.
    pub const fn stats(&self) -> ViewStats {
        self.stats
    }

    fn handle_arrival(&mut self, number: u32) {
        let mut entries = std::mem::take(&mut self.scratch);
        if let Some(tick) = self.sent.arrive(number, &mut entries) {
            self.newest_arrived = self.newest_arrived.max(tick);
            self.acknowledged.insert(Tick(tick));
            let delay = self.round.tick.saturating_sub(tick);
            self.delay = if self.delay == 0 {
                delay * 8
            } else {
                self.delay - self.delay / 8 + delay
            };
            for entry in &entries {
                self.settle(tick, *entry);
            }
        }
        self.scratch = entries;
    }

    /// Something arrived that was sent at `tick`.
    fn settle(&mut self, tick: u32, entry: Entry) {
        match entry {
            Entry::Row { slot, incarnation } => {
                if let Some(slot) = self.slots.get_mut(slot)
                    // The slot may have been given to another entity since the packet left.
                    && slot.incarnation == incarnation
                    && slot.life == Life::Active
                {
                    slot.acknowledge(tick);
                }
            }
            Entry::Gone {
                slot: number,
                incarnation,
            } => {
                if let Some(slot) = self.slots.get(number)
                    && slot.incarnation == incarnation
                    && slot.life == Life::Leaving
                {
                    self.slots.free(number);
                }
            }
            Entry::Event(number) => {
                if let Some(entity) = self.events.mark_arrived(number) {
                    release(&mut self.slots, entity);
                }
            }
        }
    }

    /// Gives up what was sent before `tick` and has not been acknowledged: it is sent again where it is still wanted.
    fn give_up_before(&mut self, tick: u32) {
        let mut entries = std::mem::take(&mut self.scratch);
        while let Some(tick) = self.sent.lose_before(tick, &mut entries) {
            self.stats.packets_lost += 1;
            for entry in &entries {
                match *entry {
                    Entry::Row { slot, incarnation } | Entry::Gone { slot, incarnation } => {
                        if let Some(slot) = self.slots.get_mut(slot)
                            && slot.incarnation == incarnation
                            // A later packet has carried it again: that one decides.
                            && slot.sent == tick
                        {
                            slot.sent = NEVER;
                            slot.lost = true;
                        }
                    }
                    Entry::Event(number) => self.events.mark_lost(number),
                }
            }
        }
        self.scratch = entries;
    }

    fn handle_restart(&mut self, number: Option<u16>) {
        let next = self.sent.next();
        let Some(number) = number.map(|number| widen(number, next)) else {
            return;
        };
        // Only what was sent since the last restart says something about it; so a client cannot ask too often.
        let sent = number.wrapping_sub(next).cast_signed() < 0;
        if sent && number.wrapping_sub(self.restarted_at).cast_signed() >= 0 {
            self.restarted_at = next;
            self.stats.restarts += 1;
            self.forget_all();
        }
    }

    /// The client has nothing any more.
    fn forget_all(&mut self) {
        for (_, slot) in self.slots.iter_mut() {
            if slot.life == Life::Active {
                slot.forget();
            }
        }
    }

    /// Brings the slots in line with the interest and with what the world has of it.
    fn reconcile(&mut self, world: &World) {
        self.interest_changed = false;
        self.structure = world.structure();
        self.stamp = self.stamp.wrapping_add(1);
        let interest = std::mem::take(&mut self.interest);
        for (entity, weight) in &interest {
            let Some(record) = world.record(*entity) else {
                continue;
            };
            for (part, object) in (0u8..).zip(record.parts) {
                let Some(found) = world.object(object) else {
                    continue;
                };
                let owned = record.owner == Some(self.client);
                let visible = match world.kinds().at(found.kind.place()).audience() {
                    Audience::All => true,
                    Audience::Owner => owned,
                    Audience::Others => !owned,
                };
                if visible {
                    self.include(*entity, part, object, *weight);
                }
            }
        }
        self.interest = interest;
        for number in 0..self.slots.len() {
            if let Some(slot) = self.slots.get_mut(number)
                && slot.life == Life::Active
                && slot.stamp != self.stamp
            {
                let entity = slot.entity;
                let unheard = slot.baseline == NEVER;
                // An entity that the client has seen leaves with the events of this tick: its explosion is still told.
                slot.left = if unheard { NEVER } else { self.round.tick };
                slot.forget();
                slot.life = Life::Leaving;
                slot.object = NONE;
                if unheard
                    && self
                        .slots
                        .of(entity)
                        .all(|(_, slot)| slot.baseline == NEVER)
                {
                    let mut count = 0;
                    self.events.forget(entity, || count += 1);
                    for _ in 0..count {
                        release(&mut self.slots, entity);
                    }
                }
                // An entity that was never sent needs no despawn message.
                if self
                    .slots
                    .get(number)
                    .is_some_and(|slot| slot.newest == NEVER)
                {
                    self.slots.free(number);
                }
            }
        }
    }

    fn include(&mut self, entity: EntityId, part: u8, object: u32, weight: u32) {
        let number = match self.slots.find(entity, part) {
            Some(number) => number,
            None if self.slots.used() >= self.slots_max => {
                self.stats.interest_overflows += 1;
                return;
            }
            None => self.slots.allocate(entity, part, object),
        };
        let stamp = self.stamp;
        if let Some(slot) = self.slots.get_mut(number) {
            if slot.life == Life::Leaving {
                slot.forget();
                slot.life = Life::Active;
                slot.left = NEVER;
                slot.priority = 0;
                slot.served = NEVER;
            }
            slot.object = object;
            slot.weight = weight;
            slot.stamp = stamp;
        }
    }

    /// Takes the world's events since the last time, those that are for this client.
    fn take_events(&mut self, world: &World) {
        let (first, events) = world.events_from(self.events_seen);
        self.stats.events_missed += first.saturating_sub(self.events_seen);
        self.events_seen = first;
        for event in events {
            self.events_seen += 1;
            let tick = self.round.tick;
            let sees = |slot: &Slot| slot.life == Life::Active || slot.left == tick;
            let known = |entity| self.slots.of(entity).any(|(_, slot)| sees(slot));
            if event.entity.is_none_or(known) {
                let bytes = Arc::clone(&event.bytes);
                self.push_event(event.class, event.tick, event.entity, event.id, bytes);
            }
        }
        let slots = &mut self.slots;
        self.events
            .clean(Tick(self.round.tick), |entity| release(slots, entity));
    }

    fn push_event(
        &mut self,
        class: EventClass,
        tick: Tick,
        entity: Option<EntityId>,
        id: u16,
        bytes: Arc<[u8]>,
    ) {
        if self.events.push(class, tick, entity, id, bytes)
            && let Some(entity) = entity
        {
            self.slots.each_of(entity, |slot| slot.events += 1);
        }
    }

    /// Looks at every slot once: who has something to send, who is to be told gone.
    fn survey(&mut self, world: &World) {
        let tick = self.round.tick;
        let overdue = (world.kinds().tick_rate() * WAIT_SECONDS_MAX) as u32;
        self.round.gone.clear();
        self.plan.clear();
        self.complete = self.game_loaded;
        for (number, slot) in self.slots.iter_mut() {
            match slot.life {
                Life::Free => continue,
                Life::Leaving => {
                    // The despawn waits for the entity's events, which would otherwise name an unknown entity.
                    if slot.sent == NEVER && slot.events == 0 {
                        self.round.gone.push(number);
                    }
                    continue;
                }
                Life::Active => {}
            }
            self.complete &= slot.baseline != NEVER;
            // Entities spawned after the last commit are not there yet.
            let Some(object) = world
                .object(slot.object)
                .filter(|object| object.since <= tick)
            else {
                continue;
            };
            // The client's own player is always sent, and what it predicts with it: predictions are confirmed by it.
            let is_player = Some(slot.entity) == self.player;
            let is_predicted = self.predicted.binary_search(&slot.entity).is_ok();
            if !slot.wants(object, tick) && !is_player && !is_predicted {
                continue;
            }
            let unheard = slot.baseline == NEVER;
            // What the client has spawned itself fades if it is not told of it soon.
            let is_awaited = unheard && world.is_spawn_of(slot.entity, self.client);
            // A first state is sent again before it is answered only if there are bytes to spare. What came to rest without the client having been
            // told comes early: it is shown wrong until then, and costs nothing afterwards.
            let weight = if unheard && slot.sent != NEVER && !is_awaited {
                slot.weight / 4
            } else if object.touched < tick && slot.lacks(object) {
                slot.weight.saturating_mul(REST_URGENCY)
            } else if is_predicted {
                slot.weight.saturating_mul(PREDICTED_URGENCY)
            } else {
                slot.weight
            };
            slot.priority = slot.priority.saturating_add(weight);
            let waited = tick - slot.served.min(tick);
            let is_thing = is_predicted && world.kinds().at(object.kind.place()).is_predicted();
            let urgency = Urgency {
                is_overdue: waited >= overdue || slot.lost || is_awaited,
                // A thing goes where somebody kicks it. To hear of that late is seen from further away than anything else.
                is_always: is_player || is_thing,
            };
            self.plan.add(number, slot.priority, urgency, unheard);
        }
        self.round.gone.reverse();
    }
}

impl Slot {
    /// Returns whether there is something to send, and notes while the client's state is still that of the world.
    ///
    /// A state goes into every snapshot until the client has acknowledged one of a later tick: any one of these packets then suffices, and the
    /// client has two equal states, which tell it that the entity rests.
    #[inline]
    fn wants(&mut self, object: &Object, tick: u32) -> bool {
        if self.baseline != NEVER && object.touched <= self.baseline {
            self.read = tick;
            if object.touched < self.baseline {
                self.served = tick;
                self.priority = 0;
                return false;
            }
        }
        if self.served == NEVER {
            self.served = tick;
        }
        true
    }

    /// True if the client was not sent the present state, or it was lost.
    #[inline]
    fn lacks(&self, object: &Object) -> bool {
        self.sent == NEVER || object.touched > self.sent
    }
}

/// An event of the entity needs not be waited for any more.
fn release(slots: &mut Slots, entity: EntityId) {
    slots.each_of(entity, |slot| slot.events = slot.events.saturating_sub(1));
}

/// Counters of a [`ClientView`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewStats {
    /// Calls of [`ClientView::begin`] for a new tick.
    pub rounds: u64,
    /// Packets made.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were given up waiting for.
    pub packets_lost: u64,
    /// States sent.
    pub rows: u64,
    /// Those of them that were sent without a baseline.
    pub rows_whole: u64,
    /// States that did not fit into an empty packet.
    pub rows_too_large: u64,
    /// Events that were forgotten by the world before the view saw them.
    pub events_missed: u64,
    /// Entities in interest for which there was no slot, counted at each update of the interest.
    pub interest_overflows: u64,
    /// Times that the client had to start over.
    pub restarts: u64,
}

/// The factor by which the priority of an entity that came to rest grows faster until the client was told.
const REST_URGENCY: u32 = 8;
/// The factor by which the priority of what the client predicts grows faster: it corrects itself by that.
const PREDICTED_URGENCY: u32 = 8;
/// The time after which an entity that had no turn comes before all that have waited for less, whatever the weights: even after a loss
/// and a long round trip nothing waits for a second.
const WAIT_SECONDS_MAX: f64 = 0.3;
/// Packets more than so many ticks older than one that arrived are given up.
const REORDERING_TICKS: u32 = 1;
/// The shortest time that an acknowledgement is waited for; twice the usual delay is added.
const TIMEOUT_TICKS_MIN: u32 = 4;
/// Less than this is not worth a packet.
pub(crate) const PACKET_BYTES_MIN: usize = 64;
const WEIGHT_MAX: u32 = 1 << 24;
