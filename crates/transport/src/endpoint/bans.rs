//! Addresses from which an endpoint takes nothing any more.

use std::collections::VecDeque;
use std::net::IpAddr;

use muse_wire::keyed::{Keyed, KeyedSet};
use muse_wire::net::customer;

use super::Endpoint;

/// The banned parts of addresses, as [`customer`] tells them apart.
#[derive(Debug)]
pub(super) struct Bans {
    customers: KeyedSet<u64>,
    /// The oldest first.
    order: VecDeque<u64>,
}

impl Bans {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self {
            customers: KeyedSet::with_hasher(keyed),
            order: VecDeque::new(),
        }
    }

    #[inline]
    pub(super) fn contain(&self, ip: IpAddr) -> bool {
        !self.customers.is_empty() && self.customers.contains(&customer(ip))
    }

    fn add(&mut self, ip: IpAddr) {
        let customer = customer(ip);
        if !self.customers.insert(customer) {
            return;
        }
        self.order.push_back(customer);
        if self.order.len() > BANS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.customers.remove(&oldest);
        }
    }
}

impl Endpoint {
    /// Takes nothing more from an IP address (IPv6: its /64), neither packets of connections nor handshakes. Connections from there are
    /// not closed: [`close`](Self::close) tells the peer. Of 4,096 bans the oldest is forgotten for a new one.
    ///
    /// Loopback addresses are exempt: a player on the server's own machine must not lose it.
    pub fn ban(&mut self, ip: IpAddr) {
        if !ip.to_canonical().is_loopback() {
            self.bans.add(ip);
        }
    }

    /// True if nothing is taken from this address.
    pub fn is_banned(&self, ip: IpAddr) -> bool {
        self.bans.contain(ip)
    }
}

/// Bans that are remembered, 16 bytes each.
const BANS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_are_bounded_and_the_oldest_goes_first() {
        let mut bans = Bans::new(Keyed::new([1; 16]));
        let ip = |number: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(number));
        for number in 1..=BANS_MAX as u32 + 1 {
            bans.add(ip(number));
            bans.add(ip(number));
        }
        assert!(!bans.contain(ip(1)));
        assert!(bans.contain(ip(2)) && bans.contain(ip(BANS_MAX as u32 + 1)));
        assert_eq!(bans.customers.len(), BANS_MAX);
    }
}
