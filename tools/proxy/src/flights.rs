//! Packets in flight: payloads in slots that are used again, and a heap of the times at which something is to be done.
//!
//! Nothing is allocated per packet once as many slots exist as packets have been on their way at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use muse_netem::Fate;
use muse_wire::{Ecn, Instant};

use super::way::Way;

/// Something to be done at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The datagram in this slot arrives.
    Datagram(u32),
    /// A stream has something to pass on, or may read again.
    Stream(Id),
}

/// A place in a table, and which of its successive tenants is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) client: Id,
    pub(super) way: Way,
    pub(super) ecn: Ecn,
    pub(super) payload: Vec<u8>,
}

/// Everything that is on its way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    heap: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    /// Breaks ties, so that what comes at the same time comes in order.
    number: u64,
    slots: Vec<Datagram>,
    free: Vec<u32>,
    bytes: usize,
}

impl Flights {
    /// Sends a datagram on its way. False if there is no room for it.
    pub(super) fn depart(&mut self, (client, way): (Id, Way), fate: Fate, payload: &[u8]) -> bool {
        if self.bytes + payload.len() > BYTES_MAX || self.heap.len() >= DUE_MAX {
            return false;
        }
        let ecn = fate.ecn;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Datagram {
                client,
                way,
                ecn,
                payload: Vec::new(),
            });
            (self.slots.len() - 1) as u32
        });
        let datagram = &mut self.slots[slot as usize];
        (datagram.client, datagram.way, datagram.ecn) = (client, way, ecn);
        datagram.payload.clear();
        datagram.payload.extend_from_slice(payload);
        if !fate.damage.is_none() {
            let len = fate.damage.apply(&mut datagram.payload);
            datagram.payload.truncate(len);
        }
        self.bytes += datagram.payload.len();
        self.push(fate.at, Due::Datagram(slot));
        true
    }

    /// Asks to be told about a stream at this time.
    pub(super) fn remind(&mut self, at: Instant, stream: Id) {
        self.push(at, Due::Stream(stream));
    }

    /// The next thing whose time has come, and that time.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Due)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }

    /// When the next thing is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The datagram in a slot.
    pub(super) fn datagram(&self, slot: u32) -> &Datagram {
        &self.slots[slot as usize]
    }

    /// The datagram has arrived: its slot may be used again.
    pub(super) fn land(&mut self, slot: u32) {
        let payload = &mut self.slots[slot as usize].payload;
        self.bytes -= payload.len();
        if payload.capacity() > SLOT_BYTES_KEPT {
            *payload = Vec::new();
        }
        self.free.push(slot);
    }

    /// Number of things that are due, now or later.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    fn push(&mut self, at: Instant, due: Due) {
        self.number += 1;
        self.heap.push(Reverse((at, self.number, due)));
    }
}

/// Most payload on its way.
const BYTES_MAX: usize = 512 << 20;
/// Most things on their way.
const DUE_MAX: usize = 2_000_000;
/// A larger buffer is not kept for the next datagram.
const SLOT_BYTES_KEPT: usize = 4_096;

#[cfg(test)]
mod tests {
    use muse_netem::Damage;

    use super::*;

    fn at(millis: u64) -> Fate {
        Fate {
            at: Instant::from_millis(millis),
            ecn: Ecn::NotCapable,
            damage: Damage::default(),
        }
    }

    const KEY: (Id, Way) = (
        Id {
            index: 1,
            generation: 2,
        },
        Way::Up,
    );

    #[test]
    fn what_is_due_comes_in_order_and_slots_are_used_again() {
        let mut flights = Flights::default();
        for (millis, byte) in [(3, 1), (1, 2), (1, 3)] {
            assert!(flights.depart(KEY, at(millis), &[byte]));
        }
        assert_eq!(flights.next(), Some(Instant::from_millis(1)));
        let mut landed = Vec::new();
        for now in [0, 1, 1, 2, 3] {
            if let Some((_, Due::Datagram(slot))) = flights.pop(Instant::from_millis(now)) {
                landed.push((now, flights.datagram(slot).payload[0]));
                flights.land(slot);
            }
        }
        assert_eq!(landed, [(1, 2), (1, 3), (3, 1)]);
        assert_eq!(
            (flights.slots.len(), flights.bytes, flights.len()),
            (3, 0, 0)
        );
        assert!(flights.depart(KEY, at(9), b"again"));
        assert_eq!(flights.slots.len(), 3);
    }

    #[test]
    fn there_is_a_limit() {
        let mut flights = Flights {
            bytes: BYTES_MAX - 1,
            ..Flights::default()
        };
        assert!(!flights.depart(KEY, at(0), b"xy"));
        assert!(flights.depart(KEY, at(0), b"x"));
    }
}
