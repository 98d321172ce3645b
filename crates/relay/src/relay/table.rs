//! Rooms and guests: addresses and counters, and nothing else.

use std::net::SocketAddr;

use muse_wire::Instant;

use super::super::code::RoomCode;
use super::super::packet::{Candidates, End, LegId};
use super::super::rate::Meter;

/// A room and its host.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) tag: u32,
    pub(super) code: RoomCode,
    /// The address of the host, proven.
    pub(super) address: SocketAddr,
    /// The prefix that the room counts for.
    pub(super) prefix: u64,
    pub(super) local: Candidates,
    pub(super) direct: bool,
    pub(super) meter: Meter,
    pub(super) heard: Instant,
    pub(super) challenged: Instant,
    /// Slots of its guests.
    pub(super) guests: Vec<u32>,
}

impl Room {
    pub(super) fn id(&self, slot: usize) -> LegId {
        LegId::new(self.tag, slot, End::Room)
    }
}

/// A guest, and the way between it and its host.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) room: u32,
    /// Of the guest's id.
    pub(super) tag: u32,
    /// Of the host's id.
    pub(super) host_tag: u32,
    /// The address of the guest, proven.
    pub(super) address: SocketAddr,
    pub(super) heard: Instant,
    pub(super) challenged: Instant,
    pub(super) introduced: Instant,
    /// The token of the peers' probes.
    pub(super) token: [u8; 8],
    pub(super) request: (SocketAddr, [u8; 8]),
    pub(super) local: Candidates,
    pub(super) direct: bool,
    /// True if the direct way was found at some time.
    pub(super) found: bool,
}

impl Guest {
    pub(super) fn guest_id(&self, slot: usize) -> LegId {
        LegId::new(self.tag, slot, End::Guest)
    }

    pub(super) fn host_id(&self, slot: usize) -> LegId {
        LegId::new(self.host_tag, slot, End::Host)
    }
}

/// Places that are found by their number.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    len: usize,
    limit: usize,
}

impl<T> Slab<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            len: 0,
            limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Places that were ever used.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len >= self.limit
    }

    /// Puts it somewhere; `None` when all places are taken.
    pub(super) fn insert(&mut self, value: T) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        self.len += 1;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(value);
                Some(slot as usize)
            }
            None => {
                self.slots.push(Some(value));
                Some(self.slots.len() - 1)
            }
        }
    }

    pub(super) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.slots.get_mut(slot)?.take()?;
        self.len -= 1;
        self.free.push(slot as u32);
        Some(value)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.as_mut()
    }
}
