//! Keys that change by themselves: each signs for a while, is known for as long before that, and is kept until what it signed has run out.
//!
//! All masters share a ring through the store and choose by the time, so that nobody has to tell anybody when a key changes. Connect tokens have one whose public halves
//! game servers learn with their match, the current and the next, which is enough for matches of a day; what masters sign for themselves has another.

use muse_transport::token::TokenIssuer;
use serde::{Deserialize, Serialize};

use crate::secrets::{hex, unhex};

/// The keys, as the store keeps them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct KeyRing {
    /// Oldest first; never empty.
    keys: Vec<RingKey>,
}

/// For how long a key signs, and is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyTerms {
    /// Seconds for which a key signs; the next one is known for as long before it does.
    pub(crate) period_s: u64,
    /// Seconds for which it is kept after that.
    pub(crate) kept_s: u64,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(Debug))]
struct RingKey {
    id: u32,
    /// 32 bytes in hexadecimal.
    seed: String,
    /// From when it signs, seconds since 1970.
    from_s: u64,
}

impl KeyRing {
    /// A ring with one key, which signs from the beginning.
    pub(crate) fn new(seed: String) -> Self {
        let (id, from_s) = (1, 0);
        Self {
            keys: vec![RingKey { id, seed, from_s }],
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let keys: Self = serde_json::from_str(text).ok()?;
        (!keys.keys.is_empty()).then_some(keys)
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }

    /// The ring as it should be now: with the next key, and without those whose signatures have all run out.
    pub(crate) fn kept_up(
        &self,
        terms: KeyTerms,
        now_s: u64,
        fresh: impl FnOnce() -> String,
    ) -> Self {
        let mut keys = self.keys.clone();
        let newest = keys.iter().map(|key| (key.from_s, key.id)).max();
        let (from_s, id) = newest.unwrap_or_default();
        if from_s <= now_s {
            keys.push(RingKey {
                id: id.wrapping_add(1),
                seed: fresh(),
                from_s: now_s + terms.period_s,
            });
        }
        // A key signed until the next one began.
        let oldest = self.current(now_s.saturating_sub(terms.kept_s));
        keys.retain(|key| key.from_s >= oldest);
        Self { keys }
    }

    /// The keys themselves: the one that signs now first, then all others, whose signatures are valid.
    pub(crate) fn seeds(&self, now_s: u64) -> Vec<&str> {
        let current = self.current(now_s);
        let (mut seeds, others): (Vec<_>, Vec<_>) =
            self.keys.iter().partition(|key| key.from_s == current);
        seeds.extend(others);
        seeds.into_iter().map(|key| key.seed.as_str()).collect()
    }

    /// Returns what signs now.
    pub(crate) fn issuer(&self, protocol_id: u64, now_s: u64) -> Option<TokenIssuer> {
        let current = self.current(now_s);
        let key = self.keys.iter().find(|key| key.from_s == current)?;
        let seed: [u8; 32] = unhex(&key.seed)?.try_into().ok()?;
        Some(TokenIssuer::from_bytes(protocol_id, key.id, &seed))
    }

    /// The public halves, for game servers.
    pub(crate) fn public(&self) -> Vec<(u32, String)> {
        let public = |key: &RingKey| {
            let seed: [u8; 32] = unhex(&key.seed)?.try_into().ok()?;
            let issuer = TokenIssuer::from_bytes(0, key.id, &seed);
            Some((key.id, hex(&issuer.public_key())))
        };
        self.keys.iter().filter_map(public).collect()
    }

    /// Since when the current key signs.
    fn current(&self, now_s: u64) -> u64 {
        let begun = self.keys.iter().map(|key| key.from_s);
        begun.filter(|from_s| *from_s <= now_s).max().unwrap_or(0)
    }
}

impl KeyTerms {
    /// Those of connect tokens, which live for a day at most; a game server knows the keys of its match.
    pub(crate) const CONNECT_TOKENS: Self = Self {
        period_s: 86_400,
        kept_s: 0,
    };

    /// Those of what masters sign for themselves, with a new key every so many days. Access tokens live for a quarter of an hour and operators' for 8 hours; the credential of a game
    /// server, which has no end of its own, is valid for 30 days after that.
    pub(crate) fn masters(days: u32) -> Self {
        Self {
            period_s: u64::from(days.max(1)) * 86_400,
            kept_s: 30 * 86_400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAILY: KeyTerms = KeyTerms::CONNECT_TOKENS;
    const DAY_S: u64 = DAILY.period_s;

    fn seed(n: u8) -> impl FnOnce() -> String {
        move || hex(&[n; 32])
    }

    #[test]
    fn a_key_is_known_a_day_before_it_signs() {
        let first = KeyRing::new(hex(&[1; 32]));
        let now = 1_000_000;
        let keys = first.kept_up(DAILY, now, seed(2));
        assert_eq!(keys.public().len(), 2);
        assert_eq!(keys.issuer(7, now).map(|issuer| issuer.key_id()), Some(1));
        // Nothing changes until the second one signs.
        assert_eq!(keys.kept_up(DAILY, now + DAY_S - 1, seed(9)), keys);
        let later = now + DAY_S;
        assert_eq!(keys.issuer(7, later).map(|issuer| issuer.key_id()), Some(2));
        let next = keys.kept_up(DAILY, later, seed(3));
        let ids: Vec<u32> = next.public().iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [2, 3]);
        assert!(keys.public().contains(&next.public()[0]));
        assert_eq!(KeyRing::parse(&next.to_text()), Some(next));
    }

    #[test]
    fn a_master_that_was_off_for_a_week_goes_on_with_what_it_has() {
        let keys = KeyRing::new(hex(&[1; 32])).kept_up(DAILY, 1_000, seed(2));
        let now = 1_000 + 7 * DAY_S;
        let keys = keys.kept_up(DAILY, now, seed(3));
        assert_eq!(keys.issuer(7, now).map(|issuer| issuer.key_id()), Some(2));
        assert_eq!(keys.public().len(), 2);
        assert_eq!(KeyRing::parse("{\"keys\":[]}"), None);
    }

    #[test]
    fn old_keys_are_kept_until_what_they_signed_has_run_out() {
        let terms = KeyTerms::masters(90);
        let mut keys = KeyRing::new(hex(&[0; 32]));
        let mut last = Vec::new();
        for day in 0..1_000 {
            let now_s = (20_000 + day) * DAY_S;
            keys = keys.kept_up(terms, now_s, seed(1 + (day / 90) as u8));
            let seeds: Vec<String> = keys.seeds(now_s).into_iter().map(str::to_owned).collect();
            let changed = last.first() != seeds.first();
            // What signed yesterday is valid for 30 days, and what signs today was known 90 days ago.
            if changed && day > 0 {
                assert_eq!(day % 90, 0, "day {day}");
                assert!(seeds.contains(&last[0]) && last.contains(&seeds[0]));
            }
            assert_eq!(
                seeds.len(),
                if day >= 90 && day % 90 < 30 { 3 } else { 2 },
                "day {day}"
            );
            last = seeds;
        }
        assert_eq!(last[0], hex(&[11; 32]));
    }
}
