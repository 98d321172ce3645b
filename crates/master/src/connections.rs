//! Connections that have not signed in: how many there may be, and which one goes when there are too many.
//!
//! A connection waits until it has sent a whole request: during its TLS handshake, while it sends the request, and between two requests. One that
//! waits costs its owner nothing, so when there is no room, the address with most of them loses the one that waits longest. Who asks for
//! something is done within milliseconds and is never the oldest. A WebSocket is only opened for somebody who signed in, and leaves this table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use rustc_hash::FxHashMap;

/// The connections of one listening socket, each with a handle `H` that closes it.
///
/// Call [`open`](Self::open) for a new one and close what it returns, [`move_to`](Self::move_to) once its client is known, [`handle_request`](Self::handle_request) and
/// [`handle_answer`](Self::handle_answer) in turns, and [`close`](Self::close) at the end.
#[derive(Debug)]
pub(crate) struct Connections<H> {
    connections_max: usize,
    per_network: usize,
    next: u64,
    open: FxHashMap<ConnectionId, Open<H>>,
    networks: BTreeMap<IpAddr, Network>,
    /// Networks by what they would lose, the first to lose last.
    ranks: BTreeSet<Rank>,
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(u64);

#[derive(Debug)]
struct Open<H> {
    network: IpAddr,
    /// Grows with every change, so that the smallest is the oldest.
    since: u64,
    asks: bool,
    handle: H,
}

/// The connections of one address, oldest first.
#[derive(Debug, Default)]
struct Network {
    waiting: BTreeSet<(u64, ConnectionId)>,
    asking: BTreeSet<(u64, ConnectionId)>,
}

/// The number of those that wait, or else of those that ask, then the oldest of them.
type Rank = (usize, usize, Reverse<Option<(u64, ConnectionId)>>, IpAddr);

impl Network {
    fn len(&self) -> usize {
        self.waiting.len() + self.asking.len()
    }

    /// The connection to close first: the oldest that waits, or else the oldest.
    fn oldest(&self) -> Option<(u64, ConnectionId)> {
        self.waiting.first().or(self.asking.first()).copied()
    }

    fn remove(&mut self, since: u64, id: ConnectionId) {
        self.waiting.remove(&(since, id));
        self.asking.remove(&(since, id));
    }

    fn rank(&self, network: IpAddr) -> Rank {
        let asking = match self.waiting.len() {
            0 => self.asking.len(),
            _ => 0,
        };
        (self.waiting.len(), asking, Reverse(self.oldest()), network)
    }
}

impl<H> Connections<H> {
    /// Limits for all connections and for those of one network; 0 for no limit.
    pub(crate) fn new(connections_max: usize, per_network: usize) -> Self {
        let limit = |limit| if limit == 0 { usize::MAX } else { limit };
        Self {
            connections_max: limit(connections_max),
            per_network: limit(per_network),
            next: 0,
            open: FxHashMap::default(),
            networks: BTreeMap::new(),
            ranks: BTreeSet::new(),
        }
    }

    /// A connection was accepted. Returns the handle of the one that goes for it, if there was no room.
    pub(crate) fn open(&mut self, network: IpAddr, handle: H) -> (ConnectionId, Option<H>) {
        let evicted = self.make_room_in(network);
        let (id, other) = match evicted {
            Some(_) => (self.insert(network, handle), None),
            None => self.open_for_many(network, handle),
        };
        (id, evicted.or(other))
    }

    /// A connection was accepted that one network has for many, as a proxy does: the limit of a network does not hold for it.
    pub(crate) fn open_for_many(
        &mut self,
        network: IpAddr,
        handle: H,
    ) -> (ConnectionId, Option<H>) {
        let evicted = match self.open.len() >= self.connections_max {
            true => self.evict(),
            false => None,
        };
        (self.insert(network, handle), evicted)
    }

    /// A connection turned out to be of another network. Returns the handle of the one that goes for it, if that has too many.
    pub(crate) fn move_to(&mut self, id: ConnectionId, network: IpAddr) -> Option<H> {
        let open = self.open.get(&id).filter(|open| open.network != network)?;
        let (from, since, asks) = (open.network, open.since, open.asks);
        let evicted = self.make_room_in(network);
        let open = self.open.get_mut(&id)?;
        open.network = network;
        self.change(from, |own| own.remove(since, id));
        self.change(network, |own| {
            match asks {
                true => own.asking.insert((since, id)),
                false => own.waiting.insert((since, id)),
            };
        });
        evicted
    }

    /// Closes the oldest connection of a network that has as many as it may.
    fn make_room_in(&mut self, network: IpAddr) -> Option<H> {
        let own = self.networks.get(&network);
        let own = own.filter(|own| own.len() >= self.per_network)?;
        let (_, oldest) = own.oldest()?;
        self.close(oldest)
    }

    fn insert(&mut self, network: IpAddr, handle: H) -> ConnectionId {
        let id = ConnectionId(self.next);
        let since = self.stamp();
        let open = Open {
            network,
            since,
            asks: false,
            handle,
        };
        self.open.insert(id, open);
        self.change(network, |own| {
            own.waiting.insert((since, id));
        });
        id
    }

