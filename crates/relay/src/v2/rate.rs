//! Rates with bursts: of a room in packets and bytes, of addresses in requests.

use std::net::{IpAddr, SocketAddr};

use muse_wire::{Duration, Instant};

/// The amount that a room may still send now, in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    packets: Bucket,
    bytes: Bucket,
}

impl Meter {
    pub(super) fn full(now: Instant, rates: &Rates) -> Self {
        Self {
            packets: Bucket::full(now, rates.packets),
            bytes: Bucket::full(now, rates.bytes),
        }
    }

    /// True if a datagram may pass; it counts if so.
    #[inline]
    pub(super) fn admit(&mut self, now: Instant, rates: &Rates, len: usize) -> bool {
        self.packets.fill(now, rates.packets);
        self.bytes.fill(now, rates.bytes);
        let len = (len as u64).saturating_mul(MILLIONTHS);
        if self.packets.level < MILLIONTHS || self.bytes.level < len {
            return false;
        }
        self.packets.level -= MILLIONTHS;
        self.bytes.level -= len;
        true
    }
}

/// The rates that all meters go by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) packets: Rate,
    pub(super) bytes: Rate,
}

/// So much a second, and at most so much at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    per_second: u64,
    /// In millionths.
    burst: u64,
}

impl Rate {
    /// `window` says how long it takes to fill up.
    pub(super) fn new(per_second: u32, window: Duration) -> Self {
        let burst = u64::from(per_second).saturating_mul(window.as_micros());
        Self {
            per_second: u64::from(per_second),
            burst: burst.max(MILLIONTHS),
        }
    }
}

/// Fills steadily and is emptied by what passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// In millionths, so that a microsecond's share is exact.
    level: u64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn full(now: Instant, rate: Rate) -> Self {
        Self {
            level: rate.burst,
            filled: now,
        }
    }

    /// True if one more may pass; it counts if so.
    pub(super) fn admit(&mut self, now: Instant, rate: Rate) -> bool {
        self.fill(now, rate);
        let passes = self.level >= MILLIONTHS;
        if passes {
            self.level -= MILLIONTHS;
        }
        passes
    }

    #[inline]
    fn fill(&mut self, now: Instant, rate: Rate) {
        let passed = now.saturating_since(self.filled).as_micros();
        if passed > 0 {
            let gained = passed.saturating_mul(rate.per_second);
            self.level = self.level.saturating_add(gained).min(rate.burst);
            self.filled = now;
        }
    }
}

/// Requests per address, counted in fixed memory: addresses that fall on the same bucket share it.
#[derive(Debug)]
pub(super) struct Addresses {
    seed: u64,
    rate: Rate,
    buckets: Vec<Bucket>,
}

impl Addresses {
    pub(super) fn new(now: Instant, seed: u64, rate: Rate) -> Self {
        Self {
            seed,
            rate,
            buckets: vec![Bucket::full(now, rate); ADDRESS_BUCKETS],
        }
    }

    pub(super) fn admit(&mut self, now: Instant, address: SocketAddr) -> bool {
        let key = prefix(address);
        let mixed = (key ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed =
            (mixed ^ mixed >> 32 ^ self.seed.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let index = (mixed >> 32) as usize % ADDRESS_BUCKETS;
        self.buckets[index].admit(now, self.rate)
    }
}

/// Returns the prefix that counts as one address: an IPv4 address, or a /64.
pub(super) fn prefix(address: SocketAddr) -> u64 {
    match address.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()) | 0xFFFF << 32,
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

const MILLIONTHS: u64 = 1_000_000;
const ADDRESS_BUCKETS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_stops_at_whichever_limit_comes_first() {
        let second = Duration::from_secs(1);
        let rates = Rates {
            packets: Rate::new(10, second),
            bytes: Rate::new(1_000, second),
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
        let rate = Rate::new(2, Duration::from_secs(1));
        let mut addresses = Addresses::new(Instant::ZERO, 5, rate);
        let from = |last| SocketAddr::from(([192, 0, 2, last], 1));
        let passed = (0..10).filter(|_| addresses.admit(Instant::ZERO, from(1)));
        assert_eq!(passed.count(), 2);
        assert!(addresses.admit(Instant::ZERO, from(2)));
    }
}
