//! Routers beyond one ordinary NAT: ports that count up, a provider's NAT in front of the home's, firewalls, and IPv6 alone behind a NAT64.

use std::net::{Ipv6Addr, SocketAddr};

use muse_netem::{Firewall, NatId, NatKind, Network};
use muse_wire::{Duration, Ecn, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, 0, 0);

#[test]
fn counted_ports_go_up_by_one_for_each_destination() {
    let (mut world, [near, far]) = World::new();
    let nat = world.nat(NatKind::SymmetricCounted, 1);
    let inside = world.inside(nat, 1);
    let to_near = world.seen(inside, near).port();
    assert_eq!(world.seen(inside, far).port(), to_near + 1);
    assert_eq!(
        world.seen(inside, near).port(),
        to_near,
        "the same as before"
    );
    let neighbour = world.inside(nat, 2);
    let of_neighbour = world.seen(neighbour, near).port();
    assert_eq!(of_neighbour, to_near + 2, "one counter for all");
    let outside = SocketAddr::from(([203, 0, 113, 1], to_near));
    assert_eq!(world.send(near, outside), Some((near, inside)));
    assert_eq!(world.send(far, outside), None);
}

#[test]
fn behind_a_provider_both_routers_translate_and_both_filter() {
    let (mut world, [near, far]) = World::new();
    let provider = world.nat(NatKind::PortRestricted, 1);
    let home = world.home(provider, 1, NatKind::FullCone);
    let inside = world.inside(home, 1);
    let seen = world.seen(inside, near);
    assert_eq!(seen.ip(), SocketAddr::from(([203, 0, 113, 1], 0)).ip());
    assert_eq!(world.seen(inside, far), seen, "one port for everybody");
    assert_eq!(world.send(near, seen), Some((near, inside)));
    world.network.rebind(provider);
    assert_eq!(world.send(near, seen), None);
    // The home's router translates to an address that nobody outside of the provider's network reaches.
    let at_home = SocketAddr::from(([100, 64, 0, 1], seen.port()));
    assert_eq!(world.send(near, at_home), None);
    assert!(world.network.unrouted().no_such_address > 0);
}

#[test]
fn customers_of_one_provider_meet_at_its_address_if_it_hairpins() {
    for hairpins in [true, false] {
        let (mut world, [relay, _]) = World::new();
        let provider = world.nat(NatKind::FullCone, 1);
        world.network.set_hairpinning(provider, hairpins);
        let homes = [1, 2].map(|number| world.home(provider, number, NatKind::FullCone));
        let [a, b] = homes.map(|home| world.inside(home, 1));
        let (a_seen, b_seen) = (world.seen(a, relay), world.seen(b, relay));
        let arrived = world.send(a, b_seen);
        assert_eq!(arrived, hairpins.then_some((a_seen, b)));
    }
}

#[test]
fn inside_of_a_provider_s_network_routers_reach_each_other_untranslated_by_it() {
    let (mut world, _) = World::new();
    let provider = world.nat(NatKind::PortRestricted, 1);
    let homes = [1, 2].map(|number| world.home(provider, number, NatKind::FullCone));
    let [a, b] = homes.map(|home| world.inside(home, 1));
    // Opens b's port at its home's router; nobody is at the address.
    world.send(b, SocketAddr::from(([100, 64, 0, 9], 9)));
    let found = (1_024..=u16::MAX).find_map(|port| world.send(a, ([100, 64, 0, 2], port).into()));
    let (from, to) = found.expect("one port leads to b");
    assert_eq!(
        (from.ip(), to),
        (SocketAddr::from(([100, 64, 0, 1], 0)).ip(), b)
    );
}

