//! Clients by address: each with a socket towards the server, bounded in number, forgotten when silent.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use mio::{Registry, Token};
use muse_netem::Counters;
use muse_wire::{Duration, Instant};

use super::super::flights::Id;
use super::super::port::Port;
use super::super::sockets::plain;
use super::super::way::{Link, Pair, Way};
use super::{CLIENTS, Setup};

/// A client.
pub(super) struct Client {
    /// As its packets show it, which is how answers must be addressed.
    pub(super) address: SocketAddr,
    /// The address of ours that it talks to.
    pub(super) local_ip: Option<IpAddr>,
    /// Its socket towards the server.
    pub(super) port: Port,
    /// The address of that socket.
    pub(super) local: SocketAddr,
    pub(super) links: [Link; 2],
    pub(super) heard: Instant,
}

/// All clients.
pub(super) struct Clients {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_address: BTreeMap<SocketAddr, u32>,
    max: usize,
    /// Number of clients so far.
    pub(super) seen: u64,
    /// Counters of the links of clients that were forgotten.
    past: [Counters; 2],
}

struct Slot {
    generation: u32,
    client: Option<Client>,
}

impl Clients {
    pub(super) fn new(max: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_address: BTreeMap::new(),
            max,
            seen: 0,
            past: Default::default(),
        }
    }

    /// The client with this address, new if need be; none if there are too many or the system has no more sockets.
    pub(super) fn of(
        &mut self,
        address: SocketAddr,
        now: Instant,
        setup: &Setup,
        conditions: &Pair,
        registry: &Registry,
    ) -> Option<(Id, &mut Client)> {
        let index = match self.by_address.get(&address) {
            Some(&index) => index,
            None => self.insert(address, now, setup, conditions, registry)?,
        };
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation;
        let client = slot.client.as_mut()?;
        client.heard = now;
        Some((Id { index, generation }, client))
    }

    fn insert(
        &mut self,
        address: SocketAddr,
        now: Instant,
        setup: &Setup,
        conditions: &Pair,
        registry: &Registry,
    ) -> Option<u32> {
        if self.by_address.len() >= self.max {
            self.forget_quietest(now, registry);
        }
        if self.by_address.len() >= self.max {
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                client: None,
            });
            (self.slots.len() - 1) as u32
        });
        let token = Token(index as usize + CLIENTS);
        let port = match Port::towards(setup.server, registry, token) {
            Ok(port) => port,
            Err(error) => {
                tracing::debug!("no socket for {address}: {error}");
                self.free.push(index);
                return None;
            }
        };
        self.seen += 1;
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.client = Some(Client {
            address,
            local_ip: None,
            local: plain(port.local_addr()),
            port,
            links: Link::pair(conditions, setup.seed, self.seen),
            heard: now,
        });
        self.by_address.insert(address, index);
        Some(index)
    }

    /// The client with this number, and which of that number's clients it is.
    pub(super) fn at(&mut self, index: usize) -> Option<(Id, &mut Client)> {
        let slot = self.slots.get_mut(index)?;
        let id = Id {
            index: index as u32,
            generation: slot.generation,
        };
        slot.client.as_mut().map(|client| (id, client))
    }

    /// Returns the client of this id, unless it has been forgotten.
    pub(super) fn with_id(&self, id: Id) -> Option<&Client> {
        let slot = self.slots.get(id.index as usize)?;
        slot.client
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.slots.iter().filter_map(|slot| slot.client.as_ref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.client.as_mut())
    }

    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn forget_idle(&mut self, now: Instant, idle: Duration, registry: &Registry) {
        for index in 0..self.slots.len() {
            let is_idle = |client: &Client| now.saturating_since(client.heard) >= idle;
            if self.slots[index].client.as_ref().is_some_and(is_idle) {
                self.forget(index, registry);
            }
        }
    }

    /// Returns the counters of all links, of clients that are gone too.
    pub(super) fn counters(&self, way: Way) -> Counters {
        self.iter().fold(self.past[way.index()], |sum, client| {
            sum.plus(client.links[way.index()].counters())
        })
    }

    /// Makes room for a newcomer, if somebody has been silent for a while.
    fn forget_quietest(&mut self, now: Instant, registry: &Registry) {
        let heard = |index: usize| self.slots[index].client.as_ref().map(|client| client.heard);
        let quietest = (0..self.slots.len())
            .filter_map(|index| Some((heard(index)?, index)))
            .min();
        if let Some((heard, index)) = quietest
            && now.saturating_since(heard) >= QUIET
        {
            self.forget(index, registry);
        }
    }

    fn forget(&mut self, index: usize, registry: &Registry) {
        let Some(client) = self.slots[index].client.take() else {
            return;
        };
        self.by_address.remove(&client.address);
        for way in Way::BOTH {
            let past = &mut self.past[way.index()];
            *past = past.plus(client.links[way.index()].counters());
        }
        if let Err(error) = client.port.deregister(registry) {
            tracing::debug!("{}: {error}", client.address);
        }
        self.free.push(index as u32);
    }
}

/// Silence after which a client makes room for a newcomer when all places are taken.
const QUIET: Duration = Duration::from_secs(5);
