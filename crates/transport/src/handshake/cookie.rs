//! Cookies: proof that a client receives at the address it sends from, without remembering anything about it.

use std::net::{IpAddr, SocketAddr};

use hkdf::hmac::{Hmac, KeyInit, Mac};
use muse_wire::{Duration, Instant};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::ClientRandom;
use crate::crypto::{Entropy, SECRET_LEN, Secret, expand};

/// Makes and checks cookies with a key that is replaced every minute; the key before is still good.
pub(super) struct CookieJar {
    secret: Secret,
    epoch: u64,
    current: Hmac<Sha256>,
    previous: Hmac<Sha256>,
}

impl CookieJar {
    pub(super) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut secret = Secret::new([0; SECRET_LEN]);
        entropy.fill(&mut secret[..]);
        let current = keyed(&secret);
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
        let age_ms = (now.as_millis() as u32).wrapping_sub(u32::from_le_bytes(*time));
        let age = Duration::from_millis(u64::from(age_ms));
        if age > LIFETIME {
            return false;
        }
        let same_epoch = epoch_of(now.as_millis().saturating_sub(u64::from(age_ms))) == self.epoch;
        let key = if same_epoch {
            &self.current
        } else {
            &self.previous
        };
        tag(key.clone(), *time, from, random).ct_eq(claimed).into()
    }

    fn rotate(&mut self, now: Instant) {
        let epoch = epoch_of(now.as_millis());
        if epoch <= self.epoch {
            return;
        }
        let mut next = Secret::new([0; SECRET_LEN]);
        expand(
            &self.secret,
            &[b"muse cookie", &epoch.to_le_bytes()],
            &mut next[..],
        );
        self.secret = next;
        let current = keyed(&self.secret);
        // After a long pause the key before is too old for any living cookie, whatever it is.
        self.previous = std::mem::replace(&mut self.current, current);
        self.epoch = epoch;
    }
}

fn epoch_of(millis: u64) -> u64 {
    millis / ROTATION.as_millis()
}

fn keyed(secret: &Secret) -> Hmac<Sha256> {
    Hmac::new_from_slice(&secret[..]).expect("HMAC takes keys of any length")
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
/// The time for which its key is used; longer than a cookie lives.
const ROTATION: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;

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
            let mut jar = CookieJar::new(&mut SeededEntropy::danger_seeded(1));
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
        let cookie = CookieJar::new(&mut SeededEntropy::danger_seeded(1)).bake(
            Instant::ZERO,
            from,
            &[1; 16],
        );
        let mut other = CookieJar::new(&mut SeededEntropy::danger_seeded(2));
        assert!(!other.check(Instant::ZERO, from, &[1; 16], &cookie));
    }
}
