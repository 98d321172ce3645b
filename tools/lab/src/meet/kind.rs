//! Ten kinds of networks, and the ways that there are between any two of them.

/// The network that a player is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A public address, and nothing in front of it.
    Open,
    /// A router with one port for everybody, open to everybody.
    FullCone,
    /// A router with one port for everybody, open to addresses that were sent to.
    AddressRestricted,
    /// A router with one port for everybody, open to addresses and ports that were sent to.
    PortRestricted,
    /// A router with a port for each destination, counting up.
    Counted,
    /// A router with a port for each destination, drawn at random.
    Random,
    /// A port-restricted router, and the provider's NAT of the same kind in front of it.
    Provider,
    /// A public address, and a firewall that lets UDP out and answers in.
    Firewall,
    /// A firewall that lets no UDP through.
    Blocked,
    /// IPv6 alone, and a NAT64 for IPv4.
    Nat64,
}

/// The way between two players, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From one to the other.
    Direct,
    /// Through the relay.
    Relayed,
    /// None.
    None,
}

impl Kind {
    /// All of them, in the order of [`TABLE`].
    pub const ALL: [Self; 10] = [
        Self::Open,
        Self::FullCone,
        Self::AddressRestricted,
        Self::PortRestricted,
        Self::Counted,
        Self::Random,
        Self::Provider,
        Self::Firewall,
        Self::Blocked,
        Self::Nat64,
    ];

    /// A short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::FullCone => "full-cone",
            Self::AddressRestricted => "address",
            Self::PortRestricted => "port",
            Self::Counted => "counted",
            Self::Random => "random",
            Self::Provider => "provider",
            Self::Firewall => "firewall",
            Self::Blocked => "blocked",
            Self::Nat64 => "nat64",
        }
    }

    /// The way that mapping and filtering permit between a host and a guest.
    ///
    /// Two ports that do not depend on the destination can always be learned from the relay. One that does depend on it is learned from the first packet that
    /// gets through, or guessed if it counts up; two that do are not found.
    pub fn way_to(self, guest: Self) -> Way {
        let (one, other) = (self.rules(), guest.rules());
        match (one.mapping, other.mapping) {
            (Mapping::None, _) | (_, Mapping::None) => Way::None,
            (Mapping::Fixed, Mapping::Fixed | Mapping::Counted)
            | (Mapping::Counted, Mapping::Fixed) => Way::Direct,
            (Mapping::Fixed, Mapping::Random) if !one.knows_ports => Way::Direct,
            (Mapping::Random, Mapping::Fixed) if !other.knows_ports => Way::Direct,
            _ => Way::Relayed,
        }
    }

    fn rules(self) -> Rules {
        let (mapping, knows_ports) = match self {
            Self::Open | Self::FullCone | Self::AddressRestricted | Self::Nat64 => {
                (Mapping::Fixed, false)
            }
            Self::PortRestricted | Self::Provider | Self::Firewall => (Mapping::Fixed, true),
            Self::Counted => (Mapping::Counted, true),
            Self::Random => (Mapping::Random, true),
            Self::Blocked => (Mapping::None, true),
        };
        Rules {
            mapping,
            knows_ports,
        }
    }
}

impl Way {
    /// Its letter in a [`TABLE`].
    pub const fn letter(self) -> char {
        match self {
            Self::Direct => 'D',
            Self::Relayed => 'R',
            Self::None => '-',
        }
    }
}

struct Rules {
    mapping: Mapping,
    /// True if a packet gets in only from a port that was sent to.
    knows_ports: bool,
}

/// The port of a player, seen from outside.
#[derive(Clone, Copy)]
enum Mapping {
    /// There is none.
    None,
    /// The same for every destination.
    Fixed,
    /// The next one for each destination.
    Counted,
    /// Any for each destination.
    Random,
}

/// The ways between hosts (rows) and guests (columns) of each kind, as [`Kind::ALL`] has them: direct, relayed, or none.
pub const TABLE: [&str; 10] = [
    "DDDDDDDD-D", // open
    "DDDDDDDD-D", // full cone
    "DDDDDDDD-D", // address-restricted
    "DDDDDRDD-D", // port-restricted
    "DDDDRRDD-D", // counted
    "DDDRRRRR-D", // random
    "DDDDDRDD-D", // provider
    "DDDDDRDD-D", // firewall
    "----------", // blocked
    "DDDDDDDD-D", // NAT64
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_mapping_and_filtering_permit() {
        for (host, row) in Kind::ALL.into_iter().zip(TABLE) {
            let derived: String = Kind::ALL
                .into_iter()
                .map(|guest| host.way_to(guest).letter())
                .collect();
            assert_eq!(derived, row, "{host:?}");
        }
    }
}
