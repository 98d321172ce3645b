//! Events and temporary entities: what happens at a tick rather than lasts, exactly once and in order.
//!
//! The classes of data of Tribes map as follows: *most recent state* is what rows are; *not guaranteed*, *guaranteed* and
//! *guaranteed quickest* are the [`EventClass`]es. An event of an entity never arrives before the entity's state of
//! that tick, and the entity is not told gone before its events have arrived.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{EntityId, Tick};

/// The delivery of an event: how much is done for it to arrive.
///
/// ```
/// # use std::sync::Arc;
/// use muse_netcode::{EventClass, Kinds, World};
/// # use muse_netcode::{ClientId, Receiver, Tick, ClientView};
/// let mut world = World::new(Kinds::new());
/// # let mut view = ClientView::new(&world, ClientId(1));
/// # let mut receiver = Receiver::new(Arc::clone(world.kinds()));
/// # receiver.set_game(0);
/// # let mut buffer = [0; 1_200];
/// # let len = receiver.emit_acknowledgement(&mut buffer)?;
/// # view.handle_acknowledgement(&buffer[..len])?;
/// // A spark, and the end of the round; what follows the number is the game's.
/// world.emit(None, EventClass::Unreliable, 3, &[])?;
/// world.emit(None, EventClass::Quickest, 7, &[2])?;
/// for tick in 1..=2 {
///     world.commit(Tick(tick))?;
///     view.begin(&world, 10_000);
///     while let Some(len) = view.poll_packet(&world, &mut buffer) {
///         // The packet of the first tick is lost.
///         if tick == 2 {
///             receiver.handle_packet(&buffer[..len])?;
///         }
///     }
/// }
/// assert_eq!(receiver.poll_event().map(|event| event.id), Some(7));
/// assert_eq!(receiver.poll_event(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventClass {
    /// *Not guaranteed*: sent at most once, when there is room soon; arrives once or never, and never without its entity.
    Unreliable = 0,
    /// *Guaranteed*: sent again when lost; arrives once, in order with the others of this class.
    Guaranteed = 1,
    /// *Guaranteed quickest*: in every packet until it has arrived; once, in order with the others of this class.
    Quickest = 2,
}

impl EventClass {
    pub(crate) const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Unreliable),
            1 => Some(Self::Guaranteed),
            2 => Some(Self::Quickest),
            _ => None,
        }
    }

    /// Returns the order that it is part of.
    const fn lane(self) -> usize {
        match self {
            Self::Quickest => 1,
            Self::Unreliable | Self::Guaranteed => 0,
        }
    }
}

/// An event as the client gets it. Temporary entities are events without an entity whose bytes say everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The tick in which it happened. To be shown in step with interpolated entities, wait until they have reached this tick.
    pub tick: Tick,
    /// The entity that it belongs to.
    pub entity: Option<EntityId>,
    /// The class it was sent with.
    pub class: EventClass,
    /// The kind of event, as the game numbers it.
    pub id: u16,
    /// Its parameters.
    pub bytes: Box<[u8]>,
}

/// Events on their way to one client.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pending: VecDeque<Pending>,
    /// Number of the first in `pending`.
    start: u32,
    sequences: [u32; LANES],
    overflowed: bool,
}

#[derive(Debug)]
pub(crate) struct Pending {
    pub class: EventClass,
    /// Its place in the order of its class, once it has been sent.
    sequence: Option<u32>,
    pub tick: Tick,
    pub entity: Option<EntityId>,
    pub id: u16,
    pub bytes: Arc<[u8]>,
    /// Only its place in the order is told: what it is about has left the client's interest before the client knew it.
    pub void: bool,
    state: Delivery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    Waiting,
    /// In a packet of which nothing is known yet.
    Flying,
    Done,
}

impl Outgoing {
    /// Takes an event. When too many wait, an unreliable one is dropped; with others the client cannot be kept up any
    /// more, which [`has_overflowed`](Self::has_overflowed) tells.
    pub(crate) fn push(
        &mut self,
        class: EventClass,
        tick: Tick,
        entity: Option<EntityId>,
        id: u16,
        bytes: Arc<[u8]>,
    ) -> bool {
        if self.pending.len() >= EVENTS_PENDING_MAX {
            self.overflowed |= class != EventClass::Unreliable;
            return false;
        }
        self.pending.push_back(Pending {
            class,
            sequence: None,
            tick,
            entity,
            id,
            bytes,
            void: false,
            state: Delivery::Waiting,
        });
        true
    }

