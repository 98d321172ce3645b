//! A virtual network in virtual time: nodes with addresses, links and shared pipes between them, NATs, partitions.
//!
//! Everything follows from the seed and the calls, so any failure seen over it is a seed.

mod firewall;
mod flight;
mod nat;
mod routing;
mod stats;
mod tap;
mod topology;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use muse_wire::{Ecn, Instant};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Conditioner, Conditions, Counters, Packet};
use firewall::Guard;
use flight::{Flight, Parcel};
use nat::Nat;
use tap::Tap;

pub use firewall::Firewall;
pub use nat::NatKind;
pub use stats::{NodeStats, Traffic, Unrouted};
pub use tap::{Sighting, Stage};

/// A virtual network.
///
/// Add nodes, [`send`](Self::send) datagrams, and take what has arrived with [`poll_deliver`](Self::poll_deliver) when
/// the time of [`next_delivery`](Self::next_delivery) has come. `now` never goes backwards.
///
/// A datagram passes the link from its sender's to its receiver's node, then the pipes that [`route`](Self::route) gave
/// that link, in order. It is translated by the sender's NATs as it leaves and by the receiver's as it arrives.
///
/// ```
/// use muse_netem::{Conditions, Network};
/// use muse_wire::{Duration, Ecn, Instant};
/// let (alice, bob) = ("192.0.2.1:1".parse().expect("address"), "192.0.2.2:2".parse().expect("address"));
/// let mut network = Network::new(1);
/// network.add_node(alice);
/// network.add_node(bob);
/// network.set_default(Conditions::default().delay(Duration::from_millis(25)));
///
/// network.send(Instant::ZERO, alice, bob, Ecn::NotCapable, b"hello");
/// let now = network.next_delivery().expect("one is under way");
/// assert_eq!(now, Instant::from_millis(25));
/// let delivery = network.poll_deliver(now).expect("it has arrived");
/// assert_eq!((delivery.from, delivery.to, &delivery.payload[..]), (alice, bob, &b"hello"[..]));
/// ```
#[derive(Debug)]
pub struct Network {
    seed: u64,
    now: Instant,
    nodes: Vec<Node>,
    by_address: FxHashMap<SocketAddr, NodeId>,
    nats: Vec<Nat>,
    by_external: FxHashMap<IpAddr, NatId>,
    conditions: Arc<Conditions>,
    links: Vec<Link>,
    by_pair: FxHashMap<(NodeId, NodeId), u32>,
    pipes: Vec<Conditioner>,
    cuts: FxHashSet<(NodeId, NodeId)>,
    flight: Flight,
    /// Payload of the delivery that the caller looks at.
    delivered: Vec<u8>,
    tap: Tap,
    unrouted: Unrouted,
}

