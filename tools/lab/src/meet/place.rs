//! Networks of a host and a guest, built out of the routers of `netem`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use muse_netem::{Firewall, NatId, NatKind, Network, NodeId};
use muse_wire::Duration;

use super::kind::{Kind, Way};

/// A host and a guest, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pair {
    /// Each in a network of its own: the host's kind, and the guest's.
    Apart(Kind, Kind),
    /// Customers of one provider behind one NAT, each with a port-restricted router of their own.
    OneProvider {
        /// True if the provider's NAT lets its customers reach each other by their external addresses.
        hairpins: bool,
    },
    /// Behind one router, with ports drawn at random.
    OneHome,
}

impl Pair {
    /// All pairs of kinds, and those that share a router.
    pub fn all() -> Vec<Self> {
        let mut pairs = Vec::new();
        for host in Kind::ALL {
            pairs.extend(Kind::ALL.map(|guest| Self::Apart(host, guest)));
        }
        pairs.extend([true, false].map(|hairpins| Self::OneProvider { hairpins }));
        pairs.push(Self::OneHome);
        pairs
    }

    /// The way that there should be between them.
    pub fn way(self) -> Way {
        match self {
            Self::Apart(host, guest) => host.way_to(guest),
            Self::OneProvider { hairpins: false } => Way::Relayed,
            Self::OneProvider { hairpins: true } | Self::OneHome => Way::Direct,
        }
    }

    /// A name without blanks.
    pub fn name(self) -> String {
        match self {
            Self::Apart(host, guest) => format!("{}/{}", host.name(), guest.name()),
            Self::OneProvider { hairpins: true } => "one-provider".to_owned(),
            Self::OneProvider { hairpins: false } => "one-provider-without-hairpinning".to_owned(),
            Self::OneHome => "one-home".to_owned(),
        }
    }

    pub(super) fn build(self, network: &mut Network) -> [Place; 2] {
        match self {
            Self::Apart(host, guest) => {
                [(host, 1), (guest, 2)].map(|(kind, number)| Place::new(network, kind, number))
            }
            Self::OneProvider { hairpins } => {
                let provider = provider(network, 1);
                network.set_hairpinning(provider, hairpins);
                [1, 2].map(|number| Place::at_provider(network, provider, number))
            }
            Self::OneHome => {
                let home = network.add_nat(NatKind::Symmetric, external(1), FORGETS_AFTER);
                [1, 2].map(|number| Place::behind(network, vec![home], number))
            }
        }
    }
}

/// The place of one player.
pub(super) struct Place {
    pub(super) node: NodeId,
    /// The address of its socket.
    pub(super) inside: SocketAddr,
    /// The relay, as it is reached from there.
    pub(super) relay: SocketAddr,
    routers: Vec<NatId>,
    /// Another machine behind the same router.
    housemate: Option<SocketAddr>,
    pub(super) has_firewall: bool,
}

impl Place {
    fn new(network: &mut Network, kind: Kind, number: u8) -> Self {
        let nat = match kind {
            Kind::Open | Kind::Firewall | Kind::Blocked => {
                return Self::public(network, kind, number);
            }
            Kind::Nat64 => return Self::ipv6(network, number),
            Kind::Provider => {
                let provider = provider(network, number);
                return Self::at_provider(network, provider, number);
            }
            Kind::FullCone => NatKind::FullCone,
            Kind::AddressRestricted => NatKind::AddressRestricted,
            Kind::PortRestricted => NatKind::PortRestricted,
            Kind::Counted => NatKind::SymmetricCounted,
            Kind::Random => NatKind::Symmetric,
        };
        let home = network.add_nat(nat, external(number), FORGETS_AFTER);
        let mut place = Self::behind(network, vec![home], number);
        let housemate = SocketAddr::from(([192, 168, number, 3], 5_000));
        network.add_node_behind(home, housemate);
        place.housemate = Some(housemate);
        place
    }

    fn public(network: &mut Network, kind: Kind, number: u8) -> Self {
        let inside = SocketAddr::from(([198, 51, 100, number], 5_000));
        let node = network.add_node(inside);
        match kind {
            Kind::Firewall => network.set_firewall(node, Firewall::OutOnly(FORGETS_AFTER)),
            Kind::Blocked => network.set_firewall(node, Firewall::Blocked),
            _ => {}
        }
        Self {
            node,
            inside,
            relay: RELAY,
            routers: Vec::new(),
            housemate: None,
            has_firewall: kind == Kind::Firewall,
        }
    }

    fn ipv6(network: &mut Network, number: u8) -> Self {
        let kind = NatKind::AddressRestricted;
        let nat64 = network.add_nat64(kind, PREFIX, external(number), FORGETS_AFTER);
        let ip = Ipv6Addr::new(0x2001, 0xDB8, 0, u16::from(number), 0, 0, 0, 2);
        let inside = SocketAddr::from((ip, 5_000));
        let mut relay = PREFIX.octets();
        relay[12..].copy_from_slice(&RELAY_IP.octets());
        Self {
            node: network.add_ipv6_node(nat64, inside),
            inside,
            relay: SocketAddr::from((relay, RELAY.port())),
            routers: vec![nat64],
            housemate: None,
            has_firewall: false,
        }
    }

    fn at_provider(network: &mut Network, provider: NatId, number: u8) -> Self {
        let (kind, external) = (NatKind::PortRestricted, IpAddr::from([100, 64, number, 2]));
        let home = network.add_nat_behind(provider, kind, external, FORGETS_AFTER);
        Self::behind(network, vec![home, provider], number)
    }

    fn behind(network: &mut Network, routers: Vec<NatId>, number: u8) -> Self {
        let inside = SocketAddr::from(([192, 168, number, 2], 5_000));
        Self {
            node: network.add_node_behind(routers[0], inside),
            inside,
            relay: RELAY,
            routers,
            housemate: None,
            has_firewall: false,
        }
    }

    /// True if there is something that can forget whom the player has sent to.
    pub(super) fn can_forget(&self) -> bool {
        self.has_firewall || !self.routers.is_empty()
    }

    /// Every router on the way restarts.
    pub(super) fn forget(&self, network: &mut Network) {
        for router in &self.routers {
            network.rebind(*router);
        }
        network.reset_firewall(self.node);
    }

    /// Another machine behind the router opens a connection to somewhere.
    pub(super) fn disturb(&self, network: &mut Network, now: muse_wire::Instant, port: u16) {
        if let Some(housemate) = self.housemate {
            let somewhere = SocketAddr::from(([192, 0, 2, 77], port));
            network.send(now, housemate, somewhere, muse_wire::Ecn::NotCapable, b"?");
        }
    }
}

fn external(number: u8) -> IpAddr {
    IpAddr::from([203, 0, 113, 10 + number])
}

/// A provider's NAT: one port for everybody, as RFC 6888 demands.
fn provider(network: &mut Network, number: u8) -> NatId {
    network.add_nat(NatKind::PortRestricted, external(number), FORGETS_AFTER)
}

const RELAY_IP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub(super) const RELAY: SocketAddr = SocketAddr::new(IpAddr::V4(RELAY_IP), 7_788);
/// The prefix of RFC 6052.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, 0, 0);
/// As quick as home routers are.
const FORGETS_AFTER: Duration = Duration::from_secs(30);
