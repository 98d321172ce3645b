//! Cookies: proof that a client receives at the address it sends from, without remembering anything about it.

use std::net::{IpAddr, SocketAddr};

use hkdf::hmac::{Hmac, KeyInit, Mac};
use muse_wire::{Duration, Instant};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::ClientRandom;
use crate::crypto::{SECRET_LEN, Secret, expand};

/// Makes and checks cookies with a key that is replaced every minute; the key before is still good.
///
/// Jars with the same secret take each other's cookies if their clocks are less than a second apart.
pub(super) struct CookieJar {
    secret: Secret,
    epoch: u64,
    current: Hmac<Sha256>,
    previous: Hmac<Sha256>,
}

impl CookieJar {
    pub(super) fn new(secret: Secret) -> Self {
        let current = key_of(&secret, 0);
        Self {
            previous: current.clone(),
            current,
            secret,
            epoch: 0,
        }
    }

    /// A cookie for the client at `from` that says `random`.
    pub(super) fn bake(
        &mut self,
        now: Instant,
        from: SocketAddr,
        random: &ClientRandom,
    ) -> [u8; COOKIE_LEN] {
        self.rotate(now);
        let time = (now.as_millis() as u32).to_le_bytes();
        let mut cookie = [0; COOKIE_LEN];
        cookie[..TIME_LEN].copy_from_slice(&time);
        cookie[TIME_LEN..].copy_from_slice(&tag(self.current.clone(), time, from, random));
        cookie
    }

    /// True if the cookie was made here for this client, not long ago.
    pub(super) fn check(
        &mut self,
        now: Instant,
        from: SocketAddr,
        random: &ClientRandom,
        cookie: &[u8; COOKIE_LEN],
    ) -> bool {
        self.rotate(now);
        let (Some(time), Some(claimed)) = (
            cookie.first_chunk::<TIME_LEN>(),
            cookie.last_chunk::<TAG_LEN>(),
        ) else {
            return false;
        };
        // Wraps with the clock's 32 bits; negative if another jar made it, whose clock is ahead.
        let age_ms = (now.as_millis() as u32).wrapping_sub(u32::from_le_bytes(*time)) as i32;
        if age_ms > LIFETIME.as_millis() as i32 || age_ms < -SKEW_MS {
            return false;
        }
        let baked_ms = now.as_millis().saturating_add_signed(-i64::from(age_ms));
        let key = match epoch_of(baked_ms) {
            epoch if epoch == self.epoch => self.current.clone(),
            epoch if epoch + 1 == self.epoch => self.previous.clone(),
            epoch => key_of(&self.secret, epoch),
        };
        tag(key, *time, from, random).ct_eq(claimed).into()
    }

    fn rotate(&mut self, now: Instant) {
        let epoch = epoch_of(now.as_millis());
        if epoch <= self.epoch {
            return;
        }
        self.current = key_of(&self.secret, epoch);
        self.previous = key_of(&self.secret, epoch - 1);
        self.epoch = epoch;
    }
}

fn epoch_of(millis: u64) -> u64 {
    millis / ROTATION.as_millis()
}

/// The key of one minute: of the first the secret itself, of the others a part that follows from it, so that jars agree whatever they have seen.
fn key_of(secret: &Secret, epoch: u64) -> Hmac<Sha256> {
    let mut key = secret.clone();
    if epoch > 0 {
        let info: [&[u8]; 2] = [b"muse cookie", &epoch.to_le_bytes()];
        expand(secret, &info, &mut key[..]);
    }
    Hmac::new_from_slice(&key[..]).expect("HMAC takes keys of any length")
}

fn tag(
    mut mac: Hmac<Sha256>,
    time: [u8; TIME_LEN],
    from: SocketAddr,
    random: &ClientRandom,
) -> [u8; TAG_LEN] {
    let ip = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    mac.update(&time);
    mac.update(&ip.octets());
    mac.update(&from.port().to_le_bytes());
    mac.update(random);
    let full: [u8; SECRET_LEN] = mac.finalize().into_bytes().into();
    *full.first_chunk().expect("a tag is shorter than a hash")
}

/// Time and tag.
pub(super) const COOKIE_LEN: usize = TIME_LEN + TAG_LEN;
const TIME_LEN: usize = 4;
const TAG_LEN: usize = 16;
/// The time for which a cookie is good.
pub(super) const LIFETIME: Duration = Duration::from_secs(10);
/// The difference between the clocks of two jars that take each other's cookies.
const SKEW_MS: i32 = 1_000;
/// The time for which its key is used; longer than a cookie lives.
const ROTATION: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(seed: u8) -> CookieJar {
        CookieJar::new(Secret::new([seed; SECRET_LEN]))
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_cookie_holds_for_its_client_and_ten_seconds_across_rotations() {
        let from = address("192.0.2.1:5000");
        for start_ms in [
            0,
            49_999,
            51_000,
            59_999,
            60_000,
            119_000,
            5_000_000,
            u64::from(u32::MAX) - 5_000,
            1 << 40,
        ] {
            let mut jar = jar(1);
            let start = Instant::from_millis(start_ms);
            let cookie = jar.bake(start, from, &[1; 16]);
            assert!(jar.check(start, from, &[1; 16], &cookie), "{start_ms}");
            assert!(!jar.check(start, address("192.0.2.1:5001"), &[1; 16], &cookie));
            assert!(!jar.check(start, address("192.0.2.2:5000"), &[1; 16], &cookie));
            assert!(!jar.check(start, from, &[2; 16], &cookie));
            for byte in 0..COOKIE_LEN {
                let mut forged = cookie;
                forged[byte] ^= 1;
                assert!(!jar.check(start, from, &[1; 16], &forged), "byte {byte}");
            }
            assert!(
                jar.check(start + LIFETIME, from, &[1; 16], &cookie),
                "{start_ms}"
            );
            assert!(!jar.check(
                start + LIFETIME + Duration::from_millis(1),
                from,
                &[1; 16],
                &cookie
            ));
        }
    }

    #[test]
    fn another_server_does_not_take_it() {
        let from = address("[2001:db8::1]:5000");
        let cookie = jar(1).bake(Instant::ZERO, from, &[1; 16]);
        let mut other = jar(2);
        assert!(!other.check(Instant::ZERO, from, &[1; 16], &cookie));
    }

    #[test]
    fn another_shard_takes_it_although_its_clock_is_a_little_different() {
        let from = address("192.0.2.1:5000");
        for start_ms in [59_900, 60_000, 119_500, 5_000_000] {
            for (ahead_ms, good) in [(0, true), (-900, true), (9_000, true), (-1_100, false)] {
                let (mut one, mut other) = (jar(1), jar(1));
                let cookie = one.bake(Instant::from_millis(start_ms), from, &[1; 16]);
                let there = Instant::from_millis(start_ms.saturating_add_signed(ahead_ms));
                let taken = other.check(there, from, &[1; 16], &cookie);
                assert_eq!(taken, good, "{start_ms} {ahead_ms}");
            }
        }
    }
}
