//! The orderer's numbers for connections.

use std::collections::BTreeMap;

use muse_lockstep::{LinkId, Orderer, Recovery};
use muse_transport::ConnectionId;
use muse_wire::Instant;

/// An orderer and the connections of its players.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) orderer: Orderer,
    /// While the match is put together again, before the orderer goes on.
    pub(super) recovery: Option<Recovery>,
    numbers: BTreeMap<ConnectionId, LinkId>,
    /// By link: its connection.
    connections: Vec<Option<ConnectionId>>,
}

impl Links {
    pub(super) fn new(orderer: Orderer) -> Self {
        Self {
            orderer,
            recovery: None,
            numbers: BTreeMap::new(),
            // The first number is that of the host's own session, which has no connection.
            connections: vec![None],
        }
    }

    pub(super) fn connection(&self, link: LinkId) -> Option<ConnectionId> {
        self.connections.get(link.0).copied().flatten()
    }

    pub(super) fn link(&self, connection: ConnectionId) -> Option<LinkId> {
        self.numbers.get(&connection).copied()
    }

    /// Gives a new connection the lowest free number.
    pub(super) fn connect(&mut self, connection: ConnectionId, account: u64) {
        let numbers = OWN_LINK.0 + 1..LINKS_MAX;
        let unused = |number: &usize| self.connections.get(*number).is_none_or(Option::is_none);
        // Without a number its packets are dropped, as those of somebody who never says hello.
        let Some(number) = numbers.into_iter().find(unused) else {
            return;
        };
        if self.connections.len() <= number {
            self.connections.resize(number + 1, None);
        }
        self.connections[number] = Some(connection);
        self.numbers.insert(connection, LinkId(number));
        self.orderer.set_account(LinkId(number), account);
    }

    /// A connection has ended, and with it the player's stay.
    pub(super) fn disconnect(&mut self, now: Instant, connection: ConnectionId) {
        if let Some(link) = self.numbers.remove(&connection) {
            self.connections[link.0] = None;
            if let Some(recovery) = &mut self.recovery {
                return recovery.disconnect(link);
            }
            self.orderer.disconnect(now, link);
        }
    }
}

/// The link between a host's own session and its orderer.
pub(super) const OWN_LINK: LinkId = LinkId(0);
/// Connections that have a number at once.
const LINKS_MAX: usize = 1_024;
