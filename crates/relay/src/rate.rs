//! Rates of requests by address.

use std::hash::BuildHasher;
use std::net::SocketAddr;

use muse_wire::Instant;
use muse_wire::keyed::Keyed;
use muse_wire::net::customer;
use muse_wire::rate::{Rate, TokenBucket};

/// Requests per address, counted in fixed memory: addresses that fall on the same bucket share it.
#[derive(Debug)]
pub(super) struct Addresses {
    keyed: Keyed,
    rate: Rate,
    buckets: Vec<TokenBucket>,
}

impl Addresses {
    pub(super) fn new(now: Instant, keyed: Keyed, rate: Rate) -> Self {
        Self {
            keyed,
            rate,
            buckets: vec![TokenBucket::full(now, rate); ADDRESS_BUCKETS],
        }
    }

    pub(super) fn admit(&mut self, now: Instant, address: SocketAddr) -> bool {
        let index = self.keyed.hash_one(customer(address.ip())) as usize % ADDRESS_BUCKETS;
        self.buckets[index].admit(now, self.rate, 1)
    }
}

const ADDRESS_BUCKETS: usize = 4_096;

#[cfg(test)]
mod tests {
    use muse_wire::Duration;

    use super::*;

    #[test]
    fn addresses_have_buckets_of_their_own() {
        let rate = Rate::over(2, Duration::from_secs(1));
        let mut addresses = Addresses::new(Instant::ZERO, Keyed::new([5; 16]), rate);
        let from = |last| SocketAddr::from(([192, 0, 2, last], 1));
        let passed = (0..10).filter(|_| addresses.admit(Instant::ZERO, from(1)));
        assert_eq!(passed.count(), 2);
        assert!(addresses.admit(Instant::ZERO, from(2)));
    }
}
