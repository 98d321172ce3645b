//! The parts of a network, and how they change: nodes, NATs, links, pipes, partitions.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use muse_wire::Duration;

use super::firewall::{Firewall, Guard};
use super::nat::Nat;
use super::{Link, NatId, NatKind, Network, Node, NodeId, PipeId};
use crate::math::mix;
use crate::{Conditioner, Conditions};

impl Network {
    /// Adds a node with a public address.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn add_node(&mut self, address: SocketAddr) -> NodeId {
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::default());
        self.add_address(node, address);
        node
    }

    /// Adds a node behind a NAT. Its address is seen by its neighbours behind the same NAT alone, but must still be
    /// different from all others of this network.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn add_node_behind(&mut self, nat: NatId, address: SocketAddr) -> NodeId {
        let node = self.add_node(address);
        self.nodes[node.index()].nat = Some(nat);
        node
    }

    /// Gives a node a further address.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn add_address(&mut self, node: NodeId, address: SocketAddr) {
        let taken = self.by_address.insert(address, node).is_some()
            || self.by_external.contains_key(&address.ip());
        assert!(!taken, "the address {address} is taken");
        self.nodes[node.index()].addresses.push(address);
    }

    /// Adds a NAT with this external IP address. A mapping ends `timeout` after the last datagram out through it; home
    /// routers take 30 s to 5 min.
    ///
    /// # Panics
    /// When the external address is taken by another NAT.
    pub fn add_nat(&mut self, kind: NatKind, external: IpAddr, timeout: Duration) -> NatId {
        let nat = NatId(self.nats.len() as u32);
        let taken = self.by_external.insert(external, nat).is_some();
        assert!(!taken, "the external address {external} is taken");
        self.nats.push(Nat::new(
            kind,
            external,
            timeout,
            mix(self.seed ^ NAT_SALT, u64::from(nat.0)),
        ));
        nat
    }

    /// Adds a NAT behind another one, that of a provider: its external address is seen behind that one alone, but must still be different from all
    /// others of this network.
    ///
    /// # Panics
    /// When the external address is taken by another NAT.
    pub fn add_nat_behind(
        &mut self,
        provider: NatId,
        kind: NatKind,
        external: IpAddr,
        timeout: Duration,
    ) -> NatId {
        let nat = self.add_nat(kind, external, timeout);
        self.nats[nat.index()].behind = Some(provider);
        nat
    }

    /// Sets whether those behind a NAT reach each other by their external addresses, within what its kind lets in. Default true.
    pub fn set_hairpinning(&mut self, nat: NatId, on: bool) {
        self.nats[nat.index()].hairpins = on;
    }

    /// Adds a NAT64: nodes with IPv6 alone reach IPv4 addresses through it, as `prefix` with the IPv4 address in its last four bytes. Its external address
    /// is an IPv4 one.
    ///
    /// # Panics
    /// When the external address is taken by another NAT.
    pub fn add_nat64(
        &mut self,
        kind: NatKind,
        prefix: Ipv6Addr,
        external: IpAddr,
        timeout: Duration,
    ) -> NatId {
        let nat = self.add_nat(kind, external, timeout);
        self.nats[nat.index()].prefix = Some(prefix);
        nat
    }

    /// Adds a node that has a public IPv6 address and none of IPv4, and reaches IPv4 addresses through a NAT64.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn add_ipv6_node(&mut self, nat64: NatId, address: SocketAddr) -> NodeId {
        let node = self.add_node(address);
        self.nodes[node.index()].nat64 = Some(nat64);
        node
    }

    /// Puts a firewall in front of a node, in place of the one that it had.
    pub fn set_firewall(&mut self, node: NodeId, rules: Firewall) {
        self.nodes[node.index()].firewall = Some(Guard::new(rules));
    }

    /// Takes the firewall in front of a node away.
    pub fn remove_firewall(&mut self, node: NodeId) {
        self.nodes[node.index()].firewall = None;
    }

    /// The firewall in front of a node, if there is one, forgets whom the node has sent to.
    pub fn reset_firewall(&mut self, node: NodeId) {
        if let Some(guard) = &mut self.nodes[node.index()].firewall {
            guard.forget();
        }
    }

    /// The NAT forgets all its mappings, as a router that restarts: its nodes get new external ports when they send
    /// next, and nothing from outside reaches them before.
    pub fn rebind(&mut self, nat: NatId) {
        self.nats[nat.index()].forget();
    }

    /// As [`rebind`](Self::rebind), with a new external IP address as well.
    ///
    /// # Panics
    /// When the external address is taken by another NAT.
    pub fn rebind_to(&mut self, nat: NatId, external: IpAddr) {
        let old = self.nats[nat.index()].external;
        self.by_external.remove(&old);
        let taken = self.by_external.insert(external, nat).is_some();
        assert!(!taken, "the external address {external} is taken");
        self.nats[nat.index()].external = external;
        self.rebind(nat);
    }

    /// A node changes one of its addresses, as a phone that goes from Wi-Fi to mobile. What is under way to the old one
    /// is lost.
    ///
    /// # Panics
    /// When nobody has `old`, or somebody has `new`.
    pub fn readdress(&mut self, old: SocketAddr, new: SocketAddr) {
        let node = self.by_address.remove(&old);
        let node = node.expect("readdress: a node has the old address");
        let taken =
            self.by_address.insert(new, node).is_some() || self.by_external.contains_key(&new.ip());
        assert!(!taken, "the address {new} is taken");
        for address in &mut self.nodes[node.index()].addresses {
            if *address == old {
                *address = new;
            }
        }
    }

    /// Conditions of all links that have none of their own, from now on. Default: perfect.
    pub fn set_default(&mut self, conditions: Conditions) {
        self.conditions = Arc::new(conditions);
        for link in self
            .links
            .iter_mut()
            .filter(|link| !link.has_own_conditions)
        {
            link.conditioner
                .set_conditions(self.now, Arc::clone(&self.conditions));
        }
    }

    /// Conditions of one direction between two nodes, from now on.
    pub fn set_link(&mut self, from: NodeId, to: NodeId, conditions: Conditions) {
        let link = self.link(from, to);
        let link = &mut self.links[link as usize];
        link.has_own_conditions = true;
        link.conditioner.set_conditions(self.now, conditions);
    }

    /// The same conditions for both directions between two nodes, from now on.
    pub fn set_links(&mut self, a: NodeId, b: NodeId, conditions: Conditions) {
        self.set_link(a, b, conditions.clone());
        self.set_link(b, a, conditions);
    }

    /// Adds a pipe that several links may share: a bottleneck.
    pub fn add_pipe(&mut self, conditions: Conditions) -> PipeId {
        let pipe = PipeId(self.pipes.len() as u32);
        self.pipes.push(Conditioner::new(
            conditions,
            mix(self.seed ^ PIPE_SALT, u64::from(pipe.0)),
        ));
        pipe
    }

    /// Changes the conditions of a pipe, from now on.
    pub fn set_pipe(&mut self, pipe: PipeId, conditions: Conditions) {
        self.pipes[pipe.index()].set_conditions(self.now, conditions);
    }

    /// Leads one direction between two nodes through these pipes, after its own link, from the next datagram on.
    pub fn route(&mut self, from: NodeId, to: NodeId, pipes: &[PipeId]) {
        let link = self.link(from, to);
        self.links[link as usize].pipes = pipes.into();
    }

    /// Cuts two nodes off from each other: what they send each other from now on is lost.
    pub fn partition(&mut self, a: NodeId, b: NodeId) {
        self.cuts.extend([(a, b), (b, a)]);
    }

    /// Cuts one direction only.
    pub fn partition_one_way(&mut self, from: NodeId, to: NodeId) {
        self.cuts.insert((from, to));
    }

    /// Ends a partition between two nodes, both directions.
    pub fn heal(&mut self, a: NodeId, b: NodeId) {
        self.cuts.remove(&(a, b));
        self.cuts.remove(&(b, a));
    }

    /// Ends all partitions.
    pub fn heal_all(&mut self) {
        self.cuts.clear();
    }

    /// The link between two nodes, made on first use. Its seed depends on the pair alone, not on the order of use.
    pub(super) fn link(&mut self, from: NodeId, to: NodeId) -> u32 {
        if let Some(&link) = self.by_pair.get(&(from, to)) {
            return link;
        }
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        let link = u32::try_from(self.links.len()).expect("fewer than 2^32 links");
        self.links.push(Link {
            conditioner: Conditioner::new(Arc::clone(&self.conditions), mix(self.seed, pair)),
            has_own_conditions: false,
            pipes: Box::default(),
        });
        self.by_pair.insert((from, to), link);
        link
    }
}

/// Keep the seeds of NATs and pipes apart from those of links.
const NAT_SALT: u64 = 0x4E41_5400_0000_0000;
const PIPE_SALT: u64 = 0x5049_5045_0000_0000;
