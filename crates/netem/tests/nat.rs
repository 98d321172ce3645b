//! The mappings and filters of each kind of NAT, time-outs and rebinding.

use std::net::SocketAddr;

use muse_netem::{Conditions, NatId, NatKind, Network};
use muse_wire::{Duration, Ecn, Instant};

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 9_000);
const SERVER_OTHER_PORT: ([u8; 4], u16) = ([192, 0, 2, 1], 9_001);
const STRANGER: ([u8; 4], u16) = ([192, 0, 2, 7], 7);
const INSIDE: ([u8; 4], u16) = ([10, 0, 0, 2], 5_000);
const TIMEOUT: Duration = Duration::from_secs(30);

/// After the inside has sent to the server's first port only, each kind of NAT lets in exactly those it should.
#[test]
fn each_kind_lets_in_whom_it_should() {
    for (kind, other_port_gets_in, stranger_gets_in) in [
        (NatKind::FullCone, true, true),
        (NatKind::AddressRestricted, true, false),
        (NatKind::PortRestricted, false, false),
        (NatKind::Symmetric, false, false),
    ] {
        let mut world = World::new(kind);
        let outside = world.send(0, INSIDE, SERVER).expect("out it goes").0;
        assert_eq!(outside.ip(), world.external_ip(), "{kind:?}");
        let back =
            |world: &mut World, from| world.deliver(0, addr(from), outside).map(|(_, to)| to);
        assert_eq!(back(&mut world, SERVER), Some(addr(INSIDE)), "{kind:?}");
        assert_eq!(
            back(&mut world, SERVER_OTHER_PORT).is_some(),
            other_port_gets_in,
            "{kind:?}"
        );
        assert_eq!(
            back(&mut world, STRANGER).is_some(),
            stranger_gets_in,
            "{kind:?}"
        );
        let filtered = u64::from(!other_port_gets_in) + u64::from(!stranger_gets_in);
        assert_eq!(world.network.unrouted().filtered, filtered, "{kind:?}");
    }
}

#[test]
fn only_a_symmetric_nat_uses_a_port_per_destination() {
    for kind in [
        NatKind::FullCone,
        NatKind::AddressRestricted,
        NatKind::PortRestricted,
        NatKind::Symmetric,
    ] {
        let mut world = World::new(kind);
        let first = world.send(0, INSIDE, SERVER).expect("out it goes").0;
        let again = world.send(1, INSIDE, SERVER).expect("out it goes").0;
        let other = world.send(2, INSIDE, STRANGER).expect("out it goes").0;
        assert_eq!(first, again, "{kind:?}");
        assert_eq!(first != other, kind == NatKind::Symmetric, "{kind:?}");
    }
}

#[test]
fn port_restricted_nats_are_punched_through_by_sending_both_ways() {
    let mut world = World::new(NatKind::PortRestricted);
    let other_nat =
        world
            .network
            .add_nat(NatKind::PortRestricted, [203, 0, 113, 2].into(), TIMEOUT);
    let other_inside = ([10, 0, 1, 2], 6_000);
    world.network.add_node_behind(other_nat, addr(other_inside));
    // Both learn their outside address from the server, then send to each other.
    let a = world.send(0, INSIDE, SERVER).expect("out it goes").0;
    let b = world.send(0, other_inside, SERVER).expect("out it goes").0;
    assert_eq!(
        world.deliver(1, addr(INSIDE), b),
        None,
        "b has not sent to a yet"
    );
    assert_eq!(
        world.deliver(2, addr(other_inside), a),
        Some((b, addr(INSIDE)))
    );
    assert_eq!(
        world.deliver(3, addr(INSIDE), b),
        Some((a, addr(other_inside)))
    );
}

#[test]
fn a_mapping_ends_after_its_timeout_and_only_sending_keeps_it() {
    let mut world = World::new(NatKind::FullCone);
    let outside = world.send(0, INSIDE, SERVER).expect("out it goes").0;
    for second in [10, 20, 29] {
        assert!(
            world.deliver(second, addr(SERVER), outside).is_some(),
            "at {second} s"
        );
    }
    assert!(
        world.deliver(30, addr(SERVER), outside).is_none(),
        "what comes in does not keep it"
    );
    let renewed = world.send(40, INSIDE, SERVER).expect("out it goes").0;
    assert_ne!(renewed, outside);
    for second in [60, 80, 100] {
        assert_eq!(
            world.send(second, INSIDE, SERVER).expect("out it goes").0,
            renewed
        );
    }
    assert!(
        world.deliver(120, addr(SERVER), renewed).is_some(),
        "what goes out does"
    );
}

