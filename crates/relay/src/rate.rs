//! Rates with bursts: of a room in packets and bytes, of addresses in requests.

use std::net::SocketAddr;

use muse_wire::Instant;
use muse_wire::net::customer;
use muse_wire::rate::{Rate, TokenBucket};

/// The allowance of a room that is left now, in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    packets: TokenBucket,
    bytes: TokenBucket,
}

impl Meter {
    pub(super) fn full(now: Instant, rates: &Rates) -> Self {
        Self {
            packets: TokenBucket::full(now, rates.packets),
            bytes: TokenBucket::full(now, rates.bytes),
        }
    }

    /// True if a datagram may pass, which is then counted.
    #[inline]
    pub(super) fn admit(&mut self, now: Instant, rates: &Rates, len: usize) -> bool {
        let len = len as u64;
        if !self.packets.has(now, rates.packets, 1) || !self.bytes.has(now, rates.bytes, len) {
            return false;
        }
        self.packets.take(1);
        self.bytes.take(len);
        true
    }
}

/// The rates that all meters go by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) packets: Rate,
    pub(super) bytes: Rate,
}

/// Requests per address, counted in fixed memory: addresses that fall on the same bucket share it.
#[derive(Debug)]
pub(super) struct Addresses {
    seed: u64,
    rate: Rate,
    buckets: Vec<TokenBucket>,
}

impl Addresses {
    pub(super) fn new(now: Instant, seed: u64, rate: Rate) -> Self {
        Self {
            seed,
            rate,
            buckets: vec![TokenBucket::full(now, rate); ADDRESS_BUCKETS],
        }
    }

    pub(super) fn admit(&mut self, now: Instant, address: SocketAddr) -> bool {
        let key = customer(address.ip());
        let mixed = (key ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed =
            (mixed ^ mixed >> 32 ^ self.seed.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let index = (mixed >> 32) as usize % ADDRESS_BUCKETS;
        self.buckets[index].admit(now, self.rate, 1)
    }
}

const ADDRESS_BUCKETS: usize = 4_096;

#[cfg(test)]
mod tests {
    use muse_wire::Duration;

    use super::*;

    #[test]
    fn a_meter_stops_at_whichever_limit_comes_first() {
        let second = Duration::from_secs(1);
        let rates = Rates {
            packets: Rate::over(10, second),
            bytes: Rate::over(1_000, second),
        };
        let mut meter = Meter::full(Instant::ZERO, &rates);
        let small = (0..20).filter(|_| meter.admit(Instant::ZERO, &rates, 10));
        assert_eq!(small.count(), 10);
        let mut meter = Meter::full(Instant::ZERO, &rates);
        let large = (0..20).filter(|_| meter.admit(Instant::ZERO, &rates, 300));
        assert_eq!(large.count(), 3);
        let later = Instant::from_millis(200);
        assert!(meter.admit(later, &rates, 300));
        assert!(!meter.admit(later, &rates, 1));
    }

    #[test]
    fn addresses_have_buckets_of_their_own() {
        let rate = Rate::over(2, Duration::from_secs(1));
        let mut addresses = Addresses::new(Instant::ZERO, 5, rate);
        let from = |last| SocketAddr::from(([192, 0, 2, last], 1));
        let passed = (0..10).filter(|_| addresses.admit(Instant::ZERO, from(1)));
        assert_eq!(passed.count(), 2);
        assert!(addresses.admit(Instant::ZERO, from(2)));
    }
}