#[test]
fn a_firewall_lets_answers_in_for_a_while_and_translates_nothing() {
    let (mut world, [near, far]) = World::new();
    let own = SocketAddr::from(([198, 51, 100, 7], 7));
    let node = world.network.add_node(own);
    let rules = Firewall::OutOnly(TIMEOUT);
    world.network.set_firewall(node, rules);
    assert_eq!(world.send(near, own), None);
    assert_eq!(world.send(own, near), Some((own, near)));
    assert_eq!(world.send(near, own), Some((near, own)));
    assert_eq!(world.send(far, own), None);
    world.network.reset_firewall(node);
    assert_eq!(world.send(near, own), None);
    world.send(own, near);
    world.now += TIMEOUT;
    assert_eq!(world.send(near, own), None);
    assert_eq!(world.network.unrouted().filtered, 4);
    world.network.set_firewall(node, Firewall::Blocked);
    assert_eq!(world.send(own, near), None);
    world.network.remove_firewall(node);
    assert_eq!(world.send(near, own), Some((near, own)));
}

#[test]
fn ipv6_alone_reaches_ipv4_by_the_prefix_and_ipv6_as_it_is() {
    let (mut world, [near, _]) = World::new();
    let nat64 = world.nat64(1);
    let own: SocketAddr = "[2001:db8:64::2]:6".parse().expect("an address");
    world.network.add_ipv6_node(nat64, own);
    let near_inside = SocketAddr::from((PREFIX, near.port()));
    assert_eq!(world.send(own, near_inside), None, "no IPv4 address in it");
    let near_inside: SocketAddr = "[64:ff9b::192.0.2.1]:9000".parse().expect("an address");
    let seen = world.seen_as(own, near_inside, near);
    assert_eq!(seen.ip(), SocketAddr::from(([203, 0, 113, 1], 0)).ip());
    assert_eq!(world.send(near, seen), Some((near_inside, own)));
    assert_eq!(world.send(own, near), None, "no IPv4 at all");

    let other: SocketAddr = "[2001:db8:65::2]:6".parse().expect("an address");
    world.network.add_node(other);
    assert_eq!(world.send(own, other), Some((own, other)));
    assert_eq!(world.send(other, own), Some((other, own)));
}

struct World {
    network: Network,
    now: Instant,
    /// Nodes behind NATs so far.
    made: u8,
}

impl World {
    /// A network with two servers.
    fn new() -> (Self, [SocketAddr; 2]) {
        let mut network = Network::new(5);
        let servers = [1, 2].map(|number| SocketAddr::from(([192, 0, 2, number], 9_000)));
        for server in servers {
            network.add_node(server);
        }
        let now = Instant::from_secs(1);
        let made = 0;
        (Self { network, now, made }, servers)
    }

    fn nat(&mut self, kind: NatKind, number: u8) -> NatId {
        let external = [203, 0, 113, number].into();
        self.network.add_nat(kind, external, TIMEOUT)
    }

    fn nat64(&mut self, number: u8) -> NatId {
        let external = [203, 0, 113, number].into();
        let kind = NatKind::AddressRestricted;
        self.network.add_nat64(kind, PREFIX, external, TIMEOUT)
    }

    fn home(&mut self, provider: NatId, number: u8, kind: NatKind) -> NatId {
        let external = [100, 64, 0, number].into();
        self.network
            .add_nat_behind(provider, kind, external, TIMEOUT)
    }

    fn inside(&mut self, nat: NatId, number: u8) -> SocketAddr {
        self.made += 1;
        let address = SocketAddr::from(([10, 0, self.made, number], 5_000));
        self.network.add_node_behind(nat, address);
        address
    }

    /// The source that a server sees.
    fn seen(&mut self, from: SocketAddr, server: SocketAddr) -> SocketAddr {
        self.seen_as(from, server, server)
    }

    fn seen_as(&mut self, from: SocketAddr, to: SocketAddr, server: SocketAddr) -> SocketAddr {
        let (seen, at) = self.send(from, to).expect("it reaches the server");
        assert_eq!(at, server);
        seen
    }

    /// Sends, and says which source and destination the receiver sees.
    fn send(&mut self, from: SocketAddr, to: SocketAddr) -> Option<(SocketAddr, SocketAddr)> {
        self.network.send(self.now, from, to, Ecn::NotCapable, b"x");
        let delivery = self.network.poll_deliver(self.now)?;
        Some((delivery.from, delivery.to))
    }
}