    pub(crate) const fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Those that want into the next packet, with their numbers.
    pub(crate) fn wanting(&self) -> impl Iterator<Item = (u32, &Pending)> {
        (self.start..).zip(&self.pending).filter(|(_, event)| {
            event.state == Delivery::Waiting
                || event.class == EventClass::Quickest && event.state == Delivery::Flying
        })
    }

    /// The sequence numbers that events get if they are sent in this order.
    pub(crate) fn sequencer(&self) -> impl FnMut(&Pending) -> u32 + use<> {
        let mut next = self.sequences;
        move |event| {
            let lane = &mut next[event.class.lane()];
            match (event.class, event.sequence) {
                // These have none.
                (EventClass::Unreliable, _) => 0,
                (_, Some(sequence)) => sequence,
                (_, None) => take_number(lane),
            }
        }
    }

    /// The entity has left before the client was known to have seen it: so its events are none of the client's business.
    /// Calls back for each that is forgotten.
    pub(crate) fn forget(&mut self, entity: EntityId, mut forgotten: impl FnMut()) {
        let theirs = |event: &&mut Pending| event.entity == Some(entity);
        for event in self.pending.iter_mut().filter(theirs) {
            // Once it has a number, others wait for it.
            event.void = true;
            if event.sequence.is_none() && event.state == Delivery::Waiting {
                event.state = Delivery::Done;
                forgotten();
            }
        }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Pending> {
        self.pending.get(number.wrapping_sub(self.start) as usize)
    }

    /// The event is in a packet. Says whose it was when nothing more will be done for it.
    pub(crate) fn mark_sent(&mut self, number: u32) -> Option<EntityId> {
        let index = number.wrapping_sub(self.start) as usize;
        let event = self.pending.get_mut(index)?;
        if event.state != Delivery::Waiting {
            return None;
        }
        // It is sent once, so nothing more is to be known of it.
        if event.class == EventClass::Unreliable {
            event.state = Delivery::Done;
            return event.entity;
        }
        if event.sequence.is_none() {
            // Numbered when it first leaves: one that is forgotten before would leave a gap that the client waits for.
            event.sequence = Some(take_number(&mut self.sequences[event.class.lane()]));
        }
        event.state = Delivery::Flying;
        None
    }

    /// The packet that it was in is lost.
    pub(crate) fn mark_lost(&mut self, number: u32) {
        if let Some(event) = self.get_mut(number)
            && event.state == Delivery::Flying
        {
            event.state = Delivery::Waiting;
        }
    }

    /// A packet that it was in has arrived. Says whose event it was when it is the first.
    pub(crate) fn mark_arrived(&mut self, number: u32) -> Option<EntityId> {
        let event = self.get_mut(number)?;
        let first = event.state != Delivery::Done;
        event.state = Delivery::Done;
        if first { event.entity } else { None }
    }

    /// Forgets what is done, and unreliable events that found no room for long; calls back with the entities of those.
    pub(crate) fn clean(&mut self, now: Tick, mut dropped: impl FnMut(EntityId)) {
        for event in &mut self.pending {
            let stale = event.class == EventClass::Unreliable
                && event.state == Delivery::Waiting
                && now - event.tick > UNRELIABLE_TICKS_MAX;
            if stale {
                event.state = Delivery::Done;
                event.entity.into_iter().for_each(&mut dropped);
            }
        }
        // Only from the front: the number of an event is its distance from there.
        while let Some(front) = self.pending.front()
            && front.state == Delivery::Done
        {
            self.pending.pop_front();
            self.start = self.start.wrapping_add(1);
        }
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Pending> {
        self.pending
            .get_mut(number.wrapping_sub(self.start) as usize)
    }
}

/// Events that arrived at the client, put in order.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    lanes: [Lane; LANES],
    ready: VecDeque<Event>,
}

#[derive(Debug, Default)]
struct Lane {
    /// The sequence number that comes next.
    next: u32,
    /// Those after it, by their distance.
    early: VecDeque<Option<Content>>,
}

/// The content of a place in the order.
#[derive(Debug)]
pub(crate) enum Content {
    Event(Event),
    /// Nothing, but those after it need not wait any more.
    Void,
}

/// An event that was read from a packet but not taken yet.
#[derive(Debug)]
pub(crate) struct Read {
    pub class: EventClass,
    pub sequence: u16,
    pub content: Content,
}

impl Incoming {
    /// True if the event may be taken: its number is not impossibly far ahead.
    pub(crate) fn admits(&self, class: EventClass, sequence: u16) -> bool {
        let lane = &self.lanes[class.lane()];
        let ahead = sequence.wrapping_sub(lane.next as u16);
        class == EventClass::Unreliable
            || usize::from(ahead) < EVENTS_PENDING_MAX
            || ahead >= u16::MAX / 2
    }