impl Network {
    /// An empty network with perfect links, whose chances all follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            nodes: vec![Node::default()],
            by_address: FxHashMap::default(),
            nats: Vec::new(),
            by_external: FxHashMap::default(),
            conditions: Arc::default(),
            links: Vec::new(),
            by_pair: FxHashMap::default(),
            pipes: Vec::new(),
            cuts: FxHashSet::default(),
            flight: Flight::default(),
            delivered: Vec::new(),
            tap: Tap::default(),
            unrouted: Unrouted::default(),
        }
    }

    /// Shows every datagram to `watcher`: as it is sent, delivered or lost.
    pub fn set_tap(&mut self, watcher: impl FnMut(Sighting<'_>) + Send + 'static) {
        self.tap = Tap(Some(Box::new(watcher)));
    }

    /// Sends a datagram. A `from` that nobody has is allowed, as forged sources are on the internet: it comes from
    /// [`NodeId::OUTSIDE`].
    pub fn send(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
    ) {
        self.advance(now);
        self.tap.see(now, Stage::Sent, (from, to), ecn, payload);
        let sender = self
            .by_address
            .get(&from)
            .copied()
            .unwrap_or(NodeId::OUTSIDE);
        let packet = Packet::new(to, payload.len(), ecn);
        self.nodes[sender.index()].stats.sent.count(packet);
        match self.depart(now, sender, from, to) {
            Ok(departure) => {
                let payload = self.flight.buffer(payload);
                self.enter(
                    now,
                    Parcel {
                        from: departure.from,
                        to: departure.to,
                        realm: departure.realm,
                        ecn,
                        link: departure.link,
                        hops_passed: 0,
                        payload,
                    },
                );
            }
            Err(cause) => {
                self.unrouted.count(cause);
                self.tap
                    .see(now, Stage::Lost(cause), (from, to), ecn, payload);
            }
        }
    }

    /// A datagram that has arrived by `now`, in order of arrival; `None` when there is none yet.
    pub fn poll_deliver(&mut self, now: Instant) -> Option<Delivery<'_>> {
        self.advance(now);
        loop {
            let (at, parcel) = self.flight.pop_arrival(now)?;
            let Parcel {
                from: sender,
                to: outer,
                realm,
                ecn,
                payload,
                ..
            } = parcel;
            let old = std::mem::replace(&mut self.delivered, payload);
            self.flight.recycle(old);
            match self.resolve_arrival(at, realm, sender, outer) {
                Ok((node, from, to)) => {
                    let packet = Packet::new(to, self.delivered.len(), ecn);
                    self.nodes[node.index()].stats.received.count(packet);
                    let payload = &self.delivered;
                    self.tap.see(at, Stage::Delivered, (from, to), ecn, payload);
                    return Some(Delivery {
                        at,
                        node,
                        from,
                        to,
                        ecn,
                        payload: &mut self.delivered,
                    });
                }
                Err(cause) => {
                    self.unrouted.count(cause);
                    let payload = &self.delivered;
                    self.tap
                        .see(at, Stage::Lost(cause), (sender, outer), ecn, payload);
                }
            }
        }
    }

    /// Returns the time at which something happens next: nothing can be delivered before, though not everything that happens is a delivery.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.flight.next()
    }

    /// Datagrams under way, with those that have arrived and were not polled.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// The latest `now` given so far.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The node that has an address.
    pub fn node_at(&self, address: SocketAddr) -> Option<NodeId> {
        self.by_address.get(&address).copied()
    }

    /// The addresses of a node, in the order in which they were given to it.
    pub fn addresses(&self, node: NodeId) -> &[SocketAddr] {
        &self.nodes[node.index()].addresses
    }

    /// Returns the counts of a node.
    pub fn stats(&self, node: NodeId) -> &NodeStats {
        &self.nodes[node.index()].stats
    }

    /// Returns the counts of a link; `None` when nothing was ever sent or set there.
    pub fn link_counters(&self, from: NodeId, to: NodeId) -> Option<&Counters> {
        let link = *self.by_pair.get(&(from, to))?;
        Some(self.links[link as usize].conditioner.counters())
    }

    /// The shared pipe, for its counters and its queue.
    pub fn pipe(&self, pipe: PipeId) -> &Conditioner {
        &self.pipes[pipe.index()]
    }

    /// Datagrams that were lost outside of any link or pipe.
    pub fn unrouted(&self) -> &Unrouted {
        &self.unrouted
    }

    /// Lets everything that reaches a hop by `now` enter it, in order of time, so that pipes see their datagrams in
    /// order no matter who sent them.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((at, parcel)) = self.flight.pop_hop(self.now) {
            self.enter(at, parcel);
        }
    }

    /// A parcel enters its next conditioner.
    fn enter(&mut self, at: Instant, mut parcel: Parcel) {
        let link = &mut self.links[parcel.link as usize];
        let packet = Packet::new(parcel.to, parcel.payload.len(), parcel.ecn);
        let conditioner = match parcel.hops_passed {
            0 => &mut link.conditioner,
            // A route that has become shorter leads out where it ends.
            hop => match link.pipes.get(hop as usize - 1) {
                Some(pipe) => &mut self.pipes[pipe.index()],
                None => return self.flight.arrive(at, parcel),
            },
        };
        let fates = conditioner.offer(at, packet);
        if let Some(cause) = fates.lost() {
            let Parcel {
                from,
                to,
                ecn,
                payload,
                ..
            } = parcel;
            self.tap
                .see(at, Stage::Lost(cause), (from, to), ecn, &payload);
            return self.flight.recycle(payload);
        }
        parcel.hops_passed += 1;
        let is_last = parcel.hops_passed as usize > link.pipes.len();
        let mut arrivals = fates.arrivals().peekable();
        while let Some(fate) = arrivals.next() {
            let payload = if arrivals.peek().is_some() {
                self.flight.buffer(&parcel.payload)
            } else {
                std::mem::take(&mut parcel.payload)
            };
            let mut copy = Parcel {
                ecn: fate.ecn,
                payload,
                ..parcel
            };
            let len = fate.damage.apply(&mut copy.payload);
            copy.payload.truncate(len);
            if is_last {
                self.flight.arrive(fate.at, copy);
            } else {
                self.flight.hop(fate.at, copy);
            }
        }
    }
}

/// A datagram that has arrived. Its payload may be overwritten; it lives until the network is used again.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The time of its arrival.
    pub at: Instant,
    /// The node it arrived at.
    pub node: NodeId,
    /// Its source, as the receiver sees it.
    pub from: SocketAddr,
    /// The receiver's own address it arrived at, behind any NAT.
    pub to: SocketAddr,
    /// Its congestion mark.
    pub ecn: Ecn,
    /// Its bytes.
    pub payload: &'a mut [u8],
}

/// A node of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The source of datagrams whose source address nobody has.
    pub const OUTSIDE: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A NAT of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatId(u32);

impl NatId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A shared pipe of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeId(u32);

impl PipeId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
struct Node {
    addresses: Vec<SocketAddr>,
    nat: Option<NatId>,
    /// The way to IPv4 addresses, for a node that has IPv6 alone.
    nat64: Option<NatId>,
    firewall: Option<Guard>,
    stats: NodeStats,
}

#[derive(Debug)]
struct Link {
    conditioner: Conditioner,
    has_own_conditions: bool,
    pipes: Box<[PipeId]>,
}
