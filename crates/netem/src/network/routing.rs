//! The way of a datagram up through the sender's NATs and down through the receiver's.
//!
//! Behind each NAT there is a *realm* of addresses of its own, and outside of all of them the internet. A datagram climbs from its sender's
//! realm until it is in the one that its destination belongs to, and descends from there.

use std::net::SocketAddr;

use muse_wire::Instant;

use super::{NatId, Network, NodeId};
use crate::Cause;

/// A datagram on the link to its receiver.
pub(super) struct Departure {
    /// Its source in the realm where it found its destination.
    pub(super) from: SocketAddr,
    /// Its destination there.
    pub(super) to: SocketAddr,
    /// That realm: `None` is the internet.
    pub(super) realm: Option<NatId>,
    pub(super) link: u32,
}

impl Network {
    /// Translates the source, and finds the receiver and the link to it.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        sender: NodeId,
        mut from: SocketAddr,
        mut to: SocketAddr,
    ) -> Result<Departure, Cause> {
        let node = &mut self.nodes[sender.index()];
        let guard = node.firewall.as_mut();
        if guard.is_some_and(|guard| !guard.outbound(now, from, to)) {
            return Err(Cause::Filtered);
        }
        let (mut realm, mut last) = (node.nat, None);
        if let Some(nat64) = node.nat64 {
            let nat = &mut self.nats[nat64.index()];
            if let Some(embedded) = nat.embedded(to) {
                from = nat.outbound(now, from, embedded).ok_or(Cause::Filtered)?;
                (to, realm, last) = (embedded, nat.behind, Some(nat64));
            } else if to.is_ipv4() {
                return Err(Cause::NoSuchAddress);
            }
        }
        let receiver = loop {
            if let Some(receiver) = self.receiver_in(now, realm, to, last) {
                break receiver?;
            }
            let climbed = realm.ok_or(Cause::NoSuchAddress)?;
            let nat = &mut self.nats[climbed.index()];
            from = nat.outbound(now, from, to).ok_or(Cause::Filtered)?;
            (realm, last) = (nat.behind, Some(climbed));
        };
        if self.cuts.contains(&(sender, receiver)) {
            return Err(Cause::Partition);
        }
        let link = self.link(sender, receiver);
        Ok(Departure {
            from,
            to,
            realm,
            link,
        })
    }

    /// The node that an address of a realm stands for at the moment; `None` if nobody there has it. `last` is the NAT that the datagram
    /// came out of.
    fn receiver_in(
        &self,
        now: Instant,
        realm: Option<NatId>,
        to: SocketAddr,
        last: Option<NatId>,
    ) -> Option<Result<NodeId, Cause>> {
        if let Some(node) = self.node_in(realm, to) {
            return Some(Ok(node));
        }
        let id = self.nat_in(realm, to)?;
        let nat = &self.nats[id.index()];
        let turns_around = last == Some(id) && !nat.hairpins;
        let inside = nat.inside_of(now, to.port()).filter(|_| !turns_around);
        let Some(inside) = inside else {
            return Some(Err(Cause::Filtered));
        };
        let found = self.receiver_in(now, self.inner_realm(id), inside, None);
        Some(found.unwrap_or(Err(Cause::NoSuchAddress)))
    }

    /// Finds the node that gets a datagram that has arrived, and source and destination as it sees them.
    pub(super) fn resolve_arrival(
        &self,
        at: Instant,
        realm: Option<NatId>,
        from: SocketAddr,
        to: SocketAddr,
    ) -> Result<(NodeId, SocketAddr, SocketAddr), Cause> {
        if let Some(node) = self.node_in(realm, to) {
            let guard = self.nodes[node.index()].firewall.as_ref();
            return match guard.is_none_or(|guard| guard.inbound(at, from, to)) {
                true => Ok((node, from, to)),
                false => Err(Cause::Filtered),
            };
        }
        let id = self.nat_in(realm, to).ok_or(Cause::NoSuchAddress)?;
        let nat = &self.nats[id.index()];
        let inside = nat.inbound(at, to.port(), from).ok_or(Cause::Filtered)?;
        self.resolve_arrival(at, self.inner_realm(id), nat.source_inside(from), inside)
    }

    fn node_in(&self, realm: Option<NatId>, address: SocketAddr) -> Option<NodeId> {
        let node = *self.by_address.get(&address)?;
        (self.nodes[node.index()].nat == realm).then_some(node)
    }

    fn nat_in(&self, realm: Option<NatId>, address: SocketAddr) -> Option<NatId> {
        let nat = *self.by_external.get(&address.ip())?;
        (self.nats[nat.index()].behind == realm).then_some(nat)
    }

    /// The realm inside of a NAT. Nodes with IPv6 alone are on the internet.
    fn inner_realm(&self, nat: NatId) -> Option<NatId> {
        self.nats[nat.index()].prefix.is_none().then_some(nat)
    }
}
