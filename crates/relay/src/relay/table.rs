//! Rooms and guests: addresses and counters, and nothing else.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use muse_transport::token::TokenId;
use muse_wire::Instant;
use muse_wire::keyed::{Keyed, KeyedMap};
use muse_wire::net::{customer, neighbourhood};

use super::super::code::{RoomCode, RoomKey};
use super::super::packet::{Candidates, End, LegId};
use super::fairness::{GuestMeter, RoomMeter};
use super::succession::Succession;

/// A room and its host.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) tag: u32,
    pub(super) code: RoomCode,
    /// Of the room's key: two keys may have one code.
    pub(super) owner: [u8; 16],
    /// The address of the host, proven.
    pub(super) address: SocketAddr,
    /// The address that the room counts for: the one from which it was opened.
    pub(super) opened_from: IpAddr,
    /// The token by which it was opened.
    pub(super) token: Option<TokenId>,
    pub(super) local: Candidates,
    pub(super) direct: bool,
    pub(super) meter: RoomMeter,
    pub(super) heard: Instant,
    pub(super) challenged: Instant,
    /// Slots of its guests.
    pub(super) guests: Vec<u32>,
    pub(super) succession: Succession,
    /// Customers ([`customer`]) that may not join, the oldest ban first.
    banned: VecDeque<u64>,
}

impl Room {
    /// A room that nobody has joined.
    pub(super) fn new(
        now: Instant,
        key: &RoomKey,
        tag: u32,
        address: SocketAddr,
        meter: RoomMeter,
    ) -> Self {
        Self {
            tag,
            code: key.code(),
            owner: key.owner(),
            address,
            opened_from: address.ip(),
            token: None,
            local: Candidates::NONE,
            direct: false,
            meter,
            heard: now,
            challenged: Instant::ZERO,
            guests: Vec::new(),
            succession: Succession::default(),
            banned: VecDeque::new(),
        }
    }

    /// Lets nobody in from where `ip` is any more.
    pub(super) fn ban(&mut self, ip: IpAddr) {
        if !self.is_banned(ip) {
            if self.banned.len() >= BANS_MAX {
                self.banned.pop_front();
            }
            self.banned.push_back(customer(ip));
        }
    }

    pub(super) fn is_banned(&self, ip: IpAddr) -> bool {
        self.banned.contains(&customer(ip))
    }

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
    pub(super) meter: GuestMeter,
}

impl Guest {
    pub(super) fn guest_id(&self, slot: usize) -> LegId {
        LegId::new(self.tag, slot, End::Guest)
    }

    pub(super) fn host_id(&self, slot: usize) -> LegId {
        LegId::new(self.host_tag, slot, End::Host)
    }
}

/// Numbers of rooms or guests by the address that they came from.
#[derive(Debug)]
pub(super) struct Tally {
    customers: KeyedMap<u64, u32>,
    networks: KeyedMap<u64, u32>,
}

impl Tally {
    pub(super) fn new(keyed: &Keyed) -> Self {
        Self {
            customers: KeyedMap::with_hasher(keyed.clone()),
            networks: KeyedMap::with_hasher(keyed.clone()),
        }
    }

    /// True if there are fewer than so many of its customer and of its network.
    pub(super) fn has_place(&self, ip: IpAddr, of_customer: u32, of_network: u32) -> bool {
        let count = |counts: &KeyedMap<u64, u32>, key| counts.get(&key).copied().unwrap_or(0);
        count(&self.customers, customer(ip)) < of_customer
            && count(&self.networks, neighbourhood(ip)) < of_network
    }

    pub(super) fn add(&mut self, ip: IpAddr) {
        *self.customers.entry(customer(ip)).or_default() += 1;
        *self.networks.entry(neighbourhood(ip)).or_default() += 1;
    }

    pub(super) fn remove(&mut self, ip: IpAddr) {
        fn subtract(counts: &mut KeyedMap<u64, u32>, key: u64) {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
        subtract(&mut self.customers, customer(ip));
        subtract(&mut self.networks, neighbourhood(ip));
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

/// Bans of a room that are remembered; beyond that the oldest is forgotten.
const BANS_MAX: usize = 1_024;