    /// Closes the oldest waiting connection of the busiest network, because something that every connection needs has run out.
    pub(crate) fn evict(&mut self) -> Option<H> {
        let (.., Reverse(oldest), _) = self.ranks.last()?;
        let (_, id) = (*oldest)?;
        self.close(id)
    }

    /// A whole request has arrived.
    pub(crate) fn handle_request(&mut self, id: ConnectionId) {
        self.set(id, true);
    }

    /// It is answered; the connection waits for the next one.
    pub(crate) fn handle_answer(&mut self, id: ConnectionId) {
        self.set(id, false);
    }

    /// The connection is gone, or belongs to somebody who signed in.
    pub(crate) fn close(&mut self, id: ConnectionId) -> Option<H> {
        let open = self.open.remove(&id)?;
        self.change(open.network, |own| own.remove(open.since, id));
        Some(open.handle)
    }

    fn set(&mut self, id: ConnectionId, asks: bool) {
        let since = self.stamp();
        let Some(open) = self.open.get_mut(&id).filter(|open| open.asks != asks) else {
            return;
        };
        let before = std::mem::replace(&mut open.since, since);
        open.asks = asks;
        let network = open.network;
        self.change(network, |own| {
            let (from, to) = match asks {
                true => (&mut own.waiting, &mut own.asking),
                false => (&mut own.asking, &mut own.waiting),
            };
            from.remove(&(before, id));
            to.insert((since, id));
        });
    }

    fn stamp(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Changes a network and its rank.
    fn change(&mut self, network: IpAddr, change: impl FnOnce(&mut Network)) {
        let own = self.networks.entry(network).or_default();
        self.ranks.remove(&own.rank(network));
        change(own);
        if own.len() == 0 {
            self.networks.remove(&network);
        } else {
            self.ranks.insert(own.rank(network));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn the_busiest_address_loses_its_oldest_connection_that_waits() {
        let mut connections = Connections::new(4, 0);
        let (asks, _) = connections.open(network(1), "asks");
        connections.open(network(2), "oldest of all");
        connections.open(network(1), "oldest of the busiest");
        connections.open(network(1), "youngest of the busiest");
        connections.handle_request(asks);
        let (_, evicted) = connections.open(network(3), "new");
        assert_eq!(evicted, Some("oldest of the busiest"));
        // Now all have one that waits: the oldest goes.
        let (_, evicted) = connections.open(network(3), "newer");
        assert_eq!(evicted, Some("oldest of all"));
        assert_eq!(connections.open.len(), 4);
        // Answered, it is younger than the others.
        connections.handle_answer(asks);
        let (_, evicted) = connections.open(network(4), "newest");
        assert_eq!(evicted, Some("youngest of the busiest"));
    }

    #[test]
    fn an_address_has_its_own_limit() {
        let mut connections = Connections::new(100, 2);
        let (first, evicted) = connections.open(network(1), 1);
        assert_eq!(evicted, None);
        connections.open(network(1), 2);
        connections.open(network(2), 3);
        connections.handle_request(first);
        assert_eq!(connections.open(network(1), 4).1, Some(2));
        assert_eq!(connections.open.len(), 3);
    }

    #[test]
    fn a_proxy_has_room_for_many_and_each_client_its_own_limit() {
        let mut connections = Connections::new(100, 2);
        let ids: Vec<_> = (0..6)
            .map(|n| connections.open_for_many(network(9), n))
            .collect();
        assert!(ids.iter().all(|(_, evicted)| evicted.is_none()));
        let moved: Vec<_> = ids
            .iter()
            .map(|(id, _)| connections.move_to(*id, network(1)))
            .collect();
        assert_eq!(moved[..3], [None, None, Some(0)], "the oldest goes");
        assert_eq!(connections.open.len(), 2);
        // Who has asked for something meanwhile does so for its client.
        let (last, _) = ids[5];
        connections.handle_request(last);
        assert_eq!(connections.open(network(1), 7).1, Some(4));
        assert_eq!(connections.move_to(last, network(1)), None);
        assert_eq!(
            connections.move_to(ids[0].0, network(2)),
            None,
            "it is gone"
        );
    }

    #[test]
    fn there_is_room_even_if_everybody_asks() {
        let mut connections = Connections::new(2, 0);
        for n in 1..=2 {
            let (id, _) = connections.open(network(n), n);
            connections.handle_request(id);
        }
        assert_eq!(connections.open(network(3), 3).1, Some(1));
        assert_eq!(connections.evict(), Some(3));
    }

    #[test]
    fn what_is_closed_leaves_nothing_behind() {
        let mut connections = Connections::new(0, 0);
        let ids: Vec<_> = (0..1_000_u16)
            .map(|n| connections.open(network((n % 250) as u8), n).0)
            .collect();
        for id in ids {
            connections.handle_request(id);
            connections.handle_answer(id);
            assert!(connections.close(id).is_some());
            assert_eq!(connections.close(id), None);
            connections.handle_request(id);
        }
        assert_eq!((connections.open.len(), connections.evict()), (0, None));
        assert!(connections.networks.is_empty() && connections.ranks.is_empty());
    }
}
