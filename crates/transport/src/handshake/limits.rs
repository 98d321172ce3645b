//! Limits on the cost of strangers: operations with public keys, replies, and handshakes per address and prefix.
//!
//! All in fixed memory: rates per address are kept in hashed cells, whose key is secret, so that nobody can aim at
//! another's cell.

use std::hash::BuildHasher;
use std::net::SocketAddr;

use muse_wire::Instant;
use muse_wire::keyed::Keyed;
use muse_wire::net::{customer, neighbourhood};
use muse_wire::rate::{Rate, TokenBucket};

use crate::crypto::{Entropy, draw_keyed};

/// The most that a server spends on strangers. Each pair is a rate per second and how much may come at once, at
/// least one.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeLimits {
    operations: Rate,
    replies: Rate,
    descriptions: Rate,
    address: Rate,
    prefix: Rate,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            operations: Rate::new(4_000, 128),
            replies: Rate::new(10_000, 1_000),
            descriptions: Rate::new(1_000, 500),
            address: Rate::new(64, 512),
            prefix: Rate::new(256, 2_048),
        }
    }
}

impl HandshakeLimits {
    /// Operations with public keys, 4,000 a second and 128 at once by default. One takes about 50 us; a handshake
    /// takes 4, with a token 7. Beyond the limit a Connect is dropped and the client tries again.
    pub fn operations(mut self, per_second: u32, burst: u32) -> Self {
        self.operations = rate(per_second, burst.max(OPERATIONS_BURST_MIN));
        self
    }

    /// Cookies and refusals, 10,000 a second and 1,000 at once by default: what a flood with false addresses costs
    /// in sending.
    pub fn replies(mut self, per_second: u32, burst: u32) -> Self {
        self.replies = rate(per_second, burst);
        self
    }

    /// Pages of the description for clients that do not share it, about 1 kB each, 1,000 a second and 500 at once by default.
    pub fn descriptions(mut self, per_second: u32, burst: u32) -> Self {
        self.descriptions = rate(per_second, burst);
        self
    }

    /// Handshakes from one IPv4 address or IPv6 /64, once proven; 64 a second and 512 at once by default. Players behind
    /// one NAT or relay share it. Loopback is exempt.
    pub fn per_address(mut self, per_second: u32, burst: u32) -> Self {
        self.address = rate(per_second, burst);
        self
    }

    /// Handshakes from one IPv4 /24 or IPv6 /48, once proven; 256 a second and 2,048 at once by default.
    pub fn per_prefix(mut self, per_second: u32, burst: u32) -> Self {
        self.prefix = rate(per_second, burst);
        self
    }
}

fn rate(per_second: u32, burst: u32) -> Rate {
    Rate::new(per_second.max(1), burst.max(1))
}

/// The state of all limits.
pub(super) struct Limiter {
    limits: HandshakeLimits,
    operations: TokenBucket,
    replies: TokenBucket,
    descriptions: TokenBucket,
    cells: [Vec<TokenBucket>; ROWS],
    keyed: Keyed,
}

impl Limiter {
    pub(super) fn new(limits: HandshakeLimits, entropy: &mut dyn Entropy) -> Self {
        let full = |rate| TokenBucket::full(Instant::ZERO, rate);
        let HandshakeLimits {
            address, prefix, ..
        } = limits;
        Self {
            limits,
            operations: full(limits.operations),
            replies: full(limits.replies),
            descriptions: full(limits.descriptions),
            cells: [address, address, prefix, prefix].map(|rate| vec![full(rate); CELLS]),
            keyed: draw_keyed(entropy),
        }
    }

    /// True if `cost` operations with public keys may be done now.
    pub(super) fn operations(&mut self, now: Instant, cost: u32) -> bool {
        self.operations
            .admit(now, self.limits.operations, cost.into())
    }

