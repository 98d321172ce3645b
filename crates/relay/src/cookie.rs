//! Proof that somebody receives at an address, without remembering anything about it.

use std::net::{IpAddr, SocketAddr};

use hkdf::hmac::{Hmac, KeyInit, Mac};
use muse_wire::keyed::Keyed;
use muse_wire::{Duration, Instant};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The time at which it was made (4 bytes, milliseconds) and a code of 16 bytes over time, address and what it is for.
pub(super) type Cookie = [u8; COOKIE_LEN];

/// Makes and checks cookies, and draws random numbers that nobody can foresee.
pub(super) struct Secrets {
    key: Hmac<Sha256>,
    drawn: u64,
}

impl Secrets {
    pub(super) fn new(seed: &[u8; 32]) -> Self {
        Self {
            key: Hmac::new_from_slice(seed).expect("HMAC takes keys of any length"),
            drawn: 0,
        }
    }

    /// A cookie for `address`, good for `subject` alone.
    pub(super) fn bake(&self, now: Instant, address: SocketAddr, subject: u64) -> Cookie {
        self.tagged(now.as_millis() as u32, address, subject)
    }

    /// True if the cookie was made here for this address and subject, not long ago.
    pub(super) fn check(
        &self,
        now: Instant,
        address: SocketAddr,
        subject: u64,
        cookie: &Cookie,
    ) -> bool {
        let (time, _) = cookie.split_first_chunk().expect("a cookie has 20 bytes");
        let time = u32::from_le_bytes(*time);
        let age_ms = (now.as_millis() as u32).wrapping_sub(time);
        Duration::from_millis(u64::from(age_ms)) <= LIFETIME
            && self.tagged(time, address, subject).ct_eq(cookie).into()
    }

    /// A random number.
    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let mut mac = self.key.clone();
        mac.update(b"draw");
        mac.update(&self.drawn.to_le_bytes());
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        u64::from_le_bytes(*full.first_chunk().expect("a hash has 32 bytes"))
    }

    /// The secret of maps whose keys strangers choose.
    pub(super) fn keyed(&self) -> Keyed {
        let mut mac = self.key.clone();
        mac.update(b"keyed");
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        Keyed::new(*full.first_chunk().expect("a hash has 32 bytes"))
    }

    fn tagged(&self, time: u32, address: SocketAddr, subject: u64) -> Cookie {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut mac = self.key.clone();
        mac.update(&time.to_le_bytes());
        mac.update(&ip.octets());
        mac.update(&address.port().to_le_bytes());
        mac.update(&subject.to_le_bytes());
        let full: [u8; 32] = mac.finalize().into_bytes().into();
        let mut cookie = [0; COOKIE_LEN];
        cookie[..TIME_LEN].copy_from_slice(&time.to_le_bytes());
        cookie[TIME_LEN..].copy_from_slice(&full[..COOKIE_LEN - TIME_LEN]);
        cookie
    }
}

pub(super) const COOKIE_LEN: usize = 20;
const TIME_LEN: usize = 4;
const LIFETIME: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_one_subject_and_ten_seconds() {
        let secrets = Secrets::new(&[1; 32]);
        let here = SocketAddr::from(([192, 0, 2, 1], 5));
        let now = Instant::from_secs(100);
        let cookie = secrets.bake(now, here, 7);
        assert!(secrets.check(now + LIFETIME, here, 7, &cookie));
        let late = now + LIFETIME + Duration::from_millis(1);
        assert!(!secrets.check(late, here, 7, &cookie));
        assert!(!secrets.check(now, here, 8, &cookie));
        let there = SocketAddr::from(([192, 0, 2, 1], 6));
        assert!(!secrets.check(now, there, 7, &cookie));
        assert!(!Secrets::new(&[2; 32]).check(now, here, 7, &cookie));
    }

    #[test]
    fn maps_are_hashed_with_a_secret_of_their_relay() {
        use std::hash::BuildHasher;
        let hash = |seed: u8| Secrets::new(&[seed; 32]).keyed().hash_one("a code");
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
    }

    #[test]
    fn draws_differ() {
        let mut secrets = Secrets::new(&[1; 32]);
        assert_ne!(secrets.draw(), secrets.draw());
    }
}
