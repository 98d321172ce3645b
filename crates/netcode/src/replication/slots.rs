//! The states that a client has of each part of an entity, as the server knows it. Parts in the client's interest have a slot: a small
//! number under which they travel, so that names cost next to nothing and everything per client is a dense array.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::EntityId;
use crate::snapshot::coding::Holds;
use crate::world::{NEVER, NONE, Object};

/// The slots of one client.
#[derive(Debug, Default)]
pub(super) struct Slots {
    list: Vec<Slot>,
    free: BinaryHeap<Reverse<u32>>,
    /// First slot of the entity at each index; others follow by [`Slot::next`].
    first: Vec<u32>,
    used: usize,
}

/// One slot. Ticks are plain numbers, [`NEVER`] for none.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub life: Life,
    /// The object in the world, while in interest.
    pub object: u32,
    /// Tick of the newest state that the client has acknowledged.
    pub baseline: u32,
    /// A tick at which the state in the world was the same as at `baseline`, as late as is known: there it is read.
    pub read: u32,
    /// A tick at or before the first one sent after `baseline`; the client keeps `baseline` for so long after it.
    pub after: u32,
    /// Tick last sent, unless it is known lost.
    pub sent: u32,
    /// Tick last sent, lost or not.
    pub newest: u32,
    /// The tick in which it was last sent or had nothing to send.
    pub served: u32,
    /// Bit i: the client has acknowledged the state of the tick i before `baseline`.
    pub known: u64,
    /// Grows whenever what is in flight must not count any more.
    pub incarnation: u16,
    /// Events of its entity that have not arrived.
    pub events: u16,
    pub part: u8,
    /// Something of it was lost: it comes before others until the client has a newer state.
    pub lost: bool,
    /// The tick in which it left the interest, if the client is known to have seen it: then it still gets the events of that tick.
    pub left: u32,
    /// The growth of its priority per tick.
    pub weight: u32,
    pub priority: u32,
    /// The last update of the interest that named it.
    pub stamp: u32,
    /// The last attempt at a packet that it was coded in.
    pub attempt: u32,
    pub entity: EntityId,
    next: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Free,
    Active,
    /// Out of interest, and the client has not said yet that it knows.
    Leaving,
}

impl Slots {
    pub(crate) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    /// Slots that are not free.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Slot> {
        self.list.get(slot as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        self.list.get_mut(slot as usize)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Slot)> {
        (0..).zip(&mut self.list)
    }

    /// The slot of an entity's part, also one that is leaving.
    pub(crate) fn find(&self, entity: EntityId, part: u8) -> Option<u32> {
        self.of(entity)
            .find(|(_, slot)| slot.part == part)
            .map(|(number, _)| number)
    }

    /// All slots of an entity.
    pub(crate) fn of(&self, entity: EntityId) -> impl Iterator<Item = (u32, &Slot)> {
        let mut number = self.first.get(entity.index() as usize).copied();
        std::iter::from_fn(move || {
            let found = number.filter(|number| *number != NONE)?;
            let slot = self.list.get(found as usize)?;
            number = Some(slot.next);
            Some((found, slot))
        })
        .filter(move |(_, slot)| slot.entity == entity)
    }

    /// Calls back for every slot of an entity.
    pub(crate) fn each_of(&mut self, entity: EntityId, mut change: impl FnMut(&mut Slot)) {
        let mut number = self.first.get(entity.index() as usize).copied();
        while let Some(slot) = number.and_then(|number| self.list.get_mut(number as usize)) {
            if slot.entity == entity {
                change(slot);
            }
            number = Some(slot.next);
        }
    }

    /// A slot for an entity's part that has none; the lowest that is free, to keep them dense.
    pub(crate) fn allocate(&mut self, entity: EntityId, part: u8, object: u32) -> u32 {
        let number = match self.free.pop() {
            Some(Reverse(number)) => number,
            None => self.len(),
        };
        let index = entity.index() as usize;
        if self.first.len() <= index {
            self.first.resize(index + 1, NONE);
        }
        // It goes on counting, so that acknowledgements of packets with the occupant before do not count for this one.
        let incarnation = self.get(number).map_or(0, |slot| slot.incarnation);
        let slot = Slot {
            life: Life::Active,
            object,
            baseline: NEVER,
            read: NEVER,
            after: NEVER,
            sent: NEVER,
            newest: NEVER,
            served: NEVER,
            known: 0,
            incarnation: incarnation.wrapping_add(1),
            events: 0,
            part,
            lost: false,
            left: NEVER,
            weight: 0,
            priority: 0,
            stamp: 0,
            attempt: 0,
            entity,
            next: std::mem::replace(&mut self.first[index], number),
        };
        match self.list.get_mut(number as usize) {
            Some(place) => *place = slot,
            None => self.list.push(slot),
        }
        self.used += 1;
        number
    }

    /// The client does not know it any more, or never did.
    pub(crate) fn free(&mut self, number: u32) {
        let (index, next) = {
            let slot = &mut self.list[number as usize];
            slot.life = Life::Free;
            (slot.entity.index() as usize, slot.next)
        };
        if self.first[index] == number {
            self.first[index] = next;
        } else {
            let mut before = self.first[index];
            while let Some(slot) = self.list.get_mut(before as usize) {
                if slot.next == number {
                    slot.next = next;
                    break;
                }
                before = slot.next;
            }
        }
        self.free.push(Reverse(number));
        self.used -= 1;
    }
}

impl Slot {
    /// Returns in which ticks around a row of `tick` nothing changed that the client can't know of: before it came to this state, and since it did.
    #[inline]
    pub(crate) fn holds(&self, object: &Object, tick: u32) -> Holds {
        let known = self.baseline != NEVER && self.baseline >= object.since;
        if !known || object.changed <= self.baseline {
            return Holds::NONE;
        }
        // By the world's own notes, not by the client's answers: when the first of these comes, the entity may have moved on already.
        let (from, until) = object.rested;
        Holds {
            since: tick.saturating_sub(object.changed).min(HOLD_TICKS_MAX),
            until: match from <= self.baseline && self.baseline < until {
                true => tick.saturating_sub(until),
                false => 0,
            },
        }
    }

    /// Forgets what the client has, also what is on its way.
    pub(crate) fn forget(&mut self) {
        self.incarnation = self.incarnation.wrapping_add(1);
        self.baseline = NEVER;
        self.after = NEVER;
        self.sent = NEVER;
        self.known = 0;
        self.lost = false;
    }

    /// The client has the state of `tick`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, tick: u32) {
        if self.baseline == NEVER || tick > self.baseline {
            let by = if self.baseline == NEVER {
                64
            } else {
                tick - self.baseline
            };
            self.known = self.known.checked_shl(by).unwrap_or(0) | 1;
            self.baseline = tick;
            self.read = tick;
            self.lost = false;
            // A later state is on its way; it was sent at the next tick at the earliest.
            self.after = if self.newest > tick { tick + 1 } else { NEVER };
        } else {
            self.known |= 1u64.checked_shl(self.baseline - tick).unwrap_or(0);
        }
    }
}

/// Longest time, in ticks, for which a row says that it was the same before.
const HOLD_TICKS_MAX: u32 = 63;