#[test]
fn rebinding_closes_the_old_port_and_opens_a_new_one() {
    let mut world = World::new(NatKind::FullCone);
    let old = world.send(0, INSIDE, SERVER).expect("out it goes").0;
    world.network.rebind(world.nat);
    assert_eq!(world.deliver(1, addr(SERVER), old), None);
    let new = world.send(2, INSIDE, SERVER).expect("out it goes").0;
    assert_eq!(new.ip(), old.ip());
    assert_ne!(new, old);
    assert!(world.deliver(3, addr(SERVER), new).is_some());

    world.network.rebind_to(world.nat, [203, 0, 113, 99].into());
    let moved = world.send(4, INSIDE, SERVER).expect("out it goes").0;
    assert_eq!(moved.ip(), std::net::IpAddr::from([203, 0, 113, 99]));
    assert_eq!(world.deliver(5, addr(SERVER), new), None);
    assert!(world.deliver(6, addr(SERVER), moved).is_some());
}

#[test]
fn a_datagram_under_way_while_the_nat_rebinds_is_lost() {
    let mut world = World::new(NatKind::FullCone);
    let outside = world.send(0, INSIDE, SERVER).expect("out it goes").0;
    world
        .network
        .set_default(Conditions::default().delay(Duration::from_millis(50)));
    let now = Instant::from_secs(1);
    world
        .network
        .send(now, addr(SERVER), outside, Ecn::NotCapable, b"late");
    world.network.rebind(world.nat);
    assert!(
        world
            .network
            .poll_deliver(now + Duration::from_secs(1))
            .is_none()
    );
    assert_eq!(world.network.unrouted().filtered, 1);
}

#[test]
fn private_addresses_reach_from_behind_the_same_nat_only() {
    let mut world = World::new(NatKind::Symmetric);
    let neighbour = ([10, 0, 0, 3], 5_000);
    world.network.add_node_behind(world.nat, addr(neighbour));
    assert_eq!(
        world.send(0, neighbour, INSIDE),
        Some((addr(neighbour), addr(INSIDE))),
        "untranslated"
    );
    assert_eq!(world.send(0, SERVER, INSIDE), None);
    assert_eq!(world.network.unrouted().no_such_address, 1);
}

#[test]
fn neighbours_reach_each_other_by_the_external_address_too() {
    let mut world = World::new(NatKind::FullCone);
    let neighbour = ([10, 0, 0, 3], 5_000);
    world.network.add_node_behind(world.nat, addr(neighbour));
    let outside = world.send(0, INSIDE, SERVER).expect("out it goes").0;
    let (from, to) = world
        .deliver(1, addr(neighbour), outside)
        .expect("the NAT turns it around");
    assert_eq!((from.ip(), to), (world.external_ip(), addr(INSIDE)));
}

struct World {
    network: Network,
    nat: NatId,
}

impl World {
    fn new(kind: NatKind) -> Self {
        let mut network = Network::new(5);
        let nat = network.add_nat(kind, [203, 0, 113, 1].into(), TIMEOUT);
        let server = network.add_node(addr(SERVER));
        network.add_address(server, addr(SERVER_OTHER_PORT));
        network.add_node(addr(STRANGER));
        network.add_node_behind(nat, addr(INSIDE));
        Self { network, nat }
    }

    fn external_ip(&self) -> std::net::IpAddr {
        [203, 0, 113, 1].into()
    }

    /// Sends at this second, and says which source and destination the receiver saw.
    fn send(
        &mut self,
        second: u64,
        from: ([u8; 4], u16),
        to: ([u8; 4], u16),
    ) -> Option<(SocketAddr, SocketAddr)> {
        self.deliver(second, addr(from), addr(to))
    }

    fn deliver(
        &mut self,
        second: u64,
        from: SocketAddr,
        to: SocketAddr,
    ) -> Option<(SocketAddr, SocketAddr)> {
        let now = Instant::from_secs(second);
        self.network.send(now, from, to, Ecn::NotCapable, b"x");
        self.network
            .poll_deliver(now)
            .map(|delivery| (delivery.from, delivery.to))
    }
}

fn addr(address: ([u8; 4], u16)) -> SocketAddr {
    address.into()
}
