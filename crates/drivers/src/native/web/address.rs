//! The addresses under which a machine knows browsers.
//!
//! A session of a browser is a stream inside QUIC or TCP and has no address of its own: several may share one. A machine gets an IPv6
//! address from a range that is reserved for this, `fd6d:7573::/32` (a unique local range, "mus"), made up of
//!
//! - 16 bits that stand for the browser's network (IPv4 /24, IPv6 /48) and 16 for its address (IPv4, IPv6 /64), hashed with a
//!   secret, so that limits per address and per prefix hold for browsers as they do for others, and nobody can aim at the
//!   limits of another;
//! - the number of the session, which is never used again.
//!
//! A browser that comes back with a new session so comes from a new address, and the transport moves the connection there.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use muse_wire::net::{customer, neighbourhood};

/// Gives out addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    secret: RandomState,
    next: u64,
}

impl Addresses {
    /// An address for a new session of the browser at `remote`.
    pub(super) fn allot(&mut self, remote: IpAddr) -> SocketAddr {
        let network = self.secret.hash_one((0, neighbourhood(remote))) as u16;
        let host = self.secret.hash_one((1, customer(remote))) as u16;
        let number = self.next;
        self.next += 1;
        let bits = u128::from(PREFIX) << 96
            | u128::from(network) << 80
            | u128::from(host) << 64
            | u128::from(number);
        SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from_bits(bits), PORT, 0, 0))
    }
}

/// True if an address stands for a browser's session. No datagram of another link may come from there.
pub fn is_web_address(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if (ip.to_bits() >> 96) as u32 == PREFIX)
}

/// `fd6d:7573::/32`.
const PREFIX: u32 = 0xFD6D_7573;
/// Stands for nothing; an address has to have one.
const PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: SocketAddr, bits: u32) -> u128 {
        match address.ip() {
            IpAddr::V6(ip) => ip.to_bits() >> (128 - bits),
            IpAddr::V4(_) => 0,
        }
    }

    #[test]
    fn sessions_of_one_place_share_a_prefix_and_no_address() {
        let mut addresses = Addresses::default();
        let home: IpAddr = "203.0.113.5".parse().expect("an address");
        let mapped: IpAddr = "::ffff:203.0.113.5".parse().expect("an address");
        let (first, second) = (addresses.allot(home), addresses.allot(mapped));
        assert_ne!(first, second);
        assert_eq!(prefix(first, 64), prefix(second, 64));
        assert!(is_web_address(first) && is_web_address(second));
        // A neighbour shares the network. That all ten share the address as well has a chance of 2^-160.
        let neighbours: Vec<_> = (6..16)
            .map(|host| addresses.allot(IpAddr::from([203, 0, 113, host])))
            .collect();
        assert!(
            neighbours
                .iter()
                .all(|near| prefix(*near, 48) == prefix(first, 48))
        );
        assert!(
            neighbours
                .iter()
                .any(|near| prefix(*near, 64) != prefix(first, 64))
        );
    }

    #[test]
    fn other_addresses_are_no_browsers() {
        for text in ["127.0.0.1:443", "[::1]:443", "[fd6d:7574::1]:443"] {
            assert!(!is_web_address(text.parse().expect("an address")), "{text}");
        }
    }
}