    /// True if a reply may be sent now.
    pub(super) fn reply(&mut self, now: Instant) -> bool {
        self.replies.admit(now, self.limits.replies, 1)
    }

    /// True if a page of the description may be sent now.
    pub(super) fn description(&mut self, now: Instant) -> bool {
        self.descriptions.admit(now, self.limits.descriptions, 1)
    }

    /// True if a proven address may begin another handshake now.
    pub(super) fn handshake(&mut self, now: Instant, from: SocketAddr) -> bool {
        let ip = from.ip().to_canonical();
        if ip.is_loopback() {
            return true;
        }
        let (address, prefix) = (customer(ip), neighbourhood(ip));
        let (per_address, per_prefix) = (self.limits.address, self.limits.prefix);
        // Two rows for each: strangers share one cell by chance, hardly two. Rows 0 and 1 are addresses, 2 and 3 prefixes.
        self.take_either([0, 1], address, per_address, now)
            && self.take_either([2, 3], prefix, per_prefix, now)
    }

    fn take_either(&mut self, rows: [u8; 2], key: u64, rate: Rate, now: Instant) -> bool {
        rows.into_iter().fold(false, |taken, row| {
            let cell = self.cell(row, key);
            self.cells[usize::from(row)][cell].admit(now, rate, 1) || taken
        })
    }

    fn cell(&self, row: u8, key: u64) -> usize {
        self.keyed.hash_one((row, key)) as usize % CELLS
    }
}

const ROWS: usize = 4;
const CELLS: usize = 1_024;
/// A handshake with a token must fit, or nobody would ever come in.
const OPERATIONS_BURST_MIN: u32 = 8;

#[cfg(test)]
mod tests {
    use muse_wire::Duration;

    use super::*;
    use crate::SeededEntropy;

    fn limiter(limits: HandshakeLimits) -> Limiter {
        Limiter::new(limits, &mut SeededEntropy::danger_seeded(3))
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut limiter = limiter(HandshakeLimits::default().operations(1_000, 64));
        let start = Instant::from_secs(5);
        assert_eq!(
            (0..1_000).filter(|_| limiter.operations(start, 1)).count(),
            64
        );
        let later = start + Duration::from_millis(16);
        assert_eq!(
            (0..1_000).filter(|_| limiter.operations(later, 4)).count(),
            4
        );
        let much_later = start + Duration::from_secs(3_600);
        assert_eq!(
            (0..1_000)
                .filter(|_| limiter.operations(much_later, 1))
                .count(),
            64
        );
    }

    #[test]
    fn one_address_is_limited_and_others_are_not() {
        let mut limiter = limiter(
            HandshakeLimits::default()
                .per_address(1, 10)
                .per_prefix(1, 20),
        );
        let now = Instant::from_secs(1);
        let mut allowed = |text: &str, count: usize| {
            let from: SocketAddr = text.parse().expect("an address");
            (0..count).filter(|_| limiter.handshake(now, from)).count()
        };
        assert_eq!(allowed("198.51.100.1:1", 100), 10);
        assert_eq!(
            allowed("[::ffff:198.51.100.1]:2", 100),
            0,
            "the same address in another guise"
        );
        assert_eq!(
            allowed("198.51.100.2:1", 100),
            10,
            "the prefix allows ten more"
        );
        assert_eq!(allowed("198.51.100.3:1", 100), 0);
        assert_eq!(allowed("203.0.113.1:1", 5), 5);
        assert_eq!(allowed("[2001:db8::1]:1", 5), 5);
        assert_eq!(
            allowed("[2001:db8::ffff]:1", 100),
            5,
            "one /64 is one address"
        );
        assert_eq!(
            allowed("[2001:db8:0:7::1]:1", 100),
            10,
            "the /48 allows ten more"
        );
        assert_eq!(allowed("[2001:db8:0:8::1]:1", 100), 0);
        assert_eq!(allowed("127.0.0.1:1", 5_000), 5_000);
    }
}