    /// Events that wait to be taken by the game, and those that wait for earlier ones.
    pub(crate) fn len(&self) -> usize {
        self.ready.len()
            + self
                .lanes
                .iter()
                .map(|lane| lane.early.len())
                .sum::<usize>()
    }

    /// Takes an event that is [admitted](Self::admits).
    pub(crate) fn take(&mut self, read: Read) {
        if read.class == EventClass::Unreliable {
            self.ready.extend(read.content.event());
            return;
        }
        let lane = &mut self.lanes[read.class.lane()];
        let ahead = usize::from(read.sequence.wrapping_sub(lane.next as u16));
        // An old number, which looks far ahead because it wraps: a duplicate.
        if ahead >= EVENTS_PENDING_MAX {
            return;
        }
        if lane.early.len() <= ahead {
            lane.early.resize_with(ahead + 1, || None);
        }
        lane.early[ahead].get_or_insert(read.content);
        while let Some(Some(_)) = lane.early.front() {
            let content = lane.early.pop_front().flatten();
            self.ready.extend(content.and_then(Content::event));
            lane.next = lane.next.wrapping_add(1);
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }
}

impl Read {
    /// Returns the entity that the event belongs to.
    pub(crate) const fn entity(&self) -> Option<EntityId> {
        match &self.content {
            Content::Event(event) => event.entity,
            Content::Void => None,
        }
    }
}

impl Content {
    fn event(self) -> Option<Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::Void => None,
        }
    }
}

/// The next number, counting on.
const fn take_number(next: &mut u32) -> u32 {
    let number = *next;
    *next = number.wrapping_add(1);
    number
}

/// Longest parameters of an event.
pub const EVENT_BYTES_MAX: usize = 255;
/// Events that can be on their way to a client; they go out of order by at most as many.
pub const EVENTS_PENDING_MAX: usize = 1_024;
/// Orders in which guaranteed events are kept.
const LANES: usize = 2;
/// The longest that an unreliable event may wait for room.
const UNRELIABLE_TICKS_MAX: i64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sequence: u16) -> Read {
        let class = EventClass::Guaranteed;
        let event = Event {
            tick: Tick(0),
            entity: None,
            class,
            id: sequence,
            bytes: Box::default(),
        };
        Read {
            class,
            sequence,
            content: Content::Event(event),
        }
    }

    #[test]
    fn events_come_out_once_and_in_order() {
        let mut incoming = Incoming::default();
        for sequence in [2, 1, 1, 0, 2, 0, 3] {
            assert!(incoming.admits(EventClass::Guaranteed, sequence));
            incoming.take(read(sequence));
        }
        let out: Vec<u16> = std::iter::from_fn(|| incoming.poll())
            .map(|event| event.id)
            .collect();
        assert_eq!(out, [0, 1, 2, 3]);
        assert!(!incoming.admits(EventClass::Guaranteed, 4 + EVENTS_PENDING_MAX as u16));
    }

    #[test]
    fn order_survives_the_end_of_the_numbers() {
        let mut incoming = Incoming::default();
        let mut out = 0u32;
        for pair in 0..50_000u32 {
            for sequence in [2 * pair + 1, 2 * pair] {
                incoming.take(read(sequence as u16));
            }
            while let Some(event) = incoming.poll() {
                assert_eq!(event.id, out as u16);
                out += 1;
            }
        }
        assert_eq!(out, 100_000);
    }

    #[test]
    fn too_many_guaranteed_events_are_noticed() {
        let mut outgoing = Outgoing::default();
        let bytes: Arc<[u8]> = Arc::from([]);
        for _ in 0..EVENTS_PENDING_MAX {
            assert!(outgoing.push(EventClass::Guaranteed, Tick(0), None, 0, bytes.clone()));
        }
        assert!(!outgoing.push(EventClass::Unreliable, Tick(0), None, 0, bytes.clone()));
        assert!(!outgoing.has_overflowed());
        assert!(!outgoing.push(EventClass::Guaranteed, Tick(0), None, 0, bytes));
        assert!(outgoing.has_overflowed());
    }
}
