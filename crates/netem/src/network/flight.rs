//! Datagrams under way: a heap of small keys over a slab of parcels, with pooled payload buffers.
//!
//! Two heaps, because a parcel that reaches a further hop must enter it at its own time, while one that reaches its
//! destination waits until somebody polls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use muse_wire::{Ecn, Instant};

use super::NatId;

/// A datagram under way.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    /// Source as the outside sees it.
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The NAT behind which both are to be understood; `None` is the internet.
    pub(super) realm: Option<NatId>,
    pub(super) ecn: Ecn,
    /// The link it travels on.
    pub(super) link: u32,
    /// The number of conditioners of that link that it has passed.
    pub(super) hops_passed: u32,
    pub(super) payload: Vec<u8>,
}

/// All datagrams under way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    hops: BinaryHeap<Reverse<Key>>,
    arrivals: BinaryHeap<Reverse<Key>>,
    parcels: Vec<Option<Parcel>>,
    free: Vec<u32>,
    buffers: Vec<Vec<u8>>,
    sequence: u64,
}

impl Flight {
    /// A buffer with this content, from the pool if it has one.
    pub(super) fn buffer(&mut self, content: &[u8]) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(content);
        buffer
    }

    /// Gives a buffer back to the pool.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_POOLED_MAX {
            self.buffers.push(buffer);
        }
    }

    /// The parcel reaches its destination at `at`.
    pub(super) fn arrive(&mut self, at: Instant, parcel: Parcel) {
        let key = self.store(at, parcel);
        self.arrivals.push(Reverse(key));
    }

    /// The parcel reaches its next hop at `at`.
    pub(super) fn hop(&mut self, at: Instant, parcel: Parcel) {
        let key = self.store(at, parcel);
        self.hops.push(Reverse(key));
    }

    /// The next parcel that has reached a hop by `now`.
    pub(super) fn pop_hop(&mut self, now: Instant) -> Option<(Instant, Parcel)> {
        let key = pop_due(&mut self.hops, now)?;
        Some((key.at, self.take(key)))
    }

    /// The next parcel that has reached its destination by `now`.
    pub(super) fn pop_arrival(&mut self, now: Instant) -> Option<(Instant, Parcel)> {
        let key = pop_due(&mut self.arrivals, now)?;
        Some((key.at, self.take(key)))
    }

    /// Returns the time at which the next parcel reaches something.
    pub(super) fn next(&self) -> Option<Instant> {
        let first = |heap: &BinaryHeap<Reverse<Key>>| heap.peek().map(|Reverse(key)| key.at);
        match (first(&self.hops), first(&self.arrivals)) {
            (Some(hop), Some(arrival)) => Some(hop.min(arrival)),
            (hop, arrival) => hop.or(arrival),
        }
    }

    /// Returns the number of parcels under way.
    pub(super) fn len(&self) -> usize {
        self.hops.len() + self.arrivals.len()
    }

    fn store(&mut self, at: Instant, parcel: Parcel) -> Key {
        let sequence = self.sequence;
        self.sequence += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.parcels[slot as usize] = Some(parcel);
                slot
            }
            None => {
                let slot = u32::try_from(self.parcels.len())
                    .expect("fewer than 2^32 datagrams are under way");
                self.parcels.push(Some(parcel));
                slot
            }
        };
        Key { at, sequence, slot }
    }

    fn take(&mut self, key: Key) -> Parcel {
        self.free.push(key.slot);
        self.parcels[key.slot as usize]
            .take()
            .expect("each key in a heap has its parcel")
    }
}

/// Ordered by time, then by the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Instant,
    sequence: u64,
    slot: u32,
}

fn pop_due(heap: &mut BinaryHeap<Reverse<Key>>, now: Instant) -> Option<Key> {
    let Reverse(key) = heap.peek()?;
    if key.at > now {
        return None;
    }
    heap.pop().map(|Reverse(key)| key)
}

/// Most payload buffers kept for reuse.
const BUFFERS_POOLED_MAX: usize = 4_096;
